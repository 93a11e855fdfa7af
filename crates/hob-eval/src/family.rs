//! The families of tasks that ship, by name.
//! A family makes an item from a seed, a size and an index, and nothing else.

use hob_core::enum_table;

use crate::families::{
    absent, arithmetic, code, extraction, instructions, needle, tool_use, units,
};
use crate::{Item, logic_grid};

enum_table! {
    /// A kind of task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TaskFamily: name {
        LogicGrid = "logic-grid",
        Arithmetic = "arithmetic",
        Units = "units",
        Extraction = "extraction",
        Instructions = "instructions",
        ToolUse = "tool-use",
        Needle = "needle",
        Absent = "absent",
        Code = "code",
    }
}

impl TaskFamily {
    pub fn by_name(name: &str) -> Option<TaskFamily> {
        TaskFamily::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Sizes to choose from, the easiest first. Some families take others, too.
    pub fn sizes(self) -> &'static [&'static str] {
        match self {
            TaskFamily::LogicGrid => logic_grid::SIZES,
            TaskFamily::Arithmetic => arithmetic::SIZES,
            TaskFamily::Units => units::SIZES,
            TaskFamily::Extraction => extraction::SIZES,
            TaskFamily::Instructions => instructions::SIZES,
            TaskFamily::ToolUse => tool_use::SIZES,
            TaskFamily::Needle => needle::SIZES,
            TaskFamily::Absent => absent::SIZES,
            TaskFamily::Code => code::SIZES,
        }
    }

    /// The size where none is named: one that tells the models apart that people run at home.
    pub fn usual_size(self) -> &'static str {
        match self {
            TaskFamily::LogicGrid => "3x3",
            TaskFamily::Arithmetic => "4x2",
            TaskFamily::Units => "2",
            TaskFamily::Extraction => "medium",
            TaskFamily::Instructions => "2",
            TaskFamily::ToolUse => "4",
            TaskFamily::Needle => "1000@50%",
            TaskFamily::Absent => "short",
            TaskFamily::Code => "easy",
        }
    }

    /// What is asked, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            TaskFamily::LogicGrid => "houses and their owners, from clues with one solution",
            TaskFamily::Arithmetic => "chains of steps with whole numbers (steps x digits)",
            TaskFamily::Units => "speeds, energy, data and prices (conversions)",
            TaskFamily::Extraction => "an order in prose, as JSON",
            TaskFamily::Instructions => "a text that keeps rules (number of rules, or a language)",
            TaskFamily::ToolUse => "one right tool call, or none (tools offered)",
            TaskFamily::Needle => "a fact in a long text (tokens@depth, xHOPS)",
            TaskFamily::Absent => "what a text does not say, or says twice",
            TaskFamily::Code => "a Python function, run against hidden tests",
        }
    }

    /// Whether all items of this size are the same one, so that more of them say nothing more.
    pub fn has_one_item(self, size: &str) -> bool {
        self == TaskFamily::LogicGrid && size == logic_grid::EINSTEIN
    }

    /// `None` for a size that the family does not have.
    pub fn item(self, seed: u64, size: &str, index: u32) -> Option<Item> {
        match self {
            TaskFamily::LogicGrid => logic_grid::item(seed, size, index),
            TaskFamily::Arithmetic => arithmetic::item(seed, size, index),
            TaskFamily::Units => units::item(seed, size, index),
            TaskFamily::Extraction => extraction::item(seed, size, index),
            TaskFamily::Instructions => instructions::item(seed, size, index),
            TaskFamily::ToolUse => tool_use::item(seed, size, index),
            TaskFamily::Needle => needle::item(seed, size, index),
            TaskFamily::Absent => absent::item(seed, size, index),
            TaskFamily::Code => code::item(seed, size, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_one_item_are_known() {
        for family in TaskFamily::ALL {
            for size in family.sizes() {
                let prompt = |index| family.item(1, size, index).expect(size).prompt;
                assert_eq!(family.has_one_item(size), prompt(0) == prompt(1), "{size}");
            }
        }
    }

    #[test]
    fn each_family_has_items_of_each_size_with_ids_of_their_own() {
        let mut ids = std::collections::BTreeSet::new();
        for family in TaskFamily::ALL {
            assert_eq!(TaskFamily::by_name(family.name()), Some(family));
            assert!(family.sizes().contains(&family.usual_size()), "{}", family.name());
            for size in family.sizes() {
                for index in 0..2 {
                    let item = family.item(1, size, index).expect(size);
                    assert_eq!((item.family.as_str(), item.size.as_str()), (family.name(), *size));
                    assert!(ids.insert(item.id.clone()), "{}", item.id);
                    assert_eq!(family.item(1, size, index), Some(item));
                }
            }
            assert_eq!(family.item(1, "no such size", 0), None, "{}", family.name());
        }
    }
}
