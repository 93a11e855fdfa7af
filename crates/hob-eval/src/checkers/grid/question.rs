//! A question about a grid that one word answers, such as who keeps the fish.
//! A sentence about the fish counts more than one that only names a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::prose::sentences;
use super::words::{Mention, Words, tokens};
use crate::Grade;

/// A question about the grid: the answer is one of the candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridQuestion {
    pub answer: String,
    pub candidates: Vec<String>,
    /// What the question is about: `fish`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Candidates are values of a first attribute, the thing asked about of a second one.
const CANDIDATE: usize = 0;
const ABOUT: usize = 1;

impl GridQuestion {
    /// `None`: no candidate is named.
    pub(super) fn grade(
        &self,
        text: &str,
        synonyms: &BTreeMap<String, Vec<String>>,
    ) -> Option<Grade> {
        let said = &self.candidates[self.find_candidate(text, synonyms)?];
        Some(match *said == self.answer {
            true => Grade::correct(format!("the answer is '{said}'")),
            false => Grade::wrong(format!("'{}' was expected, '{said}' was read", self.answer)),
        })
    }

    fn find_candidate(
        &self,
        text: &str,
        synonyms: &BTreeMap<String, Vec<String>>,
    ) -> Option<usize> {
        let mut words = Words::new(0, &[]);
        for (place, candidate) in self.candidates.iter().enumerate() {
            let others = synonyms.get(candidate).into_iter().flatten();
            others.chain([candidate]).for_each(|word| words.add(word, (CANDIDATE, place)));
        }
        self.about.iter().for_each(|about| words.add(about, (ABOUT, 0)));
        let (mut stated, mut named) = (None, None);
        for sentence in text.lines().flat_map(sentences) {
            let mentions = words.mentions(sentence);
            let places = |kind: usize| {
                mentions.iter().filter_map(move |(at, mention)| match mention {
                    Mention::Value((of, place)) if *of == kind => Some((*at, *place)),
                    _ => None,
                })
            };
            let Some((_, last)) = places(CANDIDATE).next_back() else { continue };
            named = Some(last);
            let about = places(ABOUT).next().map(|(at, _)| at);
            let is_answer = || tokens(sentence).iter().any(|word| word == "answer");
            // "The German keeps the fish and the Swede the dog": the nearest one is meant.
            let nearest = about.and_then(|about| {
                places(CANDIDATE).min_by_key(|(at, _)| at.abs_diff(about)).map(|(_, place)| place)
            });
            stated = nearest.or_else(|| is_answer().then_some(last)).or(stated);
        }
        stated.or(named)
    }
}
