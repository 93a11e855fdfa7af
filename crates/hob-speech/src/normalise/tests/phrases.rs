//! Phrases as people write them, and what a person says for each: the share that is right. The rules were improved
//! with these phrases in view, so the share says little about other phrases.

use hob_core::Language;

use crate::reading::{Reading, Voicing};

const AMERICAN: &str = include_str!("../../../tests/phrases/american.tsv");
const BRITISH: &str = include_str!("../../../tests/phrases/british.tsv");

/// The least number of phrases of one English.
const PHRASES_MIN: usize = 500;

#[test]
fn american_phrases_are_read_as_a_person_reads_them() {
    println!("{}", check(Language::AmericanEnglish, AMERICAN, 93));
}

#[test]
fn british_phrases_are_read_as_a_person_reads_them() {
    println!("{}", check(Language::BritishEnglish, BRITISH, 93));
}

/// At least `percent` of the phrases are right. On failure, the message lists the wrong ones.
fn check(language: Language, table: &str, percent: usize) -> String {
    let rows: Vec<(&str, &str)> = table.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(rows.len() >= PHRASES_MIN, "only {} phrases", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, expect)| (text, expect, said(&crate::normalise::read(text, 0, language))))
        .filter(|(_, expect, said)| !ways(expect).iter().any(|way| plain(way) == *said))
        .map(|(text, expect, said)| format!("\n{text}\n  said     {said}\n  expected {expect}"))
        .collect();
    let right = rows.len() - wrong.len();
    let result = format!("{language:?}: {right} of {} phrases are right", rows.len());
    let is_enough = right * 100 >= rows.len() * percent;
    assert!(is_enough, "{result}, and at least {percent} % must be:{}", wrong.concat());
    result
}

/// Every text of a pattern such as `{two |}one`: each group in braces is one of its parts.
fn ways(pattern: &str) -> Vec<String> {
    let group = pattern.split_once('{').and_then(|(before, rest)| {
        let (parts, after) = rest.split_once('}')?;
        Some((before, parts, after))
    });
    let Some((before, parts, after)) = group else { return vec![pattern.to_owned()] };
    let rest = ways(after);
    let with_rest =
        |part: &str| rest.iter().map(|rest| format!("{before}{part}{rest}")).collect::<Vec<_>>();
    parts.split('|').flat_map(with_rest).collect()
}

/// What is heard: words without marks, and spelled words letter by letter.
fn said(reading: &Reading) -> String {
    let heard = reading.words.iter().map(|word| {
        let text = &reading.text[word.said.clone()];
        match word.voicing {
            Voicing::Letters => text.chars().flat_map(|c| [c, ' ']).collect::<String>(),
            Voicing::Words | Voicing::Phonemes(_) => text.to_owned(),
        }
    });
    plain(&heard.collect::<Vec<String>>().join(" "))
}

/// Words in lower case, with one space between them. Apostrophes and marks are not heard.
fn plain(text: &str) -> String {
    let letters: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !matches!(c, '\'' | '’'))
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pattern_has_every_combination_of_its_parts() {
    assert_eq!(ways("a {b|c} d{| e}"), ["a b d", "a b d e", "a c d", "a c d e"]);
    assert_eq!(plain("It’s  nine o'clock, (sir)."), "its nine oclock sir");
}
