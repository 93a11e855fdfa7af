//! Japanese and Mandarin with the real dictionaries, which `make models` downloads: phrases and their phonemes.

use std::env;
use std::path::PathBuf;

use hob_core::Language;
use hob_speech::{Phonemizer, PhonemizerOptions, Reader, SpokenUnit, is_phoneme};

/// The stored dictionary of the test home.
#[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
fn stored(name: &str) -> PathBuf {
    let home = env::var_os("HOB_TEST_HOME").map(PathBuf::from);
    let home = home.expect("HOB_TEST_HOME is not set: `make test` sets it");
    let versions = home.join("models").join(name);
    let entries = std::fs::read_dir(versions).expect("no dictionary: run `make models`");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.into_iter().find(|path| path.is_dir()).expect("no dictionary: run `make models`")
}

fn phonemizer() -> Phonemizer {
    Phonemizer::new(PhonemizerOptions {
        espeak: None,
        japanese: Some(stored("japanese")),
        mandarin: Some(stored("mandarin")),
    })
}

fn units(phonemizer: &mut Phonemizer, language: Language, text: &str) -> Vec<SpokenUnit> {
    let mut reader = Reader::new(language);
    reader.push(text);
    reader.finish();
    let mut units = Vec::new();
    while let Some(unit) = reader.next_unit(phonemizer) {
        units.push(unit);
    }
    assert_eq!(phonemizer.take_failure(), None, "{text}");
    units
}

fn said(phonemizer: &mut Phonemizer, language: Language, text: &str) -> String {
    let units = units(phonemizer, language, text);
    let phonemes: Vec<String> = units.into_iter().map(|unit| unit.phonemes).collect();
    phonemes.join(" ")
}

fn check_table(language: Language, table: &str) {
    let mut phonemizer = phonemizer();
    let rows: Vec<(&str, &str)> =
        table.lines().map(|line| line.split_once('\t').expect("a phrase and phonemes")).collect();
    assert!(rows.len() >= 60, "{language} has {} phrases", rows.len());
    let wrong = rows.into_iter().filter_map(|(phrase, expect)| {
        let said = said(&mut phonemizer, language, phrase);
        (said != expect).then(|| format!("{phrase}\n  said:     {said}\n  expected: {expect}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{language}:\n{}", wrong.join("\n"));
}

#[test]
fn japanese_phrases() {
    check_table(Language::Japanese, include_str!("japanese.tsv"));
}

#[test]
fn mandarin_phrases() {
    check_table(Language::Mandarin, include_str!("mandarin.tsv"));
}

#[test]
fn words_are_the_user_s_own() {
    let mut phonemizer = phonemizer();
    let mut words = |language, text: &'static str| -> Vec<&'static str> {
        let units = units(&mut phonemizer, language, text);
        let words = units.iter().flat_map(|unit| &unit.words);
        words.map(|word| text.get(word.span.clone()).expect("whole characters")).collect()
    };
    let japanese = words(Language::Japanese, "今日は🦊「東京」で2024/05/06に¥1,200。");
    assert_eq!(japanese, ["今日", "は", "東京", "で", "2024/05/06", "に", "¥1,200"]);
    let mandarin = words(Language::Mandarin, "我们**今天**花了$3.5，13812345678。");
    assert_eq!(mandarin, ["我们", "今天", "花", "了", "$3.5", "13812345678"]);
}

#[test]
fn foreign_words_are_heard_and_nothing_else_changes() {
    let mut phonemizer = phonemizer();
    let mut heard = |language, text: &str| said(&mut phonemizer, language, text);
    assert_eq!(heard(Language::Japanese, "Kubernetesを使う。"), "kjˈubɜɹnɛts o ʦɨkaɯ.");
    assert_eq!(heard(Language::Mandarin, "我用Kubernetes。"), "wo↓ jʊ↘ŋ kjˈubɜɹnɛts.");
    for text in ["안녕 Привет नमस्ते", "龘𠮷々", "C++、a@b.com", "ﾊﾝｶｸ１２３㎏℃", "مرحبا بك"]
    {
        for language in [Language::Japanese, Language::Mandarin] {
            let said = heard(language, text);
            assert!(said.chars().count() > 3 && said.chars().all(is_phoneme), "{text}: {said}");
        }
    }
}

#[test]
fn a_long_text_without_stops_is_cut_and_nothing_is_dropped() {
    let mut phonemizer = phonemizer();
    for (language, clause) in
        [(Language::Japanese, "猫が好きで、"), (Language::Mandarin, "我喜欢猫，")]
    {
        let text = clause.repeat(400);
        let units = units(&mut phonemizer, language, &text);
        let words = units.iter().flat_map(|unit| &unit.words);
        let last = words.map(|word| word.span.end).max();
        assert_eq!(last, Some(text.len() - "、".len()), "{language}");
        let commas = units.iter().flat_map(|unit| unit.phonemes.chars()).filter(|c| *c == ',');
        assert!(commas.count() > 300, "{language}");
    }
}
