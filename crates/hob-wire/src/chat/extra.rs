//! Fields of another server's answer that hob does not know, at the end of hob's own object.
//! They are added to the text: as members of the types that are serialised they would slow down every chunk.

use hob_core::JsonText;

/// Adds the members of `extra` to the object at the end of `text`. `end` is its closing brace and what follows it.
pub(super) fn add_members(text: &mut String, end: &str, extra: &JsonText) {
    let members = extra.as_str().strip_prefix('{').and_then(|members| members.strip_suffix('}'));
    let Some(members) = members.filter(|members| !members.is_empty()) else { return };
    if text.ends_with(end) {
        text.truncate(text.len() - end.len());
        text.push(',');
        text.push_str(members);
        text.push_str(end);
    }
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
}
