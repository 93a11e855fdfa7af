//! Who leaves for whom, as tables; and what holds for every memory, as properties.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MB: u64 = 1_000_000;

/// Idle for so many seconds.
fn idle(name: &str, megabytes: u64, seconds: u64) -> Resident {
    Resident {
        name: name.to_owned(),
        bytes: megabytes * MB,
        in_flight: 0,
        idle_for: Duration::from_secs(seconds),
        is_pinned: false,
    }
}

fn answering(name: &str, megabytes: u64) -> Resident {
    Resident { in_flight: 1, ..idle(name, megabytes, 0) }
}

fn pinned(name: &str, megabytes: u64) -> Resident {
    Resident { is_pinned: true, ..idle(name, megabytes, 999) }
}

fn with(available: u64, max: Option<u64>) -> Budget {
    Budget { available_bytes: available * MB, max_bytes: max.map(|max| max * MB) }
}

fn evicted(budget: Budget, needed: u64, residents: &[Resident]) -> Vec<String> {
    match budget.answer(needed * MB, residents) {
        Answer::Evict(names) => names,
        Answer::Room => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_leaves_where_there_is_room() {
    let residents = [idle("a", 100, 10)];
    assert_eq!(with(500, None).answer(500 * MB, &residents), Answer::Room);
    assert_eq!(with(500, Some(600)).answer(500 * MB, &residents), Answer::Room);
    assert_eq!(with(0, None).answer(0, &[]), Answer::Room);
}

#[test]
fn who_was_unused_for_longest_leaves_and_no_more_than_needed() {
    let residents = [idle("new", 100, 1), idle("old", 100, 30), idle("older", 100, 90)];
    assert_eq!(evicted(with(50, None), 150, &residents), ["older"]);
    assert_eq!(evicted(with(50, None), 250, &residents), ["older", "old"]);
    let residents = [idle("small", 10, 90), idle("large", 300, 5)];
    assert_eq!(evicted(with(0, None), 300, &residents), ["large"], "the small one does not help");
}

#[test]
fn a_limit_counts_beside_what_the_system_has() {
    let residents = [idle("a", 300, 10)];
    assert_eq!(evicted(with(9000, Some(500)), 300, &residents), ["a"]);
    let alone = with(9000, Some(500)).answer(501 * MB, &residents);
    assert_eq!(alone, Answer::TooLarge { available_bytes: 500 * MB });
}

#[test]
fn who_answers_is_waited_for_and_named() {
    let residents = [answering("a", 300), pinned("b", 50), idle("c", 10, 60)];
    let Answer::Wait { until_idle, shortage } = with(100, None).answer(400 * MB, &residents) else {
        panic!("a wait")
    };
    assert_eq!(until_idle, ["a"]);
    assert_eq!(
        shortage.to_string(),
        "about 400 MB are needed and 100 MB are free; in memory are a (300 MB, answering), \
         b (50 MB, pinned), c (10 MB)"
    );
}

#[test]
fn a_model_that_was_loaded_just_now_is_left_to_those_who_waited_for_it() {
    let fresh = Resident { idle_for: Duration::from_millis(299), ..idle("a", 300, 0) };
    let answer = with(100, None).answer(400 * MB, &[fresh]);
    assert!(matches!(answer, Answer::Wait { until_idle, .. } if until_idle == ["a"]));
}

#[test]
fn pinned_models_stay_and_the_refusal_says_so() {
    let answer = with(100, None).answer(400 * MB, &[pinned("a", 300), idle("b", 50, 9)]);
    let Answer::Refused(shortage) = answer else { panic!("{answer:?}") };
    let held: Vec<Tie> = shortage.held.iter().map(|holder| holder.tie).collect();
    assert_eq!(held, [Tie::Pinned, Tie::Idle]);
    let answer = with(100, None).answer(451 * MB, &[pinned("a", 300), idle("b", 50, 9)]);
    assert_eq!(answer, Answer::TooLarge { available_bytes: 450 * MB });
}

fn residents() -> impl Strategy<Value = Vec<Resident>> {
    let resident = (0..50u64, 0..3usize, 0..2000u64, prop::bool::weighted(0.2));
    let numbered = |(index, (bytes, in_flight, idle_ms, is_pinned))| Resident {
        name: format!("{index}"),
        bytes,
        in_flight,
        idle_for: Duration::from_millis(idle_ms),
        is_pinned,
    };
    vec(resident, 0..8).prop_map(move |all| all.into_iter().enumerate().map(numbered).collect())
}

proptest! {
    #[test]
    fn only_idle_ones_leave_as_few_as_needed_and_refusals_are_true(
        all in residents(),
        available_bytes in 0..60u64,
        max_bytes in proptest::option::of(0..200u64),
        needed in 0..250u64,
    ) {
        let budget = Budget { available_bytes, max_bytes };
        let held = sum(all.iter());
        let fits_without = |gone: u64| needed <= budget.free(held, gone);
        let bytes_of = |name: &String| {
            all.iter().find(|one| one.name == *name).map_or(0, |one| one.bytes)
        };
        let of = |tie: fn(Tie) -> bool| sum(all.iter().filter(|one| tie(one.tie())));
        let idle = of(|tie| tie == Tie::Idle);
        let loose = of(|tie| tie != Tie::Pinned);
        match budget.answer(needed, &all) {
            Answer::Room => prop_assert!(fits_without(0)),
            Answer::Evict(names) => {
                for name in &names {
                    let one = all.iter().find(|one| one.name == *name).expect("one of them");
                    prop_assert!(one.in_flight == 0 && !one.is_pinned && one.idle_for >= SETTLED);
                }
                let gone: u64 = names.iter().map(bytes_of).sum();
                prop_assert!(fits_without(gone));
                for name in &names {
                    prop_assert!(!fits_without(gone - bytes_of(name)), "{name} could have stayed");
                }
            }
            Answer::Wait { .. } => prop_assert!(!fits_without(idle) && fits_without(loose)),
            Answer::Refused(_) => prop_assert!(!fits_without(loose) && fits_without(held)),
            Answer::TooLarge { .. } => prop_assert!(!fits_without(held)),
        }
    }
}
