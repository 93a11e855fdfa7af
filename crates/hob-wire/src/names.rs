//! OpenAI's names for models and voices, and what they mean here.
//! A client with such a name built in gets a similar voice without any configuration.

use hob_core::voice_blend::renamed;
use hob_core::{Gender, Language, Voice, VoiceBlend};

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

/// OpenAI's 13 voices, for a server that has no list of its own. They speak every language, and are listed as English.
pub fn openai_voices() -> Vec<Voice> {
    let voice = |(theirs, ours): (&str, &str)| Voice {
        id: theirs.to_owned(),
        name: theirs[..1].to_ascii_uppercase() + &theirs[1..],
        language: Language::AmericanEnglish,
        // The second letter of Kokoro's names is the gender.
        gender: if ours.as_bytes()[1] == b'm' { Gender::Male } else { Gender::Female },
    };
    VOICES.into_iter().map(voice).collect()
}

/// Finds the voice with this name. Without one, finds the voice that `VOICES` pairs with the name.
pub fn voice_among<'a>(voices: &'a [Voice], name: &str) -> Option<&'a str> {
    let find = |id: &str| voices.iter().find(|voice| voice.id == id).map(|voice| voice.id.as_str());
    let theirs = || VOICES.iter().find(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs);
    find(name).or_else(|| find(local_voice(name)?)).or_else(|| find(theirs()?))
}

/// Translates the name of a voice, or each name in a blend, to the one among `voices`. A name that is unknown here stays.
pub fn own_voice(voices: &[Voice], name: &str) -> String {
    let own = |name: &str| voice_among(voices, name).unwrap_or(name).to_owned();
    let is_known = voice_among(voices, name).is_some();
    match VoiceBlend::parse(name) {
        Some(Ok(_)) if !is_known => renamed(name, own),
        Some(_) | None => own(name),
    }
}

/// Whether a name means "the speech model that you have": one of OpenAI's, or a variant of one.
pub fn is_default_speech_model(name: &str) -> bool {
    ["tts-1", "gpt-4o-mini-tts"].iter().any(|base| is_variant(name, base))
}

/// hob's name of a speech model that other servers call `name`. Kokoro has many names.
pub fn local_speech_model(name: &str) -> Option<&'static str> {
    const KOKORO: [&str; 7] = [
        "kokoro",
        "kokoro_v1",
        "kokoro_v1_0",
        "kokoro-v1",
        "kokoro-82m",
        "kokoro-82m-v1.0",
        "kokoro-82m-v1.0-onnx",
    ];
    let lower = name.to_ascii_lowercase();
    // The owner of a repository does not change which model it is.
    let model = lower.rsplit('/').next().unwrap_or(&lower);
    KOKORO.contains(&model).then_some("kokoro")
}

/// Whether a name means "the chat model that you have", where a realtime session names its model.
pub fn is_default_realtime_model(name: &str) -> bool {
    const BASES: [&str; 4] =
        ["gpt-realtime", "gpt-4o-realtime-preview", "gpt-4o-mini-realtime-preview", "gpt-audio"];
    BASES.iter().any(|base| is_variant(name, base))
}

/// Whether a name means "the transcription model that you have".
pub fn is_default_transcript_model(name: &str) -> bool {
    const BASES: [&str; 6] = [
        "whisper-1",
        "gpt-4o-transcribe",
        "gpt-4o-mini-transcribe",
        "gpt-transcribe",
        "gpt-live-transcribe",
        "gpt-realtime-whisper",
    ];
    BASES.iter().any(|base| is_variant(name, base))
}

/// Whether a name is `base`, or `base` with a date or a variant: `tts-1-1106`, `tts-1-hd`.
fn is_variant(name: &str, base: &str) -> bool {
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
    fn a_voice_is_found_under_whichever_name_it_has() {
        let openai = openai_voices();
        let heart = Voice { id: "af_heart".to_owned(), ..openai[0].clone() };
        let ours = [heart];
        for (name, in_openai, in_ours) in [
            ("marin", Some("marin"), Some("af_heart")),
            ("af_heart", Some("marin"), Some("af_heart")),
            ("onyx", Some("onyx"), None),
            ("af_other", None, None),
        ] {
            assert_eq!(voice_among(&openai, name), in_openai, "{name}");
            assert_eq!(voice_among(&ours, name), in_ours, "{name}");
        }
        assert_eq!((openai.len(), openai[0].name.as_str()), (13, "Alloy"));
        assert_eq!((openai[1].id.as_str(), openai[1].gender), ("ash", Gender::Male));
    }

    #[test]
    fn openai_s_names_mean_local_voices_in_blends_too() {
        let like = openai_voices()[0].clone();
        let voices = |ids: &[&str]| -> Vec<Voice> {
            ids.iter().map(|id| Voice { id: (*id).to_owned(), ..like.clone() }).collect()
        };
        for (asked, here, expect) in [
            ("alloy", &["af_alloy"][..], "af_alloy"),
            ("alloy", &["af_alloy", "alloy"], "alloy"),
            ("alloy", &["af_heart"], "alloy"),
            ("af_heart", &["af_heart"], "af_heart"),
            ("allay", &["af_alloy"], "allay"),
            ("alloy(2)+nova(0.5)", &["af_alloy", "af_nova"], "af_alloy(2)+af_nova(0.5)"),
            ("af_alloy + allay", &["af_alloy"], "af_alloy+allay"),
            ("alloy(2)+", &["af_alloy"], "alloy(2)+"),
            ("alloy(x)", &["af_alloy", "alloy(x)"], "alloy(x)"),
        ] {
            assert_eq!(own_voice(&voices(here), asked), expect, "{asked} {here:?}");
        }
    }

    #[test]
    fn openai_models_mean_the_default_one() {
        for name in
            ["tts-1", "tts-1-hd", "tts-1-1106", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"]
        {
            assert!(is_default_speech_model(name), "{name}");
        }
        for name in ["gpt-realtime", "gpt-realtime-mini-2025-10-06", "gpt-4o-realtime-preview"] {
            assert!(is_default_realtime_model(name), "{name}");
        }
        assert!(!is_default_realtime_model("gpt-4o"));
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
    fn kokoro_is_known_by_the_names_that_other_servers_give_it() {
        for name in
            ["kokoro_v1", "hexgrad/Kokoro-82M", "onnx-community/Kokoro-82M-v1.0-ONNX", "Kokoro"]
        {
            assert_eq!(local_speech_model(name), Some("kokoro"), "{name}");
        }
        for name in ["kokoro_v2", "kokoro-82m-zh", "tts-1", "hexgrad/", ""] {
            assert_eq!(local_speech_model(name), None, "{name}");
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
