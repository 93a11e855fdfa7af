//! The only room with native engines: each runs in a worker process of its own, behind a
//! supervisor that offers it as one of the model traits. No HTTP, no configuration files.

pub mod speech;
