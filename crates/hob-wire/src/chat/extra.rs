//! Fields of another server's answer that hob does not know, at the end of hob's own object.
//! They are added to the text: as members of the types that are serialised they would slow down every chunk.

use hob_core::{JsonText, UnknownFields};

/// Adds the members of `extra` to the object at the end of `text`. `end` is its closing brace and what follows it.
pub(super) fn add_members(text: &mut String, end: &str, extra: &JsonText) {
    let Some(members) = members(extra) else { return };
    if text.ends_with(end) {
        text.truncate(text.len() - end.len());
        text.push(',');
        text.push_str(members);
        text.push_str(end);
    }
}

/// Adds the members for a choice and its message or delta. `behind` is the number of choices that follow it in `text`; these
/// have no such members yet.
pub(super) fn add_to_choice(text: &mut String, behind: usize, extra: &UnknownFields) {
    // The end of the message. Within texts, quotation marks are escaped.
    let end = text.rmatch_indices(r#"},"logprobs":"#).nth(behind).map(|(end, _)| end);
    let Some(end) = end else { return };
    if let Some(members) = members(&extra.choice) {
        text.insert_str(end + 1, &format!(",{members}"));
    }
    if let Some(members) = members(&extra.message) {
        let comma = if text[..end].ends_with('{') { "" } else { "," };
        text.insert_str(end, &format!("{comma}{members}"));
    }
}

/// What stands between the braces; None if that is nothing.
fn members(object: &JsonText) -> Option<&str> {
    let members = object.as_str().strip_prefix('{')?.strip_suffix('}')?;
    (!members.is_empty()).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_before_the_end() {
        for (text, end, extra, expected) in [
            (r#"{"a":1}"#, "}", r#"{"b":{},"c":2}"#, r#"{"a":1,"b":{},"c":2}"#),
            ("data: {\"a\":1}\n\n", "}\n\n", r#"{"b":2}"#, "data: {\"a\":1,\"b\":2}\n\n"),
            (r#"{"a":1}"#, "}", "{}", r#"{"a":1}"#),
        ] {
            let mut written = text.to_owned();
            add_members(&mut written, end, &JsonText::parsed(extra));
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn members_of_a_choice_stand_before_its_log_probabilities() {
        let empty = || JsonText::parsed("{}");
        let extra = |choice: &str, message: &str| UnknownFields {
            answer: empty(),
            choice: JsonText::parsed(choice),
            message: JsonText::parsed(message),
        };
        let text = r#"[{"message":{"role":"a"},"logprobs":null},{"delta":{},"logprobs":null}]"#;
        let mut written = text.to_owned();
        add_to_choice(&mut written, 1, &extra(r#"{"b":{},"logprobs":1}"#, r#"{"c":1}"#));
        add_to_choice(&mut written, 0, &extra("{}", r#"{"d":2}"#));
        let expected = r#"[{"message":{"role":"a","c":1},"b":{},"logprobs":1,"logprobs":null},{"delta":{"d":2},"logprobs":null}]"#;
        assert_eq!(written, expected);
    }
}
