//! Two servers whose pace is known, measured and then compared from what was kept: the samples give the record's figures.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hob_bench::compare::{Basis, Kept, Pairing, Verdict, Wish as Threshold, compare};
use hob_bench::drive::Patience;
use hob_bench::llm::{Context, Lab, Prompts, SHAPES, Shape, ThinkingWish, Wish, summary};
use hob_bench::mock::scripted::{Script, Scripted};
use hob_bench::record::{Host, Shelf};
use hob_bench::target::Target;
use hob_bench::terms::Metric;
use jiff::Timestamp;

const USERS: usize = 2;

/// Six runs of a server with this pace, kept in a folder.
fn keep(shelf: &Shelf, script: &str) -> String {
    let script = Script::default().with("ttft_ms=5,cache=true").and_then(|all| all.with(script));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mock = Scripted::start(address, script.expect("a script")).expect("a server");
    let wish = Wish {
        shapes: vec![Shape { max_tokens: 16, ..SHAPES[0] }],
        users: vec![USERS],
        thinking: ThinkingWish::Auto,
        prompts: Prompts::Cold,
        runs_min: 6,
        runs_max: 6,
        half_width_pct: 2.5,
        rounds: 2,
        cell_budget: Duration::from_secs(60),
        seed: 7,
        patience: Patience { silence: Duration::from_secs(2), ..Patience::default() },
    };
    let (target, stop) =
        (Target::find(&mock.url(), None, None, None).expect("a server"), AtomicBool::new(false));
    let mut lab = Lab::prepare(&target, &wish, &stop).expect("a lab");
    let cell = lab.cells()[0];
    let run = lab.run(cell, |_| ()).expect("a run");
    let now = Timestamp::UNIX_EPOCH;
    let (host, argv) = (Host::default(), Vec::new());
    let context =
        Context { target: &target, host, argv, seed: wish.seed, started: now, ended: now };
    let mut kept = summary(&run, &context);
    // A busy machine may make the client late, which is not what is tested.
    kept.record.invalid_reasons.clear();
    shelf.put(&kept.record, &kept.samples).expect("kept");
    kept.record.short_id()
}

#[test]
fn what_is_kept_gives_the_figures_run_by_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let shelf = Shelf::new(folder.path());
    let ids = [keep(&shelf, "itl_ms=2"), keep(&shelf, "itl_ms=8")];
    let [base, new] = ids.map(|id| Kept::pick(&shelf, &id).expect("a record"));
    let comparison = compare(&base, &new, &Threshold::default());
    assert_eq!((comparison.pairing, comparison.refusals.len()), (Pairing::Unpaired, 0));
    let figure = |metric| {
        let found = comparison.figures.iter().find(|figure| figure.metric == metric);
        found.unwrap_or_else(|| panic!("{metric:?} is missing"))
    };
    let from_runs = [
        Metric::TtfbMs,
        Metric::TtftMs,
        Metric::TtfatMs,
        Metric::E2eMs,
        Metric::TpotMs,
        Metric::DecodeTokS,
        Metric::IcgMs,
        Metric::ThroughputTokS,
        Metric::RequestsS,
    ];
    for metric in from_runs {
        assert_eq!(figure(metric).basis, Basis::Runs, "{metric:?}: {:?}", figure(metric));
    }
    for metric in [Metric::TpotMs, Metric::DecodeTokS, Metric::ThroughputTokS] {
        assert_eq!(figure(metric).verdict, Verdict::Worse, "{:?}", figure(metric));
    }
    let all = Kept::pick(&shelf, &folder.path().display().to_string()).expect("a folder");
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|kept| kept.samples.len() == 6 * 2 * USERS));
}
