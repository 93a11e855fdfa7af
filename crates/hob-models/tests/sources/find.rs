//! Finds models by each kind of name: file, folder, address, store, repository.
//! A server on the loopback interface notes the requests.

mod fuzz;
mod local;
mod made;
mod remote;
mod repository;
