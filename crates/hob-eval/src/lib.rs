//! Grades the answers of models: families of tasks, checkers, and the statistics of score against time.
//! It computes only: it asks no model, reads no file, starts no program and looks at no clock.

mod checker;
pub mod checkers;
pub mod distance;
mod draw;
pub mod families;
mod family;
mod given_answer;
mod grade;
mod grading;
mod item;
pub mod judge;
pub mod listening;
pub mod logic_grid;
pub mod own_file;
mod reading;
pub mod report;

pub use checker::{Checker, CheckerError, GRADING_VERSION};
pub use checkers::{CODE_MEMORY_MAX_BYTES, CODE_SECONDS_MAX, CodeOutcome, RunCode};
pub use family::TaskFamily;
pub use given_answer::{Answer, AnswerEnd, CalledTool};
pub use grade::{Grade, Verdict};
pub use grading::grade;
pub use item::Item;
pub use reading::{leaked_thought, shows_a_thought};
