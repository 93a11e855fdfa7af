//! Words → phonemes: misaki's dictionaries and tagger, then espeak-ng, then letter-to-sound rules; or espeak-ng alone.
//! The input is a whole sentence, because "read" and "live" sound different as different parts of speech.

mod align;
mod dialect;
mod espeak_tongue;

use std::collections::BTreeMap;
use std::path::PathBuf;

use hob_core::Language;

use self::dialect::Dialect;
use self::espeak_tongue::EspeakTongue;
use crate::accent::Accent;
use crate::espeak::voice_of;
use crate::reading::Reading;
use crate::spoken::SpokenWord;

/// Programs that the phonemizer may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhonemizerOptions {
    /// The espeak-ng program, for words that no dictionary has, and for languages other than English. Without it, English
    /// is read by letter-to-sound rules, and the other languages are not read.
    pub espeak: Option<PathBuf>,
}

/// Dictionaries in memory (about 130 ms to load per accent) and the espeak-ng child process. One thread uses it at a
/// time.
#[derive(Debug)]
pub struct Phonemizer {
    options: PhonemizerOptions,
    american: Option<Box<Dialect>>,
    british: Option<Box<Dialect>>,
    tongues: BTreeMap<Language, EspeakTongue>,
    failure: Option<String>,
}

/// A sentence in the model's symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sounds {
    pub(crate) symbols: Vec<char>,
    pub(crate) words: Vec<SpokenWord>,
}

impl Phonemizer {
    /// Loads nothing yet: [`Phonemizer::warm`] or the first sentence loads an accent.
    pub fn new(options: PhonemizerOptions) -> Phonemizer {
        let tongues = BTreeMap::new();
        Phonemizer { options, american: None, british: None, tongues, failure: None }
    }

    /// Loads the language, starts espeak-ng and reads one sentence, so that the first request is not slower than
    /// later ones.
    pub fn warm(&mut self, language: Language) {
        let mut reading = Reading::default();
        reading.say(0..5, "Hello");
        reading.say(6..14, "xyloquib");
        reading.mark('.');
        self.sounds(language, &reading);
    }

    /// Why the last unit could not be made, once. Its text must not go on as if it had been read.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// The sounds of a normalised sentence, and which of them belong to which words. `None`: it cannot be read, and
    /// [`Phonemizer::take_failure`] says why.
    pub(crate) fn sounds(&mut self, language: Language, reading: &Reading) -> Option<Sounds> {
        let Some(voice) = voice_of(language) else {
            return Some(self.dialect(Accent::of(language)).sounds(reading));
        };
        match self.sounds_of_tongue(language, voice, reading) {
            Ok(sounds) => Some(sounds),
            Err(reason) => {
                tracing::warn!(%language, reason, "a sentence cannot be read");
                self.failure = Some(format!("{language} cannot be read: {reason}"));
                None
            }
        }
    }

    fn sounds_of_tongue(
        &mut self,
        language: Language,
        voice: &'static str,
        reading: &Reading,
    ) -> Result<Sounds, String> {
        let program = self.options.espeak.as_deref().ok_or("espeak-ng is not installed")?;
        let tongues = &mut self.tongues;
        let tongue = tongues.entry(language).or_insert_with(|| EspeakTongue::new(program, voice));
        tongue.sounds(reading).map_err(|error| error.to_string())
    }

    fn dialect(&mut self, accent: Accent) -> &mut Dialect {
        let Phonemizer { options, american, british } = self;
        let slot = if accent == Accent::American { american } else { british };
        slot.get_or_insert_with(|| Box::new(Dialect::load(accent, options.espeak.as_deref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(language: Language) -> String {
        let mut phonemizer = Phonemizer::new(PhonemizerOptions::default());
        phonemizer.warm(language);
        let reading =
            crate::normalise::read("The GPU in the car, [the hob](/hˈʌb/), cost $5.", 0, language);
        phonemizer.sounds(language, &reading).expect("English").symbols.into_iter().collect()
    }

    #[test]
    fn each_accent_has_its_own_sounds() {
        assert_eq!(
            heard(Language::AmericanEnglish),
            "ðə ʤˌipˌijˈu ɪn ðə kˈɑɹ, hˈʌb, kˈɔst fˈIv dˈɑləɹz."
        );
        assert_eq!(
            heard(Language::BritishEnglish),
            "ðə ʤˌiːpˌiːjˈuː ɪn ðə kˈɑː, hˈʌb, kˈɒst fˈIv dˈɒləz."
        );
    }

    #[test]
    fn a_language_without_its_program_is_a_failure_and_not_silence() {
        let mut phonemizer = Phonemizer::new(PhonemizerOptions::default());
        let mut reading = Reading::default();
        reading.say(0..4, "hola");
        assert_eq!(phonemizer.sounds(Language::Spanish, &reading), None);
        let failure = phonemizer.take_failure().expect("a failure");
        assert_eq!(failure, "Spanish cannot be read: espeak-ng is not installed");
        assert_eq!(phonemizer.take_failure(), None);
    }

    #[test]
    fn it_can_move_to_its_thread() {
        fn is_send<T: Send>() {}
        is_send::<Phonemizer>();
        is_send::<crate::Reader>();
    }
}
