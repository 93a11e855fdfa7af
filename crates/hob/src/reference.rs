//! The reference pages, made from the types: what a page says is what the program does.
//! There is no second description that could disagree with it.

pub(crate) mod record;

use std::fmt::Write as _;

use crate::config::{self, Key};
use crate::failure::{Exit, Failure, Outcome};
use crate::folders::Folders;
use crate::settings::{Environment, Overrides, Settings, VARIABLES};

/// Help texts are wrapped here, whatever terminal the generator runs in.
const WIDTH: usize = 100;

/// The flags of every command.
const GLOBALS: [&str; 4] = ["config", "home", "quiet", "log"];

const MADE: &str = "<!-- made by `hob docs`; `cargo xtask docs` makes it anew -->";

/// `docs/reference/cli.md`, from the whole command line.
pub(crate) fn cli_markdown(command: clap::Command) -> String {
    let mut page = format!("# Commands\n\n{MADE}\n");
    let mut root = command.term_width(WIDTH);
    root.build();
    describe(&mut root, &mut page);
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for exit in Exit::ALL {
        row(&mut page, &[&exit.code().to_string(), exit.meaning()]);
    }
    page.push_str("\n## Environment\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in VARIABLES {
        row(&mut page, &[&format!("`{name}`"), meaning]);
    }
    page
}

/// `docs/reference/config.md`.
pub(crate) fn config_markdown() -> Outcome<String> {
    let mut page = format!("# Configuration\n\n{MADE}\n\n{CONFIG_PREFACE}");
    let defaults = defaults()?;
    for table in TABLES {
        let title =
            if table.is_empty() { "Outside any table".to_owned() } else { format!("`[{table}]`") };
        let head = "| key | takes | default | meaning |\n|---|---|---|---|\n";
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(page, "\n## {title}\n\n{head}");
        for key in config::known_keys().iter().filter(|key| in_table(key, table)) {
            let default = default_of(&defaults, key);
            row(&mut page, &[&format!("`{}`", key.name()), &key.kind, &default, &key.meaning]);
        }
    }
    Ok(page)
}

/// In the order in which somebody needs them.
const TABLES: [&str; 13] = [
    "",
    "server",
    "speech",
    "chat",
    "model.NAME",
    "memory",
    "upstream.NAME",
    "alias.NAME",
    "keys.NAME",
    "defaults",
    "ledger",
    "dev",
    "alias.NAME.to",
];

const CONFIG_PREFACE: &str = "\
`hob.toml` is looked for in the working folder, then in the user's configuration folder\n\
(`$XDG_CONFIG_HOME/hob/hob.toml`); `--config FILE` names another. hob needs none. A flag wins over\n\
the environment, that over the file, that over the default. An unknown key is refused.\n\
`hob config check` says whether a file is right, `hob config print` what is in force, and\n\
`hob config schema` prints a JSON schema for editors.\n";

fn describe(command: &mut clap::Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _infallible =
        write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    for inner in command.get_subcommands_mut() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            // A subcommand built on its own forgets the width of its parent, and what every command
            // takes was said once.
            let alone = std::mem::take(inner).term_width(WIDTH);
            *inner =
                GLOBALS.iter().fold(alone, |inner, name| inner.mut_arg(name, |arg| arg.hide(true)));
            describe(inner, page);
        }
    }
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _infallible = writeln!(page, "| {} |", cells.join(" | "));
}

fn in_table(key: &Key, table: &str) -> bool {
    key.table() == table && key.kind != "table"
}

/// As they are settled for a user with no flags, no environment and no file.
fn defaults() -> Outcome<toml::Table> {
    let folders = Folders { data: Some("~/.local/share".into()), ..Folders::default() };
    let environment = Environment { folders, ..Environment::default() };
    let settings =
        Settings::resolve(&Overrides::default(), &environment, &config::Written::default())?;
    toml::Table::try_from(settings.as_written())
        .map_err(|error| Failure::new(Exit::Internal, error))
}

fn default_of(defaults: &toml::Table, key: &Key) -> String {
    let mut value = Some(defaults);
    let (tables, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
    for table in tables.split('.').filter(|table| !table.is_empty()) {
        value = value.and_then(|value| value.get(table)).and_then(toml::Value::as_table);
    }
    value.and_then(|value| value.get(name)).map_or_else(|| "none".to_owned(), |v| format!("`{v}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_verb_and_no_hidden_one_is_described() {
        let page = cli_markdown(crate::cli::command());
        for verb in [
            "serve",
            "chat",
            "say",
            "pull",
            "models",
            "models rm",
            "ps",
            "ledger",
            "route",
            "upstreams",
            "selftest gateway",
            "bench import",
            "bench show",
            "bench compare",
            "bench gate",
            "site build",
            "config import",
            "load",
            "unload",
            "doctor",
            "config check",
        ] {
            assert!(page.contains(&format!("\n## hob {verb}\n")), "{verb}");
        }
        assert!(!page.contains("hob worker"));
        assert!(page.contains("| 130 | interrupted (Ctrl-C) |"));
    }

    #[test]
    fn every_key_is_described_with_its_default() {
        let page = config_markdown().expect("a page");
        for key in config::known_keys().iter().filter(|key| key.kind != "table") {
            assert!(
                page.contains(&format!("| `{}` | {} | ", key.name(), key.kind)),
                "{}",
                key.path
            );
        }
        assert!(page.contains("| `listen` | string | `\"127.0.0.1:8484\"` |"), "{page}");
        assert!(page.contains("| `api_key_file` | string | none |"), "{page}");
    }
}
