//! Families of tasks. A family makes an item from a seed, a size and an index, and nothing else.
//! The same arguments give the same item on every machine, so that a run can be repeated.

pub mod absent;
pub mod arithmetic;
pub mod code;
pub mod extraction;
pub mod instructions;
pub mod needle;
pub mod tool_use;
pub mod units;
