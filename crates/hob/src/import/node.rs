//! YAML as a tree that keeps the order of its keys, read within limits.
//! A tree and not types: whatever nobody reads must be found again, and said.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{NonFiniteFloatPolicy, budget, options};

use super::ImportError;

/// Values, those that aliases repeat included. The longest example of either program has 300.
const NODES_MAX: usize = 100_000;
/// Bytes of text, repeated ones included.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// A configuration is nested six deep; recursion over the tree must not end the stack.
const DEPTH_MAX: usize = 32;

/// Not `Debug`: it may hold keys and passwords.
#[derive(Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// # Errors
/// The place of what is no YAML, or goes beyond a limit. The line itself is not repeated: a key may
/// stand in it.
pub(super) fn parse(text: &str, name: &str) -> Result<Node, ImportError> {
    let limits = budget! {
        max_nodes: NODES_MAX,
        max_total_scalar_bytes: TEXT_BYTES_MAX,
        max_depth: DEPTH_MAX,
    };
    let options = options! {
        budget: limits,
        with_snippet: false,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location();
        ImportError::Yaml {
            name: name.to_owned(),
            line: place.map_or(1, |place| place.line()),
            column: place.map_or(1, |place| place.column()),
            message: message(&error),
        }
    })
}

/// Without the place, which is said first, and without advice to programmers.
fn message(error: &serde_saphyr::Error) -> String {
    let said = error.to_string();
    if said.starts_with("budget breached") || said.starts_with("alias") && said.contains("limit") {
        return "there is more in it than a configuration has; what an alias repeats counts each time"
            .to_owned();
    }
    let ends = [" at line ", ", set ", "; use "];
    let end = ends.into_iter().filter_map(|end| said.find(end)).min();
    said[..end.unwrap_or(said.len())].replace(char::is_control, "\u{fffd}")
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Of a table; anything else has none.
    pub(super) fn entries(&self) -> &[(String, Node)] {
        match self {
            Node::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Of a list; anything else has none.
    pub(super) fn items(&self) -> &[Node] {
        match self {
            Node::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Node::List(_) | Node::Table(_))
    }

    /// With its article, for sentences.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "nothing",
            Node::Flag(_) => "a yes or no",
            Node::Integer(_) | Node::Number(_) => "a number",
            Node::Text(_) => "a text",
            Node::List(_) => "a list",
            Node::Table(_) => "a table",
        }
    }

    pub(super) fn holds_null(&self) -> bool {
        match self {
            Node::Null => true,
            Node::List(items) => items.iter().any(Node::holds_null),
            Node::Table(entries) => entries.iter().any(|(_, node)| node.holds_null()),
            Node::Flag(_) | Node::Integer(_) | Node::Number(_) | Node::Text(_) => false,
        }
    }

    /// Whether a key like that stands anywhere in it.
    pub(super) fn holds_key(&self, is_meant: &impl Fn(&str) -> bool) -> bool {
        self.entries().iter().any(|(name, node)| is_meant(name) || node.holds_key(is_meant))
            || self.items().iter().any(|item| item.holds_key(is_meant))
    }

    /// What a file that is neither kind has at the top; enough of it to be recognised.
    pub(super) fn top_keys(&self) -> String {
        let names: Vec<&str> = self.entries().iter().map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [] => "no keys at the top".to_owned(),
            names if names.len() > 6 => format!("{}, …", names[..6].join(", ")),
            names => names.join(", "),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(i64::try_from(value).map_or(Node::Number(value as f64), Node::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut table = Vec::new();
        while let Some((Key(key), node)) = entries.next_entry()? {
            table.push((key, node));
        }
        Ok(Node::Table(table))
    }
}

/// A key, as text: `8080:` is a number to YAML, and a name to whoever wrote it.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        match Node::deserialize(deserializer)? {
            Node::Text(text) => Ok(Key(text)),
            Node::Integer(number) => Ok(Key(number.to_string())),
            Node::Number(number) => Ok(Key(number.to_string())),
            Node::Flag(flag) => Ok(Key(flag.to_string())),
            Node::Null | Node::List(_) | Node::Table(_) => {
                Err(serde::de::Error::custom("a key must be a text"))
            }
        }
    }
}
