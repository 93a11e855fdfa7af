//! Which languages this machine can speak now: those other than English need espeak-ng and its data, or a dictionary.
//! A missing part is known before a request, which is then refused with the way to get it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_core::Language;
use hob_engines::speech::DictionaryFolders;
use hob_speech::{espeak_languages, needs_espeak};

use crate::app::App;
use crate::model_store::{DICTIONARIES, ModelStore};
use crate::settings::Espeak;

const INSTALL: &str =
    "install it with `apt install espeak-ng` or `brew install espeak-ng`, and start hob again";

/// The languages that cannot be spoken now, each with what it needs and how to get it.
pub(crate) fn missing_parts(app: &App<'_>) -> BTreeMap<Language, String> {
    let program = app.espeak();
    let known = program.as_deref().map(espeak_languages).unwrap_or_default();
    let missing = Language::ALL.into_iter().filter(|l| needs_espeak(*l) && !known.contains(l));
    let needs = |language| needs(language, &app.settings.speech.espeak, program.as_deref());
    let programs = missing.map(|language| (language, needs(language)));
    let stored = ModelStore::open(app).dictionaries();
    let missing = DICTIONARIES.into_iter().filter(|(language, _)| !stored.contains_key(language));
    programs.chain(missing.map(|(language, name)| (language, needs_dictionary(name)))).collect()
}

/// The dictionaries of the store, which `hob pull` may change while the server runs.
#[derive(Debug)]
pub(super) struct StoredDictionaries(ModelStore);

impl StoredDictionaries {
    pub(super) fn open(app: &App<'_>) -> StoredDictionaries {
        StoredDictionaries(ModelStore::open(app))
    }
}

impl DictionaryFolders for StoredDictionaries {
    fn folder(&self, language: Language) -> Option<PathBuf> {
        self.0.dictionary(language)
    }
}

fn needs_dictionary(name: &str) -> String {
    format!("a dictionary: get it with `hob pull {name}`")
}

fn needs(language: Language, requested: &Espeak, found: Option<&Path>) -> String {
    match (requested, found) {
        (Espeak::Never, _) => {
            "espeak-ng, which speech.espeak = \"\" in hob.toml turns off: remove that line"
                .to_owned()
        }
        (Espeak::Program(name), None) if name == Path::new("espeak-ng") => {
            format!("espeak-ng, which is not installed: {INSTALL}")
        }
        (Espeak::Program(name), None) => {
            let path = name.display();
            format!("espeak-ng, and speech.espeak in hob.toml names {path}, which is not a program")
        }
        (Espeak::Program(_), Some(program)) => {
            let path = program.display();
            format!("the {language} data of espeak-ng, which {path} does not have: {INSTALL}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_way_to_get_it() {
        let named = |name: &str| Espeak::Program(PathBuf::from(name));
        let found = Path::new("/usr/bin/espeak-ng");
        for (requested, found, expect) in [
            (named("espeak-ng"), None, "apt install espeak-ng"),
            (named("/opt/espeak"), None, "names /opt/espeak"),
            (named("espeak-ng"), Some(found), "the Hindi data of espeak-ng"),
            (Espeak::Never, Some(found), "turns off"),
        ] {
            let said = needs(Language::Hindi, &requested, found);
            assert!(said.contains(expect), "{said}");
        }
    }

    #[test]
    fn a_missing_dictionary_is_said_with_the_command_that_gets_it() {
        for (_, name) in DICTIONARIES {
            assert!(needs_dictionary(name).contains(&format!("`hob pull {name}`")));
        }
    }
}
