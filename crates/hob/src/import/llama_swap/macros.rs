//! llama-swap's macros: `${name}` in any value, a model's own before everybody's, one inside another.
//! Expanded before anything is read, within limits; what only a running llama-swap knows stays as it is.

use crate::import::node::Node;
use crate::import::reading::Place;

/// Rounds of expanding one text: macros in macros in macros.
const ROUNDS_MAX: usize = 16;
/// Bytes that all expansions of a file may come to.
const BYTES_MAX: usize = 1 << 20;

/// Names that llama-swap gives a value when it runs a model. hob has none of them.
const RUNNING: [&str; 2] = ["PORT", "PID"];

struct Macro {
    name: String,
    value: Node,
    path: String,
}

#[derive(Default)]
struct Macros {
    of_all: Vec<Macro>,
    of_model: Vec<Macro>,
    model: Option<String>,
    used: Vec<String>,
    bytes: usize,
}

/// Expansions came to more than a configuration can mean.
struct Endless;

/// The file with its macros expanded, and the paths of those that were used.
///
/// # Errors
/// The path of the model, or of the section, whose macros have no end.
pub(crate) fn expanded(root: Node) -> Result<(Node, Vec<String>), String> {
    let Node::Table(sections) = root else { return Ok((root, Vec::new())) };
    let of_all = sections.iter().find(|(name, _)| name == "macros");
    let of_all = of_all.map(|(_, node)| definitions(node, "")).unwrap_or_default();
    let mut macros = Macros { of_all, ..Macros::default() };
    let mut written = Vec::new();
    for (name, node) in sections {
        let node = match name.as_str() {
            "macros" => node,
            "models" => macros.models(node)?,
            _ => macros.node(node).map_err(|Endless| name.clone())?,
        };
        written.push((name, node));
    }
    Ok((Node::Table(written), macros.used))
}

/// Macros that were used are carried over as what they stand for.
pub(super) fn say_used(root: &Place<'_>, used: &[String]) {
    let of_all = root.get("macros").map(|macros| (String::new(), macros));
    let models = root.get("models").map(|models| models.entries()).unwrap_or_default();
    let of_models =
        models.iter().filter_map(|(id, model)| Some(((*id).to_owned(), model.get("macros")?)));
    for (id, macros) in of_all.into_iter().chain(of_models) {
        for (name, place) in macros.entries() {
            match used.contains(&path(&id, name)) {
                true => place.take(),
                false => place.drop("nothing in the file uses it"),
            }
        }
    }
}

/// A word for a macro among all, that no other one has.
fn path(model: &str, name: &str) -> String {
    format!("{model}\n{name}")
}

/// Those of a model, or with an empty name those of all. Only single values are macros.
fn definitions(node: &Node, model: &str) -> Vec<Macro> {
    let values = node.entries().iter().filter(|(_, value)| value.is_scalar());
    let named = values.map(|(name, value)| (name.clone(), value.clone()));
    named.map(|(name, value)| Macro { path: path(model, &name), name, value }).collect()
}

impl Macros {
    fn models(&mut self, models: Node) -> Result<Node, String> {
        let Node::Table(models) = models else { return Ok(models) };
        let mut written = Vec::new();
        for (id, model) in models {
            let own = model.get("macros").map(|own| definitions(own, &id));
            self.of_model = own.unwrap_or_default();
            self.model = Some(id.clone());
            let model = self.model(model).map_err(|Endless| format!("models.{id}"))?;
            written.push((id, model));
        }
        (self.of_model, self.model) = (Vec::new(), None);
        Ok(Node::Table(written))
    }

    /// Its own macros stay as they are written, to be found again.
    fn model(&mut self, model: Node) -> Result<Node, Endless> {
        let Node::Table(entries) = model else { return self.node(model) };
        let mut written = Vec::new();
        for (name, node) in entries {
            let node = if name == "macros" { node } else { self.node(node)? };
            written.push((name, node));
        }
        Ok(Node::Table(written))
    }

    fn node(&mut self, node: Node) -> Result<Node, Endless> {
        match node {
            Node::Text(text) => self.text(text),
            Node::List(items) => {
                let items: Result<_, _> = items.into_iter().map(|item| self.node(item)).collect();
                Ok(Node::List(items?))
            }
            Node::Table(entries) => {
                let entry = |(name, node): (String, Node)| {
                    let name = self.inside(name)?;
                    Ok((name, self.node(node)?))
                };
                let entries: Result<_, _> = entries.into_iter().map(entry).collect();
                Ok(Node::Table(entries?))
            }
            Node::Null | Node::Flag(_) | Node::Integer(_) | Node::Number(_) => Ok(node),
        }
    }

    /// A text that is nothing but a macro keeps the macro's type: `temperature: ${temp}`.
    fn text(&mut self, text: String) -> Result<Node, Endless> {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let Some(value) = name.and_then(|name| self.value(name))
            && !matches!(value, Node::Text(_))
        {
            return Ok(value);
        }
        self.inside(text).map(Node::Text)
    }

    fn inside(&mut self, mut text: String) -> Result<String, Endless> {
        for _ in 0..ROUNDS_MAX {
            let next = self.once(&text)?;
            if next == text {
                return Ok(text);
            }
            text = next;
        }
        Err(Endless)
    }

    /// Each macro of the text, once. What has no value stays.
    fn once(&mut self, text: &str) -> Result<String, Endless> {
        let mut written = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            let (name, end) = (&rest[start + 2..start + length], start + length + 1);
            written.push_str(&rest[..start]);
            match self.value(name).as_ref().and_then(plain) {
                Some(value) => written.push_str(self.counted(&value)?),
                None => written.push_str(&rest[start..end]),
            }
            rest = &rest[end..];
        }
        Ok(written + rest)
    }

    fn counted<'t>(&mut self, value: &'t str) -> Result<&'t str, Endless> {
        self.bytes += value.len();
        if self.bytes > BYTES_MAX { Err(Endless) } else { Ok(value) }
    }

    fn value(&mut self, name: &str) -> Option<Node> {
        if RUNNING.contains(&name) {
            return None;
        }
        if name == "MODEL_ID" {
            return self.model.clone().map(Node::Text);
        }
        let known = self.of_model.iter().chain(&self.of_all).find(|known| known.name == name)?;
        if !self.used.contains(&known.path) {
            self.used.push(known.path.clone());
        }
        Some(known.value.clone())
    }
}

/// As it stands in a text.
fn plain(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.trim_end_matches('\n').to_owned()),
        Node::Integer(number) => Some(number.to_string()),
        Node::Number(number) => Some(number.to_string()),
        Node::Flag(flag) => Some(flag.to_string()),
        Node::Null | Node::List(_) | Node::Table(_) => None,
    }
}
