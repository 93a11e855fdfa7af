//! Checkers that several families share, and that a file of the user's can name.
//! Each one is a type that is read from JSON, so that an item and its checker are one line.

mod absent;
mod choice;
mod code;
mod constraints;
mod exact;
mod fields;
mod grid;
mod language;
mod needle;
mod number;
mod text;
mod tool_call;

pub use absent::AbsentExpected;
pub use choice::ChoiceExpected;
pub(crate) use choice::OPTIONS_MAX as CHOICE_OPTIONS_MAX;
pub use code::{
    CODE_MEMORY_MAX_BYTES, CODE_SECONDS_MAX, CodeOutcome, CodeTest, CodeTests, RunCode,
};
pub(crate) use constraints::grade as grade_constraints;
pub use constraints::{CountRule, TextRule};
pub use exact::Exact;
pub use fields::JsonFields;
pub use grid::{GridQuestion, GridSolution};
pub(crate) use grid::{SIDE_MAX as GRID_SIDE_MAX, SYNONYMS_MAX as GRID_SYNONYMS_MAX};
pub use language::TextLanguage;
pub use needle::NeedleExpected;
pub use number::Number;
pub use text::{Pattern, PatternError, Phrases};
pub use tool_call::{ExpectedCall, ToolCallExpected};
