//! OpenAI's names for models and voices, and what they mean here.
//! Whoever has such a name built in gets a voice of the same kind; nobody has to reconfigure.

use hob_core::Language;

/// OpenAI's 13 voices, each with the Kokoro voice nearest in gender and manner.
const VOICES: [(&str, &str); 13] = [
    ("alloy", "af_alloy"),
    ("ash", "am_michael"),
    ("ballad", "bm_george"),
    ("cedar", "am_fenrir"),
    ("coral", "af_bella"),
    ("echo", "am_echo"),
    ("fable", "bm_fable"),
    ("marin", "af_heart"),
    ("nova", "af_nova"),
    ("onyx", "am_onyx"),
    ("sage", "af_sarah"),
    ("shimmer", "af_sky"),
    ("verse", "am_puck"),
];

/// The local voice behind one of OpenAI's names.
pub fn local_voice(name: &str) -> Option<&'static str> {
    VOICES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Whether a name means "the speech model that you have": one of OpenAI's, dated ones too.
pub fn is_default_speech_model(name: &str) -> bool {
    ["tts-1", "gpt-4o-mini-tts"].iter().any(|base| is_dated(name, base))
}

/// The same of transcription models.
pub fn is_default_transcript_model(name: &str) -> bool {
    const BASES: [&str; 4] =
        ["whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-transcribe"];
    BASES.iter().any(|base| is_dated(name, base))
}

fn is_dated(name: &str, base: &str) -> bool {
    name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether a language code that came with a request fits the voice's language. Codes are BCP 47
/// in any case (`en`, `en-us`, `pt_BR`) or Kokoro's letter; what one side leaves out fits.
pub fn language_agrees(code: &str, language: Language) -> bool {
    let code = code.trim().to_ascii_lowercase();
    let mut letters = code.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return letter == language.voice_letter();
    }
    let tag = language.tag().to_ascii_lowercase();
    code.split(['-', '_']).zip(tag.split('-')).all(|(asked, spoken)| asked == spoken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as OpenAI describes them, with the gender that listeners hear.
    #[test]
    fn every_openai_voice_has_a_local_one_of_its_gender() {
        let female = ["alloy", "coral", "marin", "nova", "sage", "shimmer"];
        let male = ["ash", "ballad", "cedar", "echo", "fable", "onyx", "verse"];
        for (names, letter) in [(&female[..], 'f'), (&male[..], 'm')] {
            for name in names {
                let ours = local_voice(name).expect("a local voice");
                assert_eq!(ours.chars().nth(1), Some(letter), "{name} → {ours}");
            }
        }
        assert_eq!(local_voice("af_heart"), None);
    }

    #[test]
    fn openai_models_mean_the_default_one() {
        for name in
            ["tts-1", "tts-1-hd", "tts-1-1106", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"]
        {
            assert!(is_default_speech_model(name), "{name}");
        }
        for name in ["whisper-1", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-2025-12-15"] {
            assert!(is_default_transcript_model(name), "{name}");
            assert!(!is_default_speech_model(name), "{name}");
        }
        assert!(!is_default_transcript_model("whisper-10"));
        for name in ["kokoro", "tts-10", "gpt-4o-mini", "gpt-4o-mini-ttsx", ""] {
            assert!(!is_default_speech_model(name), "{name}");
        }
    }

    #[test]
    fn language_codes_agree_as_far_as_they_say() {
        use Language::{AmericanEnglish, BrazilianPortuguese, BritishEnglish, Mandarin};
        for (code, language) in [
            ("en", AmericanEnglish),
            ("en", BritishEnglish),
            ("EN-US", AmericanEnglish),
            ("en_gb", BritishEnglish),
            ("a", AmericanEnglish),
            ("B", BritishEnglish),
            ("pt", BrazilianPortuguese),
            ("zh-CN", Mandarin),
        ] {
            assert!(language_agrees(code, language), "{code} {language}");
        }
        for (code, language) in [
            ("en-GB", AmericanEnglish),
            ("b", AmericanEnglish),
            ("fr", BritishEnglish),
            ("", Mandarin),
        ] {
            assert!(!language_agrees(code, language), "{code} {language}");
        }
    }
}
