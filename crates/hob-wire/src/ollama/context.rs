//! The `context` of `/api/generate`: the conversation so far as whole numbers, which a client sends back to go on.
//! Ollama's are tokens of one model. hob's hold the turns as JSON, three bytes in each number, so that the next
//! model renders them with its own template. Pictures are left out.

use hob_core::chat::{Message, Role};
use serde_json::Value;

use crate::WireError;
use crate::chat::MESSAGES_MAX;
use crate::error::json;

const FIELD: &str = "context";

/// The first number of every context of hob's: "hob".
const MARK: u64 = 0x68_6f_62;

/// Bytes in one number. Readers keep them as signed 32-bit integers.
const BYTES_EACH: usize = 3;

/// [`MARK`], the number of bytes, and the bytes.
pub(super) fn of<'a>(turns: impl Iterator<Item = (Role, &'a str)>) -> Vec<u32> {
    let turns: Vec<(&str, &str)> = turns.map(|(role, text)| (role.name(), text)).collect();
    let bytes = json(&turns).into_bytes();
    let packed = bytes
        .chunks(BYTES_EACH)
        .map(|chunk| chunk.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)));
    [MARK as u32, bytes.len() as u32].into_iter().chain(packed).collect()
}

/// The turns; none where the field is missing or empty.
pub(super) fn read(sent: Option<Vec<Value>>) -> Result<Vec<Message>, WireError> {
    let numbers = sent.unwrap_or_default();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    unpacked(&numbers).and_then(|bytes| turns(&bytes)).ok_or_else(|| {
        let reason = "is not the context of an answer from hob: send what the last answer of this \
                      conversation said, or leave it out";
        WireError::invalid(FIELD, reason)
    })
}

fn unpacked(numbers: &[Value]) -> Option<Vec<u8>> {
    let mut numbers = numbers.iter().map(Value::as_u64);
    if numbers.next()?? != MARK {
        return None;
    }
    let length = usize::try_from(numbers.next()??).ok()?;
    if numbers.len() != length.div_ceil(BYTES_EACH) {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    for number in numbers {
        let bytes_here = (length - bytes.len()).min(BYTES_EACH);
        bytes.extend(&number?.to_be_bytes()[8 - bytes_here..]);
    }
    Some(bytes)
}

fn turns(bytes: &[u8]) -> Option<Vec<Message>> {
    let turns: Vec<(String, String)> = serde_json::from_slice(bytes).ok()?;
    let message = |(role, text): (String, String)| {
        let roles = [Role::System, Role::User, Role::Assistant];
        let role = roles.into_iter().find(|known| known.name() == role)?;
        Some(Message::new(role, text))
    };
    if turns.len() > MESSAGES_MAX { None } else { turns.into_iter().map(message).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_of(context: Value) -> Result<Vec<Message>, WireError> {
        read(serde_json::from_value(context).ok())
    }

    #[test]
    fn turns_come_back_whatever_their_length_and_letters() {
        for text in ["", "a", "ab", "abc", "abcd", "\"Ü🌍\n", &"x".repeat(10_000)] {
            let turns =
                [(Role::System, "Be brief."), (Role::User, text), (Role::Assistant, "Yes.")];
            let context = of(turns.into_iter());
            assert!(context.iter().all(|number| *number < 1 << 24));
            let expect: Vec<_> = turns.map(|(role, text)| Message::new(role, text)).into();
            assert!(read_of(json!(context)) == Ok(expect), "{text}");
        }
        assert!(read_of(json!([])) == Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_context_of_hob_s_is_refused() {
        let good = of([(Role::User, "Hi")].into_iter());
        let cut = &good[..good.len() - 1];
        let mut huge = good.clone();
        huge[1] = u32::MAX;
        let wrong_role = of([(Role::Tool, "Hi")].into_iter());
        for context in [
            json!([151_644, 8948, 198]),
            json!([MARK]),
            json!([MARK, 3, 0]),
            json!([MARK, 2, "a"]),
            json!([MARK, 3, 1.5]),
            json!(cut),
            json!(huge),
            json!(wrong_role),
        ] {
            let error = read_of(context.clone()).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(
                error.starts_with("'context' is not the context of an answer"),
                "{context}: {error}"
            );
        }
    }
}
