//! Reading the tree while remembering what was read, so that the rest can be said.
//! A value is taken, changed or dropped at its place; what is none of these at the end was never asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::draft::Seconds;
use super::node::Node;
use super::secret::is_secret;
use super::{Fate, Note};

/// Why keys of a name are not carried over.
pub(super) type Reasons = &'static [(&'static [&'static str], &'static str)];

const NO_REASON: &str = "hob has nothing like it";

/// What was read, and what there is to say of it, by path.
#[derive(Default)]
pub(super) struct Record {
    marks: RefCell<BTreeMap<String, Mark>>,
    notes: RefCell<BTreeMap<String, Vec<Note>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Its parts were looked at.
    Opened,
    /// It was read, with all that is in it.
    Taken,
}

/// A value of the source and where it stands.
#[derive(Clone)]
pub(super) struct Place<'a> {
    node: &'a Node,
    /// Its name; in a list, the list's.
    key: &'a str,
    path: String,
    record: &'a Record,
}

impl<'a> Place<'a> {
    pub(super) fn root(node: &'a Node, record: &'a Record) -> Place<'a> {
        Place { node, key: "", path: String::new(), record }
    }

    /// The value of a key. One that is written and empty says nothing, like one that is not there.
    pub(super) fn get(&self, key: &str) -> Option<Place<'a>> {
        self.mark(Mark::Opened);
        let (name, node) = self.node.entries().iter().find(|(name, _)| name == key)?;
        let place = self.value(name, node);
        if *node == Node::Null {
            place.take();
            return None;
        }
        Some(place)
    }

    /// The values of a table, one after the other.
    pub(super) fn entries(&self) -> Vec<(&'a str, Place<'a>)> {
        self.mark(Mark::Opened);
        let entries = self.node.entries().iter();
        entries.map(|(name, node)| (name.as_str(), self.value(name, node))).collect()
    }

    /// The values of a list.
    pub(super) fn items(&self) -> Vec<Place<'a>> {
        self.mark(Mark::Opened);
        self.node.items().iter().enumerate().map(|(at, node)| self.item(at, node)).collect()
    }

    fn value(&self, name: &'a str, node: &'a Node) -> Place<'a> {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, step(name));
        Place { node, key: name, path, record: self.record }
    }

    fn item(&self, at: usize, node: &'a Node) -> Place<'a> {
        Place { node, key: self.key, path: format!("{}[{at}]", self.path), record: self.record }
    }

    /// A text; numbers and the like as they are written.
    pub(super) fn text(&self) -> Option<String> {
        let text = match self.node {
            Node::Text(text) => text.clone(),
            Node::Integer(number) => number.to_string(),
            Node::Number(number) => number.to_string(),
            Node::Flag(flag) => flag.to_string(),
            Node::Null | Node::List(_) | Node::Table(_) => return self.misfit("a text"),
        };
        self.take();
        Some(text)
    }

    /// The texts of a list, or the one that stands in a list's place.
    pub(super) fn texts(&self) -> Vec<(String, Place<'a>)> {
        let places = match self.node {
            Node::List(_) => self.items(),
            _ => vec![self.clone()],
        };
        places.into_iter().filter_map(|place| Some((place.text()?, place))).collect()
    }

    pub(super) fn number(&self) -> Option<f64> {
        let number = match self.node {
            Node::Integer(number) => Some(*number as f64),
            Node::Number(number) => Some(*number),
            Node::Text(text) => text.trim().parse().ok(),
            Node::Null | Node::Flag(_) | Node::List(_) | Node::Table(_) => None,
        };
        let number = number.filter(|number: &f64| number.is_finite());
        if number.is_none() {
            return self.misfit("a number");
        }
        self.take();
        number
    }

    /// A count that hob.toml can hold.
    pub(super) fn count(&self) -> Option<u32> {
        let number = self.number()?;
        let fits = number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0;
        if !fits {
            return self.misfit("a whole number that is not negative");
        }
        Some(number as u32)
    }

    /// A time in seconds. hob's clocks run in whole seconds, and always.
    pub(super) fn seconds(&self) -> Option<Seconds> {
        let number = self.number()?;
        if number <= 0.0 {
            self.drop("there it means no limit, and hob's clocks always run");
            return None;
        }
        let whole = number.ceil();
        if whole > number {
            self.change(&format!("rounded up to {whole} s"));
        }
        Some(Seconds(whole as u64))
    }

    /// As a parameter of requests. hob.toml has no word for nothing, and holds no keys.
    pub(super) fn parameter(&self) -> Option<Node> {
        if is_secret(self.key) || self.node.holds_key(&is_secret) {
            self.drop("it looks like a key, and hob.toml holds none");
            return None;
        }
        if self.node.holds_null() {
            self.drop("it is empty, or something in it is");
            return None;
        }
        self.take();
        Some(self.node.clone())
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.node, Node::Table(_))
    }

    fn misfit<T>(&self, wanted: &str) -> Option<T> {
        self.drop(&format!("{} stands where {wanted} was expected", self.node.kind()));
        None
    }

    pub(super) fn take(&self) {
        self.mark(Mark::Taken);
    }

    pub(super) fn drop(&self, why: &str) {
        self.note(Fate::Dropped, why);
    }

    pub(super) fn change(&self, how: &str) {
        self.note(Fate::Changed, how);
    }

    fn note(&self, fate: Fate, text: &str) {
        self.take();
        // Names of the source stand in it, and it is shown on terminals.
        let text = text.replace(char::is_control, "\u{fffd}");
        let note = Note { path: self.path.clone(), fate, text };
        self.record.notes.borrow_mut().entry(self.path.clone()).or_default().push(note);
    }

    fn mark(&self, mark: Mark) {
        let mut marks = self.record.marks.borrow_mut();
        let known = marks.entry(self.path.clone()).or_insert(mark);
        if mark == Mark::Taken {
            *known = mark;
        }
    }
}

impl Record {
    /// What was said of values, and that others were not carried over, in the order of the source.
    pub(super) fn notes(&self, root: &Node, reasons: Reasons) -> Vec<Note> {
        let mut notes = Vec::new();
        self.collect(&Place::root(root, self), Some(reasons), &mut notes);
        notes
    }

    /// Without reasons where something around it was read whole: nothing in there is left over.
    fn collect(&self, place: &Place<'_>, reasons: Option<Reasons>, notes: &mut Vec<Note>) {
        notes.extend(self.notes.borrow().get(&place.path).into_iter().flatten().cloned());
        let mark = self.marks.borrow().get(&place.path).copied();
        let within = match (mark, reasons) {
            (Some(Mark::Taken), _) | (_, None) => None,
            (Some(Mark::Opened), Some(reasons)) if !place.node.is_scalar() => Some(reasons),
            (Some(Mark::Opened), Some(_)) => {
                let why = format!("{} stands where more was expected", place.node.kind());
                return notes.push(place.left_over(&why));
            }
            (None, Some(reasons)) => return notes.push(place.left_over(why(place.key, reasons))),
        };
        for (name, node) in place.node.entries() {
            self.collect(&place.value(name, node), within, notes);
        }
        for (at, node) in place.node.items().iter().enumerate() {
            self.collect(&place.item(at, node), within, notes);
        }
    }
}

impl Place<'_> {
    fn left_over(&self, why: &str) -> Note {
        Note { path: self.path.clone(), fate: Fate::Dropped, text: why.to_owned() }
    }
}

fn why(key: &str, reasons: Reasons) -> &'static str {
    reasons.iter().find(|(names, _)| names.contains(&key)).map_or(NO_REASON, |(_, why)| why)
}

/// A key as a step of a path; quoted where it would be read as several.
fn step(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}
