//! Records of the listening page, and what several of them say together: hits of ABX, and preferences.
//! Figures are counted from the answers. A record's own summary is not read.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::report::{Estimate, half_tail, mcnemar};

/// The form of a record.
pub const LISTENING_SCHEMA: &str = "listening/1";
/// The page asks about each sentence this often.
const TRIALS_PER_SENTENCE: usize = 2;

/// What one listener answered in one test, as the page writes it. Fields that only repeat others are left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListeningRecord {
    kind: TestKind,
    source: String,
    target: String,
    voice: String,
    time: String,
    sentences: Vec<String>,
    #[serde(rename = "answers")]
    trials: Vec<RecordedTrial>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListeningRecordError {
    #[error("it is not a record of the listening page: {0}")]
    NotARecord(String),
    #[error("its schema is '{found}' (expected '{}')", LISTENING_SCHEMA)]
    Schema { found: String },
    #[error("answer {number} {reason}")]
    Answer { number: usize, reason: String },
}

/// What all records of two models say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListeningTally {
    pub source: String,
    pub target: String,
    /// `None` without such a trial.
    pub abx: Option<AbxTally>,
    pub preference: Option<PreferenceTally>,
}

/// Is X the same as A or as B?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AbxTally {
    pub records: usize,
    pub trials: usize,
    pub correct: usize,
    /// The chance of at least so many hits by guessing.
    pub p: f64,
    /// The share of hits.
    pub share: Option<Estimate>,
}

/// Which one sounds better?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PreferenceTally {
    pub records: usize,
    /// Answers for the source, for the target, and for no difference.
    pub source: usize,
    pub target: usize,
    pub none: usize,
    /// The chance of a difference at least as large if listeners have no preference.
    pub p: f64,
    /// The share of the target among the answers for one of them. `None` without such an answer.
    pub target_share: Option<Estimate>,
}

#[derive(Deserialize)]
struct WrittenSchema {
    schema: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TestKind {
    Abx,
    Preference,
}

/// One answer, and which model was behind the letters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct RecordedTrial {
    /// From 1.
    sentence: usize,
    a: HeardModel,
    answer: Letter,
    /// ABX only, like `correct`.
    x: Option<HeardModel>,
    correct: Option<bool>,
    /// Preference only.
    preferred: Option<Preferred>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HeardModel {
    Source,
    Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Letter {
    A,
    B,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Preferred {
    Source,
    Target,
    None,
}

impl ListeningRecord {
    /// Reads a record that the page saved.
    ///
    /// # Errors
    /// The text is not a listening record, or an answer contradicts itself.
    pub fn read(json: &str) -> Result<ListeningRecord, ListeningRecordError> {
        let wrong = |error: serde_json::Error| ListeningRecordError::NotARecord(error.to_string());
        let WrittenSchema { schema: found } = serde_json::from_str(json).map_err(wrong)?;
        if found != LISTENING_SCHEMA {
            return Err(ListeningRecordError::Schema { found });
        }
        let record: ListeningRecord = serde_json::from_str(json).map_err(wrong)?;
        let mut seen = HashSet::new();
        for (at, trial) in record.trials.iter().enumerate() {
            let refused = |reason: String| ListeningRecordError::Answer { number: at + 1, reason };
            if !(1..=record.sentences.len()).contains(&trial.sentence) {
                let count = record.sentences.len();
                let sentence = trial.sentence;
                return Err(refused(format!("is about sentence {sentence} of {count}")));
            }
            trial.check(record.kind).map_err(refused)?;
            // The second trial of a sentence has the other X, or the models in the other order.
            let order = trial.x.unwrap_or(trial.a);
            if !seen.insert((trial.sentence, order)) {
                let most = TRIALS_PER_SENTENCE;
                return Err(refused(format!("repeats a trial (expected {most} a sentence)")));
            }
        }
        Ok(record)
    }
}

impl RecordedTrial {
    /// The model that the listener chose. `None`: no difference.
    fn chosen(&self) -> Option<HeardModel> {
        match self.answer {
            Letter::A => Some(self.a),
            Letter::B => Some(self.a.other()),
            Letter::None => None,
        }
    }

    fn is_hit(&self) -> bool {
        self.x.is_some() && self.chosen() == self.x
    }

    /// # Errors
    /// It is an answer to another test, or its own facts are wrong.
    fn check(&self, kind: TestKind) -> Result<(), String> {
        let preferred = match self.chosen() {
            Some(HeardModel::Source) => Preferred::Source,
            Some(HeardModel::Target) => Preferred::Target,
            None => Preferred::None,
        };
        match (kind, self.x, self.correct, self.preferred) {
            (TestKind::Abx, Some(_), Some(_), None) if self.answer == Letter::None => {
                Err("is neither A nor B".to_owned())
            }
            (TestKind::Abx, Some(_), Some(said), None) if said != self.is_hit() => {
                Err(format!("says that correct is {said}, which is not what was answered"))
            }
            (TestKind::Preference, None, None, Some(said)) if said != preferred => {
                Err("prefers another model than the letter that was answered".to_owned())
            }
            (TestKind::Abx, Some(_), Some(_), None)
            | (TestKind::Preference, None, None, Some(_)) => Ok(()),
            (TestKind::Abx, ..) => Err("is not an answer of an ABX test".to_owned()),
            (TestKind::Preference, ..) => Err("is not an answer of a preference test".to_owned()),
        }
    }
}

impl HeardModel {
    fn other(self) -> HeardModel {
        match self {
            HeardModel::Source => HeardModel::Target,
            HeardModel::Target => HeardModel::Source,
        }
    }
}

/// Counts all records together, for each pair of models.
pub fn listening_tallies(records: &[ListeningRecord]) -> Vec<ListeningTally> {
    let mut pairs: BTreeMap<(&str, &str), Vec<&ListeningRecord>> = BTreeMap::new();
    for record in records {
        pairs.entry((record.source.as_str(), record.target.as_str())).or_default().push(record);
    }
    let tally = |((source, target), records): ((&str, &str), Vec<&ListeningRecord>)| {
        let of = |kind: TestKind| -> Vec<&ListeningRecord> {
            let heard =
                |record: &&ListeningRecord| record.kind == kind && !record.trials.is_empty();
            records.iter().copied().filter(heard).collect()
        };
        ListeningTally {
            source: source.to_owned(),
            target: target.to_owned(),
            abx: AbxTally::of(&of(TestKind::Abx)),
            preference: PreferenceTally::of(&of(TestKind::Preference)),
        }
    };
    pairs.into_iter().map(tally).collect()
}

impl AbxTally {
    fn of(records: &[&ListeningRecord]) -> Option<AbxTally> {
        let trials: Vec<&RecordedTrial> = records.iter().flat_map(|one| &one.trials).collect();
        let correct = trials.iter().filter(|trial| trial.is_hit()).count();
        let share = Estimate::of_share(correct, trials.len());
        share.is_some().then(|| AbxTally {
            records: records.len(),
            trials: trials.len(),
            correct,
            // As many hits or more are as many misses or fewer.
            p: half_tail(trials.len() - correct, trials.len()),
            share,
        })
    }
}

impl PreferenceTally {
    fn of(records: &[&ListeningRecord]) -> Option<PreferenceTally> {
        let trials: Vec<&RecordedTrial> = records.iter().flat_map(|one| &one.trials).collect();
        let count = |model: Option<HeardModel>| {
            trials.iter().filter(|trial| trial.chosen() == model).count()
        };
        let (source, target) = (count(Some(HeardModel::Source)), count(Some(HeardModel::Target)));
        (!trials.is_empty()).then(|| PreferenceTally {
            records: records.len(),
            source,
            target,
            none: count(None),
            p: mcnemar(source, target),
            target_share: Estimate::of_share(target, source + target),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: &str, target: &str, answers: &str) -> String {
        format!(
            r#"{{"schema": "listening/1", "kind": "{kind}", "source": "kokoro", "target": "{target}",
            "voice": "af_heart", "sentences": ["One.", "Two.", "Three."],
            "time": "2026-11-28T10:00:00.000Z", "summary": {{"trials": 99}}, "answers": [{answers}]}}"#
        )
    }

    fn abx(sentence: usize, x: &str, is_hit: bool) -> String {
        let letter = if (x == "source") == is_hit { "a" } else { "b" };
        format!(
            r#"{{"sentence": {sentence}, "a": "source", "x": "{x}", "answer": "{letter}", "correct": {is_hit}}}"#
        )
    }

    fn preference(sentence: usize, a: &str, letter: &str, preferred: &str) -> String {
        format!(
            r#"{{"sentence": {sentence}, "a": "{a}", "answer": "{letter}", "preferred": "{preferred}"}}"#
        )
    }

    fn read(text: &str) -> ListeningRecord {
        ListeningRecord::read(text).expect("a record")
    }

    #[test]
    fn records_of_one_pair_are_counted_together() {
        let all: Vec<String> =
            (1..=3).flat_map(|at| [abx(at, "source", true), abx(at, "target", at > 1)]).collect();
        let better = [
            preference(1, "source", "b", "target"),
            preference(1, "target", "a", "target"),
            preference(2, "source", "none", "none"),
            preference(3, "target", "a", "target"),
        ];
        let records = [
            read(&record("abx", "small", &all.join(", "))),
            read(&record("abx", "small", &abx(2, "target", true))),
            read(&record("abx", "small", "")),
            read(&record("preference", "small", &better.join(", "))),
            read(&record("abx", "other", &abx(1, "source", false))),
        ];
        let tallies = listening_tallies(&records);
        let [other, small] = &tallies[..] else { panic!("two pairs: {tallies:?}") };
        assert_eq!((other.target.as_str(), other.preference), ("other", None));
        assert_eq!(other.abx.map(|abx| (abx.trials, abx.correct, abx.p)), Some((1, 0, 1.0)));
        let heard = small.abx.expect("trials");
        assert_eq!((heard.records, heard.trials, heard.correct), (2, 7, 6));
        assert!((heard.p - 8.0 / 128.0).abs() < 1e-12, "{heard:?}");
        let share = heard.share.expect("trials");
        assert!(
            (share.low - 0.4869).abs() < 1e-4 && (share.high - 0.9743).abs() < 1e-4,
            "{share:?}"
        );
        let preferred = small.preference.expect("trials");
        assert_eq!((preferred.source, preferred.target, preferred.none), (0, 3, 1));
        assert!((preferred.p - 0.25).abs() < 1e-12, "{preferred:?}");
        assert_eq!(preferred.target_share.map(|share| share.value), Some(1.0));
    }

    #[test]
    fn what_is_no_record_or_contradicts_itself_is_refused_with_the_reason() {
        let good = record("abx", "small", &abx(1, "source", true));
        let rows = [
            ("", "it is not a record of the listening page"),
            ("[1]", "it is not a record of the listening page"),
            (r#"{"kind": "abx"}"#, "missing field `schema`"),
            (&good.replace("listening/1", "listening/2"), "its schema is 'listening/2'"),
            (&good.replace("\"abx\"", "\"mushra\""), "unknown variant `mushra`"),
            (&good.replace("\"a\": \"source\"", "\"a\": \"third\""), "unknown variant `third`"),
            (&good.replace("\"sentence\": 1", "\"sentence\": 4"), "is about sentence 4 of 3"),
            (&good.replace("\"sentence\": 1", "\"sentence\": 0"), "is about sentence 0 of 3"),
            (&good.replace("true", "false"), "answer 1 says that correct is false"),
            (&good.replace("\"answer\": \"a\"", "\"answer\": \"none\""), "is neither A nor B"),
            (
                &record("preference", "small", &abx(1, "source", true)),
                "not an answer of a preference",
            ),
            (
                &record("preference", "small", &preference(1, "source", "a", "target")),
                "answer 1 prefers another model",
            ),
            (
                &record(
                    "abx",
                    "small",
                    &[abx(1, "source", true), abx(1, "source", true)].join(","),
                ),
                "answer 2 repeats a trial",
            ),
        ];
        for (text, expected) in rows {
            let refused = ListeningRecord::read(text).expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        read(&good);
    }
}
