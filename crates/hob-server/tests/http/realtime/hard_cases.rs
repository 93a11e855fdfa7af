//! Workers that die, sound that comes too fast or in another form, clients that read slowly or never, and two people at
//! the same time.

use std::path::{Path, PathBuf};

use super::*;
use crate::client::send_all;

/// The code of µ-law for silence, and two for a loud voice.
const QUIET: u8 = 0xFF;
const LOUD: [u8; 2] = [0x80, 0x00];

/// A session that sends what it heard and says how long it was, and whose model repeats it.
async fn open_repeating(stage: &Stage) -> Talker {
    let mut talker = stage.begin("parrot", &[]).await;
    talker.update(json!({"input": {"transcription": {"model": "counter"}}})).await;
    talker.until("session.updated").await;
    talker
}

#[tokio::test]
async fn the_models_of_a_session_load_at_the_same_time() {
    let turns = Arc::new(Turns(Some(Notify::new())));
    let turn_taking = Some(Arc::clone(&turns) as Arc<dyn TurnTaking>);
    let stage = stage_with(ServerOptions { turn_taking, ..ServerOptions::default() }).await;
    stage.voice.occupy(ModelState::Cold, MemoryUse::default());
    let mut talker = stage.open().await;
    // The turn model is not loaded yet.
    until(async || (!stage.voice.calls().is_empty()).then_some(())).await;
    stage.voice_loads.send(Ok(())).await.expect("a server");
    turns.0.as_ref().expect("a signal").notify_one();
    talker.until("session.created").await;
}

#[tokio::test]
async fn a_voice_has_no_time_limit_while_its_text_is_written() {
    let sound_time_max = Duration::from_millis(50);
    let stage = stage_with(ServerOptions { sound_time_max, ..options() }).await;
    let mut talker = stage.begin("staged", &[]).await;
    let answer = stage.staged.stage();
    talker.speak(1.0).await;
    no_hang(answer.send(chat_model::text("The light is on now. "))).await.expect("a reader");
    talker.until("response.output_audio.delta").await;
    // The chat model writes nothing for longer than the voice may be silent.
    tokio::time::sleep(2 * sound_time_max).await;
    send_all(&answer, [chat_model::text("Is there more?"), chat_model::done(7)]).await;
    let events = talker.until("response.done").await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
}

#[tokio::test]
async fn a_turn_that_is_being_spoken_is_expected_to_be_work() {
    let (stage, mut talker) = session(options()).await;
    talker.say(12_000, 1.0).await;
    until(async || (stage.server.backlog() > 0.0).then_some(())).await;
}

impl Talker {
    async fn update(&mut self, audio: Value) {
        self.send(json!({"type": "session.update", "session": {"audio": audio}})).await;
    }

    async fn append(&mut self, bytes: &[u8]) {
        let audio = STANDARD.encode(bytes);
        self.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
    }
}

/// Loud and quiet seconds at 8 kHz.
fn telephone(loud_s: usize, quiet_s: usize) -> Vec<u8> {
    let loud = (0..loud_s * 8_000).map(|at| LOUD[at / 10 % 2]);
    loud.chain(std::iter::repeat_n(QUIET, quiet_s * 8_000)).collect()
}

fn transcript(events: &[Value]) -> &str {
    let heard = "conversation.item.input_audio_transcription.completed";
    let heard = events.iter().find(|event| event["type"] == heard);
    heard.and_then(|event| event["transcript"].as_str()).expect("a transcript")
}

/// The length in the transcript of a model that counts.
fn tenths(events: &[Value]) -> u32 {
    let number = transcript(events).split(' ').next().expect("a word");
    number.parse().expect("a number")
}

#[tokio::test]
async fn a_voice_or_a_model_that_dies_in_its_answer_fails_it_and_the_next_one_is_spoken() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    for death in [&stage.deaths.speech, &stage.deaths.chat] {
        death.store(true, Ordering::Relaxed);
        let events = talker.ask(1.0).await;
        assert_eq!(status(&events), ("failed", "worker_lost"), "{events:?}");
        let events = talker.ask(1.0).await;
        assert_eq!(status(&events).0, "completed", "{events:?}");
        assert!(types(&events).contains(&"response.output_audio.delta"), "{events:?}");
    }
}

#[tokio::test]
async fn ears_that_die_in_a_turn_are_reported_and_the_next_turn_is_heard() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    stage.deaths.transcript.store(true, Ordering::Relaxed);
    talker.speak(1.0).await;
    let events = talker.until("conversation.item.input_audio_transcription.failed").await;
    let failed = events.last().expect("the last event");
    assert_eq!(failed["error"]["code"], "worker_lost", "{failed}");
    let events = talker.ask(1.0).await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
}

/// More sound in one event than may wait for a model.
#[tokio::test]
async fn minutes_of_speech_that_come_at_once_are_heard_to_their_end() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    talker.update(json!({"input": {"format": {"type": "audio/pcmu"}}})).await;
    talker.until("session.updated").await;
    talker.append(&telephone(150, 1)).await;
    let events = talker.until("response.done").await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
    assert!((1_498..1_512).contains(&tenths(&events)), "{}", transcript(&events));
}

/// The client leaves the end of its turn to the server after minutes, and the server hears them in pieces.
#[tokio::test]
async fn sound_that_waited_for_a_commit_is_heard_by_a_turn_detection_that_is_turned_on_late() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    let manual = json!({"input": {"format": {"type": "audio/pcmu"}, "turn_detection": null}});
    talker.update(manual).await;
    talker.until("session.updated").await;
    talker.append(&telephone(150, 1)).await;
    talker.update(json!({"input": {"turn_detection": {"type": "server_vad"}}})).await;
    let events = talker.until("response.done").await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
    assert!((1_498..1_512).contains(&tenths(&events)), "{}", transcript(&events));
}

#[tokio::test]
async fn the_form_of_the_sound_may_change_between_turns_and_a_wrong_rate_changes_nothing() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    let first = tenths(&talker.ask(1.0).await);
    let format = json!({"type": "audio/pcm", "rate": 16_000});
    talker.update(json!({"input": {"format": format}})).await;
    let refused = talker.until("error").await;
    let refused = refused.last().expect("the last event");
    assert_eq!(refused["error"]["param"], "session.audio.input.format.rate", "{refused}");
    // Half a sample is left over from before.
    talker.append(&[0]).await;
    talker.update(json!({"input": {"format": {"type": "audio/pcmu"}}})).await;
    talker.until("session.updated").await;
    talker.append(&telephone(1, 1)).await;
    let second = tenths(&talker.until("response.done").await);
    talker.update(json!({"input": {"format": {"type": "audio/pcm", "rate": 24_000}}})).await;
    talker.until("session.updated").await;
    let third = tenths(&talker.ask(1.0).await);
    // A later turn begins with up to half a second of the silence before it. At a wrong rate it would be three times as long.
    assert!(first.abs_diff(second) <= 5 && first.abs_diff(third) <= 5, "{first} {second} {third}");
}

#[tokio::test]
async fn two_people_at_once_get_their_own_answers() {
    let stage = stage_with(options()).await;
    let (mut ann, mut ben) = (open_repeating(&stage).await, open_repeating(&stage).await);
    for _ in 0..3 {
        let (to_ann, to_ben) = tokio::join!(ann.ask(1.0), ben.ask(3.0));
        for (events, expected) in [(&to_ann, 11..19), (&to_ben, 31..39)] {
            assert_eq!(status(events).0, "completed", "{events:?}");
            assert!(expected.contains(&tenths(events)), "{}", transcript(events));
            // An answer that was cut before a word of it was heard leaves both questions in one message.
            let spoken = joined(events, "response.output_audio_transcript.delta");
            let numbers = spoken.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
            let numbers: Vec<u32> = numbers.collect();
            assert_eq!(numbers.last(), Some(&tenths(events)), "{spoken}");
            assert!(numbers.iter().all(|number| expected.contains(number)), "{spoken}");
        }
    }
}

/// The model takes up to eight messages.
#[tokio::test]
async fn a_conversation_that_is_too_long_for_its_model_goes_on_without_its_oldest_items() {
    let stage = stage_with(options()).await;
    let mut talker = open_repeating(&stage).await;
    for (truncation, expected) in
        [("auto", ("completed", "")), ("disabled", ("failed", "too_long"))]
    {
        let session = json!({"output_modalities": ["text"], "truncation": truncation});
        talker.send(json!({"type": "session.update", "session": session})).await;
        let mut events = Vec::new();
        for turn in 0..12 {
            events = talker.ask_in_writing(&format!("This is question {turn}.")).await;
        }
        assert_eq!(status(&events), expected, "{events:?}");
    }
}

/// Starts an answer without an end. The client reads nothing of it until the voice waits.
async fn open_endless(stage: &Stage) -> Talker {
    let mut talker = stage.begin("gpt-realtime", &[]).await;
    talker.update(json!({"output": {"model": "endless"}})).await;
    talker.until("session.updated").await;
    talker.write("Go on.").await;
    talker.send(json!({"type": "response.create"})).await;
    until_voice_waits(stage).await;
    talker
}

/// No event says that a voice waits: in this time it would make many seconds of sound.
async fn until_voice_waits(stage: &Stage) {
    let mut before = 0;
    while before == 0 || before != stage.endless.seconds() {
        before = stage.endless.seconds();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_heard_while_its_answer_waits() {
    let stage = stage_with(options()).await;
    let mut talker = open_endless(&stage).await;
    let before = stage.endless.seconds();
    // The voice goes on when the client has read enough.
    while stage.endless.seconds() == before {
        talker.next().await;
    }
    until_voice_waits(&stage).await;
    talker.say(12_000, 1.0).await;
    no_hang(stage.endless.dropped()).await;
    let events = talker.until("response.done").await;
    let response = &events.last().expect("the last event")["response"];
    assert_eq!(response["status_details"]["reason"], "turn_detected", "{response}");
    assert!(types(&events).contains(&"input_audio_buffer.speech_started"), "{response}");
}

#[tokio::test]
async fn a_client_that_never_reads_is_given_up_and_leaves_nothing_behind() {
    let stage = stage_with(ServerOptions { sessions_max: 1, ..options() }).await;
    let silent = open_endless(&stage).await;
    no_hang(stage.endless.dropped()).await;
    stage.server.until_in_flight(0).await;
    // Its slot is free, although it has not left.
    let opened = until(async || Box::pin(stage.try_open("/v1/realtime", &[])).await.ok());
    Box::pin(opened).await.until("session.created").await;
    drop(silent);
}

/// The folder of the only session, once it is complete.
fn finished_recording(all: &Path) -> Option<PathBuf> {
    let session = std::fs::read_dir(all).ok()?.next()?.ok()?.path();
    // Its length is written last.
    let spoken = std::fs::read(session.join("spoken.wav")).ok()?;
    (spoken.get(40..44)? != [0xFF; 4]).then_some(session)
}

#[tokio::test]
async fn a_recorded_session_says_so_and_is_on_the_disk() {
    let all = tempfile::tempdir().expect("a folder");
    let recordings = Some(all.path().to_path_buf());
    let stage = stage_with(ServerOptions { recordings, ..options() }).await;
    let mut talker = stage.open().await;
    let created = talker.next().await;
    assert_eq!(created["session"]["recorded"], true, "{created}");
    talker.ask(1.0).await;
    drop(talker);
    let session = until(async || finished_recording(all.path())).await;
    let heard = std::fs::read(session.join("heard.wav")).expect("a file");
    // Two seconds at 16 kHz. The silence after the end of the turn may be unread when the client leaves.
    assert!((48_000..=64_044).contains(&heard.len()), "{}", heard.len());
    let events = std::fs::read_to_string(session.join("events.jsonl")).expect("a file");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let has = |kind: &str| events.iter().any(|line| line["event"]["type"] == kind);
    assert!(has("session.created") && has("response.done"), "{events:?}");
    assert!(!has("response.output_audio.delta") && !has("input_audio_buffer.append"));
}

#[tokio::test]
async fn a_session_beyond_the_room_for_recordings_says_that_it_is_not_recorded() {
    let all = tempfile::tempdir().expect("a folder");
    let old = all.path().join("sess_old");
    std::fs::create_dir(&old).expect("a folder");
    // It has no data, so it takes no room on the disk.
    let heard = std::fs::File::create(old.join("heard.wav")).expect("a file");
    heard.set_len(9 << 30).expect("9 GiB");
    let recordings = Some(all.path().to_path_buf());
    let stage = stage_with(ServerOptions { recordings, ..options() }).await;
    let created = stage.open().await.next().await;
    assert!(created["session"].get("recorded").is_none(), "{created}");
}

#[tokio::test]
async fn a_session_is_not_recorded_by_default() {
    let stage = stage_with(options()).await;
    let created = stage.open().await.next().await;
    assert!(created["session"].get("recorded").is_none(), "{created}");
}

#[tokio::test]
async fn a_session_and_a_secret_without_a_key_end_when_the_server_needs_one() {
    let (stage, mut talker) = session(options()).await;
    let made = post_with("/v1/realtime/client_secrets", "", r#"{"session":{"type":"realtime"}}"#);
    let secret: Value = stage.server.ask(made).await.json();
    let bearer = format!("Bearer {}", secret["value"].as_str().expect("a value"));
    let headers = [("authorization", bearer.as_str())];
    let opened = stage.try_open("/v1/realtime", &headers).await.expect("a session");
    drop(opened);
    stage.server.require(&[named("laptop", "secret")]);
    assert_eq!(stage.refused(&headers).await.0, 401);
    let events = talker.ask_in_writing("Hello").await;
    assert_eq!(status(&events).0, "failed", "{events:?}");
}

#[tokio::test]
async fn a_request_for_a_secret_has_at_most_128_kib() {
    let stage = stage_with(options()).await;
    let session = json!({"type": "realtime", "instructions": "a".repeat(128 << 10)});
    let body = json!({ "session": session }).to_string();
    let made = post_with("/v1/realtime/client_secrets", "", body);
    assert_eq!(stage.server.ask(made).await.status(), 413);
}
