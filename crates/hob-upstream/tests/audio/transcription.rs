//! Transcription: the requests to other servers, their answers, and which target answers when one fails.
//! `hob-wire` parses the answers and tests their fields.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use hob_core::chat::Reading;
use hob_core::routing::TargetStatus;
use hob_core::scripted::TranscriptOf;
use hob_core::{
    Admission, Fault, LiveSound, ModelError, RegisteredModel, Registry, Resolve, Segment, Sound,
    SoundFile, SoundSeconds, Timestamps, Trace, TranscriptEvent, TranscriptModel,
    TranscriptRequest, TranscriptStream, TranscriptSummary, TranscriptTask, Transcription,
    UpstreamResolver,
};
use hob_upstream::{Gateway, UpstreamKind};

use crate::stage::{End, Stage, alias, chunked, gateway_of, status, two, upstream, whole};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const HI: &str = r#"{"text":"Hi","duration":1.5}"#;
const HEL: &[u8] = b"data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hel\"}\n\n";
const LO: &[u8] = b"data: {\"type\":\"transcript.text.delta\",\"delta\":\"lo\"}\n\n";
const DONE: &[u8] = b"data: {\"type\":\"transcript.text.done\",\"text\":\"Hello\"}\n\n";

fn recording() -> TranscriptRequest {
    let file = SoundFile { bytes: Bytes::from_static(b"RIFF...."), name: None };
    TranscriptRequest {
        sound: Sound::File(file),
        reading: Reading::Whole,
        trace: Trace::default(),
        ..TranscriptRequest::default()
    }
}

fn live_pieces(request: TranscriptRequest) -> BoxStream<'static, Vec<f32>> {
    let pieces = match request.sound {
        Sound::Live(live) => live.take(),
        _ => None,
    };
    pieces.expect("live sound, not collected, and not heard before")
}

fn streamed() -> TranscriptRequest {
    TranscriptRequest { reading: Reading::Streamed, ..recording() }
}

async fn hear(
    gateway: &Gateway,
    name: &str,
    request: TranscriptRequest,
) -> Result<Vec<Result<TranscriptEvent, ModelError>>, ModelError> {
    let target = Resolve::<Transcription>::resolve(gateway, name).expect("a name");
    Ok(target.model.transcribe(request).await?.collect().await)
}

fn delta(text: &str) -> Result<TranscriptEvent, ModelError> {
    Ok(TranscriptEvent::Delta(text.to_owned()))
}

fn done(duration_s: f64) -> Result<TranscriptEvent, ModelError> {
    Ok(TranscriptEvent::Done(TranscriptSummary { duration_s, ..TranscriptSummary::default() }))
}

#[tokio::test]
async fn a_file_goes_on_as_it_came() {
    let server = Stage::of([whole(JSON, HI), whole(JSON, HI)]).await;
    let gateway = two(&server, &server);
    let request = TranscriptRequest {
        language: Some("de".to_owned()),
        prompt: Some("Herd".to_owned()),
        temperature: Some(0.5),
        timestamps: Timestamps { segments: true, words: true },
        ..recording()
    };
    let heard = hear(&gateway, "a/m", request.clone()).await;
    assert_eq!(heard, Ok(vec![delta("Hi"), done(1.5)]));
    let translation = TranscriptRequest { task: TranscriptTask::Translate, ..request };
    hear(&gateway, "a/m", translation).await.expect("a translation");
    let asked = server.asked();
    assert_eq!(asked[0].path, "/v1/audio/transcriptions");
    assert_eq!(asked[1].path, "/v1/audio/translations");
    let form = asked[0].text();
    for part in [
        "name=\"file\"; filename=\"audio.wav\"\r\nContent-Type: audio/wav\r\n",
        "\r\n\r\nRIFF....\r\n",
        "name=\"model\"\r\n\r\nm\r\n",
        "name=\"response_format\"\r\n\r\nverbose_json\r\n",
        "name=\"language\"\r\n\r\nde\r\n",
        "name=\"prompt\"\r\n\r\nHerd\r\n",
        "name=\"temperature\"\r\n\r\n0.5\r\n",
        "name=\"timestamp_granularities[]\"\r\n\r\nword\r\n",
    ] {
        assert!(form.contains(part), "{part} {form}");
    }
}

#[tokio::test]
async fn samples_go_on_as_a_wav() {
    let server = Stage::of([whole(JSON, HI)]).await;
    let sound = Sound::Samples(vec![1.0, -1.0].into());
    let request = TranscriptRequest { sound, ..recording() };
    hear(&two(&server, &server), "a/m", request).await.expect("a transcript");
    let form = server.asked().remove(0).body;
    let wav = b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\x04\0\0\0\xff\x7f\x01\x80";
    assert!(form.windows(wav.len()).any(|window| window == wav), "{form:?}");
}

#[tokio::test]
async fn live_sound_goes_on_as_a_wav_when_it_is_complete() {
    let server = Stage::of([whole(JSON, HI), whole(JSON, HI), whole(JSON, HI)]).await;
    let gateway = two(&server, &server);
    let live = |pieces: Vec<Vec<f32>>| {
        let sound = Sound::Live(LiveSound::new(stream::iter(pieces).boxed()));
        TranscriptRequest { sound, ..recording() }
    };
    for name in ["a/m", "any"] {
        let request = live(vec![vec![1.0], vec![], vec![-1.0]]);
        hear(&gateway, name, request).await.expect("a transcript");
    }
    for asked in server.asked() {
        let samples = b"data\x04\0\0\0\xff\x7f\x01\x80";
        assert!(asked.body.windows(samples.len()).any(|window| window == samples));
    }
    let endless = stream::repeat(vec![0.0; 1 << 20]).boxed();
    let request = TranscriptRequest { sound: Sound::Live(LiveSound::new(endless)), ..recording() };
    let refused = hear(&gateway, "any", request).await.expect_err("too long");
    assert!(refused.to_string().contains("longer than 600 s"), "{refused}");
    let taken = live(vec![vec![0.0]]);
    hear(&gateway, "a/m", taken.clone()).await.expect("a transcript");
    let refused = hear(&gateway, "a/m", taken).await.expect_err("heard before");
    assert!(refused.to_string().contains("sent to another model before"), "{refused}");
}

/// A local model that needs live sound, and has no time for anything else.
struct FixedTranscript;

impl TranscriptModel for FixedTranscript {
    fn languages(&self) -> &[String] {
        static LANGUAGES: LazyLock<Vec<String>> = LazyLock::new(|| vec!["en".to_owned()]);
        &LANGUAGES
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        let texts = live_pieces(request).map(|samples| delta(&samples.len().to_string()));
        async { Ok(texts.chain(stream::iter([done(1.0)])).boxed()) }.boxed()
    }
}

/// The speaker pauses for longer than any time limit of the alias.
#[tokio::test(start_paused = true)]
async fn a_single_local_model_hears_live_sound_as_it_comes() {
    let mut registry = Registry::default();
    let model: Arc<dyn TranscriptModel> = Arc::new(FixedTranscript);
    let admission = Admission::new(1, 0.1);
    registry.add(RegisteredModel::<Transcription>::new("own", model, admission.clone()));
    let mut route = alias("ears", &["own"]);
    route.timeouts.first_token = Some(Duration::from_secs(1));
    let gateway = gateway_of(Vec::new(), vec![route], &registry);
    let live = || {
        let pieces = stream::unfold(1, |n| async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            (n < 3).then(|| (vec![0.0; n], n + 1))
        });
        TranscriptRequest { sound: Sound::Live(LiveSound::new(pieces.boxed())), ..streamed() }
    };
    let ahead = admission.admit(SoundSeconds(1.0)).expect("admitted");
    let busy = hear(&gateway, "ears", live()).await.expect_err("one at a time");
    assert!(matches!(busy, ModelError::Busy { .. }), "{busy:?}");
    drop(ahead);
    let heard = hear(&gateway, "ears", live()).await;
    assert_eq!(heard, Ok(vec![delta("1"), delta("2"), done(1.0)]));
    assert_eq!(admission.in_flight(), 0);
    let target = Resolve::<Transcription>::resolve(&gateway, "ears").expect("a name");
    assert_eq!(target.model.languages(), ["en"]);
}

#[tokio::test]
async fn good_answers_to_live_sound_count_between_its_failures() {
    let mut registry = Registry::default();
    // Fails at a piece of more than one sample, and ends at an empty one.
    let model = Arc::new(TranscriptOf::new(async |request: TranscriptRequest| {
        let heard = live_pieces(request).map(|samples| match samples.len() {
            0 => done(0.0),
            1 => delta("1"),
            _ => Err(ModelError::EngineFailed { engine: "hear", detail: "no".to_owned() }),
        });
        Ok(heard.boxed())
    }));
    registry.add(RegisteredModel::<Transcription>::new("own", model, Admission::new(1, 0.1)));
    let gateway = gateway_of(Vec::new(), vec![alias("ears", &["own"])], &registry);
    let status_after = async |pieces: &[usize]| {
        let pieces: Vec<_> = pieces.iter().map(|length| vec![0.0; *length]).collect();
        let sound = Sound::Live(LiveSound::new(stream::iter(pieces).boxed()));
        hear(&gateway, "ears", TranscriptRequest { sound, ..streamed() }).await.expect("events");
        gateway.route("ears").expect("a route").targets.remove(0).status
    };
    for pieces in [&[1, 2][..], &[1, 0], &[2], &[0], &[2]] {
        assert_eq!(status_after(pieces).await, TargetStatus::Active, "{pieces:?}");
    }
    let open = status_after(&[2]).await;
    assert!(matches!(open, TargetStatus::Open { .. }), "most answers failed: {open:?}");
    assert_eq!(status_after(&[1, 0]).await, TargetStatus::Active, "live sound is still heard");
}

#[tokio::test]
async fn text_comes_in_pieces_where_the_server_can() {
    let server = Stage::of([
        chunked(EVENTS, &[HEL, &LO[..20], &LO[20..], DONE], End::Well),
        whole(JSON, HI),
    ])
    .await;
    let gateway = two(&server, &server);
    let heard = hear(&gateway, "any", streamed()).await;
    assert_eq!(heard, Ok(vec![delta("Hel"), delta("lo"), done(0.0)]));
    let asked = server.asked().remove(0).text();
    assert!(asked.contains("name=\"stream\"\r\n\r\ntrue\r\n"), "{asked}");
    assert_eq!(hear(&gateway, "any", streamed()).await, Ok(vec![delta("Hi"), done(1.5)]));
}

#[tokio::test]
async fn a_model_that_says_only_text_is_asked_for_that() {
    let message = r#"{"error":{"message":"response_format 'verbose_json' is not compatible with model 'm'.","param":"response_format"}}"#;
    let server = Stage::of([status(400, message), whole(JSON, HI), whole(JSON, HI)]).await;
    let gateway = two(&server, &server);
    for _ in 0..2 {
        hear(&gateway, "a/m", recording()).await.expect("a transcript");
    }
    let is_verbose = |asked: &crate::stage::Asked| asked.text().contains("verbose_json");
    assert_eq!(server.asked().iter().map(is_verbose).collect::<Vec<_>>(), [true, false, false]);
}

#[tokio::test]
async fn a_stream_goes_on_without_times_if_the_model_has_none() {
    let message = r#"{"error":{"message":"response_format 'verbose_json' is not compatible with model 'm'."}}"#;
    let events = chunked(EVENTS, &[HEL, LO, DONE], End::Well);
    let server = Stage::of([status(400, message), events]).await;
    let timestamps = Timestamps { segments: true, words: true };
    let request = TranscriptRequest { timestamps, ..streamed() };
    let heard = hear(&two(&server, &server), "a/m", request).await;
    assert_eq!(heard, Ok(vec![delta("Hel"), delta("lo"), done(0.0)]));
    let asked = server.asked().remove(1).text();
    assert!(asked.contains("name=\"stream\"") && !asked.contains("granularities"), "{asked}");
}

#[tokio::test]
async fn another_hob_streams_times_and_translations() {
    let segment = b"data: {\"type\":\"transcript.text.segment\",\"id\":\"seg_0\",\"start\":0.5,\"end\":1,\"text\":\" Hello\"}\n\n";
    let server = Stage::of([chunked(EVENTS, &[HEL, LO, segment, DONE], End::Well)]).await;
    let upstreams = vec![upstream("a", UpstreamKind::Hob, &server.url)];
    let gateway = gateway_of(upstreams, Vec::new(), &Registry::default());
    let request = TranscriptRequest {
        task: TranscriptTask::Translate,
        timestamps: Timestamps { segments: true, words: false },
        ..streamed()
    };
    let heard = hear(&gateway, "a/m", request).await.expect("a transcript");
    let text = " Hello".to_owned();
    let timed = Segment { text, start_s: 0.5, end_s: 1.0, ..Segment::default() };
    assert_eq!(heard, [delta("Hel"), delta("lo"), Ok(TranscriptEvent::Segment(timed)), done(0.0)]);
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/audio/translations");
    for part in ["name=\"stream\"\r\n\r\ntrue\r\n", "granularities[]\"\r\n\r\nsegment\r\n"] {
        assert!(asked.text().contains(part), "{part}");
    }
}

#[tokio::test]
async fn silence_is_an_answer() {
    let server = Stage::of([whole(JSON, r#"{"text":"","duration":2}"#)]).await;
    let next = Stage::of([]).await;
    assert_eq!(hear(&two(&server, &next), "any", recording()).await, Ok(vec![done(2.0)]));
    assert_eq!(next.hits(), 0);
}

#[tokio::test]
async fn a_body_without_a_transcript_is_a_fault_and_the_next_target_is_tried() {
    for (answer, kind) in [
        (whole("text/html", "<html>"), "invalid_answer"),
        (whole(JSON, "{}"), "invalid_answer"),
        (whole(JSON, r#"{"error":{"message":"no"}}"#), "reported"),
        (chunked(JSON, &[b"{"], End::Cut), "cut_off"),
        (chunked(EVENTS, &[HEL], End::Well), "cut_off"),
        (chunked(EVENTS, &[HEL, LO], End::Cut), "cut_off"),
        (whole(EVENTS, "data: {\"error\":{\"message\":\"no\"}}\n\n"), "reported"),
        (whole(EVENTS, "data: x\n\ndata: x\n\ndata: x\n\ndata: x\n\n"), "invalid_answer"),
        (status(503, r#"{"error":{"message":"busy"}}"#), "overloaded"),
    ] {
        let (bad, next) = (Stage::of([answer]).await, Stage::of([whole(JSON, HI)]).await);
        let request = recording();
        let trace = request.trace.clone();
        let heard = hear(&two(&bad, &next), "any", request).await;
        assert_eq!(heard, Ok(vec![delta("Hi"), done(1.5)]), "{kind}");
        let data = trace.snapshot();
        assert_eq!(data.failed.first().map(|attempt| attempt.kind), Some(kind));
        assert_eq!(data.target.as_deref(), Some("b/m"), "{kind}");
    }
}

#[tokio::test]
async fn text_that_was_sent_is_not_repeated() {
    let bad = Stage::of([chunked(EVENTS, &[HEL], End::Well)]).await;
    let next = Stage::of([whole(JSON, HI)]).await;
    let heard = hear(&two(&bad, &next), "any", streamed()).await;
    let cut = Err(ModelError::upstream("a/m", Fault::CutOff));
    assert_eq!(heard, Ok(vec![delta("Hel"), cut]));
    assert_eq!(next.hits(), 0);
}
