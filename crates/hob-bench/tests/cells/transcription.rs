//! Transcription against a server whose transcript and delays are known.

use std::sync::Arc;

use crate::stage::{in_rounds, kept, load, mock};
use hob_bench::experiment::{Axis, Experiment, OtherServer, Workload};
use hob_bench::mock::MockServer;
use hob_bench::record::{Record, RecordKind, RunStatus, Stt};
use hob_bench::runs::RecordContext;
use hob_bench::speech::Streaming;
use hob_bench::target::Target;
use hob_bench::terms::Metric;
use hob_bench::transcription::{
    Clip, ClipSet, ClipSource, NORMALISER, SENTENCES, SpokenClips, TranscriptionWorkload,
};
use hob_core::wav_header;

const RUNS: usize = 2;

/// Half a second of a tone as a WAV file.
fn tone() -> Vec<u8> {
    let mut file = wav_header(16_000, 16_000);
    file.extend(
        (0..8000_i16).flat_map(|at| (if at % 40 < 20 { 8000_i16 } else { -8000 }).to_le_bytes()),
    );
    file
}

/// Every clip is heard as "the cat sat on twenty mats".
fn set() -> ClipSet {
    let texts = [
        ("en", "The cat sat on 20 mats."),
        ("en", "The cat sat on the mat."),
        ("de", "The cat sat on twenty mats, ja?"),
    ];
    let clip = |(number, (language, text)): (usize, &(&str, &str))| {
        Clip::new(&format!("{number}.wav"), tone().into(), text, language).expect("a clip")
    };
    let clips = texts.iter().enumerate().map(clip).collect();
    ClipSet { name: "cats".to_owned(), clips, snr_db: None, synthetic_by: None }
}

fn workload(noise: Vec<Option<f64>>, streaming: Vec<Streaming>) -> TranscriptionWorkload {
    let clips = ClipSource::Set(Arc::new(set()));
    TranscriptionWorkload { noise, streaming, ..TranscriptionWorkload::new(clips) }
}

fn experiment(workload: TranscriptionWorkload, users: &[usize]) -> Experiment {
    in_rounds(1, Workload::Transcription(workload), load(users))
}

fn records(server: &MockServer, cells: &Experiment) -> Vec<Record> {
    kept(server, RUNS, |bench| cells.measure(bench)).expect("cells").records
}

const HEARD: &str = "heard=the_cat_sat_on_twenty_mats";

#[test]
fn word_errors_and_times_are_those_of_the_script() {
    let mock = mock(&format!("ttft_ms=150,itl_ms=50,{HEARD}"));
    let cells = experiment(workload(vec![None, Some(10.0)], vec![Streaming::Requested]), &[1]);
    let records = records(&mock, &cells);
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!((record.kind, record.status), (RecordKind::Stt, RunStatus::Ok));
        let stt = record.stt.as_ref().expect("transcription");
        // Two of six words are wrong in the second clip, and one of seven is missing in the third.
        assert_eq!((stt.utterances, stt.wer), (Some(3), Some(3.0 / 19.0)));
        assert_eq!(stt.languages["en"].wer, Some(2.0 / 12.0));
        assert_eq!((stt.languages["de"].utterances, stt.languages["de"].wer), (1, Some(1.0 / 7.0)));
        assert_eq!(stt.normaliser.as_deref(), Some(NORMALISER));
        let counts: Vec<_> = stt
            .clips
            .iter()
            .map(|clip| [clip.words, clip.wrong, clip.missing, clip.added])
            .collect();
        assert_eq!(counts, [[12, 0, 0, 0], [12, 4, 0, 0], [14, 0, 2, 0]], "both runs together");
        let figures = (stt.first_partial_ms, stt.final_text_ms);
        let (Some(first), Some(last)) = figures else { panic!("{figures:?}") };
        // The last of six words comes 250 ms after the first.
        assert!((400.0..1000.0).contains(&last), "{last}");
        assert!((150.0..last - 200.0).contains(&first), "{first} {last}");
        let rtf = stt.rtf.expect("a figure");
        assert!((rtf - last / 500.0).abs() < 0.02, "{rtf} {last}");
    }
    let [clean, noisy] = [&records[0], &records[1]].map(|record| record.stt.clone().expect("one"));
    assert_eq!((clean.snr_db, noisy.snr_db), (None, Some(10.0)));
    assert_ne!(clean.corpus_sha256, noisy.corpus_sha256);
    assert_eq!(records[1].workload.shape.as_deref(), Some("cats at 10 dB"));
}

#[test]
fn a_record_is_measured_again_in_its_own_cell() {
    let both = vec![Streaming::Declined, Streaming::Requested];
    let mut all = experiment(workload(vec![None, Some(10.0)], both), &[1, 3]);
    let mut record = Record { kind: RecordKind::Stt, ..Record::default() };
    record.workload.concurrency = Some(3);
    record.stt = Some(Stt { snr_db: Some(10.0), stream: Some(true), ..Stt::default() });
    all.narrow_to(&record);
    let Workload::Transcription(workload) = &all.workload else { panic!("transcription") };
    assert_eq!(
        (&workload.noise[..], &workload.streaming[..]),
        (&[Some(10.0)][..], &[Streaming::Requested][..])
    );
    assert!(matches!(&all.axis, Axis::Load(arrivals) if arrivals.len() == 1));
}

#[test]
fn several_users_transcribe_more_sound() {
    let mock = mock(&format!("ttft_ms=100,itl_ms=0,{HEARD}"));
    let cells = experiment(workload(vec![None], vec![Streaming::Declined]), &[1, 3]);
    let records = records(&mock, &cells);
    let figure = |place: usize| records[place].metrics.figure(Metric::RealTimeX).expect("a figure");
    assert!(figure(1) > 1.5 * figure(0), "{} and {}", figure(1), figure(0));
    assert_eq!(records[0].stt.as_ref().map(|stt| stt.first_partial_ms), Some(None));
    assert_eq!(records[1].workload.requests, Some(18), "three clips of three users in two runs");
}

#[test]
fn a_server_can_speak_the_clips_itself() {
    let mock = mock("ttft_ms=1,itl_ms=0,audio_rtf=0,audio_ms_per_char=10");
    let spoken = SpokenClips {
        sentences: vec!["Hello, world!".to_owned(), "Hello?".to_owned()],
        ..SpokenClips::default()
    };
    let mine = TranscriptionWorkload::new(ClipSource::Spoken(spoken));
    let records = records(&mock, &experiment(mine, &[1]));
    let stt = records[0].stt.as_ref().expect("transcription");
    assert_eq!((stt.synthetic_by.as_deref(), stt.audio_s), (Some("mock"), Some(0.19)));
    let speakers: Vec<_> = stt.clips.iter().map(|clip| clip.speaker.as_deref()).collect();
    assert_eq!((speakers, stt.wer), (vec![Some("tone"); 2], Some(1.0 / 3.0)));
    assert_eq!(SENTENCES.len(), 12);
}

#[test]
fn two_servers_get_the_same_clips_in_turns() {
    let (base, new) = (mock(&format!("ttft_ms=300,itl_ms=0,{HEARD}")), mock("ttft_ms=20,itl_ms=0"));
    let target = Target::find(&new.url(), None, None, None).expect("a server");
    let other =
        OtherServer { target, context: RecordContext { seed: 7, ..RecordContext::default() } };
    let mut both = workload(vec![None], vec![Streaming::Declined]);
    both.other = Some(Box::new(other));
    let records = records(&base, &experiment(both, &[1]));
    assert_eq!(records[0].workload.prompts_sha256, records[1].workload.prompts_sha256);
    let stt = records.into_iter().map(|record| record.stt.expect("one"));
    let [base, new] = &stt.collect::<Vec<_>>()[..] else { panic!("two records") };
    assert_eq!(base.corpus_sha256, new.corpus_sha256);
    assert_eq!((base.wer, new.wer), (Some(3.0 / 19.0), Some(1.0)));
    assert!(new.final_text_ms < base.final_text_ms, "{new:?} {base:?}");
}

#[test]
fn a_server_that_fails_gives_no_figures() {
    let mock = mock("status=503");
    let cells = experiment(workload(vec![None], vec![Streaming::Declined]), &[1]);
    let records = records(&mock, &cells);
    assert_eq!(records[0].status, RunStatus::Failed);
    assert_eq!(records[0].stt.as_ref().map(|stt| stt.wer), Some(None));
    let reason = &records[0].invalid_reasons[0];
    assert!(reason.contains("requests failed: the server answered 503"), "{reason}");
}
