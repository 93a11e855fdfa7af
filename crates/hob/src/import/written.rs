//! The draft as TOML that a person goes on writing: sections in order, one target per line where there
//! are several, nothing said that is hob's default. By hand, because the toml crate would sort and
//! spread inline tables.

use std::fmt::{Display, Write as _};

use hob_core::KvType;
use hob_core::chat::Effort;

use super::draft::{Alias, Chat, Draft, Load, Parameters, Pick, Target, Upstream};
use super::node::Node;

/// A list that is longer is written with one item per line.
const LINE_CHARS_MAX: usize = 100;

/// `heading` becomes the comment at the top.
pub(super) fn toml(draft: &Draft, heading: &str) -> String {
    let heading: String = heading.chars().filter(|c| !c.is_control()).collect();
    let mut page = Page(format!("# {heading}\n"));
    page.table(&["server"]);
    page.text("listen", Some("127.0.0.1:8484"));
    for client in &draft.keys {
        page.table(&["keys", &client.name]);
        page.text("secret", Some(&client.secret));
    }
    for upstream in &draft.upstreams {
        page.upstream(upstream);
    }
    if let Some(chat) = &draft.chat {
        page.chat(chat);
    }
    for alias in &draft.aliases {
        page.alias(alias);
    }
    page.0
}

struct Page(String);

impl Page {
    fn table(&mut self, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| key(name)).collect();
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(self.0, "\n[{}]\n", names.join("."));
    }

    fn text(&mut self, name: &str, value: Option<impl Display>) {
        self.raw(name, value.map(|value| quoted(&value.to_string())));
    }

    fn raw(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            let _infallible = writeln!(self.0, "{name} = {value}");
        }
    }

    fn chat(&mut self, chat: &Chat) {
        self.table(&["chat"]);
        self.text("model", Some(&chat.model));
        self.raw("context_tokens", chat.context_tokens);
        self.text("kv_type", chat.kv_type.map(KvType::name));
        self.raw("threads", chat.threads);
        self.raw("parallel", chat.parallel);
        self.raw("batch_tokens", chat.batch_tokens);
        self.raw("gpu_layers", chat.gpu_layers);
        self.text("keep_alive", chat.keep_alive);
        self.text("load", chat.load.map(Load::name));
        self.raw("thinking_tokens_max", chat.thinking_tokens_max);
        self.raw("requests_max", chat.requests_max);
    }

    fn upstream(&mut self, upstream: &Upstream) {
        self.table(&["upstream", &upstream.name]);
        self.text("kind", Some(upstream.kind.name()));
        self.text("url", upstream.url.as_deref());
        self.text("key", upstream.key.as_ref());
        self.text("connect", upstream.connect);
        self.text("first_token", upstream.first_token);
    }

    fn alias(&mut self, alias: &Alias) {
        self.table(&["alias", &alias.name]);
        self.raw("to", Some(targets(&alias.to)));
        self.text("pick", (alias.pick != Pick::Order).then(|| alias.pick.name()));
        self.text("effort", alias.effort.map(Effort::name));
        self.text("first_token", alias.first_token);
        self.text("total", alias.total);
        self.raw("retries", alias.retries);
        self.text("cooldown", alias.cooldown);
        self.text("keep_alive", alias.keep_alive);
    }
}

fn targets(targets: &[Target]) -> String {
    let targets: Vec<String> = targets.iter().map(target).collect();
    let line = format!("[{}]", targets.join(", "));
    if line.chars().count() + "to = ".len() <= LINE_CHARS_MAX {
        return line;
    }
    let lines: Vec<String> = targets.iter().map(|target| format!("    {target},\n")).collect();
    format!("[\n{}]", lines.concat())
}

fn target(target: &Target) -> String {
    if *target == Target::plain(&target.name) {
        return quoted(&target.name);
    }
    let mut parts = vec![format!("target = {}", quoted(&target.name))];
    parts.extend(target.context.map(|tokens| format!("context = {tokens}")));
    parts.extend(parameters("set", &target.set));
    if !target.drop.is_empty() {
        let names: Vec<String> = target.drop.iter().map(|name| quoted(name)).collect();
        parts.push(format!("drop = [{}]", names.join(", ")));
    }
    parts.extend(parameters("default", &target.default));
    parts.extend(target.weight.map(|weight| format!("weight = {weight}")));
    format!("{{ {} }}", parts.join(", "))
}

fn parameters(name: &str, parameters: &Parameters) -> Option<String> {
    (!parameters.is_empty()).then(|| format!("{name} = {}", inline_table(parameters)))
}

fn inline_table(entries: &[(String, Node)]) -> String {
    let entries = entries.iter().map(|(name, node)| format!("{} = {}", key(name), value(node)));
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
}

fn value(node: &Node) -> String {
    match node {
        Node::Flag(flag) => flag.to_string(),
        Node::Integer(number) => number.to_string(),
        Node::Number(number) => toml::Value::Float(*number).to_string(),
        Node::Text(text) => quoted(text),
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(value).collect();
            format!("[{}]", items.join(", "))
        }
        Node::Table(entries) => inline_table(entries),
        // Whoever reads parameters leaves out what holds nothing: TOML has no word for it.
        Node::Null => quoted(""),
    }
}

/// A key, in quotes where TOML wants them.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// On one line, whatever is in it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => {
                let _infallible = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
