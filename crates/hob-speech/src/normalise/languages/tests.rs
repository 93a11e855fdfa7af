//! Written and spoken text in each language of espeak-ng, row by row.

use std::collections::HashSet;

use hob_core::Language;

use super::table::{Form, LanguageTable, NounGender, noun};
use super::table_of;
use crate::lexicon::Lexicon;
use crate::normalise::{read, read_with};
use crate::reading::Reading;
use crate::word_table::{self, assert_keys_differ, has};

/// Fewer rows would leave out kinds of text.
const ROWS_MIN: usize = 60;

const TABLES: [(Language, &str); 5] = [
    (Language::Spanish, include_str!("tests/spanish.tsv")),
    (Language::French, include_str!("tests/french.tsv")),
    (Language::Hindi, include_str!("tests/hindi.tsv")),
    (Language::Italian, include_str!("tests/italian.tsv")),
    (Language::BrazilianPortuguese, include_str!("tests/portuguese.tsv")),
];

fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().map(|row| row.split_once('\t').expect("two columns"))
}

#[test]
fn phrases_are_said_as_a_native_speaker_says_them() {
    let mut wrong = String::new();
    for (language, table) in TABLES {
        assert!(rows(table).count() >= ROWS_MIN, "{language}");
        for (text, expect) in rows(table) {
            let said = read(text, 0, language).text;
            if said != expect {
                wrong.push_str(&format!("\n{text}\n  said     {said}\n  expected {expect}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn leaves_out(reading: &Reading, text: &str) -> Option<char> {
    let is_heard = |at: usize| reading.words.iter().any(|word| word.span.contains(&at));
    let mut letters = text.char_indices().filter(|(_, c)| c.is_alphanumeric());
    letters.find(|(at, _)| !is_heard(*at)).map(|(_, c)| c)
}

#[test]
fn every_letter_belongs_to_a_word_that_is_said() {
    for (language, table) in TABLES {
        for (text, _) in rows(table) {
            let reading = read(text, 0, language);
            assert_eq!(leaves_out(&reading, text), None, "{text}: {reading:?}");
            let starts: Vec<usize> = reading.words.iter().map(|word| word.span.start).collect();
            assert!(starts.is_sorted(), "{text}: {reading:?}");
        }
    }
}

#[test]
fn extremes_are_read() {
    for (language, _) in TABLES {
        for c in ['a', '1', '.', '&', '-', '世', 'é', '₹', '%', ',', ':', '/', 'क', 'X'] {
            let text = c.to_string().repeat(480 / c.len_utf8());
            let reading = read(&text, 0, language);
            assert_eq!(leaves_out(&reading, &text), None, "{language}: {c}");
        }
    }
}

/// Right-to-left text with vowel points, marks of direction and its own digits, and other scripts.
#[test]
fn other_scripts_among_the_words_are_said() {
    let text = "Ana \u{202b}שָׁלוֹם עולם\u{202c}, \u{2067}مَرْحَبًا بك ١٢٣\u{2069} мир 世界 こんにちは 안녕 नमस्ते ok 12.";
    for (language, _) in TABLES {
        let reading = read(text, 0, language);
        assert_eq!(leaves_out(&reading, text), None, "{language}: {reading:?}");
        let starts: Vec<usize> = reading.words.iter().map(|word| word.span.start).collect();
        assert!(starts.is_sorted(), "{language}: {reading:?}");
    }
}

#[test]
fn words_of_the_lexicon_and_phonemes_come_first() {
    let rows = [("SQL".to_owned(), "sequel".to_owned())];
    let lexicon = Lexicon::new(rows.into()).expect("a lexicon");
    let text = "El SQL y [sol](/sˈol/), 2 días.";
    let reading = read_with(text, 0, Language::Spanish, &lexicon);
    assert_eq!(reading.text, "El sequel y sol, dos días.");
}

fn tables() -> impl Iterator<Item = (Language, &'static LanguageTable)> {
    TABLES.into_iter().map(|(language, _)| (language, table_of(language).expect("a table")))
}

#[test]
fn every_number_has_words_of_its_own() {
    for (language, table) in tables() {
        let check = |words: Vec<String>| {
            let is_whole = |words: &&String| words.split(' ').all(|word| !word.is_empty());
            let different: HashSet<&String> = words.iter().filter(is_whole).collect();
            assert_eq!(different.len(), words.len(), "{language}: {words:?}");
        };
        check((0..1_000).map(|number| (table.cardinal)(number, Form::Alone)).collect());
        for gender in [NounGender::Masculine, NounGender::Feminine] {
            let ordinals: Vec<String> =
                (1..100).map(|number| (table.ordinal)(number, gender, false)).collect();
            let mut words = ordinals.iter().flat_map(|ordinal| ordinal.split(' '));
            assert!(words.all(|word| word.chars().count() > 1), "{language}: {ordinals:?}");
            check(ordinals);
        }
    }
}

#[test]
fn every_row_of_a_table_is_read_as_it_is_meant() {
    for (language, table) in tables() {
        assert_eq!(table.dates.months.split_whitespace().count(), 12, "{language}");
        let forms = &table.short_forms;
        assert_keys_differ(&[forms.never, forms.before_number, forms.sometimes]);
        assert_keys_differ(&[table.scales, table.scales_with_of]);
        let dates = &table.dates;
        for list in [table.units, table.fractions, table.symbols, table.acronyms, dates.contracted]
        {
            assert_keys_differ(&[list]);
        }
        for list in [table.units, table.fractions, table.scales, table.scales_with_of] {
            for (sign, names) in word_table::rows(list) {
                let noun = noun(names);
                let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '(', ')']);
                assert!(is_name(noun.one) && is_name(noun.many), "{language}: {sign}: {noun:?}");
            }
        }
        let marks = &table.ordinal_marks;
        for mark in marks.short.split_whitespace() {
            assert!(has(marks.masculine, mark) || has(marks.feminine, mark), "{language}: {mark}");
        }
    }
}
