//! Families of tasks. A family makes an item from a seed, a size and an index, and nothing else.
//! The same arguments give the same item on every machine, so that a run can be repeated.
//! `family.rs` lists them all by name, with the family in `logic_grid.rs`.

pub mod absent;
pub mod arithmetic;
pub mod code;
pub mod extraction;
pub mod instructions;
pub mod needle;
pub mod tool_use;
pub mod units;
