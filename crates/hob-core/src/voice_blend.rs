//! Blends of voices: "af_heart(2)+af_bella(1)" is two parts of one voice and one part of another.
//! Weights are shares of their sum, so "(2)+(1)" and "(0.6)+(0.3)" mean the same.

use std::collections::BTreeMap;

use crate::{Language, ModelError, Voice, nearest};

/// Most voices of one blend.
pub const BLEND_VOICES_MAX: usize = 8;

/// The sum of the weights must be at least this share of the sum of their absolute values. The weights are divided by
/// their sum; with a smaller one, the difference of two voices would be enlarged until nothing of a voice is left.
const SUM_MIN: f32 = 0.25;

/// Voices and their shares, which add to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceBlend {
    parts: Vec<(String, f32)>,
}

impl VoiceBlend {
    /// Parses a blend. `None`: the name is that of one voice.
    ///
    /// # Errors
    /// A voice has no name, a weight is not a number from 0.001 to 1000, the weights add to almost nothing, or there are
    /// too many voices.
    pub fn parse(name: &str) -> Option<Result<VoiceBlend, ModelError>> {
        name.contains(['+', '(']).then(|| parse(name).map_err(invalid))
    }

    /// Each voice with its share. The share of a voice after "-" is negative.
    pub fn parts(&self) -> &[(String, f32)] {
        &self.parts
    }
}

/// The voice of this name, or the first voice of a blend. The other voices of the blend speak the same language.
///
/// # Errors
/// A voice is unknown, or the blend is wrong.
pub fn speaker<'a>(voices: &'a [Voice], asked: &str) -> Result<&'a Voice, ModelError> {
    let is_known = voices.iter().any(|voice| voice.id == asked);
    let ids: Vec<String> = match VoiceBlend::parse(asked).filter(|_| !is_known) {
        Some(blend) => blend?.parts().iter().map(|(id, _)| id.clone()).collect(),
        None => vec![asked.to_owned()],
    };
    let found: Vec<&Voice> = ids.iter().map(|id| find(voices, id)).collect::<Result<_, _>>()?;
    let first = found[0];
    let language = first.language;
    if let Some(other) = found.iter().find(|voice| !voice.language.is_kin(language)) {
        let reason = format!(
            "blends {} ({language}) with {} ({}): use voices of one language",
            first.id, other.id, other.language
        );
        return Err(ModelError::InvalidField { field: "voice", reason });
    }
    Ok(first)
}

/// The language of a voice or of a blend. `missing` has the languages that cannot be spoken now, and what each needs.
///
/// # Errors
/// As [`speaker`], or the language is one of `missing`.
pub fn spoken_language(
    voices: &[Voice],
    missing: &BTreeMap<Language, String>,
    asked: &str,
) -> Result<Language, ModelError> {
    let language = speaker(voices, asked)?.language;
    match missing.get(&language).cloned() {
        Some(needs) => {
            Err(ModelError::SpeechPartMissing { voice: asked.to_owned(), language, needs })
        }
        None => Ok(language),
    }
}

/// The voices that can be spoken now.
pub fn spoken_voices(voices: &[Voice], missing: &BTreeMap<Language, String>) -> Vec<Voice> {
    let has_all = |voice: &&Voice| !missing.contains_key(&voice.language);
    voices.iter().filter(has_all).cloned().collect()
}

/// The blend with other names for its voices.
pub fn renamed(blend: &str, rename: impl Fn(&str) -> String) -> String {
    let part = |part: &str| {
        let name_end = part.find(['(', '+', '-']).unwrap_or(part.len());
        rename(part[..name_end].trim()) + &part[name_end..]
    };
    blend.split_inclusive(['+', '-']).map(part).collect()
}

fn find<'a>(voices: &'a [Voice], id: &str) -> Result<&'a Voice, ModelError> {
    voices.iter().find(|voice| voice.id == id).ok_or_else(|| {
        let known = voices.iter().map(|voice| voice.id.as_str());
        ModelError::UnknownVoice { voice: id.to_owned(), near: nearest(id, known, 3) }
    })
}

fn invalid(reason: String) -> ModelError {
    ModelError::InvalidField { field: "voice", reason }
}

fn parse(name: &str) -> Result<VoiceBlend, String> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    let mut sign = 1.0;
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let (voice, weight) = part(&rest[..end])?;
        parts.push((voice, sign * weight));
        if parts.len() > BLEND_VOICES_MAX {
            return Err(format!("blends more than {BLEND_VOICES_MAX} voices"));
        }
        let Some(operator) = rest[end..].chars().next() else { break };
        sign = if operator == '-' { -1.0 } else { 1.0 };
        rest = &rest[end + 1..];
    }
    let sum: f32 = parts.iter().map(|(_, weight)| weight).sum();
    let sizes: f32 = parts.iter().map(|(_, weight)| weight.abs()).sum();
    if sum < SUM_MIN * sizes {
        return Err("has weights that add to almost nothing: make the first one larger".to_owned());
    }
    parts.iter_mut().for_each(|(_, weight)| *weight /= sum);
    Ok(VoiceBlend { parts })
}

/// "af_heart(2)", or "af_heart" with the weight 1.
fn part(text: &str) -> Result<(String, f32), String> {
    let text = text.trim();
    let (voice, weight) = match text.split_once('(') {
        None => (text, "1"),
        Some((voice, weight)) => (voice.trim(), weight.strip_suffix(')').unwrap_or_default()),
    };
    if voice.is_empty() {
        return Err("has a blend with a missing voice; write it as af_heart(2)+af_bella(1)".into());
    }
    match weight.trim().parse::<f32>() {
        Ok(weight) if (0.001..=1000.0).contains(&weight) => Ok((voice.to_owned(), weight)),
        _ => Err(format!(
            "has a weight of '{voice}' that is not a number from 0.001 to 1000; write it as {voice}(0.5)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gender;

    fn shares(name: &str) -> Vec<(String, f32)> {
        let blend = VoiceBlend::parse(name).expect("a blend").expect("a valid one");
        blend.parts().to_vec()
    }

    fn check(name: &str, expect: &[(&str, f32)]) {
        let expect: Vec<(String, f32)> =
            expect.iter().map(|(voice, share)| ((*voice).to_owned(), *share)).collect();
        assert_eq!(shares(name), expect, "{name}");
    }

    #[test]
    fn weights_are_shares_of_their_sum() {
        check("af_heart(3)+af_bella(1)", &[("af_heart", 0.75), ("af_bella", 0.25)]);
        check("af_heart+af_bella", &[("af_heart", 0.5), ("af_bella", 0.5)]);
        check(" af_heart (1) + af_bella ( 1 ) ", &[("af_heart", 0.5), ("af_bella", 0.5)]);
        check("af_heart(0.75)+af_bella(0.25)", &[("af_heart", 0.75), ("af_bella", 0.25)]);
        check("af_heart(3)-af_bella(1)", &[("af_heart", 1.5), ("af_bella", -0.5)]);
        check("af_heart(2)", &[("af_heart", 1.0)]);
    }

    #[test]
    fn only_voices_that_nothing_is_missing_for_are_listed() {
        let voice = |id: &str, language| Voice {
            id: id.to_owned(),
            name: id.to_owned(),
            language,
            gender: Gender::Female,
        };
        let voices = [
            voice("af_heart", Language::AmericanEnglish),
            voice("ef_dora", Language::Spanish),
            voice("ff_siwis", Language::French),
        ];
        let missing = BTreeMap::from([(Language::French, "espeak-ng".to_owned())]);
        let spoken = spoken_voices(&voices, &missing);
        let ids: Vec<&str> = spoken.iter().map(|voice| voice.id.as_str()).collect();
        assert_eq!(ids, ["af_heart", "ef_dora"]);
    }

    #[test]
    fn the_voices_of_a_blend_can_be_renamed() {
        let rename = |name: &str| if name == "a" { "alpha".to_owned() } else { name.to_owned() };
        for (blend, expect) in [
            ("a(2)+b(1)", "alpha(2)+b(1)"),
            (" a + b - a(0.5) ", "alpha+b-alpha(0.5) "),
            ("b+a", "b+alpha"),
        ] {
            assert_eq!(renamed(blend, rename), expect);
        }
    }

    #[test]
    fn one_voice_is_no_blend() {
        for name in ["af_heart", "alloy", "en-US-voice", ""] {
            assert_eq!(VoiceBlend::parse(name), None, "{name}");
        }
    }

    #[test]
    fn bad_blends_say_what_is_wrong() {
        let nine = ["af_heart"; 9].join("+");
        for (name, reason) in [
            ("af_heart(1)-af_bella(1)+af_sky(0.1)", "add to almost nothing"),
            ("af_heart+", "a missing voice"),
            ("+af_heart", "a missing voice"),
            ("af_heart(2", "not a number"),
            ("af_heart(0)+af_bella", "not a number"),
            ("af_heart(NaN)+af_bella", "not a number"),
            ("af_heart(inf)+af_bella", "not a number"),
            ("af_heart(x)+af_bella", "not a number"),
            (nine.as_str(), "more than 8 voices"),
        ] {
            let error = VoiceBlend::parse(name).expect("a blend").expect_err("a bad one");
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
    }
}
