//! Whether a tool may run: rules over commands first, then the approval table.
//! Deny is stricter than ask, and ask is stricter than allow.

use serde_json::Value;

use crate::team::{Approval, RuleDecision, Team, decide};
use crate::tool::{ToolClass, ToolSpec};

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
    let command = tool.command_field.and_then(|field| arguments[field].as_str());
    let rule = command.and_then(|command| decide(&team.rules, command));
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
    Permission::Ask(match (command, is_tainted) {
        (Some(_), true) => {
            "no rule allows this command, and the agent has read text of others".to_owned()
        }
        (Some(_), false) => "no rule allows this command".to_owned(),
        (None, _) => format!("'{}' needs approval in this team", tool.name),
    })
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
        let command_field = (class == ToolClass::Execute).then_some("command");
        ToolSpec { command_field, ..ToolSpec::new("tool", "", json!({}), class) }
    }

    /// `r`un, `a`sk or refuse (`x`), for read, network, write, system, and for the commands that are unknown, allowed,
    /// asked for and denied.
    #[test]
    fn the_table_and_the_rules_decide_together() {
        use ToolClass::{Execute, Network, Read, System, Write};
        for (approval, expected) in [
            ("never", "rrrxrrxx"),
            ("on-request", "rrraarax"),
            ("untrusted", "raaaarax"),
            ("always", "aaaaaaax"),
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
            let commands =
                ["make", "ls -l", "git push", "ls; rm x"].map(|command| of(Execute, command));
            let found: String = classes.into_iter().chain(commands).collect();
            assert_eq!(found, expected, "{approval}");
        }
    }
}
