//! What several arms show together, in sentences: the frontier, each arm against the first, and advice for each use.
//! The terminal and the page print the same sentences.

use hob_eval::Verdict;
use hob_eval::report::{
    ArmOutcomes, ArmPoint, Estimate, Paired, ScoreFinding, Summary, UseBounds, advise,
    cache_sentence, frontier,
};

use super::{AnsweredItem, outcomes};
use crate::terms::Metric;

const SEED: u64 = 1;
/// The least difference of mean scores that matters.
const SCORE_THRESHOLD: f64 = 0.05;
const MS_PER_S: f64 = 1_000.0;

/// One sentence for each finding. `arms` have names and answers to the same items.
pub fn comparison(arms: &[(String, &[AnsweredItem])]) -> Vec<String> {
    let bounds = UseBounds::default();
    let warm = arms.iter().filter_map(|(name, answered)| warm_cache(name, answered));
    let all = arm_outcomes(arms);
    let open = arms.iter().filter_map(|(name, answered)| open_questions(name, answered));
    let mut sentences: Vec<String> = open.collect();
    if all.iter().all(|arm| arm.outcomes.is_empty()) {
        return sentences;
    }
    sentences.extend(all.iter().filter_map(|arm| silence(arm, &bounds)));
    sentences.extend(warm);
    if all.len() > 1 {
        sentences.push(best(&all, &bounds));
        sentences.extend(all[1..].iter().filter_map(|other| difference(&all[0], other)));
    }
    let advice = advise(&all, &bounds, SEED);
    sentences.extend(advice.iter().map(|one| format!("{}: {}", one.scenario.name(), one.why)));
    sentences.push(rule(&bounds));
    sentences
}

/// Each arm against the first. `arms` have names and answers to the same items.
pub fn differences(arms: &[(String, &[AnsweredItem])]) -> Vec<String> {
    let all = arm_outcomes(arms);
    let others = all.iter().skip(1);
    others.filter_map(|other| difference(&all[0], other)).collect()
}

fn arm_outcomes(arms: &[(String, &[AnsweredItem])]) -> Vec<ArmOutcomes> {
    let arm = |(name, answered): &(String, &[AnsweredItem])| ArmOutcomes {
        name: name.clone(),
        outcomes: outcomes(answered),
    };
    arms.iter().map(arm).collect()
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
fn silence(arm: &ArmOutcomes, bounds: &UseBounds) -> Option<String> {
    let spent = arm.outcomes.iter().filter(|one| one.verdict == Verdict::Budget);
    let thought = spent.clone().filter_map(|one| one.thought_tokens).max();
    let thought =
        thought.map_or(String::new(), |tokens| format!(", up to {tokens} tokens thought"));
    let seconds = Summary::of(&arm.outcomes, bounds, SEED)?.budget_silence_s?;
    Some(format!(
        "{}: no visible answer to {} of {} items; the budget was spent before ({seconds:.1} s of silence on average{thought}).",
        arm.name,
        spent.count(),
        arm.outcomes.len()
    ))
}

/// A cold cache needs no sentence.
fn warm_cache(name: &str, answered: &[AnsweredItem]) -> Option<String> {
    let counts = |answered: &AnsweredItem| {
        let of = |metric| answered.figures.get(&metric).map(|count| *count as u32);
        Some((of(Metric::PromptTokens)?, of(Metric::CachedTokens)?))
    };
    let counts: Vec<(u32, u32)> = answered.iter().filter_map(counts).collect();
    let sentence = cache_sentence(&counts).filter(|sentence| !sentence.contains("was cold"))?;
    Some(format!("{name}: {sentence}"))
}

fn best(arms: &[ArmOutcomes], bounds: &UseBounds) -> String {
    let point = |arm: &ArmOutcomes| {
        let summary = Summary::of(&arm.outcomes, bounds, SEED)?;
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
        format!(
            "; its time is {:.2} times that one's ({:.2} to {:.2})",
            time.value, time.low, time.high
        )
    });
    let left_out = match paired.left_out {
        [0, 0] => String::new(),
        [one, other] => format!("; {one} and {other} items have no partner"),
    };
    Some(format!(
        "{} {finding} {}: {} points ({} to {}) on {} items, correct only there {} and only here {}, p = {:.3}{time}{left_out}.",
        second.name,
        first.name,
        points(value),
        points(low),
        points(high),
        paired.items,
        paired.only_first,
        paired.only_second,
        paired.mcnemar_p,
    ))
}

fn rule(bounds: &UseBounds) -> String {
    let seconds = |ms: f64| ms / MS_PER_S;
    format!(
        "Bounds: interactive answers begin within {} s and end within {} s, spoken ones begin within {} s and have at most {} words (medians). For all other uses the score decides.",
        seconds(bounds.interactive_ttfv_ms),
        seconds(bounds.interactive_total_ms),
        seconds(bounds.voice_ttfv_ms),
        bounds.voice_words,
    )
}
