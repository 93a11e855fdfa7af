//! The worker on a socket of the test, with a scripted engine: turns, refusals, cancels and live text.
//! A sample of 1 is speech, and a sample of 0 is silence.

mod broken;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use hob_core::{Chunking, HeardWord, Segment, TranscriptTask};

use super::*;
use crate::frame::{Frame, FrameKind};
use crate::transcription::protocol::{BeginTranscript, FILE_BYTES_MAX};
use crate::worker::frame_socket::FrameSocket;
use crate::worker::protocol::AnyReport;

const RATE_HZ: usize = 16_000;

#[derive(Clone, Copy, Debug)]
struct Level;

impl VoiceDetector for Level {
    fn probability(&mut self, frame: &[f32]) -> f32 {
        frame.iter().sum::<f32>() / frame.len() as f32
    }

    fn reset(&mut self) {}
}

/// Hears one word for each second of speech. A prompt of "hang" computes until it is cancelled, and "hang once" does so
/// in its first pass.
#[derive(Debug, Default)]
struct Counter {
    calls: Arc<AtomicU32>,
}

impl Transcriber for Counter {
    fn languages(&self) -> Vec<String> {
        vec!["en".to_owned()]
    }

    fn warm_up(&mut self) -> Result<(), String> {
        self.transcribe(&[], &WhisperOptions::default(), &|| false).map(drop)
    }

    fn transcribe(
        &mut self,
        samples: &[f32],
        options: &WhisperOptions,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<WhisperText, String> {
        // The first call is the one with which the worker warms up.
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match options.prompt.as_deref() {
            Some(prompt @ ("hang" | "hang once")) if prompt == "hang" || call == 2 => {
                while !cancelled() {
                    thread::yield_now();
                }
            }
            Some("fail") => return Err("out of ideas".to_owned()),
            _ => {}
        }
        let speech_s = samples.iter().sum::<f32>() / RATE_HZ as f32;
        let text: String = (0..speech_s as u32).map(|second| format!(" w{second}")).collect();
        let silent = samples.iter().take_while(|sample| **sample == 0.0).count();
        let words = (0..speech_s as u32).filter(|_| options.words).map(|second| {
            let start_s = silent as f64 / RATE_HZ as f64 + f64::from(second);
            HeardWord { word: format!("w{second}"), start_s, end_s: start_s + 0.5 }
        });
        let words = words.collect();
        let end_s = samples.len() as f64 / RATE_HZ as f64;
        let segment = Segment { text, start_s: 0.0, end_s, ..Segment::default() };
        let language = "en".to_owned();
        Ok(WhisperText { language, segments: vec![segment], words, ..WhisperText::default() })
    }
}

/// A worker on a thread, and the server's end of its socket.
struct Worker {
    socket: FrameSocket,
    calls: Arc<AtomicU32>,
    serving: JoinHandle<Result<(), TranscriptionWorkerError>>,
}

impl Worker {
    fn ready() -> Worker {
        let (socket, theirs) = FrameSocket::pair();
        let calls = Arc::<AtomicU32>::default();
        let counter = Counter { calls: Arc::clone(&calls) };
        let load = || Ok::<_, TranscriptionWorkerError>((counter, Level));
        let serving = thread::spawn(move || serve_transcription(theirs, load));
        let mut worker = Worker { socket, calls, serving };
        let ready = worker.report().1;
        assert!(matches!(ready, WorkerMessage::Common(Report::Ready { .. })), "{ready:?}");
        worker
    }

    fn send(&mut self, stream: u32, orders: &[TranscriptOrder]) {
        let frame = |order| Frame::new(FrameKind::Model, stream, order).expect("small");
        self.socket.send(orders.iter().map(frame)).expect("sent");
    }

    fn send_common(&mut self, stream: u32, order: &CommonOrder) {
        self.socket.send([order.to_frame(stream).expect("small")]).expect("sent");
    }

    /// Returns when the first pass over a request's sound is under way.
    fn until_it_computes(&self) {
        while self.calls.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
    }

    /// The next report that is neither a heartbeat nor a count of samples.
    fn report(&mut self) -> (u32, AnyReport<TranscriptReport>) {
        loop {
            match self.socket.report() {
                (_, WorkerMessage::Model(TranscriptReport::Read(_))) => {}
                report => return report,
            }
        }
    }

    /// All events of a stream until its last report, which is returned too.
    fn events(&mut self, stream: u32) -> (Vec<TranscriptEvent>, AnyReport<TranscriptReport>) {
        let mut events = Vec::new();
        loop {
            match self.report() {
                (of, WorkerMessage::Model(TranscriptReport::Events(some))) if of == stream => {
                    events.extend(some);
                }
                (of, WorkerMessage::Model(TranscriptReport::Started)) if of == stream => {}
                (of, report) if of == stream => return (events, report),
                _ => {}
            }
        }
    }
}

fn begin(prompt: Option<&str>, is_live: bool) -> TranscriptOrder {
    TranscriptOrder::Begin(BeginTranscript {
        task: TranscriptTask::Transcribe,
        prompt: prompt.map(str::to_owned),
        is_live,
        ..BeginTranscript::default()
    })
}

fn sound(level: f32, seconds: f64) -> TranscriptOrder {
    TranscriptOrder::Samples(vec![level; (seconds * RATE_HZ as f64) as usize])
}

fn deltas(events: &[TranscriptEvent]) -> String {
    let delta = |event: &TranscriptEvent| match event {
        TranscriptEvent::Delta(text) => text.clone(),
        _ => String::new(),
    };
    events.iter().map(delta).collect()
}

#[test]
fn speech_becomes_text_and_silence_becomes_none() {
    let mut worker = Worker::ready();
    let speech = [begin(None, false), sound(1.0, 3.0), sound(0.0, 1.0), TranscriptOrder::EndSound];
    worker.send(1, &speech);
    let (events, last) = worker.events(1);
    assert_eq!(last, WorkerMessage::Common(Report::Done));
    assert!(deltas(&events).starts_with("w0 w1"), "{events:?}");
    let Some(TranscriptEvent::Done(done)) = events.last() else { panic!("{events:?}") };
    assert_eq!((done.duration_s, done.language.as_deref()), (4.0, Some("english")));

    worker.send(2, &[begin(None, false), sound(0.0, 5.0), TranscriptOrder::EndSound]);
    let (events, _) = worker.events(2);
    assert_eq!((deltas(&events).as_str(), events.len()), ("", 1), "{events:?}");
}

#[test]
fn a_recording_is_cut_after_the_silence_that_its_client_asks_for() {
    let mut worker = Worker::ready();
    let asked = |silence_ms| {
        Some(Chunking::ServerVad { threshold: None, prefix_padding_ms: None, silence_ms })
    };
    for (stream, chunking, parts) in [(1, None, 1), (2, asked(Some(500)), 2), (3, asked(None), 1)] {
        let begin = BeginTranscript { chunking, segments: true, ..BeginTranscript::default() };
        let sounds = [sound(1.0, 2.0), sound(0.0, 1.0), sound(1.0, 2.0)];
        worker.send(stream, &[TranscriptOrder::Begin(begin)]);
        worker.send(stream, &sounds);
        worker.send(stream, &[TranscriptOrder::EndSound]);
        let (events, _) = worker.events(stream);
        let is_segment = |event: &&TranscriptEvent| matches!(event, TranscriptEvent::Segment(_));
        assert_eq!(events.iter().filter(is_segment).count(), parts, "{events:?}");
    }
}

#[test]
fn times_count_from_the_beginning_of_the_recording() {
    let mut worker = Worker::ready();
    let begin = BeginTranscript { segments: true, words: true, ..BeginTranscript::default() };
    let sounds = [sound(1.0, 2.0), sound(0.0, 4.0), sound(1.0, 2.0), TranscriptOrder::EndSound];
    worker.send(1, &[TranscriptOrder::Begin(begin)]);
    worker.send(1, &sounds);
    let (events, _) = worker.events(1);
    let ms = |seconds: f64| (seconds * 1e3).round() as u64;
    let (mut segments, mut words) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            TranscriptEvent::Segment(one) => segments.push((ms(one.start_s), one.seek)),
            TranscriptEvent::Word(one) => words.push([ms(one.start_s), ms(one.end_s)]),
            _ => {}
        }
    }
    // The second part begins where the first one ended, and its text 0.2 s before its first frame with speech at 5.984 s.
    assert_eq!(segments, [(0, 0), (5_784, 230)]);
    assert_eq!(words, [[0, 500], [1_000, 1_500], [6_000, 6_500], [7_000, 7_500]]);
}

#[test]
fn the_damage_of_a_file_is_reported_with_its_text() {
    let whole = include_bytes!("../../../../hob-speech/tests/decode/files/chirp-left.webm");
    let mut damaged = whole.to_vec();
    // Blocks of this file begin with their track and their time. The packet after it gets an invalid header.
    let is_block = |at: &usize| whole[*at] == 0x81 && whole[*at + 3] == 0x80;
    let blocks: Vec<usize> = (501..whole.len() - 8).filter(is_block).collect();
    for &at in &blocks[blocks.len() / 3..blocks.len() * 2 / 3] {
        damaged[at + 4..at + 6].copy_from_slice(&[0xFF, 0x00]);
    }
    let mut worker = Worker::ready();
    for (stream, file, is_damaged) in [(1, whole.to_vec(), false), (2, damaged, true)] {
        let orders = [begin(None, false), TranscriptOrder::File(file), TranscriptOrder::EndSound];
        worker.send(stream, &orders);
        let (events, _) = worker.events(stream);
        let Some(TranscriptEvent::Done(done)) = events.last() else { panic!("{events:?}") };
        assert_eq!(done.damage.is_some(), is_damaged, "{done:?}");
    }
}

#[test]
fn a_file_that_is_no_sound_is_refused() {
    let mut worker = Worker::ready();
    let text = TranscriptOrder::File(b"Dear reader, this is no sound.".to_vec());
    worker.send(1, &[begin(None, false), text, TranscriptOrder::EndSound]);
    let (of, report) = worker.report();
    let WorkerMessage::Model(TranscriptReport::Refused(reason)) = report else {
        panic!("{of} {report:?}")
    };
    assert!(!reason.is_empty());
    worker.send(2, &[begin(None, false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    assert_eq!(worker.events(2).1, WorkerMessage::Common(Report::Done), "the worker goes on");
}

#[test]
fn requests_take_turns_part_by_part() {
    let mut worker = Worker::ready();
    let long = [begin(None, false), sound(1.0, 60.0), sound(1.0, 60.0), TranscriptOrder::EndSound];
    let short = [begin(None, false), sound(1.0, 2.0), TranscriptOrder::EndSound];
    worker.send(1, &long);
    worker.send(2, &short);
    assert_eq!(ended(&mut worker, 2), [2, 1], "the short request does not wait for the long one");
}

#[test]
fn a_person_who_has_spoken_to_the_end_does_not_wait_for_interim_text_of_another() {
    let mut worker = Worker::ready();
    // The engine is busy until the sound of both has arrived.
    worker.send(3, &[begin(Some("hang"), false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    assert_eq!(worker.report(), (3, WorkerMessage::Model(TranscriptReport::Started)));
    worker.until_it_computes();
    worker.send(1, &[begin(None, true), sound(1.0, 2.0)]);
    worker.send(2, &[begin(None, true), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    worker.send_common(3, &CommonOrder::Cancel);
    loop {
        match worker.report() {
            (2, WorkerMessage::Common(Report::Done)) => break,
            (stream, report) => assert_eq!(stream, 2, "{report:?}"),
        }
    }
}

/// The next streams that are done.
fn ended(worker: &mut Worker, count: usize) -> Vec<u32> {
    let done = |report| match report {
        (stream, WorkerMessage::Common(Report::Done)) => Some(stream),
        _ => None,
    };
    std::iter::repeat_with(|| worker.report()).filter_map(done).take(count).collect()
}

#[test]
fn hours_of_silence_do_not_keep_other_requests_waiting() {
    let mut worker = Worker::ready();
    // The engine is busy until both requests have arrived.
    worker.send(3, &[begin(Some("hang"), false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    assert_eq!(worker.report(), (3, WorkerMessage::Model(TranscriptReport::Started)));
    worker.until_it_computes();
    let silence = (0..200).map(|_| sound(0.0, 4.0));
    let long: Vec<_> = [begin(None, false)]
        .into_iter()
        .chain(silence)
        .chain([TranscriptOrder::EndSound])
        .collect();
    worker.send(1, &long);
    worker.send(2, &[begin(None, false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    worker.send_common(3, &CommonOrder::Cancel);
    assert_eq!(ended(&mut worker, 2), [2, 1]);
}

#[test]
fn six_hours_of_a_file_are_read_to_their_end() {
    // The lowest rate that is decoded: 43 MB, and 1.4 GB as samples.
    let (rate_hz, seconds) = (1_000, 6 * 3_600);
    let bytes = 2 * rate_hz * seconds;
    let mut file = hob_core::wav_header(rate_hz, bytes);
    file.resize(file.len() + bytes as usize, 0);
    let pieces = file.chunks(FILE_BYTES_MAX).map(|piece| TranscriptOrder::File(piece.to_vec()));
    let orders: Vec<_> =
        [begin(None, false)].into_iter().chain(pieces).chain([TranscriptOrder::EndSound]).collect();
    let mut worker = Worker::ready();
    worker.send(1, &orders);
    let (events, last) = worker.events(1);
    assert_eq!(last, WorkerMessage::Common(Report::Done));
    let [TranscriptEvent::Done(done)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((done.duration_s, done.damage.as_deref()), (f64::from(seconds), None));
}

#[test]
fn a_cancelled_request_ends_while_it_is_computed() {
    let mut worker = Worker::ready();
    worker.send(1, &[begin(Some("hang"), false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    let started = worker.report();
    assert_eq!(started, (1, WorkerMessage::Model(TranscriptReport::Started)));
    worker.until_it_computes();
    worker.send_common(1, &CommonOrder::Cancel);
    worker.send_common(2, &CommonOrder::Ping);
    let stats = WorkerStats { streams: 0, steps: 1 };
    assert_eq!(worker.report(), (2, WorkerMessage::Common(Report::Stats(stats))));
}

#[test]
fn a_failure_of_the_engine_ends_only_its_request() {
    let mut worker = Worker::ready();
    worker.send(1, &[begin(Some("fail"), false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    let (_, last) = worker.events(1);
    assert_eq!(last, WorkerMessage::Common(Report::failed("out of ideas")));
    worker.send(2, &[begin(None, false), sound(1.0, 2.0), TranscriptOrder::EndSound]);
    assert_eq!(worker.events(2).1, WorkerMessage::Common(Report::Done));
}

#[test]
fn live_text_only_grows_and_comes_before_the_end() {
    let mut worker = Worker::ready();
    worker.send(1, &[begin(None, true)]);
    let mut text = String::new();
    let mut has_interim = false;
    for _ in 0..4 {
        worker.send(1, &[sound(1.0, 1.0)]);
        loop {
            match worker.report() {
                (1, WorkerMessage::Model(TranscriptReport::Events(events))) => {
                    text.push_str(&deltas(&events));
                    has_interim |=
                        events.iter().any(|event| matches!(event, TranscriptEvent::Interim(_)));
                    break;
                }
                (1, WorkerMessage::Model(TranscriptReport::Started)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(has_interim && text.starts_with("w0"), "{text:?}");
    worker.send(1, &[sound(0.0, 1.5), TranscriptOrder::EndSound]);
    let (events, _) = worker.events(1);
    text.push_str(&deltas(&events));
    assert_eq!(text, "w0 w1 w2 w3");
}

#[test]
fn the_server_learns_how_much_live_sound_was_read() {
    let mut worker = Worker::ready();
    let silence = [begin(None, true), sound(0.0, 3.0), TranscriptOrder::EndSound];
    worker.send(1, &silence);
    let mut samples = 0;
    loop {
        match worker.socket.report() {
            (1, WorkerMessage::Model(TranscriptReport::Read(more))) => samples += more as usize,
            (1, WorkerMessage::Common(Report::Done)) => break,
            _ => {}
        }
    }
    assert_eq!(samples, 3 * RATE_HZ);
}

/// How many parts the worker has heard.
fn parts_heard(worker: &mut Worker) -> u64 {
    worker.send_common(9, &CommonOrder::Ping);
    match worker.report() {
        (9, WorkerMessage::Common(Report::Stats(stats))) => stats.steps,
        other => panic!("{other:?}"),
    }
}

/// A worker that has heard two seconds of live speech and a short pause.
fn in_a_pause() -> Worker {
    let mut worker = Worker::ready();
    let spoken =
        TranscriptOrder::Samples([vec![1.0; 2 * RATE_HZ], vec![0.0; RATE_HZ * 3 / 10]].concat());
    worker.send(1, &[begin(None, true), spoken]);
    let started = worker.report();
    assert_eq!(started, (1, WorkerMessage::Model(TranscriptReport::Started)));
    let (_, WorkerMessage::Model(TranscriptReport::Events(events))) = worker.report() else {
        panic!("no events")
    };
    assert_eq!(events, [TranscriptEvent::Interim(" w0 w1".to_owned())]);
    worker
}

#[test]
fn the_text_of_a_pause_is_final_if_no_speech_follows() {
    for rest in [vec![sound(0.0, 0.1), TranscriptOrder::EndSound], vec![TranscriptOrder::EndSound]]
    {
        let mut worker = in_a_pause();
        worker.send(1, &rest);
        assert_eq!(deltas(&worker.events(1).0), "w0 w1");
        assert_eq!(parts_heard(&mut worker), 1);
    }
}

#[test]
fn no_pass_begins_in_a_silence_that_may_become_a_pause() {
    let mut worker = Worker::ready();
    let spoken = [vec![1.0; 2 * RATE_HZ], vec![0.0; RATE_HZ / 20]].concat();
    worker.send(1, &[begin(None, true), TranscriptOrder::Samples(spoken)]);
    assert_eq!(worker.report(), (1, WorkerMessage::Model(TranscriptReport::Started)));
    assert_eq!(parts_heard(&mut worker), 0);
    worker.send(1, &[sound(0.0, 0.1)]);
    let (_, WorkerMessage::Model(TranscriptReport::Events(events))) = worker.report() else {
        panic!("no events")
    };
    assert_eq!(events, [TranscriptEvent::Interim(" w0 w1".to_owned())]);
    assert_eq!(parts_heard(&mut worker), 1);
}

#[test]
fn a_pass_over_speech_that_goes_on_computes_no_times() {
    let begin = BeginTranscript {
        words: true,
        segments: true,
        is_live: true,
        ..BeginTranscript::default()
    };
    let recording = Recording::new(begin, Level);
    let times = |options: WhisperOptions| (options.words, options.segments);
    assert_eq!(times(recording.options(RATE_HZ)), (true, true));
    assert_eq!(times(recording.peek_options(RATE_HZ, PeekReason::Pause)), (true, true));
    assert_eq!(times(recording.peek_options(RATE_HZ, PeekReason::Progress)), (false, false));
}

#[test]
fn each_pass_over_a_part_guesses_the_text_and_the_language_of_the_one_before() {
    let live = BeginTranscript { is_live: true, ..BeginTranscript::default() };
    let mut recording = Recording::new(live, Level);
    let text = |tokens: &[u32]| {
        let (language, tokens) = ("nl".to_owned(), tokens.to_vec());
        WhisperText { language, tokens, ..WhisperText::default() }
    };
    assert!(recording.options(RATE_HZ).draft.is_empty());
    recording.push_samples(&vec![1.0; 2 * RATE_HZ]).expect("room");
    let Task::Peek(part, reason) = recording.next_task() else { panic!("no pass") };
    recording.peeked(part, reason, text(&[5, 6]));
    assert_eq!(recording.peek_options(RATE_HZ, PeekReason::Progress).draft, [5, 6]);
    recording.push_samples(&vec![0.0; RATE_HZ / 4]).expect("room");
    let Task::Peek(part, reason) = recording.next_task() else { panic!("no pass") };
    recording.peeked(part, reason, text(&[5, 6, 7]));
    assert_eq!(recording.options(RATE_HZ).draft, [5, 6, 7]);
    assert_eq!(recording.options(RATE_HZ).likely_language.as_deref(), Some("nl"));
    recording.end().expect("no file");
    let Task::Keep(part, text) = recording.next_task() else { panic!("no part") };
    recording.add_part(&part, text);
    assert!(recording.options(RATE_HZ).draft.is_empty(), "the next part says something else");
    assert_eq!(recording.options(RATE_HZ).likely_language, None);
}

#[test]
fn the_text_of_a_pause_is_dropped_if_speech_follows() {
    let mut worker = in_a_pause();
    worker.send(1, &[sound(1.0, 1.0), TranscriptOrder::EndSound]);
    assert_eq!(deltas(&worker.events(1).0), "w0 w1 w2");
}

#[test]
fn a_pass_over_unfinished_sound_ends_with_the_sound() {
    for ended in [1, 2] {
        let mut worker = Worker::ready();
        worker.send(1, &[begin(Some("hang once"), true), sound(1.0, 2.0)]);
        let started = worker.report();
        assert_eq!(started, (1, WorkerMessage::Model(TranscriptReport::Started)));
        // The end of another stream ends the pass too.
        worker.send(2, &[begin(None, false), sound(1.0, 1.0)]);
        worker.send(ended, &[TranscriptOrder::EndSound]);
        let expected = if ended == 1 { "w0 w1" } else { "w0" };
        assert_eq!(deltas(&worker.events(ended).0), expected);
    }
}

#[test]
fn a_pass_over_unfinished_sound_ends_with_a_pause() {
    let mut worker = Worker::ready();
    worker.send(1, &[begin(Some("hang once"), true), sound(1.0, 2.0)]);
    assert_eq!(worker.report(), (1, WorkerMessage::Model(TranscriptReport::Started)));
    worker.until_it_computes();
    // The sound of another stream says nothing of this one.
    worker.send(2, &[begin(None, true), sound(0.0, 1.0)]);
    worker.send(1, &[sound(0.0, 0.2)]);
    assert_eq!(next_interim(&mut worker, 1), " w0 w1");
}

#[test]
fn a_pass_in_a_pause_ends_with_the_next_pause() {
    let mut worker = Worker::ready();
    let spoken = [vec![1.0; 2 * RATE_HZ], vec![0.0; RATE_HZ * 3 / 10]].concat();
    worker.send(1, &[begin(Some("hang once"), true), TranscriptOrder::Samples(spoken)]);
    assert_eq!(worker.report(), (1, WorkerMessage::Model(TranscriptReport::Started)));
    worker.until_it_computes();
    worker.send(1, &[sound(1.0, 1.0), sound(0.0, 0.2)]);
    assert_eq!(next_interim(&mut worker, 1), " w0 w1 w2");
}

#[test]
fn no_pause_ends_a_pass_over_speech_that_had_no_text_for_seconds() {
    let live = BeginTranscript { is_live: true, ..BeginTranscript::default() };
    let mut recording = Recording::new(live, Level);
    // The first two passes are ended by pauses.
    for (seconds, is_ended, has_watch) in
        [(2, true, true), (2, true, true), (1, false, false), (3, false, true)]
    {
        recording.push_samples(&vec![1.0; seconds * RATE_HZ]).expect("room");
        let Task::Peek(part, reason) = recording.next_task() else { panic!("no pass") };
        assert_eq!(recording.pause_watch(&part, reason).is_some(), has_watch, "{seconds} s");
        if !is_ended {
            recording.peeked(part, reason, WhisperText::default());
        }
    }
}

/// An inbox into which a test puts orders, and the other end of its socket.
fn inbox() -> (FrameSocket, PatientInbox) {
    let (server, theirs) = FrameSocket::pair();
    let connection = WorkerConnection::start(&theirs, AnyTranscriptOrder::of_stream, ORPHAN_LIMIT);
    let inbox = connection.expect("a connection").inbox;
    (server, PatientInbox { inbox, arrived: RefCell::default() })
}

impl PatientInbox {
    fn arrive(&self, stream: u32, order: TranscriptOrder) {
        let order = WorkerMessage::Model(order);
        self.arrived.borrow_mut().push_back(Ok(Some((stream, order))));
    }
}

#[test]
fn a_watch_hears_only_the_sound_of_its_stream() {
    let (_server, inbox) = inbox();
    let mut watch = PauseWatch::new(Level, Vec::new(), true);
    for (stream, is_paused) in [(2, false), (1, true)] {
        inbox.arrive(stream, sound(0.0, 0.2));
        assert_eq!(inbox.is_paused(1, &mut watch), is_paused, "{stream}");
    }
}

#[test]
fn the_end_of_other_sound_does_not_end_an_overdue_turn() {
    let (_server, inbox) = inbox();
    assert!(!inbox.is_awaited(None));
    for (stream, is_over) in [(2, false), (1, true)] {
        inbox.arrive(stream, TranscriptOrder::EndSound);
        assert_eq!((inbox.is_awaited(None), inbox.is_awaited(Some(1))), (true, is_over));
    }
}

/// The next text of a stream that may change.
fn next_interim(worker: &mut Worker, stream: u32) -> String {
    loop {
        let (of, report) = worker.report();
        let WorkerMessage::Model(TranscriptReport::Events(events)) = report else { continue };
        let interim = events.into_iter().find_map(|event| match event {
            TranscriptEvent::Interim(text) => Some(text),
            _ => None,
        });
        if let Some(text) = interim.filter(|_| of == stream) {
            return text;
        }
    }
}

#[test]
fn a_closed_socket_ends_the_worker() {
    let worker = Worker::ready();
    drop(worker.socket);
    assert!(worker.serving.join().expect("no panic").is_ok());
}
