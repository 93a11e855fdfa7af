//! The commands of a conversation: lines that begin with a slash.
//! All other lines are messages. Type two slashes for a message that begins with one.

use hob_core::nearest;

/// One parsed line of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlashCommand {
    /// Text for the model.
    Message(String),
    Nothing,
    Help,
    /// With a text: sets the system message. Without: shows it.
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

/// Name, argument, and description of each command.
const COMMANDS: [(&str, &str, &str); 9] = [
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

/// Names of the same commands in other programs.
const ALIASES: [(&str, &str); 6] = [
    ("/bye", "/exit"),
    ("/quit", "/exit"),
    ("/?", "/help"),
    ("/clear", "/new"),
    ("/retry", "/regenerate"),
    ("/sys", "/system"),
];

/// Switches that Qwen's users know. Here they set the thinking effort of every model.
const SWITCHES: [(&str, &str); 2] = [("/think", "medium"), ("/no_think", "none")];

impl SlashCommand {
    pub(super) fn parse(line: &str) -> SlashCommand {
        let line = line.trim();
        if line.is_empty() {
            return SlashCommand::Nothing;
        }
        if let Some(rest) = line.strip_prefix("//") {
            return SlashCommand::Message(format!("/{rest}"));
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !is_command(word) {
            return SlashCommand::Message(line.to_owned());
        }
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        command(word, rest)
    }
}

/// `/etc/passwd` is not a command.
fn is_command(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_?".contains(c))
    })
}

fn command(word: &str, rest: Option<String>) -> SlashCommand {
    if let (Some((_, effort)), None) = (SWITCHES.iter().find(|(name, _)| *name == word), &rest) {
        return SlashCommand::Effort(Some((*effort).to_owned()));
    }
    let meant = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| *name);
    match meant {
        "/system" => SlashCommand::System(rest),
        "/new" => SlashCommand::New,
        "/regenerate" => SlashCommand::Regenerate,
        "/model" => SlashCommand::Model(rest),
        "/effort" => SlashCommand::Effort(rest),
        "/save" => SlashCommand::Save(rest),
        "/stats" => SlashCommand::Stats,
        "/help" => SlashCommand::Help,
        "/exit" => SlashCommand::Exit,
        _ => {
            let near = nearest(word, COMMANDS.iter().map(|(name, _, _)| *name), 1);
            SlashCommand::Unknown { name: word.to_owned(), near }
        }
    }
}

/// The list of commands for `/help`.
pub(super) fn help() -> String {
    let line = |(name, takes, does): &(&str, &str, &str)| {
        format!("  {:<18} {does}", format!("{name} {takes}"))
    };
    let commands: Vec<String> = COMMANDS.iter().map(line).collect();
    format!(
        "{}\n\nA line that ends with \\ goes on in the next. Ctrl-C stops an answer, Ctrl-D leaves.\n\
         A message that begins with a slash begins with two: //",
        commands.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let text = |text: &str| Some(text.to_owned());
        let message = |message: &str| SlashCommand::Message(message.to_owned());
        let rows = [
            (" Good evening. ", message("Good evening.")),
            ("", SlashCommand::Nothing),
            ("  ", SlashCommand::Nothing),
            ("/system be brief ", SlashCommand::System(text("be brief"))),
            ("/system", SlashCommand::System(None)),
            ("/new", SlashCommand::New),
            ("/clear", SlashCommand::New),
            ("/regenerate", SlashCommand::Regenerate),
            ("/model qwen3", SlashCommand::Model(text("qwen3"))),
            ("/effort low", SlashCommand::Effort(text("low"))),
            ("/no_think", SlashCommand::Effort(text("none"))),
            ("/think", SlashCommand::Effort(text("medium"))),
            ("/save a b.md", SlashCommand::Save(text("a b.md"))),
            ("/save", SlashCommand::Save(None)),
            ("/stats", SlashCommand::Stats),
            ("/?", SlashCommand::Help),
            ("/bye", SlashCommand::Exit),
            ("//exit", message("/exit")),
            ("/etc/passwd: what is it?", message("/etc/passwd: what is it?")),
            ("/ is the root", message("/ is the root")),
            ("3 /new", message("3 /new")),
        ];
        for (line, expected) in rows {
            assert_eq!(SlashCommand::parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_mistyped_command_gets_the_nearest() {
        let SlashCommand::Unknown { name, near } = SlashCommand::parse("/sistem x") else {
            panic!("known")
        };
        assert_eq!((name.as_str(), near), ("/sistem", vec!["/system".to_owned()]));
    }

    #[test]
    fn every_order_of_the_list_is_one() {
        for (name, _, _) in COMMANDS {
            assert!(!matches!(
                SlashCommand::parse(name),
                SlashCommand::Unknown { .. } | SlashCommand::Message(_)
            ));
            assert!(help().contains(name));
        }
    }
}
