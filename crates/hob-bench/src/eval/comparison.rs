//! What several arms show together: the frontier and each arm against the first, in sentences, and advice for each use.
//! The terminal and the page print the same sentences and the same advice.

use std::collections::BTreeSet;

use hob_core::count_text;
use hob_eval::Verdict;
use hob_eval::report::{
    Advice, ArmOutcomes, ArmPoint, Estimate, Paired, ScoreFinding, Summary, UseBounds, advise,
    frontier, warm_cache_sentence,
};

use super::{AnsweredItem, GradedBy, outcomes};
use crate::record::{Record, eval_names};
use crate::thinking_switch::{SwitchEffect, TriedSwitch};

const SEED: u64 = 1;
/// The least difference of mean scores that matters.
const SCORE_THRESHOLD: f64 = 0.05;
const MS_PER_S: f64 = 1_000.0;
/// Items that a sentence names; the page and the file of the answers have all.
const LISTED_MAX: usize = 8;

/// One arm: its record, and its answers.
#[derive(Clone, Copy, Debug)]
pub struct ArmRecord<'a> {
    pub record: &'a Record,
    pub answered: &'a [AnsweredItem],
}

/// The bounds of the last arm that has some.
pub fn recorded_bounds(arms: &[ArmRecord<'_>]) -> UseBounds {
    let bounds = arms.iter().rev().find_map(|arm| arm.record.eval.as_ref()?.bounds);
    bounds.unwrap_or_default()
}

/// What arms with answers to the same items show together.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmFindings {
    /// One for each finding.
    pub sentences: Vec<String>,
    /// An arm for each use, with the reason. Empty where all questions are open, and for arms with other items.
    pub uses: Vec<Advice>,
}

impl ArmFindings {
    pub fn of(arms: &[ArmRecord<'_>], bounds: &UseBounds) -> ArmFindings {
        let names = eval_names(&arms.iter().map(|arm| arm.record).collect::<Vec<_>>());
        let named = || names.iter().zip(arms);
        let all = arm_outcomes(named().map(|(name, arm)| (name, arm.answered)));
        let mut sentences: Vec<String> =
            named().filter_map(|(name, arm)| open_questions(name, arm.answered)).collect();
        sentences.extend(switches(arms));
        sentences.extend(named().filter_map(|(name, arm)| leaks(name, arm.answered)));
        for kind in [(Verdict::Malformed, "could not be read"), (Verdict::NoAnswer, "never came")] {
            sentences.extend(named().filter_map(|(name, arm)| reasons(name, arm.answered, kind)));
        }
        sentences.extend(named().filter_map(|(name, arm)| corrected(name, arm.answered)));
        if all.iter().all(|arm| arm.outcomes.is_empty()) {
            return ArmFindings { sentences, uses: Vec::new() };
        }
        sentences.extend(all.iter().filter_map(silence));
        sentences.extend(named().filter_map(|(name, arm)| warm_cache(name, arm.answered)));
        sentences.extend(apart(&names, arms));
        let (reason, uses) = match other_items(&all) {
            None => (None, advise(&all, bounds, SEED)),
            reason => (reason, Vec::new()),
        };
        if all.len() > 1 {
            sentences.push(reason.unwrap_or_else(|| best(&all)));
            sentences.extend(all[1..].iter().filter_map(|other| difference(&all[0], other)));
        }
        sentences.push(rule(bounds));
        ArmFindings { sentences, uses }
    }
}

fn arm_outcomes<'a>(
    named: impl Iterator<Item = (&'a String, &'a [AnsweredItem])>,
) -> Vec<ArmOutcomes> {
    named
        .map(|(name, answered)| ArmOutcomes { name: name.clone(), outcomes: outcomes(answered) })
        .collect()
}

/// What turned thinking off and what did not, once for each model and server.
fn switches(arms: &[ArmRecord<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for arm in arms {
        let tried = arm.record.eval.as_ref().map_or(&[][..], |eval| &eval.thinking_switches[..]);
        if tried.is_empty() {
            continue;
        }
        let off = arm.record.workload.reasoning_switch.as_deref();
        let works = tried.iter().any(|tried| tried.effect == SwitchEffect::Works);
        let result = match (works, off) {
            (_, Some(switch)) => format!("thinking was turned off by `{switch}`"),
            (true, None) => continue,
            (false, None) => "nothing turns thinking off".to_owned(),
        };
        let name = &arm.record.model.name;
        let tried: Vec<String> = tried.iter().map(TriedSwitch::to_string).collect();
        let sentence = format!("{name}: {result}. Tried: {}.", tried.join(", "));
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Thoughts in the visible text, which a user has to read.
fn leaks(name: &str, answered: &[AnsweredItem]) -> Option<String> {
    let leaked = answered.iter().filter(|one| one.leaked_thought);
    let (count, items) = listed(leaked.map(|one| one.id.clone()))?;
    let all = answered.len();
    Some(format!("{name}: {count} of {all} visible answers contain a thought: {items}."))
}

/// Answers with this verdict, each with the reason: in some nothing could be read, and others never came.
fn reasons(
    name: &str,
    answered: &[AnsweredItem],
    (verdict, what): (Verdict, &str),
) -> Option<String> {
    let meant = answered.iter().filter(|one| one.verdict == verdict);
    let (count, items) = listed(meant.map(|one| format!("{} ({})", one.id, one.why)))?;
    let all = answered.len();
    Some(format!("{name}: {count} of {all} answers {what}: {items}."))
}

fn corrected(name: &str, answered: &[AnsweredItem]) -> Option<String> {
    let by_hand = answered.iter().filter(|one| one.graded_by == GradedBy::Hand);
    let (_, items) = listed(by_hand.map(|one| format!("{} is {}", one.id, one.verdict)))?;
    Some(format!("{name}: graded by hand: {items}."))
}

/// The length of a list, and its first items with how many more there are. None if it is empty.
fn listed(all: impl Iterator<Item = String>) -> Option<(usize, String)> {
    let all: Vec<String> = all.collect();
    let shown = all[..all.len().min(LISTED_MAX)].join(", ");
    match all.len() {
        0 => None,
        count if count <= LISTED_MAX => Some((count, shown)),
        count => Some((count, format!("{shown} and {} more", count - LISTED_MAX))),
    }
}

/// Open questions are in no score, also those without an answer.
fn open_questions(name: &str, answered: &[AnsweredItem]) -> Option<String> {
    let open = answered.iter().filter(|one| one.verdict == Verdict::Open);
    let silent = open.clone().filter(|one| one.answer.is_empty()).count();
    let count = open.count();
    (count > 0).then(|| {
        format!(
            "{name}: {count} open questions ({silent} without a visible answer), in no score: compare them with `hob eval judge`."
        )
    })
}

/// Items on which an arm spent its whole budget before any visible text.
fn silence(arm: &ArmOutcomes) -> Option<String> {
    let spent = arm.outcomes.iter().filter(|one| one.verdict == Verdict::Budget);
    let thought = spent.clone().filter_map(|one| one.thought_tokens).max();
    let thought =
        thought.map_or(String::new(), |tokens| format!(", up to {tokens} tokens thought"));
    let seconds = Summary::of(&arm.outcomes, SEED)?.budget_silence_s?;
    Some(format!(
        "{}: no visible answer to {} of {}; the budget was spent before ({seconds:.1} s of silence on average{thought}).",
        arm.name,
        spent.count(),
        count_text(arm.outcomes.len(), "item")
    ))
}

/// Arms that were measured before or after all of the first one: the machine may have changed.
fn apart(names: &[String], arms: &[ArmRecord<'_>]) -> Option<String> {
    let span = |arm: &ArmRecord<'_>| {
        let times = || arm.answered.iter().map(|one| one.started);
        Some((times().min()?, times().max()?))
    };
    let (first_name, first) = (names.first()?, span(arms.first()?)?);
    let is_apart = |(_, arm): &(&String, &ArmRecord<'_>)| {
        span(arm).is_some_and(|(begin, end)| end < first.0 || begin > first.1)
    };
    let apart = names.iter().zip(arms).filter(is_apart);
    let (_, apart) = listed(apart.map(|(name, _)| name.clone()))?;
    Some(format!(
        "Measured before or after {first_name}, and not alternately with it: {apart}. Their differences in time include what changed on the machine between them."
    ))
}

/// A cold cache needs no sentence.
fn warm_cache(name: &str, answered: &[AnsweredItem]) -> Option<String> {
    let counts: Vec<_> = answered.iter().filter_map(AnsweredItem::prompt_and_cached).collect();
    Some(format!("{name}: {}", warm_cache_sentence(&counts)?))
}

/// Arms with other items than the first: their scores and times cannot stand in one frontier or in one choice.
fn other_items(arms: &[ArmOutcomes]) -> Option<String> {
    let items = |arm: &ArmOutcomes| -> BTreeSet<String> {
        arm.outcomes.iter().map(|outcome| outcome.item.clone()).collect()
    };
    let (first, others) = arms.split_first()?;
    let known = items(first);
    let others = others.iter().filter(|arm| items(arm) != known);
    let (_, others) = listed(others.map(|arm| arm.name.clone()))?;
    let name = &first.name;
    Some(format!(
        "There is no frontier and no best arm, because other items than those of {name} were graded: {others}."
    ))
}

fn best(arms: &[ArmOutcomes]) -> String {
    let point = |arm: &ArmOutcomes| {
        let summary = Summary::of(&arm.outcomes, SEED)?;
        let seconds = summary.total_ms.p50? / MS_PER_S;
        Some(ArmPoint { name: arm.name.clone(), seconds, score: summary.mean_score.value })
    };
    let points: Vec<ArmPoint> = arms.iter().filter_map(point).collect();
    let named = |place: usize| {
        let ArmPoint { name, seconds, score } = &points[place];
        format!("{name} (score {score:.2}, {seconds:.1} s)")
    };
    let names: Vec<String> = frontier(&points).into_iter().map(named).collect();
    format!("Frontier, which no other arm beats in both score and time: {}.", names.join("; "))
}

/// Each arm against the first, by name, with answers to the same items.
pub fn differences(arms: &[(String, &[AnsweredItem])]) -> Vec<String> {
    let all = arm_outcomes(arms.iter().map(|(name, answered)| (name, *answered)));
    all.iter().skip(1).filter_map(|other| difference(&all[0], other)).collect()
}

fn difference(first: &ArmOutcomes, second: &ArmOutcomes) -> Option<String> {
    let paired = Paired::of(&first.outcomes, &second.outcomes, SEED)?;
    let points = |share: f64| format!("{:+.0}", share * 100.0);
    let Estimate { value, low, high } = paired.score_difference;
    let finding = match paired.finding(SCORE_THRESHOLD) {
        ScoreFinding::Better => "is better than",
        ScoreFinding::Worse => "is worse than",
        ScoreFinding::Same => "is as good as",
        ScoreFinding::Inconclusive => "is not shown to differ in score from",
    };
    let time = paired.time_ratio.map_or(String::new(), |time| {
        format!("; it takes {:.2} times as long ({:.2} to {:.2})", time.value, time.low, time.high)
    });
    let left_out = match paired.left_out {
        [0, 0] => String::new(),
        [one, other] => format!("; {one} and {other} items have no partner"),
    };
    let (first, second) = (&first.name, &second.name);
    Some(format!(
        "{second} {finding} {first}: {} points ({} to {}) on {}; {} correct only with {first}, {} only with {second}, p = {:.3}{time}{left_out}.",
        points(value),
        points(low),
        points(high),
        count_text(paired.items, "item"),
        paired.only_first,
        paired.only_second,
        paired.mcnemar_p,
    ))
}

fn rule(bounds: &UseBounds) -> String {
    let seconds = |ms: f64| ms / MS_PER_S;
    format!(
        "Bounds: interactive answers begin within {} s and end within {} s, spoken ones begin within {} s and have at most {} words (medians). Quick use goes by the score for each minute waited, all other uses by the score.",
        seconds(bounds.interactive_ttfv_ms),
        seconds(bounds.interactive_total_ms),
        seconds(bounds.voice_ttfv_ms),
        bounds.voice_words,
    )
}
