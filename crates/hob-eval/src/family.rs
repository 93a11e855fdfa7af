//! The families of tasks that ship, by name.
//! A family makes an item from a seed, a size and an index, and nothing else.

use hob_core::enum_table;

use crate::families::{
    absent, arithmetic, code, extraction, instructions, needle, tool_use, units,
};
use crate::{Item, logic_grid};

/// Creates the enum and what is known of each family from one table: name, module, usual size, and what is asked.
macro_rules! families {
    ($($family:ident = $name:literal, $module:ident, $usual_size:literal, $about:literal;)+) => {
        enum_table! {
            /// A kind of task.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum TaskFamily: name { $($family = $name,)+ }
        }

        impl TaskFamily {
            /// Sizes to choose from, the easiest first. Some families take others, too.
            pub fn sizes(self) -> &'static [&'static str] {
                match self { $(TaskFamily::$family => $module::SIZES,)+ }
            }

            /// The size where none is named: one that tells the models apart that people run at home.
            pub fn usual_size(self) -> &'static str {
                match self { $(TaskFamily::$family => $usual_size,)+ }
            }

            /// What is asked, in a few words.
            pub fn about(self) -> &'static str {
                match self { $(TaskFamily::$family => $about,)+ }
            }

            /// `None` for a size that the family does not have.
            pub fn item(self, seed: u64, size: &str, index: u32) -> Option<Item> {
                match self { $(TaskFamily::$family => $module::item(seed, size, index),)+ }
            }
        }
    };
}

families! {
    LogicGrid = "logic-grid", logic_grid, "3x3", "houses and their owners, from clues with one solution";
    Arithmetic = "arithmetic", arithmetic, "4x2", "chains of steps with whole numbers (steps x digits)";
    Units = "units", units, "2", "speeds, energy, data and prices (conversions)";
    Extraction = "extraction", extraction, "medium", "an order in prose, as JSON";
    Instructions = "instructions", instructions, "2", "a text that keeps rules (number of rules, or a language)";
    ToolUse = "tool-use", tool_use, "4", "one right tool call, or none (tools offered)";
    Needle = "needle", needle, "1000@50%", "a fact in a long text (tokens@depth, xHOPS)";
    Absent = "absent", absent, "short", "what a text does not say, or says twice";
    Code = "code", code, "easy", "a Python function, run against hidden tests";
}

impl TaskFamily {
    pub fn by_name(name: &str) -> Option<TaskFamily> {
        TaskFamily::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Whether all items of this size are the same one, so that more of them say nothing more.
    pub fn has_one_item(self, size: &str) -> bool {
        self == TaskFamily::LogicGrid && size == logic_grid::EINSTEIN
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
