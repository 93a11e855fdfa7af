//! The commands of a conversation: lines that begin with a slash.
//! All other lines are messages. Type two slashes for a message that begins with one.

use hob_core::nearest;

/// One line of a conversation, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// For the model.
    Message(String),
    Nothing,
    Help,
    /// With a text: from now on; without: what it is.
    System(Option<String>),
    New,
    Regenerate,
    Model(Option<String>),
    Effort(Option<String>),
    Save(Option<String>),
    Stats,
    Exit,
    Unknown {
        name: String,
        near: Vec<String>,
    },
}

/// Name, what follows it, and what it does.
const ORDERS: [(&str, &str, &str); 9] = [
    ("/system", "[TEXT]", "set the system message; without a text, show it"),
    ("/new", "", "start a new conversation"),
    ("/regenerate", "", "answer the last message again"),
    ("/model", "[NAME]", "switch to another model; without a name, show the current one"),
    ("/effort", "[LEVEL]", "set the thinking effort: none, minimal, low, medium, high, xhigh, max"),
    ("/save", "FILE", "save the conversation as Markdown, or as JSON if FILE ends in .json"),
    ("/stats", "", "show tokens and times of the last answer and of all answers"),
    ("/help", "", "show this list"),
    ("/exit", "", "leave, as Ctrl-D does"),
];

/// Names that other programs taught people.
const ALIASES: [(&str, &str); 6] = [
    ("/bye", "/exit"),
    ("/quit", "/exit"),
    ("/?", "/help"),
    ("/clear", "/new"),
    ("/retry", "/regenerate"),
    ("/sys", "/system"),
];

/// Qwen's switches: the same as an effort, whatever the model.
const SWITCHES: [(&str, &str); 2] = [("/think", "medium"), ("/no_think", "none")];

impl Order {
    pub(super) fn parse(line: &str) -> Order {
        let line = line.trim();
        if line.is_empty() {
            return Order::Nothing;
        }
        if let Some(rest) = line.strip_prefix("//") {
            return Order::Message(format!("/{rest}"));
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !is_order(word) {
            return Order::Message(line.to_owned());
        }
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        order(word, rest)
    }
}

/// `/etc/passwd` is no order.
fn is_order(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_?".contains(c))
    })
}

fn order(word: &str, rest: Option<String>) -> Order {
    if let (Some((_, effort)), None) = (SWITCHES.iter().find(|(name, _)| *name == word), &rest) {
        return Order::Effort(Some((*effort).to_owned()));
    }
    let meant = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| *name);
    match meant {
        "/system" => Order::System(rest),
        "/new" => Order::New,
        "/regenerate" => Order::Regenerate,
        "/model" => Order::Model(rest),
        "/effort" => Order::Effort(rest),
        "/save" => Order::Save(rest),
        "/stats" => Order::Stats,
        "/help" => Order::Help,
        "/exit" => Order::Exit,
        _ => {
            let near = nearest(word, ORDERS.iter().map(|(name, _, _)| *name), 1);
            Order::Unknown { name: word.to_owned(), near }
        }
    }
}

/// The list, for people.
pub(super) fn help() -> String {
    let line = |(name, takes, does): &(&str, &str, &str)| {
        format!("  {:<18} {does}", format!("{name} {takes}"))
    };
    let orders: Vec<String> = ORDERS.iter().map(line).collect();
    format!(
        "{}\n\nA line that ends with \\ goes on in the next. Ctrl-C stops an answer, Ctrl-D leaves.\n\
         A message that begins with a slash begins with two: //",
        orders.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let text = |text: &str| Some(text.to_owned());
        let message = |message: &str| Order::Message(message.to_owned());
        let rows = [
            (" Good evening. ", message("Good evening.")),
            ("", Order::Nothing),
            ("  ", Order::Nothing),
            ("/system be brief ", Order::System(text("be brief"))),
            ("/system", Order::System(None)),
            ("/new", Order::New),
            ("/clear", Order::New),
            ("/regenerate", Order::Regenerate),
            ("/model qwen3", Order::Model(text("qwen3"))),
            ("/effort low", Order::Effort(text("low"))),
            ("/no_think", Order::Effort(text("none"))),
            ("/think", Order::Effort(text("medium"))),
            ("/save a b.md", Order::Save(text("a b.md"))),
            ("/save", Order::Save(None)),
            ("/stats", Order::Stats),
            ("/?", Order::Help),
            ("/bye", Order::Exit),
            ("//exit", message("/exit")),
            ("/etc/passwd: what is it?", message("/etc/passwd: what is it?")),
            ("/ is the root", message("/ is the root")),
            ("3 /new", message("3 /new")),
        ];
        for (line, expected) in rows {
            assert_eq!(Order::parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_typed_wrong_gets_the_nearest() {
        let Order::Unknown { name, near } = Order::parse("/sistem x") else { panic!("known") };
        assert_eq!((name.as_str(), near), ("/sistem", vec!["/system".to_owned()]));
    }

    #[test]
    fn every_order_of_the_list_is_one() {
        for (name, _, _) in ORDERS {
            assert!(!matches!(Order::parse(name), Order::Unknown { .. } | Order::Message(_)));
            assert!(help().contains(name));
        }
    }
}
