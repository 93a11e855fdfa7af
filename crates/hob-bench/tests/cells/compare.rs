//! Two servers whose pace is known, measured and then compared from what was kept: the samples give the record's figures.

use crate::stage::cold;
use hob_bench::compare::{
    CompareOptions, MetricVerdict, Pairing, RatioBasis, SampledRecord, compare,
};
use hob_bench::record::RecordStore;
use hob_bench::terms::Metric;

const RUNS: usize = 6;
/// Two users ask twice each.
const REQUESTS: usize = 4;

/// Some runs of a server with this pace, kept in a folder.
fn keep(store: &RecordStore, script: &str) -> String {
    let kept = cold(script, RUNS);
    let (mut record, samples) = kept.into_iter().next().expect("a cell");
    // A busy machine may make the client late, which is not what is tested.
    record.invalid_reasons.clear();
    store.put(&record, &samples).expect("kept");
    record.short_id()
}

#[test]
fn what_is_kept_gives_the_figures_run_by_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    // So far apart that no run on a busy machine lies between them.
    let ids = [keep(&store, "itl_ms=2"), keep(&store, "itl_ms=24")];
    let [base, new] = ids.map(|id| SampledRecord::pick(&store, &id).expect("a record"));
    let comparison = compare(&base, &new, &CompareOptions::default());
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
        assert_eq!(figure(metric).basis, RatioBasis::Runs, "{metric:?}: {:?}", figure(metric));
    }
    for metric in [Metric::TpotMs, Metric::DecodeTokS, Metric::ThroughputTokS] {
        assert_eq!(figure(metric).verdict, MetricVerdict::Worse, "{:?}", figure(metric));
    }
    let all = SampledRecord::pick(&store, &folder.path().display().to_string()).expect("a folder");
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|kept| kept.samples.len() == RUNS * REQUESTS));
}
