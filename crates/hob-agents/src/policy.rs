//! Whether a tool may run: rules over commands first, then the approval table.
//! Deny is stricter than ask, and ask is stricter than allow.

use serde_json::Value;

use crate::command::simple_commands;
use crate::team::{Approval, RuleDecision, Team, decide};
use crate::tool::{CommandArgument, ToolClass, ToolSpec};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Run,
    /// A person decides; the reason is shown.
    Ask(String),
    /// The model reads the reason.
    Refuse(String),
}

/// Decides about a call with checked arguments. `is_tainted`: the agent has read text of others.
pub(crate) fn permission(
    team: &Team,
    tool: &ToolSpec,
    arguments: &Value,
    is_tainted: bool,
) -> Permission {
    let commands = tool.command.map(|command| commands(command, arguments)).transpose();
    let rule = match commands {
        Ok(commands) => commands.and_then(|commands| decide(&team.rules, &commands)),
        Err(reason) if team.policy.approval == Approval::Never && has_strict_rule(team) => {
            return Permission::Refuse(unclear(reason));
        }
        // The table asks for a command that no rule allows.
        Err(_) => None,
    };
    match rule {
        Some(RuleDecision::Deny) => {
            return Permission::Refuse("a rule of the team forbids this command".to_owned());
        }
        Some(RuleDecision::Ask) if team.policy.approval != Approval::Never => {
            return Permission::Ask(
                "a rule of the team wants approval for this command".to_owned(),
            );
        }
        Some(RuleDecision::Ask) => {
            return Permission::Refuse(
                "a rule of the team wants approval for this command, and this team asks no person"
                    .to_owned(),
            );
        }
        Some(RuleDecision::Allow) | None => {}
    }
    let is_allowed = rule == Some(RuleDecision::Allow);
    if !must_ask(team.policy.approval, tool.class, is_allowed) {
        return Permission::Run;
    }
    if team.policy.approval == Approval::Never {
        return Permission::Refuse(format!(
            "'{}' acts outside the workspace, and this team asks no person",
            tool.name
        ));
    }
    Permission::Ask(match (tool.command, is_tainted) {
        (Some(_), _) if tool.class == ToolClass::System => {
            "the command runs without a sandbox".to_owned()
        }
        (Some(_), true) => {
            "no rule allows this command, and the agent has read text of others".to_owned()
        }
        (Some(_), false) => "no rule allows this command".to_owned(),
        (None, _) => format!("'{}' needs approval in this team", tool.name),
    })
}

/// Whether a command that is not known before it runs could be one that a rule forbids or wants approval for.
fn has_strict_rule(team: &Team) -> bool {
    team.rules.iter().any(|rule| rule.decision > RuleDecision::Allow)
}

/// What the model reads about a command that a shell would compute.
fn unclear(reason: &str) -> String {
    format!(
        "it is not clear what the command runs: {reason}. The rules of the team forbid some commands, and this team asks \
         no person. Write it without variables, substitutions, redirections and compound commands"
    )
}

/// The commands that a call would run.
///
/// # Errors
/// The reason why they are unclear, so that no rule can decide about them.
fn commands(command: CommandArgument, arguments: &Value) -> Result<Vec<Vec<String>>, &'static str> {
    match command {
        CommandArgument::Shell(field) => {
            simple_commands(arguments[field].as_str().unwrap_or_default())
        }
        CommandArgument::Words(first, others) => {
            let others = arguments[others].as_array().into_iter().flatten();
            let words = std::iter::once(&arguments[first]).chain(others);
            Ok(vec![words.filter_map(|word| word.as_str().map(str::to_owned)).collect()])
        }
    }
}

/// The approval table. `is_allowed`: a rule allows the command.
fn must_ask(approval: Approval, class: ToolClass, is_allowed: bool) -> bool {
    match (approval, class) {
        (Approval::Always, _) | (_, ToolClass::System) => true,
        (Approval::Untrusted | Approval::OnRequest, ToolClass::Execute) => !is_allowed,
        (Approval::Untrusted, class) => class != ToolClass::Read,
        (Approval::Never | Approval::OnRequest, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn team(approval: &str) -> Team {
        let text = format!(
            "entry = \"a\"\npolicy = {{ approval = \"{approval}\" }}\n[[agent]]\nname = \"a\"\nmodel = \"m\"\n\
             [[rule]]\nargv = [\"ls\"]\ndecision = \"allow\"\n[[rule]]\nargv = [\"rm\"]\ndecision = \"deny\"\n\
             [[rule]]\nargv = [\"git\"]\ndecision = \"ask\"\n"
        );
        Team::parse(&text, "t").expect("a team")
    }

    fn tool(class: ToolClass) -> ToolSpec {
        let command = (class == ToolClass::Execute).then_some(CommandArgument::Shell("command"));
        ToolSpec { command, ..ToolSpec::new("tool", "", json!({}), class) }
    }

    /// `r`un, `a`sk or refuse (`x`), for read, network, write, system, and for the commands that are unknown, allowed,
    /// asked for, denied and unclear.
    #[test]
    fn the_table_and_the_rules_decide_together() {
        use ToolClass::{Execute, Network, Read, System, Write};
        for (approval, expected) in [
            ("never", "rrrxrrxxx"),
            ("on-request", "rrraaraxa"),
            ("untrusted", "raaaaraxa"),
            ("always", "aaaaaaaxa"),
        ] {
            let team = team(approval);
            let of = |class, command: &str| {
                let arguments = json!({ "command": command });
                match permission(&team, &tool(class), &arguments, false) {
                    Permission::Run => 'r',
                    Permission::Ask(_) => 'a',
                    Permission::Refuse(_) => 'x',
                }
            };
            let classes = [Read, Network, Write, System].map(|class| of(class, ""));
            let commands = ["make", "ls -l", "git push", "ls; rm x", "ls $(rm x)"];
            let commands = commands.map(|command| of(Execute, command));
            let found: String = classes.into_iter().chain(commands).collect();
            assert_eq!(found, expected, "{approval}");
        }
    }

    /// A deny rule holds where no person is asked; without such a rule there is nothing to hold.
    #[test]
    fn unclear_commands_pass_no_strict_rule() {
        let strict = team("never");
        let mut free = strict.clone();
        free.rules.retain(|rule| rule.decision == RuleDecision::Allow);
        for (command, part) in [
            ("$(echo rm) x", "substitution"),
            ("ls > x", "redirects"),
            ("A=b rm x", "sets a variable"),
            ("echo 'a", "quote"),
        ] {
            let arguments = json!({ "command": command });
            let found = permission(&strict, &tool(ToolClass::Execute), &arguments, false);
            let Permission::Refuse(reason) = &found else { panic!("{command}: {found:?}") };
            assert!(reason.contains(part) && reason.contains("asks no person"), "{reason}");
            let found = permission(&free, &tool(ToolClass::Execute), &arguments, false);
            assert_eq!(found, Permission::Run, "{command}");
        }
    }

    #[test]
    fn rules_see_the_words_of_a_command_without_a_shell() {
        let text = "entry = \"a\"\n[[agent]]\nname = \"a\"\nmodel = \"m\"\n\
                    [[rule]]\nargv = [\"web\", \"ls\"]\ndecision = \"allow\"\n";
        let team = Team::parse(text, "t").expect("a team");
        let tool = ToolSpec {
            command: Some(CommandArgument::Words("container", "argv")),
            ..ToolSpec::new("container_run", "", json!({}), ToolClass::Execute)
        };
        for (container, argv, runs) in [
            ("web", json!(["ls", "-l", "; rm x"]), true),
            ("web", json!(["rm", "x"]), false),
            ("db", json!(["ls"]), false),
            ("web ls", json!([]), false),
        ] {
            let arguments = json!({ "container": container, "argv": argv });
            let found = permission(&team, &tool, &arguments, false);
            assert_eq!(found == Permission::Run, runs, "{arguments}: {found:?}");
        }
    }
}
