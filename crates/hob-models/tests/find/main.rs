//! Models by whatever they are called: files, folders, addresses, stores and repositories, all made here.
//! A server on the loopback interface counts what is asked of it.

mod fuzz;
mod local;
mod made;
mod remote;
mod repository;
mod server;
