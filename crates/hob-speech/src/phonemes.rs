//! Words → phonemes: misaki's dictionaries and tagger, then espeak-ng, then letter-to-sound rules; or espeak-ng alone;
//! or the dictionaries of Japanese and Mandarin.
//! The input is a whole sentence, because "read" and "live" sound different as different parts of speech.

mod align;
mod dictionary_language;
mod english_accent;
mod espeak_language;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_core::Language;

use self::dictionary_language::DictionaryLanguage;
use self::english_accent::EnglishAccent;
use self::espeak_language::EspeakLanguage;
use crate::accent::Accent;
use crate::espeak::voice_of;
use crate::reading::Reading;
use crate::spoken::SpokenWord;

/// Programs and dictionaries that the phonemizer may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhonemizerOptions {
    /// The espeak-ng program, for words that no dictionary has, and for languages other than English. Without it, English
    /// is read by letter-to-sound rules, and the other languages are not read.
    pub espeak: Option<PathBuf>,
    /// Folder of the dictionary without which Japanese is not read.
    pub japanese: Option<PathBuf>,
    /// Folder of the tables without which Mandarin is not read.
    pub mandarin: Option<PathBuf>,
}

/// Dictionaries in memory (about 130 ms to load per accent) and the espeak-ng child process. One thread uses it at a
/// time.
#[derive(Debug)]
pub struct Phonemizer {
    options: PhonemizerOptions,
    english_accents: BTreeMap<Accent, EnglishAccent>,
    espeak_languages: BTreeMap<Language, EspeakLanguage>,
    dictionaries: BTreeMap<Language, DictionaryLanguage>,
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
        Phonemizer {
            options,
            english_accents: BTreeMap::new(),
            espeak_languages: BTreeMap::new(),
            dictionaries: BTreeMap::new(),
            failure: None,
        }
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

    /// Reads Japanese or Mandarin with the dictionary in this folder from now on. Another folder is loaded with the next
    /// sentence; the same folder is not loaded again.
    pub fn use_dictionary(&mut self, language: Language, folder: PathBuf) {
        let known = match language {
            Language::Japanese => &mut self.options.japanese,
            Language::Mandarin => &mut self.options.mandarin,
            _ => return,
        };
        if known.as_ref() != Some(&folder) {
            *known = Some(folder);
            self.dictionaries.remove(&language);
        }
    }

    /// Why the last unit could not be made, once. Its text must not go on as if it had been read.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// The sounds of a normalised sentence, and which of them belong to which words. `None`: it cannot be read, and
    /// [`Phonemizer::take_failure`] says why.
    pub(crate) fn sounds(&mut self, language: Language, reading: &Reading) -> Option<Sounds> {
        let said = match (language, voice_of(language)) {
            (Language::Japanese | Language::Mandarin, _) => {
                self.sounds_of_dictionary(language, reading)
            }
            (_, Some(voice)) => self.sounds_of_espeak(language, voice, reading),
            (_, None) => Ok(self.english(Accent::of(language)).sounds(reading)),
        };
        match said {
            Ok(sounds) => Some(sounds),
            Err(reason) => {
                tracing::warn!(%language, reason, "a sentence cannot be read");
                self.failure = Some(format!("{language} cannot be read: {reason}"));
                None
            }
        }
    }

    fn sounds_of_espeak(
        &mut self,
        language: Language,
        voice: &str,
        reading: &Reading,
    ) -> Result<Sounds, String> {
        let program = self.options.espeak.as_deref().ok_or("espeak-ng is not installed")?;
        let espeak_languages = &mut self.espeak_languages;
        let espeak =
            espeak_languages.entry(language).or_insert_with(|| EspeakLanguage::new(program, voice));
        espeak.sounds(reading).map_err(|error| error.to_string())
    }

    /// Loads the dictionary with the first sentence. Foreign words load American English.
    fn sounds_of_dictionary(
        &mut self,
        language: Language,
        reading: &Reading,
    ) -> Result<Sounds, String> {
        // Taken out, because the foreign words need the rest of the phonemizer.
        let dictionary = match self.dictionaries.remove(&language) {
            Some(dictionary) => dictionary,
            None => DictionaryLanguage::load(language, self.dictionary_folder(language)?)?,
        };
        let mut english = |words: &Reading| self.english(Accent::American).sounds(words);
        let sounds = dictionary.sounds(reading, &mut english);
        self.dictionaries.insert(language, dictionary);
        Ok(sounds)
    }

    fn dictionary_folder(&self, language: Language) -> Result<&Path, String> {
        let folder = match language {
            Language::Japanese => &self.options.japanese,
            _ => &self.options.mandarin,
        };
        folder.as_deref().ok_or_else(|| "its dictionary is not stored".to_owned())
    }

    fn english(&mut self, accent: Accent) -> &mut EnglishAccent {
        let espeak = self.options.espeak.as_deref();
        self.english_accents.entry(accent).or_insert_with(|| EnglishAccent::load(accent, espeak))
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
    fn a_language_without_its_dictionary_is_a_failure_too() {
        let mut reading = Reading::default();
        reading.say(0..3, "字");
        let mut phonemizer = Phonemizer::new(PhonemizerOptions::default());
        for (language, name) in [(Language::Japanese, "Japanese"), (Language::Mandarin, "Mandarin")]
        {
            assert_eq!(phonemizer.sounds(language, &reading), None);
            let failure = phonemizer.take_failure().expect("a failure");
            assert!(failure.starts_with(name), "{failure}");
            assert!(failure.ends_with("its dictionary is not stored"), "{failure}");
        }
        let options = PhonemizerOptions {
            japanese: Some(PathBuf::from("no-such-folder")),
            ..PhonemizerOptions::default()
        };
        let mut phonemizer = Phonemizer::new(options);
        assert_eq!(phonemizer.sounds(Language::Japanese, &reading), None);
        let failure = phonemizer.take_failure().expect("a failure");
        assert!(failure.contains("no-such-folder/sys.dic cannot be read"), "{failure}");
        // Another one that arrives later is used by the next sentence.
        phonemizer.use_dictionary(Language::Japanese, PathBuf::from("another-folder"));
        assert_eq!(phonemizer.sounds(Language::Japanese, &reading), None);
        let failure = phonemizer.take_failure().expect("a failure");
        assert!(failure.contains("another-folder/sys.dic cannot be read"), "{failure}");
    }

    #[test]
    fn it_can_move_to_its_thread() {
        fn is_send<T: Send>() {}
        is_send::<Phonemizer>();
        is_send::<crate::Reader>();
    }
}
