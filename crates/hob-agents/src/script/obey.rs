//! The mode `obey` of a script: the model does what the last message says literally.
//! So tests of other programs can choose the answers in their own prompts.

use hob_core::chat::{ChatRequest, Conversation, Message, Prompt, Role};
use serde_json::{Value, json};

use super::ScriptCall;

/// Verbs that may stand before `exactly`.
const VERBS: [&str; 5] = ["reply", "answer", "respond", "say", "write"];
const EXACTLY: &str = "exactly";
const CALL: &str = "call ";

/// The text and the calls that the last message asks for.
///
/// # Errors
/// The last message asks for neither.
pub(super) fn obeyed(request: &ChatRequest) -> Result<(String, Vec<ScriptCall>), String> {
    let Prompt::Chat(conversation) = &request.prompt else {
        return Err("a script that obeys needs a conversation".to_owned());
    };
    let Some(last) = conversation.messages.last() else {
        return Err("a script that obeys needs a message".to_owned());
    };
    if let Some(text) = repeated(last).or_else(|| literal(&last.text)) {
        return Ok((text.to_owned(), Vec::new()));
    }
    let call = ordered(&last.text, conversation).ok_or(
        "the last message says neither `reply exactly X` nor `call TOOL with {…}` with a tool that is offered",
    )?;
    Ok((String::new(), vec![call]))
}

/// The result of a tool, which becomes the answer.
fn repeated(last: &Message) -> Option<&str> {
    (last.role == Role::Tool).then_some(last.text.as_str())
}

/// The text behind `reply exactly`, to the end of its line or quote.
fn literal(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let (at, _) = lower.match_indices(EXACTLY).find(|(at, _)| {
        let before = lower[..*at].trim_end();
        let before = before.strip_suffix("with").map_or(before, str::trim_end);
        VERBS.iter().any(|verb| before.ends_with(verb))
    })?;
    let named = text[at + EXACTLY.len()..].trim_start_matches([':', ' ', '\n']);
    let named = named.lines().next().unwrap_or_default().trim_end();
    let quoted = ['"', '\'', '`'].into_iter().find_map(|quote| {
        let (inside, _) = named.strip_prefix(quote)?.split_once(quote)?;
        Some(inside)
    });
    Some(quoted.unwrap_or_else(|| named.trim_end_matches('.')))
}

/// The call behind `call`, with the object that follows.
fn ordered(text: &str, conversation: &Conversation) -> Option<ScriptCall> {
    let at = text.to_ascii_lowercase().find(CALL)?;
    let rest = &text[at + CALL.len()..];
    let name = rest.split_whitespace().next()?.trim_matches(['`', '.']);
    let is_offered = conversation.tools.iter().any(|tool| tool.name == name);
    let arguments = rest.find('{').and_then(|at| {
        let values = serde_json::Deserializer::from_str(&rest[at..]);
        values.into_iter::<Value>().next()?.ok()
    });
    let arguments = arguments.unwrap_or_else(|| json!({}));
    is_offered.then(|| ScriptCall { name: name.to_owned(), arguments })
}

#[cfg(test)]
mod tests {
    use hob_core::chat::Tool;

    use super::*;

    fn done(role: Role, text: &str) -> Result<String, String> {
        let conversation = Conversation {
            messages: vec![Message::new(Role::User, "Reply exactly: no"), Message::new(role, text)],
            tools: vec![Tool { name: "look".to_owned(), ..Tool::default() }],
            ..Conversation::default()
        };
        let prompt = Prompt::Chat(conversation);
        let (text, calls) = obeyed(&ChatRequest { prompt, ..ChatRequest::default() })?;
        let calls = calls.iter().map(|call| format!("[{} {}]", call.name, call.arguments));
        Ok(text + &calls.collect::<String>())
    }

    #[test]
    fn what_the_last_message_says_is_done() {
        for (asked, expected) in [
            ("Reply exactly hello there.", "hello there"),
            ("Please answer with exactly: `a.b`, and stop.", "a.b"),
            ("Respond exactly:\nfirst\nsecond", "first"),
            ("SAY EXACTLY \"It's done.\"", "It's done."),
            ("Call look with {\"at\": {\"x\": 1}} now.", "[look {\"at\":{\"x\":1}}]"),
            ("Now call `look`.", "[look {}]"),
        ] {
            assert_eq!(done(Role::User, asked).as_deref(), Ok(expected), "{asked}");
        }
        assert_eq!(done(Role::Tool, "seen").as_deref(), Ok("seen"));
        for asked in ["Hello", "That is exactly so", "Call other with {}"] {
            assert!(done(Role::User, asked).is_err(), "{asked}");
        }
    }
}
