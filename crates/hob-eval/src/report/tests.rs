//! Tests of the statistics of score against time.
//! Seeded simulations show that the intervals cover what they claim.

use std::collections::BTreeMap;

use hob_core::statistics::SeededRandom;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn outcome(at: usize, score: f64, total_ms: f64) -> ItemOutcome {
    ItemOutcome {
        item: format!("item/{at}"),
        family: "logic-grid".to_owned(),
        size: "3x3".to_owned(),
        score,
        verdict: if score >= 1.0 { Verdict::Correct } else { Verdict::Wrong },
        ttfv_ms: Some(total_ms / 2.0),
        total_ms,
        thought_tokens: None,
        said_tokens: Some(10),
        said_words: 8,
        energy_j: Some(5.0),
    }
}

fn arm(n: usize, total_ms: f64, is_right: impl Fn(usize) -> bool) -> Vec<ItemOutcome> {
    (0..n).map(|at| outcome(at, f64::from(u8::from(is_right(at))), total_ms)).collect()
}

fn named(name: &str, outcomes: Vec<ItemOutcome>) -> ArmOutcomes {
    ArmOutcomes { name: name.to_owned(), outcomes }
}

fn summary(outcomes: &[ItemOutcome]) -> Summary {
    Summary::of(outcomes, 7).expect("outcomes")
}

#[test]
fn wilson_by_the_table() {
    // Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    let rows = [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ];
    for (hits, items, low, high) in rows {
        let found = Estimate::of_share(hits, items).expect("items");
        assert!((found.low - low).abs() < 1e-4 && (found.high - high).abs() < 1e-4, "{found:?}");
    }
    assert_eq!(Estimate::of_share(0, 0), None);
}

#[test]
fn wilson_covers_nineteen_times_in_twenty() {
    let mut random = SeededRandom::new(1);
    for items in [20, 60] {
        let trials = 10_000;
        let covers = (0..trials).filter(|_| {
            // At one share the coverage is 92 to 98 %, because counts are whole. 95 % holds over many shares.
            let share = 0.05 + 0.9 * random.unit();
            let hits = (0..items).filter(|_| random.unit() < share).count();
            let found = Estimate::of_share(hits, items).expect("items");
            found.low <= share && share <= found.high
        });
        let covered = covers.count() as f64 / f64::from(trials);
        assert!((0.94..0.96).contains(&covered), "{covered} of {items}");
    }
}

#[test]
fn the_score_covers_nineteen_times_in_twenty_also_near_its_end() {
    let (mut random, trials) = (SeededRandom::new(6), 300);
    for share in [0.5, 0.95, 1.0] {
        let covers = (0..trials).filter(|_| {
            let right: Vec<bool> = (0..25).map(|_| random.unit() < share).collect();
            let found = summary(&arm(25, 1_000.0, |at| right[at]));
            let score = found.mean_score;
            assert!(score.low < score.high, "{score:?}");
            // Sixty answers a minute, so the rate has the coverage of the score.
            let rate = found.score_per_minute.expect("time passed").value / 60.0;
            assert!((rate - score.value).abs() < 1e-9, "{rate}");
            score.low <= share && share <= score.high
        });
        // Expected: 285 of 300, within four standard deviations.
        let covered = covers.count();
        assert!(covered >= 270, "{covered} of {trials} at {share}");
    }
}

#[test]
fn equal_items_leave_a_width() {
    let found = summary(&arm(10, 3_000.0, |_| true));
    let mean = found.mean_score;
    assert!(mean.low < 0.73 && mean.low > 0.72 && mean.value >= 1.0, "{mean:?}");
    let seconds = found.seconds_per_correct.expect("all are right");
    assert!((seconds.low - 3.0).abs() < 1e-9 && seconds.high > 4.1, "{seconds:?}");
    let tokens = found.tokens_per_correct.expect("all are right");
    assert!((tokens.low - 10.0).abs() < 1e-9 && tokens.high > 13.8, "{tokens:?}");
    let rate = found.score_per_minute.expect("time passed");
    assert!(rate.low < 14.5 && (rate.high - 20.0).abs() < 1e-9, "{rate:?}");
    let right = arm(10, 3_000.0, |_| true);
    let rows = [(true, -0.3, 0.3), (false, -1.0, -0.7)];
    for (is_right, low, high) in rows {
        let second = arm(10, 3_000.0, |_| is_right);
        let found = Paired::of(&right, &second, 7).expect("pairs").score_difference;
        assert!((found.low - low).abs() < 1e-9, "{found:?}");
        assert!((found.high - high).abs() < 1e-9, "{found:?}");
    }
}

#[test]
fn the_bootstrap_covers_nineteen_times_in_twenty() {
    let (mut random, trials) = (SeededRandom::new(2), 300);
    let (mut means, mut quotients) = (0, 0);
    for seed in 0..trials {
        // Scores of 0, 1/2 and 1, mean 1/2. Minutes 1 to 3, mean 2, longer for wrong answers.
        let items: Vec<(f64, f64)> = (0..25)
            .map(|_| {
                let score = random.below(3) as f64 / 2.0;
                (score, 1.0 + random.unit() + (1.0 - score))
            })
            .collect();
        let scores: Vec<f64> = items.iter().map(|(score, _)| *score).collect();
        let holds = |found: Estimate, truth: f64| found.low <= truth && truth <= found.high;
        means += usize::from(holds(Estimate::of_mean(&scores, seed).expect("items"), 0.5));
        quotients += usize::from(holds(Estimate::of_quotient(&items, seed).expect("items"), 0.25));
    }
    // Expected: 285 of 300, within four standard deviations.
    for covered in [means, quotients] {
        assert!((270..=299).contains(&covered), "{means} and {quotients} of {trials}");
    }
}

#[test]
fn the_items_that_power_asks_for_show_the_difference() {
    let mut random = SeededRandom::new(3);
    for (share, difference) in [(0.25, 0.18), (0.3, 0.15), (0.5, 0.25), (0.2, 0.1)] {
        let (items, trials) = (items_needed(share, difference, 0.8), 1500);
        let better = f64::midpoint(share, difference);
        let mut shown = 0;
        for _ in 0..trials {
            let mut counts = [0, 0];
            for _ in 0..items {
                let draw = random.unit();
                counts[0] += usize::from(draw < better);
                counts[1] += usize::from((better..share).contains(&draw));
            }
            shown += usize::from(paired::mcnemar(counts[0], counts[1]) <= 0.05);
        }
        let power = f64::from(u32::try_from(shown).expect("small")) / f64::from(trials);
        assert!((0.75..0.90).contains(&power), "{power} with {items} items for {difference}");
    }
}

#[test]
fn power_by_hand_and_its_inverse() {
    // (1.96 · √0.25 + 0.8416 · √(0.25 − 0.0324))² / 0.0324 = 58.2, and 1/0.18 = 5.6.
    assert_eq!(items_needed(0.25, 0.18, 0.8), 64);
    assert_eq!(items_needed(0.25, -0.18, 0.8), 64);
    assert_eq!(items_needed(0.3, 0.0, 0.8), u32::MAX);
    assert_eq!(items_needed(f64::NAN, f64::NAN, f64::NAN), u32::MAX);
    for items in [40, 60, 200, 1000] {
        let difference = smallest_difference(items, 0.25, 0.8).expect("possible");
        assert!(items_needed(0.25, difference, 0.8) <= items);
        assert!(items_needed(0.25, difference - 0.005, 0.8) > items);
    }
    assert_eq!(smallest_difference(5, 0.25, 0.8), None);
}

#[test]
fn a_summary_by_hand() {
    let mut outcomes =
        vec![outcome(0, 1.0, 10_000.0), outcome(1, 1.0, 20_000.0), outcome(2, 0.5, 30_000.0)];
    let silent = ItemOutcome {
        verdict: Verdict::Budget,
        ttfv_ms: None,
        thought_tokens: Some(2_000),
        said_tokens: Some(0),
        said_words: 0,
        ..outcome(3, 0.0, 180_000.0)
    };
    outcomes.push(silent);
    let found = summary(&outcomes);
    assert_eq!((found.items, found.accuracy.value, found.mean_score.value), (4, 0.5, 0.625));
    let verdicts = [(Verdict::Correct, 2), (Verdict::Wrong, 1), (Verdict::Budget, 1)];
    assert_eq!(found.verdicts, BTreeMap::from(verdicts));
    assert_eq!((found.without_answer.value, found.budget_silence_s), (0.25, Some(180.0)));
    assert!(found.without_answer.low > 0.0 && found.without_answer.high > 0.5);
    assert_eq!(found.ttfv_ms, TimeSpread { p50: Some(10_000.0), p95: None });
    assert_eq!((found.thought_tokens, found.said_tokens), (Some(2_000.0), Some(7.5)));
    let minutes = found.score_per_minute.expect("time passed");
    assert_eq!(minutes.value, 2.5 / 4.0);
    assert!(minutes.low < minutes.value && minutes.value < minutes.high);
    let seconds = found.seconds_per_correct.expect("two are right");
    assert!((seconds.value - 120.0).abs() < 1e-9, "mean 60 s over accuracy 1/2");
    assert!(seconds.low < 120.0 && seconds.high > 120.0);
    let tokens = found.tokens_per_correct.expect("two are right");
    assert!((tokens.value - 1_015.0).abs() < 1e-9, "2,030 tokens over 2");
    assert!(tokens.low < 1_015.0 && tokens.high > 1_015.0);
    let energy_j = found.energy_per_correct_j.expect("two are right");
    assert!((energy_j.value - 10.0).abs() < 1e-9, "20 J over 2");
    assert!(energy_j.low < 10.0 && energy_j.high > 10.0);
    outcomes[0].energy_j = None;
    assert_eq!(summary(&outcomes).energy_per_correct_j, None);
    let wrong = summary(&arm(30, 1_000.0, |_| false));
    assert_eq!((wrong.seconds_per_correct, wrong.tokens_per_correct), (None, None));
    assert_eq!(wrong.total_ms, TimeSpread { p50: Some(1_000.0), p95: Some(1_000.0) });
    assert_eq!(Summary::of(&[], 7), None);
}

#[test]
fn silence_is_slower_than_any_answer() {
    let mut outcomes = arm(9, 1_000.0, |_| true);
    let bounds = UseBounds::default();
    let excess = |found: &Summary| [bounds.interactive_excess(found), bounds.voice_excess(found)];
    assert!(excess(&summary(&outcomes)).iter().all(|times| *times <= 1.0));
    for silent in &mut outcomes[..5] {
        silent.ttfv_ms = None;
    }
    let found = summary(&outcomes);
    assert_eq!(found.ttfv_ms.p50, None);
    assert!(excess(&found).iter().all(|times| *times > 1.0));
}

#[test]
fn families_and_sizes_are_apart() {
    let mut outcomes = arm(6, 1_000.0, |at| at < 3);
    outcomes[5].family = "code".to_owned();
    outcomes[4].size = "4x4".to_owned();
    let found = Breakdown::of(&outcomes, 7).expect("outcomes");
    assert_eq!((found.all.items, found.by_family["logic-grid"].items), (6, 5));
    assert_eq!(
        (found.by_family["code"].items, found.by_family["code"].verdicts[&Verdict::Wrong]),
        (1, 1)
    );
    assert_eq!(found.by_size["logic-grid:3x3"].accuracy.value, 0.75);
    assert_eq!(found.by_size["logic-grid:4x4"].items, 1);
}

#[test]
fn pairs_find_what_is_there() {
    let base = arm(60, 1_000.0, |at| at % 2 == 0);
    let rows = [
        (arm(60, 2_000.0, |at| at % 2 == 0 || at % 3 == 0), ScoreFinding::Better, 0, 10),
        (arm(60, 2_000.0, |at| at % 4 == 0), ScoreFinding::Worse, 15, 0),
        (arm(60, 2_000.0, |at| at % 2 == 0), ScoreFinding::Same, 0, 0),
        (arm(60, 2_000.0, |at| at % 3 == 0), ScoreFinding::Inconclusive, 20, 10),
    ];
    for (second, finding, only_first, only_second) in rows {
        let found = Paired::of(&base, &second, 7).expect("pairs");
        assert_eq!(found.finding(0.05), finding, "{found:?}");
        assert_eq!((found.only_first, found.only_second), (only_first, only_second));
        assert_eq!((found.items, found.left_out), (60, [0, 0]));
        assert!((found.time_ratio.expect("times").value - 2.0).abs() < 1e-9);
    }
}

#[test]
fn one_item_has_no_ratio_of_times() {
    let ratio = |items| {
        let [first, second] = [1_000.0, 2_000.0].map(|ms| arm(items, ms, |_| true));
        Paired::of(&first, &second, 7).expect("pairs").time_ratio
    };
    assert_eq!((ratio(1), ratio(2).is_some()), (None, true));
}

#[test]
fn few_items_find_nothing() {
    let wrong = arm(59, 1.0, |_| false);
    let rows = [
        (7, 7, ScoreFinding::Inconclusive),
        (8, 8, ScoreFinding::Better),
        (10, 5, ScoreFinding::Inconclusive),
        (10, 6, ScoreFinding::Better),
        // Without a difference in 59 items, one in twenty may still differ.
        (59, 0, ScoreFinding::Inconclusive),
    ];
    for (items, right, finding) in rows {
        let second = arm(items, 1.0, |at| at < right);
        let found = Paired::of(&wrong[..items], &second, 7).expect("pairs");
        assert_eq!(found.finding(0.05), finding, "{found:?}");
    }
}

#[test]
fn no_arm_is_better_where_mcnemar_says_no() {
    // Right only in the second arm, only in the first one, and McNemar's probability for it.
    let rows = [(7, 1, 0.070, false), (8, 1, 0.039, true)];
    for (only_second, only_first, p, is_shown) in rows {
        let first = arm(20, 1.0, |at| at < only_first);
        let second = arm(20, 1.0, |at| (only_first..only_first + only_second).contains(&at));
        let found = Paired::of(&first, &second, 7).expect("pairs");
        assert!(found.score_difference.low > 0.0, "the bootstrap alone shows it: {found:?}");
        assert!((found.mcnemar_p - p).abs() < 1e-3, "{found:?}");
        assert_eq!(found.is_shown(), is_shown, "{found:?}");
    }
    // Partial scores tell more than verdicts: each answer of the second arm is half better, and none is right.
    let half: Vec<ItemOutcome> =
        (0..20).map(|at| outcome(at, 0.4 + 0.01 * at as f64, 1.0)).collect();
    let found = Paired::of(&arm(20, 1.0, |_| false), &half, 7).expect("pairs");
    assert!(found.is_shown() && found.mcnemar_p >= 1.0, "{found:?}");
}

#[test]
fn equal_arms_are_called_different_once_in_twenty() {
    let mut random = SeededRandom::new(5);
    for items in [10, 40] {
        let (mut shown, trials) = (0, 200);
        for seed in 0..trials {
            let mut draw = || -> Vec<bool> { (0..items).map(|_| random.unit() < 0.7).collect() };
            let (first, second) = (draw(), draw());
            let arms = [arm(items, 1.0, |at| first[at]), arm(items, 1.0, |at| second[at])];
            let paired = Paired::of(&arms[0], &arms[1], seed).expect("pairs");
            shown += u32::from(paired.is_shown());
        }
        // Expected: at most 10 of 200, within four standard deviations.
        assert!(shown <= 22, "{shown} of {trials} with {items} items");
    }
}

#[test]
fn items_without_a_partner_are_counted() {
    let (first, mut second) = (arm(10, 1.0, |_| true), arm(12, 1.0, |_| true));
    second.push(second[0].clone());
    let found = Paired::of(&first[2..], &second, 7).expect("pairs");
    assert_eq!((found.items, found.left_out), (8, [0, 5]));
    assert_eq!(Paired::of(&first[..2], &second[4..6], 7), None);
}

fn why(arms: &[ArmOutcomes], scenario: Scenario) -> (Option<String>, String) {
    let all = advise(arms, &UseBounds::default(), 7);
    assert_eq!(all.len(), Scenario::ALL.len());
    let advice = all.into_iter().find(|advice| advice.scenario == scenario).expect("advice");
    (advice.arm, advice.why)
}

#[test]
fn advice_follows_from_bounds_and_scores() {
    let quick = named("quick", arm(60, 800.0, |at| at % 2 == 0));
    let slow = named("slow", arm(60, 90_000.0, |_| true));
    let twin = named("twin", arm(60, 900.0, |at| at % 2 == 1));
    let arms = [twin, quick, slow.clone()];
    let (arm, text) = why(&arms, Scenario::Interactive);
    assert_eq!(arm.as_deref(), Some("quick"), "the faster of two equal ones");
    assert!(text.contains("No difference was shown between quick and twin (-"), "{text}");
    assert!(!text.contains("slow"), "{text}");
    let (arm, text) = why(&arms, Scenario::BatchReasoning);
    assert_eq!(arm.as_deref(), Some("slow"));
    assert!(text.contains("slow has the best score: 1.00"), "{text}");
    assert!(text.contains("It is ahead of quick by 50 points ("), "{text}");
    let (arm, text) = why(&arms, Scenario::Code);
    assert_eq!((arm, text.as_str()), (None, "The run has no items of the family `code`."));
    let (arm, text) = why(&[slow], Scenario::Voice);
    assert_eq!(arm, None);
    assert!(text.starts_with("No arm keeps the bounds: the nearest is slow ("), "{text}");
    assert_eq!(why(&[], Scenario::Voice).1, "The run has no items.");
}

#[test]
fn the_code_scenario_looks_at_code_only() {
    let mut good_at_code = arm(20, 1_000.0, |at| at < 10);
    let mut bad_at_code = arm(20, 1_000.0, |at| at >= 10);
    for item in good_at_code[..10].iter_mut().chain(&mut bad_at_code[..10]) {
        item.family = "code".to_owned();
    }
    let arms = [named("b", bad_at_code), named("a", good_at_code)];
    let (arm, text) = why(&arms, Scenario::Code);
    assert_eq!(arm.as_deref(), Some("a"));
    assert!(text.contains("10 items"), "{text}");
}

#[test]
fn long_documents_are_long() {
    let sized = |size: &str| -> Vec<ItemOutcome> {
        let mut outcomes = arm(20, 1_000.0, |_| true);
        for item in &mut outcomes {
            item.family = "needle".to_owned();
            item.size = size.to_owned();
        }
        outcomes
    };
    for size in ["1000@10%", "3999@50%x2", "long"] {
        let (arm, text) = why(&[named("a", sized(size))], Scenario::LongDocuments);
        assert_eq!(arm, None, "{size}");
        assert!(text.contains("with at least 4000 tokens, such as `needle:4000@50%`"), "{text}");
    }
    let (arm, text) = why(&[named("a", sized("4000@50%x2"))], Scenario::LongDocuments);
    assert_eq!(arm.as_deref(), Some("a"));
    assert!(text.contains("20 items"), "{text}");
}

#[test]
fn the_quickest_arm_has_the_most_score_for_each_minute() {
    // 40 answers a minute and half of them right; 6 a minute and all right; none right at once.
    let quick = named("quick", arm(60, 1_500.0, |at| at % 2 == 0));
    let good = named("good", arm(60, 10_000.0, |_| true));
    let wrong = named("wrong", arm(60, 100.0, |_| false));
    let (arm_name, text) = why(&[good, quick, wrong.clone()], Scenario::Quick);
    assert_eq!(arm_name.as_deref(), Some("quick"));
    assert!(text.starts_with("quick has the most score for each minute waited: 20.00 ("), "{text}");
    assert!(
        text.contains(", 60 items), with the score 0.50. The next is good with 6.00 ("),
        "{text}"
    );
    assert!(!text.contains("other items"), "{text}");
    assert_eq!(why(&[wrong], Scenario::Quick), (None, "No arm has a score above 0.".to_owned()));
    let arms = [named("a", arm(20, 1.0, |_| true)), named("b", arm(30, 2.0, |_| true))];
    let (_, text) = why(&arms, Scenario::Quick);
    assert!(text.ends_with("b had other items and cannot be compared."), "{text}");
}

#[test]
fn arms_with_other_items_are_not_compared() {
    let mut others = arm(20, 1_000.0, |_| false);
    for item in &mut others {
        item.item.insert(0, 'x');
    }
    let arms = [named("a", arm(20, 1_000.0, |_| true)), named("b", others)];
    let (_, text) = why(&arms, Scenario::BatchReasoning);
    assert!(text.ends_with("b had other items and cannot be compared."), "{text}");
    // Over the ten items in common b is better. Over all that each had, a is.
    let mut b = arm(10, 1_000.0, |_| true);
    b.extend((40..60).map(|at| outcome(at, 0.0, 1_000.0)));
    let arms = [named("a", arm(40, 1_000.0, |at| at >= 10)), named("b", b)];
    let (arm, text) = why(&arms, Scenario::BatchReasoning);
    assert_eq!(arm.as_deref(), Some("a"));
    assert!(text.ends_with("b had other items and cannot be compared."), "{text}");
}

#[test]
fn choices_by_hand() {
    let options = |sums: &[(f64, usize)]| -> Vec<ChoiceOption> {
        let option = |(sum, length): &(f64, usize)| ChoiceOption {
            log_probability: *sum,
            characters: *length,
        };
        sums.iter().map(option).collect()
    };
    let hit = |acc, acc_norm| Some(ChoiceHit { acc, acc_norm });
    // −4 is the likeliest sum; −9 over 18 is the likeliest for its length.
    let two = options(&[(-4.0, 4), (-9.0, 18)]);
    assert_eq!(choice_by_log_probability(&two, 0), hit(true, false));
    assert_eq!(choice_by_log_probability(&two, 1), hit(false, true));
    let equal = options(&[(-4.0, 4), (-4.0, 4)]);
    assert_eq!(choice_by_log_probability(&equal, 0), hit(true, true));
    assert_eq!(choice_by_log_probability(&equal, 1), hit(false, false));
    assert_eq!(choice_by_log_probability(&two, 2), None);
    assert_eq!(choice_by_log_probability(&options(&[(f64::NAN, 1)]), 0), None);
}

#[test]
fn a_warm_cache_is_said() {
    assert_eq!(cached_share(&[(100, 50), (100, 900)]), Some(0.75));
    assert_eq!((cached_share(&[]), warm_cache_sentence(&[(0, 0)])), (None, None));
    assert_eq!([(100, 49), (100, 50), (0, 0)].map(is_mostly_cached), [false, true, false]);
    assert_eq!(warm_cache_sentence(&[(100, 10), (100, 0)]), None);
    let warm = warm_cache_sentence(&[(100, 99), (100, 0)]).expect("tokens");
    assert!(warm.starts_with("The prompt cache was warm for 1 of 2 items: 50 %"), "{warm}");
}

proptest! {
    #[test]
    fn the_frontier_is_what_none_dominates(values in vec((0_u8..8, 0_u8..8), 0..24)) {
        let points: Vec<ArmPoint> = values
            .iter()
            .map(|(seconds, score)| ArmPoint {
                name: String::new(),
                seconds: f64::from(*seconds),
                score: f64::from(*score),
            })
            .collect();
        let beaten = |at: usize| {
            let (seconds, score) = values[at];
            (0..values.len()).any(|other| {
                let (s, q) = values[other];
                let not_behind = s <= seconds && q >= score;
                not_behind && (s < seconds || q > score || other < at)
            })
        };
        let mut expected: Vec<usize> = (0..values.len()).filter(|at| !beaten(*at)).collect();
        expected.sort_by_key(|at| values[*at].0);
        prop_assert_eq!(frontier(&points), expected);
    }

    #[test]
    fn no_number_brings_a_summary_down(
        values in vec((any::<f64>(), any::<f64>(), any::<Option<f64>>()), 0..6),
        share in any::<f64>(),
    ) {
        let odd = |(at, (score, total_ms, ttfv_ms)): (usize, &(f64, f64, Option<f64>))| ItemOutcome {
            ttfv_ms: *ttfv_ms,
            ..outcome(at, *score, *total_ms)
        };
        let outcomes: Vec<ItemOutcome> = values.iter().enumerate().map(odd).collect();
        if let Some(found) = Summary::of(&outcomes, 7) {
            prop_assert!(found.mean_score.low <= found.mean_score.high);
        }
        let _ = Paired::of(&outcomes, &outcomes, 7);
        let _ = advise(&[named("a", outcomes)], &UseBounds::default(), 7);
        let _ = (items_needed(share, share, share), smallest_difference(9, share, share));
    }
}
