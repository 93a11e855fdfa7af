//! Words → phonemes: misaki's dictionaries and tagger, then espeak-ng, then letter-to-sound rules.
//! The input is a whole sentence, because "read" and "live" sound different as different parts of speech.

mod align;
mod dialect;

use std::path::PathBuf;

use hob_core::Language;

use self::dialect::Dialect;
use crate::accent::Accent;
use crate::reading::Reading;
use crate::spoken::SpokenWord;

/// Programs that the phonemizer may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhonemizerOptions {
    /// The espeak-ng program, for words that no dictionary has. Without it, letter-to-sound rules are used.
    pub espeak: Option<PathBuf>,
}

/// Dictionaries in memory (about 130 ms to load per accent) and the espeak-ng child process. One thread uses it at a
/// time.
#[derive(Debug)]
pub struct Phonemizer {
    options: PhonemizerOptions,
    american: Option<Box<Dialect>>,
    british: Option<Box<Dialect>>,
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
        Phonemizer { options, american: None, british: None }
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

    pub(crate) fn sounds(&mut self, language: Language, reading: &Reading) -> Sounds {
        self.dialect(Accent::of(language)).sounds(reading)
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
        phonemizer.sounds(language, &reading).symbols.into_iter().collect()
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
    fn it_can_move_to_its_thread() {
        fn is_send<T: Send>() {}
        is_send::<Phonemizer>();
        is_send::<crate::Reader>();
    }
}
