//! Which codes are languages: ISO 639-1, and the few that Whisper adds.
//! A region is ignored, because it does not change what a model understands.

use crate::WireError;

/// Two letters each; Whisper's own longer ones stand at the end.
const CODES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu \
     cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz \
     ia id ie ig ii ik io is it iu ja jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt \
     lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm \
     rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw \
     ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu haw yue";

/// The language of a code such as `en`, `EN` or `en-GB`; none of what is not a language.
pub fn spoken_language(code: &str) -> Option<&'static str> {
    let code = code.trim().to_ascii_lowercase();
    let language = code.split(['-', '_']).next()?;
    language_codes().find(|known| *known == language)
}

/// The language of the code that a client has sent in `field`.
///
/// # Errors
/// It is not a language.
pub fn checked_language(field: &str, sent: &str) -> Result<String, WireError> {
    spoken_language(sent).map(str::to_owned).ok_or_else(|| {
        let sent: String = sent.chars().take(32).collect();
        let reason = format!("must be a language of ISO 639-1, such as 'en', and is '{sent}'");
        WireError::invalid(field, reason)
    })
}

/// All codes.
pub(crate) fn language_codes() -> impl Iterator<Item = &'static str> {
    CODES.split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_languages_with_and_without_a_region() {
        for (code, language) in [
            ("en", Some("en")),
            ("EN", Some("en")),
            ("en-GB", Some("en")),
            ("pt_br", Some("pt")),
            (" de ", Some("de")),
            ("yue", Some("yue")),
            ("xx", None),
            ("english", None),
            ("language", None),
            ("", None),
        ] {
            assert_eq!(spoken_language(code), language, "{code}");
        }
    }
}
