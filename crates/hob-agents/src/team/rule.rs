//! Rules over commands: a prefix of the arguments, and what is decided. Every simple command of a list or pipeline needs a
//! rule of its own, and the strictest decision counts. A rule that denies or asks counts for commands inside others, too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runners::{JudgedCommand, base_name, judged_commands, runs_everything};

/// A decision about commands that begin with these arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRule {
    /// The first arguments of a command, the program first. They must be equal, letter by letter. A rule that denies or
    /// asks counts for a program in every folder, and inside commands such as `sudo` and `sh -c`.
    pub argv: Vec<String>,
    pub decision: RuleDecision,
    /// Commands that the rule decides. Checked when the file is read.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Commands that the rule must not decide. Checked when the file is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
}

/// Ordered by strictness.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    Allow,
    Ask,
    Deny,
}

impl CommandRule {
    /// Whether the rule decides about the command. The words of a rule that allows must be exactly the first words of the
    /// command: the same name in another folder may be another program, and `sudo` gives a program other rights.
    fn covers(&self, command: &JudgedCommand) -> bool {
        match self.decision {
            RuleDecision::Allow => command.words.starts_with(&self.argv),
            RuleDecision::Ask | RuleDecision::Deny => {
                self.begins(&command.words) || command.inner.iter().any(|inner| self.begins(inner))
            }
        }
    }

    /// Whether a command begins with the words of the rule, in whatever folder the program is.
    fn begins(&self, command: &[String]) -> bool {
        let (Some((own, others)), Some((program, words))) =
            (self.argv.split_first(), command.split_first())
        else {
            return false;
        };
        base_name(own) == base_name(program) && words.starts_with(others)
    }

    /// Why the rule cannot be what its author meant.
    pub(super) fn problem(&self) -> Option<String> {
        if self.argv.is_empty() {
            return Some("a rule needs at least the name of a program".to_owned());
        }
        if self.decision == RuleDecision::Allow && runs_everything(&self.argv) {
            let words = self.argv.join(" ");
            return Some(format!("a rule that allows '{words}' would allow every command"));
        }
        let rules = std::slice::from_ref(self);
        let decide = |example: &String| {
            let commands = judged_commands(example).unwrap_or_default();
            decide(rules, &commands) == Some(self.decision)
        };
        if let Some(example) = self.matches.iter().find(|example| !decide(example)) {
            return Some(format!("the rule does not decide its example '{example}'"));
        }
        let wrong = self.not_match.iter().find(|example| decide(example))?;
        Some(format!("the rule decides '{wrong}', which its `not_match` lists"))
    }
}

/// The strictest decision of the rules about these commands. `None`: no rule decides about some of them.
pub(crate) fn decide(rules: &[CommandRule], commands: &[JudgedCommand]) -> Option<RuleDecision> {
    let each: Vec<Option<RuleDecision>> = commands
        .iter()
        .map(|command| {
            rules.iter().filter(|rule| rule.covers(command)).map(|rule| rule.decision).max()
        })
        .collect();
    // A part that must not run forbids the whole, whatever the other parts are.
    let strictest = each.iter().flatten().max().copied()?;
    if strictest > RuleDecision::Allow || each.iter().all(Option::is_some) {
        Some(strictest)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(argv: &[&str], decision: RuleDecision) -> CommandRule {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        CommandRule { argv, decision, matches: Vec::new(), not_match: Vec::new() }
    }

    #[test]
    fn each_part_of_a_command_needs_its_own_rule() {
        let rules = [
            rule(&["git", "status"], RuleDecision::Allow),
            rule(&["git"], RuleDecision::Ask),
            rule(&["ls"], RuleDecision::Allow),
            rule(&["rm"], RuleDecision::Deny),
        ];
        for (command, expected) in [
            ("ls -l | ls", Some(RuleDecision::Allow)),
            ("git status", Some(RuleDecision::Ask)),
            ("ls && rm x", Some(RuleDecision::Deny)),
            ("make; rm x", Some(RuleDecision::Deny)),
            ("ls && make", None),
            ("ls $(rm x)", None),
            ("make", None),
            ("lsof", None),
            ("/bin/rm x", Some(RuleDecision::Deny)),
            ("ls && sudo bash -c 'make; rm x'", Some(RuleDecision::Deny)),
            ("env git push", Some(RuleDecision::Ask)),
            ("/tmp/ls", None),
            ("sudo ls", None),
            ("bash -c ls", None),
        ] {
            let commands = judged_commands(command).unwrap_or_default();
            assert_eq!(decide(&rules, &commands), expected, "{command}");
        }
    }

    #[test]
    fn the_folder_of_a_program_does_not_matter_where_it_is_forbidden() {
        let rules = [rule(&["/usr/bin/git", "push"], RuleDecision::Deny)];
        for (command, expected) in [
            ("git push", Some(RuleDecision::Deny)),
            ("xargs /bin/git push -f", Some(RuleDecision::Deny)),
            ("git pull", None),
        ] {
            let commands = judged_commands(command).expect(command);
            assert_eq!(decide(&rules, &commands), expected, "{command}");
        }
    }

    #[test]
    fn the_examples_of_a_rule_are_checked() {
        let allowed = rule(&["git", "status"], RuleDecision::Allow);
        let example = |text: &str| vec![text.to_owned()];
        let with = |matches, not_match| CommandRule { matches, not_match, ..allowed.clone() };
        assert_eq!(
            with(example("git status -s"), example("git status && git push")).problem(),
            None
        );
        assert!(with(example("git push"), Vec::new()).problem().is_some());
        assert!(with(Vec::new(), example("git status")).problem().is_some());
        assert!(rule(&[], RuleDecision::Ask).problem().is_some());
        assert!(rule(&["/bin/sh"], RuleDecision::Allow).problem().is_some());
        assert!(rule(&["bash", "-c"], RuleDecision::Allow).problem().is_some());
        assert_eq!(rule(&["bash", "build.sh"], RuleDecision::Allow).problem(), None);
        assert_eq!(rule(&["sh"], RuleDecision::Deny).problem(), None);
    }
}
