//! ONNX graphs as editable data: just enough of the format to read, rewrite and write a model.
//! Runs nothing and knows no engine; what is done to which model stands in that model's own file.

pub mod graph;
pub mod outline;
pub mod packed;
pub mod proto;

pub use graph::{DetachedGraph, Graph, GraphError};
pub use packed::{PackedGraph, WeightBits};
