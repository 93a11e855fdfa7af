//! Pictures in Ollama's words: bare base64 beside the text, where everybody else writes an address.
//! They stand behind the text, because nothing says where else.

use hob_core::chat::Image;
use serde_json::Value;

use crate::WireError;
use crate::fields::{Fields, wrong_type};

const FIELD: &str = "images";

/// Of one message; the body's size limits them too.
const IMAGES_MAX: usize = 256;

/// How the bytes of a picture begin, in base64.
const KINDS: [(&str, &str); 4] =
    [("/9j/", "jpeg"), ("iVBOR", "png"), ("R0lG", "gif"), ("UklGR", "webp")];

/// Those of a text of `at` bytes.
///
/// # Errors
/// What is no picture, although its sender believes that the model will see one.
pub(super) fn images(fields: &mut Fields, at: usize) -> Result<Vec<Image>, WireError> {
    let values = fields.list(FIELD)?.unwrap_or_default();
    if values.len() > IMAGES_MAX {
        let reason = format!("has {} pictures and the limit is {IMAGES_MAX}", values.len());
        return Err(WireError::Invalid { field: FIELD, reason });
    }
    let read = |(index, value)| {
        let url = address(value).map_err(|error| error.within(FIELD, index))?;
        Ok(Image { at, url, detail: None })
    };
    values.into_iter().enumerate().map(read).collect()
}

/// # Errors
/// Raw text has no place for a picture: its marks are the template's business.
pub(super) fn refuse(images: &[Image]) -> Result<(), WireError> {
    match images {
        [] => Ok(()),
        _ => Err(WireError::Invalid {
            field: FIELD,
            reason: "can stand beside a prompt only that is neither 'raw' nor has a 'suffix'"
                .to_owned(),
        }),
    }
}

/// Some clients write an address already.
fn address(value: Value) -> Result<String, WireError> {
    const WANTED: &str = "a picture in base64";
    match value {
        Value::String(url) if url.starts_with("data:image/") => Ok(url),
        Value::String(text) => {
            // Python's encoder breaks lines, and Ollama's decoder passes them over.
            let bytes = text.replace(['\r', '\n'], "");
            if !is_base64(&bytes) {
                return Err(WireError::WrongType {
                    field: FIELD,
                    wanted: WANTED,
                    got: "another text",
                });
            }
            let known = KINDS.iter().find(|(begin, _)| bytes.starts_with(begin));
            let kind = known.map_or("png", |(_, kind)| kind);
            Ok(format!("data:image/{kind};base64,{bytes}"))
        }
        other => Err(wrong_type(FIELD, WANTED, &other)),
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    !digits.is_empty() && digits.bytes().all(is_digit)
}
