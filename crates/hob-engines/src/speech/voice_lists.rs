//! Which voices of a speech model can be spoken now. A dictionary may arrive while the server runs.
//! A list of voices is never changed, because its readers keep references to it. An arrival adds a longer one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use hob_core::voice_blend::{spoken_language, spoken_voices};
use hob_core::{Language, ModelError, Voice, locked};

/// The dictionaries without which some languages cannot be spoken, as they are stored now.
pub trait DictionaryFolders: fmt::Debug + Send + Sync {
    /// The folder of a language's dictionary. `None`: none is stored, or the language needs none. Reads the disk
    /// only for languages that need one.
    fn folder(&self, language: Language) -> Option<PathBuf>;
}

/// The voices of a model.
#[derive(Debug)]
pub(super) struct VoiceLists {
    all: Vec<Voice>,
    /// What could not be spoken at the start, and what each needs.
    missing: BTreeMap<Language, String>,
    dictionaries: Option<Arc<dyn DictionaryFolders>>,
    /// The languages of `missing` that can be spoken now.
    arrived: Mutex<BTreeSet<Language>>,
    /// The voices that can be spoken: at the start, and after each arrival.
    spoken: Box<[OnceLock<Vec<Voice>>]>,
}

impl VoiceLists {
    pub(super) fn new(
        all: Vec<Voice>,
        missing: BTreeMap<Language, String>,
        dictionaries: Option<Arc<dyn DictionaryFolders>>,
    ) -> VoiceLists {
        let first = OnceLock::from(spoken_voices(&all, &missing));
        let later = missing.iter().map(|_| OnceLock::new());
        let spoken = [first].into_iter().chain(later).collect();
        VoiceLists { all, missing, dictionaries, arrived: Mutex::default(), spoken }
    }

    /// The voices that can be spoken now.
    pub(super) fn spoken(&self) -> &[Voice] {
        self.spoken.iter().rev().find_map(OnceLock::get).map_or(&[], Vec::as_slice)
    }

    /// The language of a voice or of a blend, and the folder of its dictionary if it has one.
    ///
    /// # Errors
    /// A voice is unknown, the blend is wrong, or the language cannot be spoken now.
    pub(super) fn language(&self, asked: &str) -> Result<(Language, Option<PathBuf>), ModelError> {
        match spoken_language(&self.all, &self.missing, asked) {
            Ok(language) => Ok((language, self.dictionary(language))),
            Err(ModelError::SpeechPartMissing { voice, language, needs }) => {
                match self.dictionary(language) {
                    Some(folder) => {
                        self.add(language);
                        Ok((language, Some(folder)))
                    }
                    None => Err(ModelError::SpeechPartMissing { voice, language, needs }),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the voices whose dictionary has arrived.
    pub(super) fn look(&self) {
        for language in self.missing.keys() {
            if self.dictionary(*language).is_some() {
                self.add(*language);
            }
        }
    }

    fn dictionary(&self, language: Language) -> Option<PathBuf> {
        let folder = self.dictionaries.as_ref()?.folder(language)?;
        // A frame holds paths as text. Other paths reach a worker by its command, when it starts.
        folder.to_str().is_some().then_some(folder)
    }

    fn add(&self, language: Language) {
        // A panic cannot leave a partial entry in the set.
        let mut arrived = locked(&self.arrived);
        if !arrived.insert(language) {
            return;
        }
        if let Some(list) = self.spoken.get(arrived.len()) {
            let mut missing = self.missing.clone();
            missing.retain(|language, _| !arrived.contains(language));
            list.get_or_init(|| spoken_voices(&self.all, &missing));
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::Gender;

    use super::*;

    /// The languages with a stored dictionary.
    #[derive(Debug, Default)]
    struct Stored(Mutex<BTreeSet<Language>>);

    impl Stored {
        fn set(&self, languages: &[Language]) {
            *self.0.lock().expect("no panic") = languages.iter().copied().collect();
        }
    }

    impl DictionaryFolders for Stored {
        fn folder(&self, language: Language) -> Option<PathBuf> {
            let stored = self.0.lock().expect("no panic");
            stored.contains(&language).then(|| PathBuf::from(language.tag()))
        }
    }

    fn lists(stored: &Arc<Stored>) -> VoiceLists {
        let voice = |(id, language): (&str, Language)| Voice {
            id: id.to_owned(),
            name: id.to_owned(),
            language,
            gender: Gender::Female,
        };
        let voices = [
            ("af_heart", Language::AmericanEnglish),
            ("ef_dora", Language::Spanish),
            ("jf_alpha", Language::Japanese),
            ("zf_xiaobei", Language::Mandarin),
        ];
        let needs = |language: Language| (language, format!("a part of {language}"));
        let missing = [Language::Spanish, Language::Japanese, Language::Mandarin].map(needs);
        let dictionaries: Arc<dyn DictionaryFolders> = stored.clone();
        VoiceLists::new(voices.map(voice).to_vec(), missing.into(), Some(dictionaries))
    }

    fn ids(voices: &[Voice]) -> Vec<&str> {
        voices.iter().map(|voice| voice.id.as_str()).collect()
    }

    #[test]
    fn a_dictionary_that_arrives_is_used_by_the_next_request() {
        let stored = Arc::new(Stored::default());
        let lists = lists(&stored);
        let refused = |voice: &str| lists.language(voice).expect_err("refused").to_string();
        assert!(refused("jf_alpha").contains("a part of Japanese"), "{}", refused("jf_alpha"));
        let at_start = lists.spoken();
        stored.set(&[Language::Japanese]);
        let folder = Some(PathBuf::from("ja"));
        assert_eq!(lists.language("jf_alpha"), Ok((Language::Japanese, folder)));
        assert_eq!(lists.language("af_heart"), Ok((Language::AmericanEnglish, None)));
        assert!(refused("zf_xiaobei").contains("a part of Mandarin"));
        assert!(refused("ef_dora").contains("a part of Spanish"), "it has no dictionary");
        assert_eq!(ids(lists.spoken()), ["af_heart", "jf_alpha"]);
        assert_eq!(ids(at_start), ["af_heart"]);
        // A dictionary that was deleted is missing again.
        stored.set(&[]);
        assert!(refused("jf_alpha").contains("a part of Japanese"));
    }

    #[test]
    fn voices_of_all_dictionaries_that_have_arrived_are_listed() {
        let stored = Arc::new(Stored::default());
        let lists = lists(&stored);
        lists.look();
        assert_eq!(ids(lists.spoken()), ["af_heart"]);
        stored.set(&[Language::Mandarin]);
        for _ in 0..2 {
            lists.look();
            assert_eq!(ids(lists.spoken()), ["af_heart", "zf_xiaobei"]);
        }
        stored.set(&[Language::Japanese, Language::Mandarin]);
        lists.look();
        assert_eq!(ids(lists.spoken()), ["af_heart", "jf_alpha", "zf_xiaobei"]);
    }
}
