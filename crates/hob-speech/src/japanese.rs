//! Japanese text → words with their sounds: Open JTalk's dictionary, cut as MeCab cuts it, and Open JTalk's rules for
//! numbers and counters. The dictionary is a folder that hob fetches like a model. Nothing of it is in the program.

mod dictionary;
mod kana;
mod lattice;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use jpreprocess_core::word_entry::WordEntry;
use jpreprocess_njd::{NJD, NJDNode};

use self::dictionary::Dictionary;
pub(crate) use self::kana::kana_symbols;
use self::lattice::FoundWord;
use crate::dictionary_error::DictionaryError;
use crate::word_table::nth;

/// Fields of a description that the rules read.
const FIELDS: usize = 12;
/// The pronunciation among the fields.
const PRONUNCIATION: usize = 8;
/// The rules of accents among the fields. The model has no symbols for accents.
const ACCENT_RULES: usize = 10;

/// The dictionary's word for twelve o'clock at night.
const MIDNIGHT: &str = "零時";

/// Said for a character that the dictionary does not have.
const UNKNOWN_CHARACTER: &str = "カンジ";

/// Endings that belong to the word before them.
const ENDINGS: [&str; 12] =
    ["た", "だ", "う", "よう", "ん", "ぬ", "ない", "なかっ", "なく", "て", "で", "ば"];

#[derive(Debug)]
pub(crate) struct Japanese {
    dictionary: Dictionary,
}

/// A word as it is heard, and its characters in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JapaneseWord {
    pub(crate) chars: Range<usize>,
    pub(crate) kana: String,
    /// Whether the word is said with the one before, without a gap.
    pub(crate) joins: bool,
}

impl Japanese {
    pub(crate) fn load(folder: &Path) -> Result<Japanese, DictionaryError> {
        Ok(Japanese { dictionary: Dictionary::load(folder)? })
    }

    /// The words of a text of Japanese characters without marks.
    pub(crate) fn words(&self, text: &str) -> Vec<JapaneseWord> {
        let mut found = lattice::words(&self.dictionary, text);
        if text.contains(MIDNIGHT)
            && let Some(feature) = self.feature_of(MIDNIGHT)
        {
            found = with_midnight(text, found, &feature);
        }
        let chars: Vec<char> = text.chars().collect();
        // After a panic in the rules, numbers are read without them. The voice keeps working.
        let by_rules = catch_unwind(AssertUnwindSafe(|| by_rules(&found)));
        let spoken = by_rules.ok().flatten().unwrap_or_else(|| one_by_one(&found));
        placed(&chars, spoken)
    }

    /// The kana of a word in Latin letters that the dictionary has.
    pub(crate) fn latin(&self, word: &str) -> Option<String> {
        let wide: String = word.chars().map(wide).collect();
        let feature = self.feature_of(&wide)?;
        let kana: String = feature.split(',').nth(PRONUNCIATION)?.replace('’', "");
        (!kana.is_empty() && kana != "*").then_some(kana)
    }

    /// The description of the most frequent word that is written like this.
    fn feature_of(&self, written: &str) -> Option<String> {
        let whole = self.dictionary.words_at(written).into_iter();
        let whole = whole.filter(|(length, _)| *length == written.len());
        let (_, token) = whole.min_by_key(|(_, token)| token.cost)?;
        Some(self.dictionary.feature(token))
    }
}

/// Midnight as one word with this description. Behind "午前", the dictionary's costs prefer a zero and an hour.
fn with_midnight<'a>(
    text: &'a str,
    found: Vec<FoundWord<'a>>,
    feature: &str,
) -> Vec<FoundWord<'a>> {
    let mut words: Vec<FoundWord<'a>> = Vec::with_capacity(found.len());
    let mut end = 0;
    for word in found {
        end += word.surface.len();
        if word.surface == "時" && words.last().is_some_and(|zero| zero.surface == "零") {
            words.pop();
            let surface = &text[end - MIDNIGHT.len()..end];
            words.push(FoundWord { surface, feature: feature.to_owned() });
        } else {
            words.push(word);
        }
    }
    words
}

/// The wide form of an ASCII character, which is the dictionary's.
fn wide(c: char) -> char {
    match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
        _ => c,
    }
}

/// The kana of a letter's name.
pub(crate) fn letter_kana(letter: char) -> Option<&'static str> {
    const NAMES: &str = "
        エー ビー シー ディー イー エフ ジー エイチ アイ ジェー ケー エル エム エヌ オー ピー
        キュー アール エス ティー ユー ブイ ダブリュー エックス ワイ ゼット";
    let at = u64::from(letter.to_ascii_uppercase()).checked_sub(u64::from('A'))?;
    Some(nth(NAMES, at)).filter(|name| !name.is_empty())
}

/// A word before it has its place.
struct Spoken {
    written: String,
    kana: String,
    joins: bool,
}

/// The words after Open JTalk's rules, which change digits to numbers and counters to their forms.
fn by_rules(found: &[FoundWord<'_>]) -> Option<Vec<Spoken>> {
    let entry = |word: &FoundWord<'_>| {
        let mut fields: Vec<&str> = word.feature.split(',').collect();
        fields.resize(FIELDS, "*");
        fields[ACCENT_RULES] = "*";
        (word.surface.to_owned(), WordEntry::load(&fields).unwrap_or_default())
    };
    let mut njd = NJD::from_tokens(found.iter().map(entry)).ok()?;
    njd.preprocess();
    let mut spoken: Vec<Spoken> = Vec::with_capacity(njd.nodes.len());
    let mut before: Option<&NJDNode> = None;
    for node in &njd.nodes {
        let kana = kana_of(node);
        let joins = before.is_some_and(|before| joins(before, node)) || kana.starts_with('ー');
        spoken.push(Spoken { written: node.get_string().to_owned(), kana, joins });
        before = Some(node);
    }
    Some(spoken)
}

fn kana_of(node: &NJDNode) -> String {
    let marks = ['’', '、', '？'];
    let kana: String = node.get_pron().to_pure_string().replace(marks, "");
    if kana.is_empty() { unknown_kana(node.get_string()) } else { kana }
}

/// What is said for characters without a reading. Marks say nothing.
fn unknown_kana(written: &str) -> String {
    let is_ideograph = |c: char| c.is_alphabetic() && !matches!(u32::from(c), 0x3041..=0x30ff);
    if written.chars().any(is_ideograph) { UNKNOWN_CHARACTER.to_owned() } else { String::new() }
}

/// Whether a word is written together with the one before: a suffix, a counter, an ending.
fn joins(before: &NJDNode, node: &NJDNode) -> bool {
    let (pos, pos_before) = (node.get_pos().to_string(), before.get_pos().to_string());
    let is_chained = node.get_chain_flag() == Some(true);
    let is_number = pos.starts_with("名詞,数") && pos_before.starts_with("名詞,数");
    let is_suffix = pos.starts_with("名詞,接尾") || is_number;
    let is_inflected =
        ["動詞", "形容詞", "助動詞"].iter().any(|inflected| pos_before.starts_with(inflected));
    let is_ending = pos.starts_with("助動詞") || pos.starts_with("助詞,接続助詞");
    (is_chained && is_suffix) || (is_inflected && is_ending && ENDINGS.contains(&node.get_string()))
}

/// The words as the dictionary says them, each alone.
fn one_by_one(found: &[FoundWord<'_>]) -> Vec<Spoken> {
    let spoken = |word: &FoundWord<'_>| {
        let kana = word.feature.split(',').nth(PRONUNCIATION).unwrap_or("*");
        let kana: String = kana.replace(['’', ':', '*'], "");
        let is_kana = |c: char| matches!(u32::from(c), 0x3041..=0x30ff);
        let kana = match kana.is_empty() {
            true if word.surface.chars().all(is_kana) => word.surface.to_owned(),
            true => unknown_kana(word.surface),
            false => kana,
        };
        Spoken { written: word.surface.to_owned(), kana, joins: false }
    };
    found.iter().map(spoken).collect()
}

/// Finds the words in the text. The rules replace digits by other words, which all have the place of the digits.
fn placed(text: &[char], spoken: Vec<Spoken>) -> Vec<JapaneseWord> {
    let mut at = 0;
    let mut words = Vec::with_capacity(spoken.len());
    for Spoken { written, kana, joins } in spoken {
        let written: Vec<char> = written.chars().collect();
        let (chars, next) = place(text, at, &written);
        at = next;
        if !kana.is_empty() && !chars.is_empty() {
            words.push(JapaneseWord { chars, kana, joins });
        }
    }
    words
}

/// The place of a word at or after `at`, and where the next one is searched.
fn place(text: &[char], at: usize, written: &[char]) -> (Range<usize>, usize) {
    let rest = text.get(at..).unwrap_or(&[]);
    if rest.starts_with(written) {
        return (at..at + written.len(), at + written.len());
    }
    let digits = rest.iter().take_while(|c| matches!(c, '０'..='９' | '．' | '，')).count();
    let is_numeral = |c: &char| {
        matches!(c, '０'..='９' | '．') || "〇零一二三四五六七八九十百千万億兆京".contains(*c)
    };
    if digits > 0 {
        let behind = at + digits;
        let tail: Vec<char> = written.iter().copied().skip_while(is_numeral).collect();
        if tail.is_empty() {
            return (at..behind, at);
        }
        if text[behind..].starts_with(&tail) {
            let start = if tail.len() == written.len() { behind } else { at };
            return (start..behind + tail.len(), behind + tail.len());
        }
    }
    let found = (0..rest.len()).find(|from| rest[*from..].starts_with(written));
    match found.filter(|_| !written.is_empty()) {
        Some(from) => (at + from..at + from + written.len(), at + from + written.len()),
        None => (at.min(text.len().saturating_sub(1))..(at + 1).min(text.len()), at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, written: &[&str], expect: &[Range<usize>]) {
        let text: Vec<char> = text.chars().collect();
        let spoken = |written: &&str| Spoken {
            written: (*written).to_owned(),
            kana: "カ".to_owned(),
            joins: false,
        };
        let words = placed(&text, written.iter().map(spoken).collect());
        let places: Vec<Range<usize>> = words.into_iter().map(|word| word.chars).collect();
        assert_eq!(places, expect, "{written:?}");
    }

    #[test]
    fn words_that_replace_digits_have_their_place() {
        check("今日は", &["今日", "は"], &[0..2, 2..3]);
        check(
            "１２３円です",
            &["百", "二", "十", "三", "円", "です"],
            &[0..3, 0..3, 0..3, 0..3, 3..4, 4..6],
        );
        check("６日と２０日", &["六日", "と", "二十日"], &[0..2, 2..3, 3..6]);
        check("３．１４", &["三", "．", "一", "四"], &[0..4, 0..4, 0..4, 0..4]);
        check("三人と１人", &["三", "人", "と", "一人"], &[0..1, 1..2, 2..3, 3..5]);
        check("あ", &["い", "あ"], &[0..1, 0..1]);
    }

    #[test]
    fn midnight_is_one_word() {
        let word = |surface: &'static str, feature: &str| FoundWord {
            surface,
            feature: feature.to_owned(),
        };
        let found = ["午前", "零", "時", "半"].map(|surface| word(surface, "名詞"));
        let words = with_midnight("午前零時半", found.into(), "レージ");
        assert_eq!(words, [word("午前", "名詞"), word("零時", "レージ"), word("半", "名詞")]);
    }

    #[test]
    fn every_letter_has_a_name_that_can_be_heard() {
        for letter in 'A'..='Z' {
            let kana = letter_kana(letter).expect("a letter");
            assert!(!kana_symbols(kana).is_empty(), "{letter}");
        }
        assert_eq!(letter_kana('é'), None);
        assert_eq!(letter_kana('1'), None);
    }
}
