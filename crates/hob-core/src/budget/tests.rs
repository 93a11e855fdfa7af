//! Which models are unloaded for which load, as tables; what holds for every amount of memory, as properties.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MB: u64 = 1_000_000;

fn ram(megabytes: u64) -> Bytes {
    Bytes::from([(Pool::Ram, megabytes * MB)])
}

fn both(ram: u64, vram: u64) -> Bytes {
    Bytes::from([(Pool::Ram, ram), (Pool::Vram(0), vram)])
}

/// Idle for so many seconds.
fn idle(name: &str, megabytes: u64, seconds: u64) -> Resident {
    Resident {
        name: name.to_owned(),
        bytes: ram(megabytes),
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

fn with(available: u64, max: Option<u64>) -> MemoryBudget {
    MemoryBudget { available: ram(available), max_bytes: max.map(|max| max * MB) }
}

fn evicted(budget: MemoryBudget, needed: u64, residents: &[Resident]) -> Vec<String> {
    match budget.answer(&ram(needed), residents) {
        RoomDecision::Evict(names) => names,
        RoomDecision::Fits => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_but_pinned_models_could_leave_each_pool() {
    let on_card = |one: Resident, vram| Resident { bytes: both(100 * MB, vram * MB), ..one };
    let residents = [on_card(answering("a", 0), 300), on_card(pinned("b", 0), 200)];
    let budget = MemoryBudget { available: both(50 * MB, 10 * MB), max_bytes: None };
    assert_eq!(budget.without_unpinned(&residents), both(150 * MB, 310 * MB));
    let limited = MemoryBudget { max_bytes: Some(220 * MB), ..budget };
    assert_eq!(limited.without_unpinned(&residents), both(120 * MB, 310 * MB));
}

#[test]
fn models_leave_one_after_the_other_the_longest_unused_first() {
    let residents = [idle("new", 10, 1), answering("a", 20), idle("old", 40, 9), pinned("p", 80)];
    assert_eq!(with(5, None).without_unused(&residents), [5, 45, 55].map(ram));
    assert_eq!(with(500, Some(170)).without_unused(&residents), [20, 60, 70].map(ram));
    assert_eq!(with(5, None).without_unused(&[]), [ram(5)]);
}

#[test]
fn no_model_is_evicted_while_there_is_room() {
    let residents = [idle("a", 100, 10)];
    assert_eq!(with(500, None).answer(&ram(500), &residents), RoomDecision::Fits);
    assert_eq!(with(500, Some(600)).answer(&ram(500), &residents), RoomDecision::Fits);
    assert_eq!(with(0, None).answer(&ram(0), &[]), RoomDecision::Fits);
}

#[test]
fn the_longest_unused_models_are_evicted_and_no_more_than_needed() {
    let residents = [idle("new", 100, 1), idle("old", 100, 30), idle("older", 100, 90)];
    assert_eq!(evicted(with(50, None), 150, &residents), ["older"]);
    assert_eq!(evicted(with(50, None), 250, &residents), ["older", "old"]);
    let residents = [idle("small", 10, 90), idle("large", 300, 5)];
    assert_eq!(evicted(with(0, None), 300, &residents), ["large"], "the small one does not help");
}

#[test]
fn a_limit_counts_in_addition_to_free_memory() {
    let residents = [idle("a", 300, 10)];
    assert_eq!(evicted(with(9000, Some(500)), 300, &residents), ["a"]);
    let alone = with(9000, Some(500)).answer(&ram(501), &residents);
    assert_eq!(alone, RoomDecision::TooLarge { needed_bytes: 501 * MB, available_bytes: 500 * MB });
}

#[test]
fn a_model_in_use_is_waited_for_and_named() {
    let residents = [answering("a", 300), pinned("b", 50), idle("c", 10, 60)];
    let RoomDecision::Wait { until_idle, shortage } = with(100, None).answer(&ram(400), &residents)
    else {
        panic!("a wait")
    };
    assert_eq!(until_idle, ["a"]);
    assert_eq!(
        shortage.to_string(),
        "about 400 MB are needed and 100 MB are free; in memory are a (300 MB, answering), \
         b (50 MB, pinned), c (10 MB)"
    );
    // Another model is next in the queue for the free memory.
    let none = with(100, None).shortage(&ram(60), &[]).to_string();
    assert_eq!(none, "about 60 MB are needed and 100 MB are free");
}

#[test]
fn a_model_that_was_loaded_just_now_is_left_to_those_who_waited_for_it() {
    let fresh = Resident { idle_for: Duration::from_millis(299), ..idle("a", 300, 0) };
    let answer = with(100, None).answer(&ram(400), &[fresh]);
    assert!(matches!(answer, RoomDecision::Wait { until_idle, .. } if until_idle == ["a"]));
}

#[test]
fn pinned_models_stay_and_the_refusal_says_so() {
    let answer = with(100, None).answer(&ram(400), &[pinned("a", 300), idle("b", 50, 9)]);
    let RoomDecision::Refused(shortage) = answer else { panic!("{answer:?}") };
    let held: Vec<KeptBy> = shortage.held.iter().map(|holder| holder.kept_by).collect();
    assert_eq!(held, [KeptBy::Pinned, KeptBy::Nothing]);
    let answer = with(100, None).answer(&ram(451), &[pinned("a", 300), idle("b", 50, 9)]);
    assert_eq!(
        answer,
        RoomDecision::TooLarge { needed_bytes: 451 * MB, available_bytes: 450 * MB }
    );
}

#[test]
fn a_card_s_memory_is_counted_apart_from_the_system_s() {
    let budget = MemoryBudget { available: both(900 * MB, 100 * MB), max_bytes: Some(1_000 * MB) };
    let on_card = |name: &str, vram: u64, seconds| Resident {
        bytes: both(20 * MB, vram * MB),
        ..idle(name, 0, seconds)
    };
    let residents = [on_card("small", 50, 90), on_card("large", 300, 10), idle("in-ram", 80, 99)];
    let needs = |vram: u64| both(30 * MB, vram * MB);
    assert_eq!(budget.answer(&needs(100), &residents), RoomDecision::Fits);
    let evicted = budget.answer(&needs(120), &residents);
    assert_eq!(
        evicted,
        RoomDecision::Evict(vec!["small".to_owned()]),
        "who holds nothing there stays"
    );
    let too_large = RoomDecision::TooLarge { needed_bytes: 451 * MB, available_bytes: 450 * MB };
    assert_eq!(budget.answer(&needs(451), &residents), too_large);
    let busy = residents.map(|one| Resident { in_flight: 1, ..one });
    let RoomDecision::Wait { shortage, .. } = budget.answer(&needs(120), &busy) else {
        panic!("a wait")
    };
    assert_eq!(
        shortage.to_string(),
        "about 120 MB are needed and 100 MB are free on GPU 0; in memory are small (50 MB, answering), \
         large (300 MB, answering)"
    );
    let silent = MemoryBudget { available: ram(900), max_bytes: None };
    assert_eq!(silent.answer(&needs(9_000), &busy), RoomDecision::Fits, "the driver will say");
    let limited = MemoryBudget { available: Bytes::new(), max_bytes: Some(10 * MB) };
    assert!(
        matches!(limited.answer(&needs(1), &[]), RoomDecision::TooLarge { .. }),
        "a limit holds alone"
    );
}

fn residents() -> impl Strategy<Value = Vec<Resident>> {
    let resident = ((0..50u64, 0..50u64), 0..3usize, 0..2000u64, prop::bool::weighted(0.2));
    let numbered = |(index, ((in_ram, in_vram), in_flight, idle_ms, is_pinned))| Resident {
        name: format!("{index}"),
        bytes: both(in_ram, in_vram),
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
        (in_ram, in_vram) in (0..60u64, 0..60u64),
        max_bytes in proptest::option::of(0..200u64),
        (ram_needed, vram_needed) in (0..250u64, 0..250u64),
    ) {
        let budget = MemoryBudget { available: both(in_ram, in_vram), max_bytes };
        let needed = both(ram_needed, vram_needed);
        let fits_without = |gone: &[&Resident]| budget.first_short_pool(&needed, &all, gone).is_none();
        let of = |meant: fn(KeptBy) -> bool| -> Vec<&Resident> {
            all.iter().filter(|one| meant(one.kept_by())).collect()
        };
        let idle = of(|kept_by| kept_by == KeptBy::Nothing);
        let loose = of(|kept_by| kept_by != KeptBy::Pinned);
        let everybody = of(|_| true);
        match budget.answer(&needed, &all) {
            RoomDecision::Fits => prop_assert!(fits_without(&[])),
            RoomDecision::Evict(names) => {
                let gone: Vec<&Resident> =
                    all.iter().filter(|one| names.contains(&one.name)).collect();
                for one in &gone {
                    prop_assert!(one.in_flight == 0 && !one.is_pinned && one.idle_for >= SETTLED);
                }
                prop_assert!(fits_without(&gone));
                for index in 0..gone.len() {
                    let mut fewer = gone.clone();
                    let one = fewer.remove(index);
                    prop_assert!(!fits_without(&fewer), "{} could have stayed", one.name);
                }
            }
            RoomDecision::Wait { .. } => prop_assert!(!fits_without(&idle) && fits_without(&loose)),
            RoomDecision::Refused(_) => prop_assert!(!fits_without(&loose) && fits_without(&everybody)),
            RoomDecision::TooLarge { .. } => prop_assert!(!fits_without(&everybody)),
        }
    }
}
