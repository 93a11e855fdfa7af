//! Advice for each use: the arm with the best score among those that keep the bounds of that use.
//! The advice comes from the run. It says where no difference was shown, and where no arm keeps the bounds.

use hob_core::{count_text, enum_table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, ItemOutcome, Paired, Summary};

/// The least text of a `needle` item, in tokens, that counts as a long document.
const LONG_TOKENS_MIN: u32 = 4_000;

/// Limits that answers must meet for a use. Times and lengths are medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UseBounds {
    /// Interactive use: most milliseconds to the first visible character
    pub interactive_ttfv_ms: f64,
    /// Interactive use: most milliseconds of a whole answer
    pub interactive_total_ms: f64,
    /// Voice: most milliseconds to the first visible character
    pub voice_ttfv_ms: f64,
    /// Voice: most words of an answer
    pub voice_words: u32,
}

impl Default for UseBounds {
    fn default() -> UseBounds {
        UseBounds {
            interactive_ttfv_ms: 2_000.0,
            interactive_total_ms: 30_000.0,
            voice_ttfv_ms: 500.0,
            voice_words: 60,
        }
    }
}

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Scenario: name {
        Interactive = "Interactive",
        BatchReasoning = "Batch reasoning",
        Code = "Code",
        /// Items of the family `needle` with at least 4,000 tokens.
        LongDocuments = "Long documents",
        Voice = "Voice",
        /// The most score for each minute waited.
        Quick = "Quick",
    }
}

/// All outcomes of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmOutcomes {
    pub name: String,
    pub outcomes: Vec<ItemOutcome>,
}

/// The advice for one use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    pub scenario: Scenario,
    /// `None` when no arm keeps the bounds, or when no items were run.
    pub arm: Option<String>,
    /// What the advice rests on, in a sentence or two.
    pub why: String,
}

struct Candidate<'a> {
    name: &'a str,
    outcomes: Vec<ItemOutcome>,
    summary: Summary,
}

/// One advice for each scenario, in the order of [`Scenario`].
pub fn advise(arms: &[ArmOutcomes], bounds: &UseBounds, seed: u64) -> Vec<Advice> {
    Scenario::ALL.into_iter().map(|scenario| advice(scenario, arms, bounds, seed)).collect()
}

impl Scenario {
    /// Whether the scenario rests on this item.
    fn is_meant(self, item: &ItemOutcome) -> bool {
        match self {
            Scenario::Code => item.family == "code",
            Scenario::LongDocuments => item.family == "needle" && is_long(&item.size),
            Scenario::Interactive
            | Scenario::BatchReasoning
            | Scenario::Voice
            | Scenario::Quick => true,
        }
    }

    fn without_items(self) -> String {
        match self {
            Scenario::Code => "The run has no items of the family `code`.".to_owned(),
            Scenario::LongDocuments => format!(
                "The run has no items of the family `needle` with at least {LONG_TOKENS_MIN} tokens, \
                 such as `needle:{LONG_TOKENS_MIN}@50%`."
            ),
            Scenario::Interactive
            | Scenario::BatchReasoning
            | Scenario::Voice
            | Scenario::Quick => "The run has no items.".to_owned(),
        }
    }

    /// How far an arm is past the bounds: 2 is twice the limit, 1 or less keeps them.
    fn excess(self, summary: &Summary, bounds: &UseBounds) -> f64 {
        match self {
            Scenario::Interactive => bounds.interactive_excess(summary),
            Scenario::Voice => bounds.voice_excess(summary),
            Scenario::BatchReasoning
            | Scenario::Code
            | Scenario::LongDocuments
            | Scenario::Quick => 0.0,
        }
    }
}

impl UseBounds {
    pub(super) fn interactive_excess(&self, summary: &Summary) -> f64 {
        let ttfv = excess(summary.ttfv_ms.p50, self.interactive_ttfv_ms);
        ttfv.max(excess(summary.total_ms.p50, self.interactive_total_ms))
    }

    pub(super) fn voice_excess(&self, summary: &Summary) -> f64 {
        let ttfv = excess(summary.ttfv_ms.p50, self.voice_ttfv_ms);
        ttfv.max(excess(summary.said_words_p50, f64::from(self.voice_words)))
    }
}

/// The size of a `needle` item begins with the tokens of its text: `4000@50%`.
fn is_long(size: &str) -> bool {
    let tokens = size.split_once('@').and_then(|(tokens, _)| tokens.parse::<u32>().ok());
    tokens.is_some_and(|tokens| tokens >= LONG_TOKENS_MIN)
}

/// A missing figure is past any limit.
fn excess(figure: Option<f64>, limit: f64) -> f64 {
    match figure {
        Some(figure) => figure / limit.max(f64::MIN_POSITIVE),
        None => f64::INFINITY,
    }
}

impl Candidate<'_> {
    /// `None` for an arm without items that are meant.
    fn of<'a>(
        arm: &'a ArmOutcomes,
        is_meant: impl Fn(&&ItemOutcome) -> bool,
        seed: u64,
    ) -> Option<Candidate<'a>> {
        let outcomes: Vec<ItemOutcome> = arm.outcomes.iter().filter(is_meant).cloned().collect();
        let summary = Summary::of(&outcomes, seed)?;
        Some(Candidate { name: &arm.name, outcomes, summary })
    }
}

fn advice(scenario: Scenario, arms: &[ArmOutcomes], bounds: &UseBounds, seed: u64) -> Advice {
    let is_meant = |item: &&ItemOutcome| scenario.is_meant(item);
    let candidate = |arm| Candidate::of(arm, is_meant, seed);
    let mut candidates: Vec<Candidate<'_>> = arms.iter().filter_map(candidate).collect();
    if candidates.is_empty() {
        return Advice { scenario, arm: None, why: scenario.without_items() };
    }
    if scenario == Scenario::Quick {
        return quickest(&candidates, seed);
    }
    let past = |candidate: &Candidate<'_>| scenario.excess(&candidate.summary, bounds);
    if candidates.iter().all(|candidate| past(candidate) > 1.0) {
        let nearest = candidates.iter().min_by(|a, b| past(a).total_cmp(&past(b)));
        let why = nearest.map(nearest_sentence).unwrap_or_default();
        return Advice { scenario, arm: None, why };
    }
    candidates.retain(|candidate| past(candidate) <= 1.0);
    candidates.sort_by(|a, b| {
        let by_score = b.summary.mean_score.value.total_cmp(&a.summary.mean_score.value);
        by_score.then(time(a).total_cmp(&time(b)))
    });
    let arm = candidates.first().map(|best| best.name.to_owned());
    Advice { scenario, arm, why: best_sentence(&candidates, seed) }
}

fn time(candidate: &Candidate<'_>) -> f64 {
    candidate.summary.total_ms.p50.unwrap_or(f64::INFINITY)
}

/// The arm with the most score for each minute waited.
fn quickest(candidates: &[Candidate<'_>], seed: u64) -> Advice {
    let scenario = Scenario::Quick;
    let rate = |one: &Candidate<'_>| one.summary.score_per_minute.filter(|rate| rate.value > 0.0);
    let mut rated: Vec<(&Candidate<'_>, Estimate)> =
        candidates.iter().filter_map(|one| Some((one, rate(one)?))).collect();
    rated.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    let Some(((best, rate), others)) = rated.split_first() else {
        return Advice { scenario, arm: None, why: "No arm has a score above 0.".to_owned() };
    };
    let mut why = format!(
        "{} has the most score for each minute waited: {:.2} ({:.2} to {:.2}, {}), with the score {:.2}.",
        best.name,
        rate.value,
        rate.low,
        rate.high,
        count_text(best.summary.items, "item"),
        best.summary.mean_score.value,
    );
    if let Some((next, rate)) = others.first() {
        let (name, score) = (next.name, next.summary.mean_score.value);
        let Estimate { value, low, high } = rate;
        why += &format!(
            " The next is {name} with {value:.2} ({low:.2} to {high:.2}) and the score {score:.2}."
        );
    }
    let has_other_items = |other: &Candidate<'_>| {
        let paired = Paired::of(&other.outcomes, &best.outcomes, seed);
        paired.is_none_or(|paired| paired.left_out != [0, 0])
    };
    let apart =
        others.iter().filter(|(other, _)| has_other_items(other)).map(|(other, _)| other.name);
    let apart: Vec<&str> = apart.collect();
    if !apart.is_empty() {
        why += &format!(" {} had other items and cannot be compared.", apart.join(", "));
    }
    Advice { scenario, arm: Some(best.name.to_owned()), why }
}

fn nearest_sentence(nearest: &Candidate<'_>) -> String {
    let seconds = |ms: Option<f64>| {
        ms.map_or_else(|| "never".to_owned(), |ms| format!("after {:.1} s", ms / 1000.0))
    };
    let summary = &nearest.summary;
    format!(
        "No arm keeps the bounds: the nearest is {} (first visible character {}, end {}, {:.0} words; \
         medians of {}).",
        nearest.name,
        seconds(summary.ttfv_ms.p50),
        seconds(summary.total_ms.p50),
        summary.said_words_p50.unwrap_or(0.0),
        count_text(summary.items, "item"),
    )
}

/// The candidates keep the bounds, and the best is first.
fn best_sentence(candidates: &[Candidate<'_>], seed: u64) -> String {
    let Some((best, others)) = candidates.split_first() else {
        return String::new();
    };
    let score = &best.summary.mean_score;
    let is_only =
        if others.is_empty() { "keeps the bounds with the score" } else { "has the best score:" };
    let mut sentence = format!(
        "{} {is_only} {:.2} ({:.2} to {:.2}, {}).",
        best.name,
        score.value,
        score.low,
        score.high,
        count_text(best.summary.items, "item"),
    );
    let (mut alike, mut behind, mut apart) = (Vec::new(), None, Vec::new());
    for other in others {
        let name = other.name;
        match Paired::of(&other.outcomes, &best.outcomes, seed) {
            None => apart.push(name),
            // Over other items the order can turn.
            Some(paired) if paired.score_difference.high < 0.0 => apart.push(name),
            Some(paired) if paired.is_shown() => behind = behind.or(Some((name, paired))),
            Some(paired) => alike.push(format!("{name} ({})", points(&paired))),
        }
    }
    if !alike.is_empty() {
        let alike = alike.join(", ");
        sentence += &format!(" No difference was shown between {} and {alike}.", best.name);
    }
    if let Some((name, paired)) = behind {
        let by = 100.0 * paired.score_difference.value;
        sentence += &format!(" It is ahead of {name} by {by:.0} points ({}).", points(&paired));
    }
    if !apart.is_empty() {
        sentence += &format!(" {} had other items and cannot be compared.", apart.join(", "));
    }
    sentence
}

/// The interval of a difference, and the number of items that it rests on.
fn points(paired: &Paired) -> String {
    let Estimate { low, high, .. } = paired.score_difference;
    let items = count_text(paired.items, "item");
    format!("{:.0} to {:.0} points, {items} in common", 100.0 * low, 100.0 * high)
}
