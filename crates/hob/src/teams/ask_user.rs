//! Approval through `ask_user`, a tool that Open WebUI offers with its requests: it shows a question with buttons.
//! The id of the call names the run and its step, so the answer finds the run, and counts once.

use std::collections::BTreeMap;

use hob_agents::RunState;
use hob_core::chat::{ChatEvent, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

/// The name of the tool.
pub(super) const ASK_USER: &str = "ask_user";

const ID_PREFIX: &str = "approval_";
const QUESTION_ID: &str = "approval";
const APPROVE: &str = "Approve";
/// Open WebUI cuts questions of more than 500 characters without a word.
const REASON_CHARS_MAX: usize = 200;
const ARGUMENTS_CHARS_MAX: usize = 200;
const TIMEOUT_MS: u32 = 240_000;

/// What a person has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) run_id: String,
    /// The number of the run's last event when it asked.
    seq: u64,
    pub(super) is_approved: bool,
}

impl Decided {
    /// The answer to hob's question, if the conversation ends with one.
    pub(super) fn of(messages: &[Message]) -> Option<Decided> {
        let last = messages.last().filter(|message| message.role == Role::Tool)?;
        let id = last.tool_call_id.as_deref()?.strip_prefix(ID_PREFIX)?;
        let (run_id, seq) = id.rsplit_once('_')?;
        let (run_id, seq) = (run_id.to_owned(), seq.parse().ok()?);
        Some(Decided { run_id, seq, is_approved: is_approved(&last.text) })
    }

    /// Whether the run still waits for this decision, and of this key.
    pub(super) fn is_for(&self, run: &RunState, key: Option<&str>) -> bool {
        run.approval().is_some() && run.seq == self.seq && run.owner.as_deref() == key
    }
}

/// Everything but the exact word is a refusal: a timeout, a text of the user's own, another shape.
fn is_approved(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        status: String,
        answers: BTreeMap<String, Choice>,
    }
    /// Open WebUI's page sends the option that was clicked, other clients its label.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Choice {
        Label(String),
        Clicked { r#type: String, label: String },
    }
    serde_json::from_str::<Answer>(text).is_ok_and(|sent| {
        let label = match sent.answers.get(QUESTION_ID) {
            Some(Choice::Label(label)) => label,
            Some(Choice::Clicked { r#type, label }) if r#type == "option" => label,
            _ => return false,
        };
        sent.status == "answered" && label == APPROVE
    })
}

/// The call that shows the question. The trace before it has the arguments in full.
pub(super) fn question(run: &RunState, call: &ToolCall, reason: &str) -> [ChatEvent; 2] {
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    let arguments = arguments_text(call.arguments.as_str());
    let question =
        format!("May the team call {} {arguments}? hob asks because {reason}.", call.name);
    let option = |label, description| json!({ "label": label, "description": description });
    // The first option is the one that Open WebUI recommends.
    let deny = option("Deny", "The agent reads that it may not.");
    let approve = option(APPROVE, "hob makes exactly this call.");
    let arguments = json!({
        "questions": [{
            "id": QUESTION_ID, "header": "Approval", "question": question, "options": [deny, approve],
        }],
        "allow_other": false,
        "timeout_ms": TIMEOUT_MS,
    });
    let id = format!("{ID_PREFIX}{}_{}", run.run_id, run.seq);
    [
        ChatEvent::ToolCall { index: 0, id, name: ASK_USER.to_owned() },
        ChatEvent::ToolArguments { index: 0, piece: arguments.to_string() },
    ]
}

/// The arguments, if they are short and every character of them can be seen; otherwise where they stand.
fn arguments_text(arguments: &str) -> String {
    let is_visible = arguments.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if is_visible && arguments.len() <= ARGUMENTS_CHARS_MAX {
        return format!("with {arguments}");
    }
    let digest = Sha256::digest(arguments.as_bytes());
    let sum: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("with the arguments that are in its thoughts above (SHA-256: {sum})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_word_approves() {
        let table = r#"
            {"status":"answered","answers":{"approval":"Approve"}} => true
            {"status":"answered","answers":{"approval":"Deny"}} => false
            {"status":"answered","answers":{"approval":"approve"}} => false
            {"status":"answered","answers":{"other":"Approve"}} => false
            {"status":"answered","answers":{"approval":{"type":"option","option_index":1,"label":"Approve"}}} => true
            {"status":"answered","answers":{"approval":{"type":"option","option_index":0,"label":"Deny"}}} => false
            {"status":"answered","answers":{"approval":{"type":"other","text":"Approve"}}} => false
            {"status":"answered","answers":{"approval":{"type":"other","label":"Approve"}}} => false
            {"status":"cancelled","answers":{"approval":"Approve"},"timed_out":true} => false
            Approve => false
        "#;
        for row in table.trim().lines() {
            let (text, is_approved) = row.trim().split_once(" => ").expect(row);
            let message = Message {
                tool_call_id: Some("approval_0192-ab_17".to_owned()),
                ..Message::new(Role::Tool, text)
            };
            let is_approved: bool = is_approved.parse().expect(row);
            let expected = Decided { run_id: "0192-ab".to_owned(), seq: 17, is_approved };
            assert_eq!(Decided::of(&[message]), Some(expected), "{text}");
        }
        let other =
            Message { tool_call_id: Some("call_1".to_owned()), ..Message::new(Role::Tool, "done") };
        assert_eq!(Decided::of(&[other]), None);
    }
    #[test]
    fn arguments_are_shown_where_all_of_them_can_be_seen() {
        assert_eq!(arguments_text(r#"{"command":"ls"}"#), r#"with {"command":"ls"}"#);
        for hidden in [&"x".repeat(ARGUMENTS_CHARS_MAX + 1), "a\u{202e}b", "a\nb"] {
            assert!(arguments_text(hidden).contains("SHA-256"), "{hidden:?}");
        }
    }
}
