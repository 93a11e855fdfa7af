//! Simulated servers: a table gives the result of each context until the search ends.
//! The published search between 131,072 and 262,144 tokens is one of them.

use AttemptResult::{Failed, Ok, OomLoad, OomPrefill, Spill, Stale, Timeout, Unsupported};

use super::*;

const PUBLISHED: ContextRange = ContextRange { lo: 131_072, hi: 262_144, granule: 256 };
const TRUTH: u64 = 195_072;

/// Runs a search to its end. `attempt` gives the result for a context and the number of the attempt.
fn searched(search: Search, attempt: impl Fn(u64, usize) -> AttemptResultAt) -> Search {
    let mut search = search;
    while let Some(ctx) = search.next() {
        let number = search.tried().len();
        assert!(number < 40, "{:?}", search.tried());
        search.add(attempt(ctx, number));
    }
    search
}

fn until(truth: u64, ctx: u64) -> AttemptResultAt {
    AttemptResultAt::new(ctx, if ctx <= truth { Ok } else { OomLoad })
}

/// A card with published memory figures: a fixed amount for each token, and less usable memory than it reports.
fn card(ctx: u64) -> AttemptResultAt {
    let taken_bytes = 4_480_000_000 + ctx * 12_800;
    let memory =
        ServerMemory { taken_bytes, left_bytes: 7_090_000_000_u64.saturating_sub(taken_bytes) };
    AttemptResultAt { memory: Some(memory), ..until(TRUTH, ctx) }
}

fn ends(search: &Search) -> (Option<u64>, Option<u64>, u32) {
    (search.longest_ok(), search.shortest_fail(), search.confirmed())
}

const FOUND: (Option<u64>, Option<u64>, u32) = (Some(TRUTH), Some(TRUTH + 256), 2);

#[test]
fn the_published_case_takes_ten_attempts_at_most() {
    let learnt = searched(Search::new(PUBLISHED, None), |ctx, _| card(ctx));
    let known = searched(Search::new(PUBLISHED, Some(12_288.0)), |ctx, _| card(ctx));
    for search in [&learnt, &known] {
        assert_eq!(ends(search), FOUND);
        assert!(search.is_confirmed());
        assert!(search.tried().len() <= 10, "{:?}", search.tried());
    }
    // Both ends, nine halvings of 512 granules, and one repetition.
    let blind = searched(Search::new(PUBLISHED, None), |ctx, _| until(TRUTH, ctx));
    assert_eq!((ends(&blind), blind.tried().len()), (FOUND, 12));
}

#[test]
fn every_limit_is_found_even_if_memory_figures_are_wrong() {
    let range = ContextRange { lo: 2048, hi: 34_816, granule: 256 };
    for truth in (2048..=34_816).step_by(256) {
        for promised in [0.25, 0.8, 0.97, 1.0, 1.04, 1.5, 9.0] {
            let search = searched(Search::new(range, None), |ctx, _| {
                let taken_bytes = 1_000_000 + ctx * 100;
                let room = 1_000_000 + (truth as f64 * 100.0 * promised) as u64;
                let left_bytes = room.saturating_sub(taken_bytes);
                let memory = Some(ServerMemory { taken_bytes, left_bytes });
                AttemptResultAt { memory, ..until(truth, ctx) }
            });
            let fail = Some(truth + 256).filter(|fail| *fail <= range.hi);
            assert_eq!(ends(&search), (Some(truth), fail, 2), "{promised}");
            assert!(search.tried().len() <= 15, "{} {promised}", search.tried().len());
        }
    }
}

#[test]
fn a_success_that_cannot_be_repeated_does_not_count() {
    let lucky = searched(Search::new(PUBLISHED, None), |ctx, number| {
        let is_lucky = ctx == TRUTH + 256 && number < 11;
        if is_lucky { AttemptResultAt::new(ctx, Ok) } else { until(TRUTH, ctx) }
    });
    assert_eq!(ends(&lucky), FOUND);
}

#[test]
fn a_server_of_an_earlier_start_gives_no_result() {
    // Every third answer comes from the server of the earlier start.
    let search = searched(Search::new(PUBLISHED, None), |ctx, number| {
        if number % 3 == 1 { AttemptResultAt::new(ctx, Stale) } else { until(TRUTH, ctx) }
    });
    assert_eq!(ends(&search), FOUND);
    let stuck = searched(Search::new(PUBLISHED, None), |ctx, number| {
        if number == 0 { AttemptResultAt::new(ctx, Ok) } else { AttemptResultAt::new(ctx, Stale) }
    });
    assert_eq!((ends(&stuck), stuck.tried().len()), ((Some(131_072), None, 1), 4));
}

#[test]
fn a_failure_of_an_unknown_kind_is_tried_again() {
    let shaky = searched(Search::new(PUBLISHED, None), |ctx, number| {
        if number == 4 { AttemptResultAt::new(ctx, Failed) } else { until(TRUTH, ctx) }
    });
    assert_eq!(ends(&shaky), FOUND);
    let broken = searched(Search::new(PUBLISHED, None), |ctx, _| AttemptResultAt::new(ctx, Failed));
    assert_eq!((ends(&broken), broken.tried().len()), ((None, Some(131_072), 0), 2));
}

#[test]
fn the_reported_maximum_of_an_engine_is_tried_next() {
    let range = ContextRange { lo: 1024, hi: 65_536, granule: 256 };
    let search = searched(Search::new(range, None), |ctx, _| {
        let ctx_max = Some(8192).filter(|ctx_max| ctx > *ctx_max);
        AttemptResultAt {
            ctx_max,
            ..AttemptResultAt::new(ctx, if ctx_max.is_some() { Unsupported } else { Ok })
        }
    });
    let order: Vec<u64> = search.tried().iter().map(|one| one.ctx).collect();
    assert_eq!(order, [1024, 65_536, 8192, 8448, 8192]);
    assert_eq!(
        (search.limited_by(), ends(&search)),
        (Some(Unsupported), (Some(8192), Some(8448), 2))
    );
}

#[test]
fn every_kind_of_failure_is_a_limit_and_is_named() {
    for result in [OomLoad, OomPrefill, Spill, Timeout] {
        let search = searched(Search::new(PUBLISHED, None), |ctx, _| {
            AttemptResultAt::new(ctx, if ctx <= TRUTH { Ok } else { result })
        });
        assert_eq!((ends(&search), search.limited_by()), (FOUND, Some(result)));
    }
}

#[test]
fn a_spill_is_found_by_comparison_with_shorter_contexts() {
    // Up to 40,000 tokens fit on the card. Longer contexts use the machine's memory and are ten times slower.
    let range = ContextRange { lo: 2048, hi: 131_072, granule: 256 };
    let speed = |ctx: u64, s: f64| Some(1.0 / (0.02 + ctx as f64 * 4e-7) / s);
    let search = searched(Search::new(range, None), |ctx, _| {
        let decode_tok_s = speed(ctx, if ctx <= 40_000 { 1.0 } else { 10.0 });
        AttemptResultAt { decode_tok_s, ..AttemptResultAt::new(ctx, Ok) }
    });
    assert_eq!((search.longest_ok(), search.limited_by()), (Some(39_936), Some(Spill)));
    // Each token is slower, because of attention, but nothing spills.
    let slow = searched(Search::new(range, None), |ctx, _| AttemptResultAt {
        decode_tok_s: speed(ctx, 1.0),
        ..AttemptResultAt::new(ctx, Ok)
    });
    assert_eq!(ends(&slow), (Some(131_072), None, 2));
    assert!(slow.tried().len() <= 6, "{:?}", slow.tried());
}

#[test]
fn every_context_works_or_none_does() {
    let all = searched(Search::new(PUBLISHED, None), |ctx, _| until(u64::MAX, ctx));
    assert_eq!((ends(&all), all.tried().len()), ((Some(262_144), None, 2), 3));
    let roomy = |ctx| ServerMemory { taken_bytes: 1000 + ctx, left_bytes: 1_000_000 };
    let easy = searched(Search::new(PUBLISHED, None), |ctx, _| AttemptResultAt {
        memory: Some(roomy(ctx)),
        ..until(u64::MAX, ctx)
    });
    assert_eq!(easy.tried().len(), 3, "there is surely enough, so the end is tried at once");
    let nothing = searched(Search::new(PUBLISHED, None), |ctx, _| until(0, ctx));
    assert_eq!((ends(&nothing), nothing.tried().len()), ((None, Some(131_072), 0), 1));
}

#[test]
fn the_estimated_number_of_attempts_never_grows() {
    let mut search = Search::new(PUBLISHED, None);
    let mut left = Vec::new();
    while let Some(ctx) = search.next() {
        search.add(until(TRUTH, ctx));
        left.push(search.attempts_left());
    }
    assert_eq!(left.last(), Some(&0));
    assert!(left.is_sorted_by(|before, after| before >= after), "{left:?}");
}
