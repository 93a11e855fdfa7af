//! Pictures in Ollama's requests: bare base64 next to the text, where other APIs use an address.
//! They come after the text, because no field says where they belong.

use hob_core::chat::Image;

use crate::WireError;
use crate::request_value::each;

const FIELD: &str = "images";

/// Pictures in one message. The size of the body limits them too.
const IMAGES_MAX: usize = 256;

/// How the bytes of a picture begin, in base64.
const KINDS: [(&str, &str); 4] =
    [("/9j/", "jpeg"), ("iVBOR", "png"), ("R0lG", "gif"), ("UklGR", "webp")];

/// The pictures of a text of `at` bytes.
///
/// # Errors
/// One is not a picture, although its sender believes that the model will see it.
pub(super) fn images(sent: Option<Vec<String>>, at: usize) -> Result<Vec<Image>, WireError> {
    each(FIELD, sent.unwrap_or_default(), ("pictures", IMAGES_MAX), |text| {
        let reason = "must be a picture in base64, and is another text";
        let url = address(text).ok_or_else(|| WireError::invalid("", reason))?;
        Ok(Image { at, url, detail: None })
    })
}

/// # Errors
/// Raw text has no place for a picture: its marks are the template's business.
pub(super) fn refuse(images: &[Image]) -> Result<(), WireError> {
    match images {
        [] => Ok(()),
        _ => {
            let reason = "need a prompt that is neither 'raw' nor has a 'suffix'";
            Err(WireError::invalid(FIELD, reason))
        }
    }
}

/// Some clients write an address already.
fn address(text: String) -> Option<String> {
    if text.starts_with("data:image/") {
        return Some(text);
    }
    // Python's encoder breaks lines, and Ollama's decoder passes them over.
    let bytes = text.replace(['\r', '\n'], "");
    let known = KINDS.iter().find(|(begin, _)| bytes.starts_with(begin));
    let kind = known.map_or("png", |(_, kind)| kind);
    is_base64(&bytes).then(|| format!("data:image/{kind};base64,{bytes}"))
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    !digits.is_empty() && digits.bytes().all(is_digit)
}
