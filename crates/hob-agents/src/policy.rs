//! Whether a tool may run: rules over commands first, then the approval table.
//! Deny is stricter than ask, and ask is stricter than allow.

use serde_json::Value;

use crate::runners::{JudgedCommand, judged_commands};
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
    let (rule, unclear) = match tool.command.map(|command| commands(command, arguments)).transpose()
    {
        Ok(commands) => {
            let commands = commands.unwrap_or_default();
            let unclear = commands.iter().find_map(|command| command.unclear);
            (decide(&team.rules, &commands), unclear)
        }
        Err(reason) => (None, Some(reason)),
    };
    let unclear = unclear.filter(|_| has_strict_rule(team));
    // A rule that allows does not count for an unclear command: it may run another one. The table decides.
    let rule = rule.filter(|rule| *rule > RuleDecision::Allow || unclear.is_none());
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
    if let (Some(reason), Approval::Never) = (unclear, team.policy.approval) {
        return Permission::Refuse(unclear_refusal(reason));
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

/// Whether a rule forbids commands or wants approval for some: an unclear command could be one of them.
fn has_strict_rule(team: &Team) -> bool {
    team.rules.iter().any(|rule| rule.decision > RuleDecision::Allow)
}

/// What the model reads about a command that a shell or an interpreter would compute.
fn unclear_refusal(reason: &str) -> String {
    format!(
        "it is not clear what the command runs: {reason}. The rules of the team forbid some commands, and this team asks \
         no person. Write it without variables, substitutions, redirections, compound commands and code for interpreters"
    )
}

/// The commands that a call would run.
///
/// # Errors
/// The reason why they are unclear, so that no rule can decide about them.
fn commands(
    command: CommandArgument,
    arguments: &Value,
) -> Result<Vec<JudgedCommand>, &'static str> {
    match command {
        CommandArgument::Shell(field) => {
            judged_commands(arguments[field].as_str().unwrap_or_default())
        }
        CommandArgument::Words(first, others) => {
            let words = arguments[others].as_array().into_iter().flatten();
            let words = words.filter_map(|word| word.as_str().map(str::to_owned)).collect();
            let place = arguments[first].as_str().unwrap_or_default();
            Ok(vec![JudgedCommand::of(words).within(place)])
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

    fn of_command(team: &Team, command: &str) -> Permission {
        permission(team, &tool(ToolClass::Execute), &json!({ "command": command }), false)
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
            ("python3 -c 'import os'", "code to an interpreter"),
            ("ls; bash -c 'rm $X'", "substitution"),
            ("echo rm x | sh", "its input as code"),
        ] {
            let found = of_command(&strict, command);
            let Permission::Refuse(reason) = &found else { panic!("{command}: {found:?}") };
            assert!(reason.contains(part) && reason.contains("asks no person"), "{reason}");
            assert_eq!(of_command(&free, command), Permission::Run, "{command}");
        }
    }

    /// The rule forbids `rm`.
    #[test]
    fn a_forbidden_command_is_forbidden_inside_others() {
        for approval in ["never", "on-request"] {
            let team = team(approval);
            for command in [
                "bash -c 'rm x'",
                "/bin/rm x",
                "sh -c 'ls; rm x'",
                "env rm x",
                "ls | xargs rm",
                "sudo -u root rm x",
                "busybox rm x",
                // Commands that are clear count, even if others are unclear.
                "rm x; python3 -c x",
            ] {
                let found = of_command(&team, command);
                let is_forbidden =
                    matches!(&found, Permission::Refuse(reason) if reason.contains("forbids"));
                assert!(is_forbidden, "{approval}: {command}: {found:?}");
            }
        }
    }

    #[test]
    fn a_rule_that_allows_an_interpreter_allows_its_code_where_no_command_is_forbidden() {
        let mut team = team("on-request");
        team.rules[0].argv = vec!["python3".to_owned()];
        let found = of_command(&team, "python3 -c x");
        assert!(matches!(found, Permission::Ask(_)), "{found:?}");
        team.rules.truncate(1);
        assert_eq!(of_command(&team, "python3 -c x"), Permission::Run);
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
        let text = text.replace("\"ls\"]\ndecision = \"allow\"", "\"rm\"]\ndecision = \"deny\"");
        let team = Team::parse(&text, "t").expect("a team");
        let arguments = json!({ "container": "web", "argv": ["sh", "-c", "ls; rm x"] });
        let found = permission(&team, &tool, &arguments, false);
        assert!(matches!(found, Permission::Refuse(_)), "{found:?}");
    }
}
