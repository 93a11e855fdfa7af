//! The header reader, on files made in memory: what it reads, what it refuses, and that nothing a
//! stranger writes makes it panic.

mod fuzz;
mod header;
mod read;
mod refused;
mod shapes;
