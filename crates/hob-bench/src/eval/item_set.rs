//! The items of an evaluation: tasks that are generated from a seed, and files of the user's.
//! Generated items are made when they are asked for, so that a set of any length takes little memory.

use std::fmt;

use hob_eval::{Item, TaskFamily};

use crate::record::sha256_hex;

/// A task that hob ships: a family, and a size of its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskName {
    pub family: TaskFamily,
    pub size: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    #[error("'{name}' is not a task (expected one of {})", known.join(", "))]
    TaskFamily { name: String, known: Vec<&'static str> },
    #[error("'{size}' is not a size of {family} (such as {})", sizes.join(", "))]
    Size { family: &'static str, size: String, sizes: Vec<&'static str> },
}

impl TaskName {
    /// The tasks of an evaluation where none is named: all that start no program, in their usual sizes.
    pub fn usual() -> Vec<TaskName> {
        let task = |family: TaskFamily| TaskName { family, size: family.usual_size().to_owned() };
        let usual = TaskFamily::ALL.into_iter().filter(|family| *family != TaskFamily::Code);
        usual.map(task).collect()
    }

    /// Reads `FAMILY:SIZE`; a family alone has its usual size.
    ///
    /// # Errors
    /// There is no such family or size; the error names those that there are.
    pub fn parse(text: &str) -> Result<TaskName, TaskError> {
        let (name, size) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let family = TaskFamily::by_name(name).ok_or_else(|| TaskError::TaskFamily {
            name: name.to_owned(),
            known: TaskFamily::ALL.map(TaskFamily::name).to_vec(),
        })?;
        let size = if size.is_empty() { family.usual_size() } else { size };
        match family.item(0, size, 0) {
            Some(_) => Ok(TaskName { family, size: size.to_owned() }),
            None => Err(TaskError::Size {
                family: family.name(),
                size: size.to_owned(),
                sizes: family.sizes().to_vec(),
            }),
        }
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.family.name(), self.size)
    }
}

/// All items, in the order in which they are asked.
#[derive(Clone, Debug)]
pub struct ItemSet {
    tasks: Vec<TaskName>,
    per_task: usize,
    seed: u64,
    own: Vec<Item>,
    sha256: String,
}

impl ItemSet {
    /// `per_task` items of each task, one item of each task after the other, and then the items of the user's files. A task
    /// that is named twice counts once.
    pub fn new(mut tasks: Vec<TaskName>, per_task: usize, seed: u64, own: Vec<Item>) -> ItemSet {
        let mut known = Vec::new();
        tasks.retain(|task| {
            let is_new = !known.contains(task);
            known.push(task.clone());
            is_new
        });
        let mut set = ItemSet { tasks, per_task, seed, own, sha256: String::new() };
        let item = |number| {
            let item = set.item(number);
            let Item { id, prompt, checker, system, tools, schema, max_tokens, .. } = item;
            // Serialising a checker cannot fail: its maps have text as keys.
            let checker = serde_json::to_string(&checker).unwrap_or_default();
            let further = format!("{system:?}\0{tools:?}\0{schema:?}\0{max_tokens}");
            sha256_hex(format!("{id}\0{prompt}\0{checker}\0{further}").as_bytes())
        };
        let hashes: String = (0..set.len()).map(item).collect();
        set.sha256 = sha256_hex(hashes.as_bytes());
        set
    }

    /// A set with the same tasks, and with these items of the user.
    pub fn with_own(&self, own: Vec<Item>) -> ItemSet {
        ItemSet::new(self.tasks.clone(), self.per_task, self.seed, own)
    }

    pub fn len(&self) -> usize {
        self.generated() + self.own.len()
    }

    /// A task with one item is asked once: the same puzzle again would only make intervals narrow.
    fn generated(&self) -> usize {
        match self.per_task.checked_sub(1) {
            Some(further) => self.tasks.len() + self.with_more_items().count() * further,
            None => 0,
        }
    }

    fn with_more_items(&self) -> impl Iterator<Item = &TaskName> {
        self.tasks.iter().filter(|task| !task.family.has_one_item(&task.size))
    }

    /// Tasks of which fewer items are asked than of the others.
    pub fn asked_once(&self) -> Vec<String> {
        let once = self.tasks.iter().filter(|task| task.family.has_one_item(&task.size));
        once.filter(|_| self.per_task > 1).map(TaskName::to_string).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item with this number, which must be below [`ItemSet::len`].
    pub fn item(&self, number: usize) -> Item {
        let generated = self.generated();
        if number >= generated {
            return self.own[number - generated].clone();
        }
        let (task, index) = match number.checked_sub(self.tasks.len()) {
            None => (self.tasks.get(number), 0),
            Some(later) => {
                let count = self.with_more_items().count();
                (self.with_more_items().nth(later % count), 1 + later / count)
            }
        };
        let TaskName { family, size } = task.expect("a number below the length");
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        // The size was checked when its name was read.
        family.item(self.seed, size, index).expect("a task has a size of its family")
    }

    /// Items that no program grades. Only a user's file has such.
    pub fn open_questions(&self) -> usize {
        self.own.iter().filter(|item| item.checker.is_open()).count()
    }

    /// Whether the answer to an item is code that has to be run.
    pub fn runs_code(&self) -> bool {
        (0..self.len()).any(|number| self.item(number).checker.runs_code())
    }

    /// Hash of all items: their ids, prompts and checkers, and what else a request has of them.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The names of the tasks and of the user's files.
    pub fn task_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.tasks.iter().map(TaskName::to_string).collect();
        let mut own: Vec<String> = self.own.iter().map(|item| item.family.clone()).collect();
        own.dedup();
        names.extend(own);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tasks: &[&str], per_task: usize) -> ItemSet {
        let tasks = tasks.iter().map(|name| TaskName::parse(name).expect("a task")).collect();
        ItemSet::new(tasks, per_task, 1, Vec::new())
    }

    #[test]
    fn a_puzzle_that_is_always_the_same_is_asked_once() {
        let all = set(&["units:2", "logic-grid:einstein", "arithmetic:2x1"], 3);
        let ids: Vec<String> = (0..all.len()).map(|number| all.item(number).id).collect();
        let expected = [
            "units/2/0",
            "logic-grid/einstein/0",
            "arithmetic/2x1/0",
            "units/2/1",
            "arithmetic/2x1/1",
            "units/2/2",
            "arithmetic/2x1/2",
        ];
        assert_eq!(ids, expected);
        assert_eq!(all.asked_once(), ["logic-grid:einstein"]);
        let alone = set(&["logic-grid:einstein"], 20);
        assert_eq!((alone.len(), set(&["logic-grid:einstein"], 1).asked_once().len()), (1, 0));
        assert_eq!(set(&["units:2"], 0).len(), 0);
        assert_eq!(set(&["units", "units:2", "units"], 3).len(), 3, "one task, named three times");
    }
}
