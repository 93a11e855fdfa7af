//! Several users against a server whose places are known: what is a queue is called one.
//! A server that batches is recognised, and one that only queues.

use crate::stage::{Kept, in_rounds, kept, mock};
use hob_bench::chat::{ChatWorkload, Prompts, SHAPES, Shape, ThinkingChoice};
use hob_bench::experiment::{Axis, Experiment, Workload, gain, scaling_verdict};
use hob_bench::mock::MockServer;
use hob_bench::record::{Record, RecordKind, RunStatus};
use hob_bench::speech::{Formats, SpeechWorkload, Streaming, Text};
use hob_bench::terms::Metric;
use hob_bench::timeline::SoundFormat;

fn asked(axis: Axis) -> Experiment {
    let shapes = vec![Shape { max_tokens: 24, ..SHAPES[0] }];
    let chat = ChatWorkload { shapes, thinking: ThinkingChoice::On, prompts: Prompts::Cold };
    in_rounds(2, Workload::Chat(chat), axis)
}

/// A sentence of the mock: a second of sound in 20 pieces.
fn spoken(axis: Axis) -> Experiment {
    let speech = SpeechWorkload {
        texts: vec![Text::by_name("medium").expect("a text")],
        formats: Formats::First(vec![SoundFormat::Pcm, SoundFormat::Wav]),
        voices: Vec::new(),
        streaming: vec![Streaming::Requested],
    };
    in_rounds(1, Workload::Speech(speech), axis)
}

fn of_runs(server: &MockServer, runs: usize, experiment: &Experiment) -> Kept {
    kept(server, runs, |bench| experiment.measure(bench)).expect("cells")
}

fn figure(record: &Record, metric: Metric) -> f64 {
    record.metrics.figure(metric).expect("a figure")
}

#[test]
fn users_of_one_place_wait_for_each_other() {
    let one_place = mock("ttft_ms=40,itl_ms=8,slots=1");
    let got = of_runs(&one_place, 3, &asked(Axis::Concurrency(vec![1, 3])));
    let [one, three] = &got.records[..] else { panic!("two records") };
    // The two take turns, so both have the same number of runs.
    assert_eq!(got.requests(), [3 * 2, 3 * 6]);
    assert_eq!((one.kind, one.status), (RecordKind::Concurrency, RunStatus::Ok));
    assert_eq!((one.workload.concurrency, three.workload.concurrency), (Some(1), Some(3)));
    assert_ne!(one.workload.prompts_sha256, three.workload.prompts_sha256);
    let alone = one.slowdown.clone().expect("a section");
    assert_eq!((alone.n, alone.versus, alone.ttft_x), (1, None, None));
    let many = three.slowdown.clone().expect("a section");
    assert_eq!((many.n, many.versus), (3, Some(one.id)));
    // Two others are served before, of 224 ms each; who is served is served as fast as alone.
    assert!(many.ttft_x.is_some_and(|times| times > 3.0), "{many:?}");
    assert!(many.tpot_x.is_some_and(|times| times < 1.5), "{many:?}");
    let scaling = many.scaling.expect("a figure");
    assert_eq!(scaling_verdict(scaling), "queueing, not throughput", "{scaling}");
    assert!(many.ci95.zip(many.ttft_x).is_some_and(|([low, high], x)| low <= x && x <= high));
}

#[test]
fn users_with_a_place_each_are_served_together() {
    let roomy = mock("ttft_ms=40,itl_ms=8");
    let got = of_runs(&roomy, 3, &asked(Axis::Concurrency(vec![2, 4])));
    let users: Vec<_> = got.records.iter().map(|record| record.workload.concurrency).collect();
    assert_eq!(users, [Some(1), Some(2), Some(1), Some(4)]);
    for record in [&got.records[1], &got.records[3]] {
        let scaling =
            record.slowdown.as_ref().and_then(|degrade| degrade.scaling).expect("a figure");
        assert_eq!(scaling_verdict(scaling), "throughput", "{scaling}");
    }
}

#[test]
fn a_batch_gains_what_is_served_together() {
    let roomy = mock("ttft_ms=40,itl_ms=8");
    let got = of_runs(&roomy, 2, &asked(Axis::Batch(vec![4, 1])));
    let [one, four] = &got.records[..] else { panic!("two records, the fewest first") };
    assert_eq!((one.kind, one.workload.concurrency), (RecordKind::Batch, Some(1)));
    assert_eq!((four.workload.concurrency, got.requests()[1]), (Some(4), 2 * 8));
    let times = gain(one, four).expect("a gain");
    assert!(times > 2.0, "{times}");
    assert!(figure(four, Metric::TtfbMs) > 0.0 && four.resources.rss_peak_mb.is_none());

    let queue = mock("ttft_ms=40,itl_ms=8,slots=1");
    let got = of_runs(&queue, 2, &asked(Axis::Batch(vec![1, 4])));
    let times = gain(&got.records[0], &got.records[1]).expect("a gain");
    assert!(times < 2.0, "{times}");
    assert_eq!(gain(&got.records[0], &Record { metrics: Default::default(), ..one.clone() }), None);
}

#[test]
fn many_listen_as_many_chat() {
    let one_place = mock("ttft_ms=40,itl_ms=8,slots=1");
    let got = of_runs(&one_place, 2, &spoken(Axis::Concurrency(vec![1, 3])));
    let [one, three] = &got.records[..] else { panic!("two records, in one kind of file") };
    let sound = three.tts.clone().expect("a section");
    assert_eq!(sound.format.as_deref(), Some("pcm"));
    assert_eq!(sound.audio_sha256, one.tts.clone().and_then(|sound| sound.audio_sha256));
    let many = three.slowdown.clone().expect("a section");
    assert_eq!((many.versus, many.ttft_x), (Some(one.id), None));
    assert!(many.ttfa_x.is_some_and(|times| times > 2.0), "{many:?}");
    assert_eq!(many.scaling.map(scaling_verdict), Some("queueing, not throughput"), "{many:?}");

    let roomy = mock("ttft_ms=40,itl_ms=8");
    let got = of_runs(&roomy, 2, &spoken(Axis::Batch(vec![1, 4])));
    let times = gain(&got.records[0], &got.records[1]).expect("a gain");
    assert!(times > 2.0, "{times}");
}
