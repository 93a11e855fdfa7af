//! Finds models by each kind of name: file, folder, address, store, repository.
//! A server on the loopback interface notes the requests.

mod fuzz;
mod generated;
mod local;
mod remote;
mod repository;
