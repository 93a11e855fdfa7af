//! Conversations as a user meets them, one behaviour each.
//! A turn ends after 16 silent frames (500 ms), and its first pause after 6.

use std::time::{Duration, Instant};

use hob_core::chat::Role;
use hob_core::realtime::{
    Eagerness, ItemBody, ItemContent, ItemPlace, ItemStatus, RealtimeCommand, RealtimeItem,
    RealtimeSettings, ResponseOptions, SessionKind, TurnDetection, TurnDetector,
};
use hob_core::{ChatEvent, ModelError, SpeechEvent, Speed, TranscriptEvent, VOICE_FRAME_SAMPLES};

use super::{LoudIsSpeech, Script, done, effect_line};
use crate::limits::TEXT_BYTES_MAX;
use crate::session::{SessionEffect, SessionInput, SessionOptions, VoiceSession};

pub(super) fn manual(options: &mut SessionOptions) {
    options.settings.turn_detection = None;
}

pub(super) fn semantic(options: &mut SessionOptions) {
    let detector = TurnDetector::Semantic { eagerness: Eagerness::High };
    options.settings.turn_detection = Some(TurnDetection { detector, ..TurnDetection::default() });
}

pub(super) fn text_item(id: &str, text: &str) -> RealtimeCommand {
    let content = vec![ItemContent::InputText(text.to_owned())];
    let body = ItemBody::Message { role: Role::User, content };
    let (id, status) = (id.to_owned(), ItemStatus::Completed);
    let item = RealtimeItem { id, status, body, reasoning: None };
    RealtimeCommand::CreateItem { item: Box::new(item), place: ItemPlace::Last }
}

pub(super) fn respond() -> RealtimeCommand {
    RealtimeCommand::CreateResponse(Box::default())
}

#[test]
fn an_answer_is_written_during_the_pause_and_spoken_after_the_turn() {
    let mut script = Script::new(|_| {});
    script.speak(20).check(&["start transcript 1", "speech started item_1 0", "warm []"]);
    script.silence(6).check(&["end sound 1"]);
    script.heard_text(1, " Hello").check(&["start chat 2 [user: Hello]"]);
    script.write(2, "Good morning, Ann. How").check(&[
        "start speech 3",
        "say 3 'Good morning,'",
        "say 3 ''",
        "hold 2",
    ]);
    script.silence(10).check(&[
        "speech stopped item_1 1152",
        "committed item_1",
        "added item_1",
        "done item_1",
        "heard 'Hello'",
        "transcript 'Hello'",
        "created resp_2",
        "keep 2",
        "keep 3",
        "added item_3",
        "say 3 ' Ann. How'",
        "hold 2",
    ]);
    script.write(2, " are you?").finish(2).check(&["say 3 ' are you?'", "end text 3"]);
    script.now += Duration::from_millis(40);
    script.sound(3, 210).check(&[
        "spoken 'Good morning, Ann. How are you?'",
        "audio 2400",
        "audio 2400",
        "go on 2",
        "measured 512 0 0 0 40",
    ]);
    script.end_speech(3).check(&[
        "audio 240",
        "output item_3 Completed",
        "done item_3",
        "resp_2 Completed",
    ]);
}

#[test]
fn instructions_are_computed_before_the_user_speaks() {
    let instructions = || "Be brief.".to_owned();
    let settings = RealtimeSettings { instructions: instructions(), ..RealtimeSettings::default() };
    let options = SessionOptions { settings, client_cancels_echo: true, judges_turns: true };
    let mut session = VoiceSession::new(options, Box::new(LoudIsSpeech), Instant::now());
    let effects = std::iter::from_fn(|| session.next_effect()).filter_map(effect_line);
    let warm = "warm [system: Be brief.]";
    assert_eq!(effects.collect::<Vec<_>>(), ["session created", warm]);
    let mut script = Script::new(|_| {});
    let mut settings = Box::new(script.session.settings().clone());
    settings.instructions = instructions();
    script.command(RealtimeCommand::Update(settings)).check(&["session updated", warm]);
}

#[test]
fn speech_after_a_pause_drops_what_was_speculative() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(6).heard_text(1, " Hello").write(2, "Good morning, Ann.").forget();
    script.speak(10).check(&["discard 2", "discard 3", "start transcript 4"]);
    assert_eq!(script.heard[&4], 36 * 512);
    script.silence(16).heard_text(4, " Hello again").check(&[
        "end sound 4",
        "speech stopped item_1 1664",
        "committed item_1",
        "added item_1",
        "done item_1",
        "heard 'Hello again'",
        "transcript 'Hello again'",
        "created resp_2",
        "start chat 5 [user: Hello again]",
    ]);
}

/// The client made no request that hob could have given up.
#[test]
fn a_transcript_that_starts_over_counts_once() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(6).forget();
    script.speak(1).check(&["discard 1", "start transcript 2"]);
    // What the client gives up itself counts.
    script.command(RealtimeCommand::ClearInput);
    assert_eq!(script.log[0], "cancel 2");
}

/// Sound that waited to be read comes in one piece.
#[test]
fn an_early_answer_to_one_turn_does_not_answer_the_next() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(15).heard_text(1, " Hello").write(2, "Good morning.").forget();
    let both = [vec![0.0; VOICE_FRAME_SAMPLES], vec![0.8; 20 * VOICE_FRAME_SAMPLES]].concat();
    script.feed(SessionInput::Sound(both)).check(&[
        "speech stopped item_1 1152",
        "committed item_1",
        "added item_1",
        "done item_1",
        "heard 'Hello'",
        "transcript 'Hello'",
        "start transcript 3",
        "discard 2",
        "speech started item_2 1152",
        "warm [user: Hello]",
    ]);
    script
        .silence(6)
        .heard_text(3, " How are you?")
        .check(&["end sound 3", "start chat 4 [user: Hello\nHow are you?]"]);
}

/// What a team does for half a sentence cannot be dropped.
#[test]
fn a_model_that_acts_is_asked_when_the_turn_is_over() {
    let mut script = Script::new(|_| {});
    script.session.set_answers_early(false);
    script.speak(20).silence(6).heard_text(1, " Hello").forget();
    script.silence(9).check(&[]);
    script.silence(1);
    let started = "start chat 2 [user: Hello]";
    assert_eq!(script.log[script.log.len() - 2..], ["created resp_2", started]);
}

#[test]
fn live_text_is_shown_once_although_the_transcript_starts_over() {
    let mut script = Script::new(|_| {});
    let delta = |text: &str| TranscriptEvent::Delta(text.to_owned());
    script.speak(20).transcript(1, delta(" Well")).silence(6).speak(1).forget();
    script.transcript(2, delta(" Well")).transcript(2, delta(" done")).check(&["heard ' done'"]);
}

#[test]
fn what_may_still_change_of_the_text_is_marked_for_clients_that_ask() {
    let warm = "warm words [user: Well do]";
    for (is_asked, expected) in
        [(true, &["heard 'Well'", warm, "perhaps ' do'"][..]), (false, &["heard 'Well'", warm])]
    {
        let mut script = Script::new(|options| options.settings.reports_interim_text = is_asked);
        script.speak(20).forget();
        for event in
            [TranscriptEvent::Delta(" Well".to_owned()), TranscriptEvent::Interim(" do".to_owned())]
        {
            script.transcript(1, event);
        }
        script.check(expected);
    }
}

#[test]
fn words_are_computed_before_the_turn_is_over_but_not_in_a_pause() {
    let mut script = Script::new(|_| {});
    let understood = |text: &str| TranscriptEvent::Interim(text.to_owned());
    script.speak(20).forget();
    script.transcript(1, understood(" Good")).check(&["warm words [user: Good]"]);
    script.silence(1).transcript(1, understood(" Good morning")).check(&[]);
    script.speak(1).transcript(1, understood(" [BLANK_AUDIO]")).check(&[]);
}

#[test]
fn tool_calls_wait_for_the_end_of_the_turn() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(6).heard_text(1, " Light").forget();
    let (id, name) = ("call_a".to_owned(), "light".to_owned());
    for event in [
        ChatEvent::ToolCall { index: 0, id, name },
        ChatEvent::ToolArguments { index: 0, piece: "{}".to_owned() },
        done(hob_core::chat::FinishReason::ToolCalls),
    ] {
        script.chat(2, event);
    }
    script.check(&[]);
    script.silence(10);
    let calls = ["added item_3", "call light {}", "output item_3 Completed", "done item_3"];
    let from = script.log.iter().position(|line| line == "created resp_2").unwrap();
    let given = [&["keep 2"][..], &calls[..], &["resp_2 Completed"]].concat();
    assert_eq!(script.log[from + 1..], given);
}

#[test]
fn a_sentence_that_seems_complete_ends_the_turn_at_once() {
    let mut script = Script::new(semantic);
    script.speak(20).silence(6).check(&[
        "start transcript 1",
        "speech started item_1 0",
        "warm []",
        "judge 2: 12288",
        "end sound 1",
    ]);
    let verdict = |turn, probability| SessionInput::TurnJudged { turn, probability };
    script.feed(verdict(1, 0.9)).feed(verdict(2, 0.5)).check(&[]);
    script.speak(1).silence(8).forget();
    script.feed(verdict(2, 0.9)).check(&[]);
    script.feed(verdict(4, 0.9));
    assert_eq!(script.log[0], "speech stopped item_1 1120");
}

#[test]
fn a_verdict_that_comes_early_counts_after_a_quarter_of_a_second() {
    let verdict = |turn| SessionInput::TurnJudged { turn, probability: 0.9 };
    let mut script = Script::new(semantic);
    script.speak(20).silence(4).forget();
    script.feed(verdict(2)).silence(3).check(&["end sound 1"]);
    script.silence(1);
    assert_eq!(script.log[0], "speech stopped item_1 896");
    // Speech before that: the next silence has a question of its own.
    let mut script = Script::new(semantic);
    script.speak(20).silence(4).feed(verdict(2)).speak(5).forget();
    script.silence(8).check(&["judge 3: 16896", "end sound 1"]);
}

#[test]
fn a_longer_silence_asks_again_and_wants_a_surer_answer() {
    let verdict = |turn, probability| SessionInput::TurnJudged { turn, probability };
    let mut script = Script::new(semantic);
    script.speak(20).silence(30).feed(verdict(2, 0.4)).forget();
    script.silence(1).check(&["judge 3: 26112"]);
    script.feed(verdict(3, 0.8)).check(&[]);
    script.feed(verdict(3, 0.95));
    assert_eq!(script.log[0], "speech stopped item_1 1632");
}

#[test]
fn an_incomplete_sentence_waits_for_the_longest_silence() {
    let mut script = Script::new(semantic);
    script.speak(20).silence(62);
    assert!(!script.log.iter().any(|line| line.starts_with("speech stopped")));
    script.silence(1);
    assert!(script.log.iter().any(|line| line.starts_with("speech stopped")));
}

#[test]
fn noise_and_failed_transcripts_get_no_answer() {
    let end = ["speech stopped item_1 1152", "committed item_1", "added item_1", "done item_1"];
    let mut script = Script::new(|_| {});
    script.speak(20).silence(16).forget();
    script.heard_text(1, " [BLANK_AUDIO]").check(&["transcript ''"]);
    let mut script = Script::new(|_| {});
    script.speak(20).silence(6).forget();
    let event = Some(Err(ModelError::EmptyText));
    script.feed(SessionInput::Transcript { stream: 1, event }).silence(10);
    script.check(&[&end[..], &["transcript failed item_1"]].concat());
}

/// An answer of 1 s with times of its words, of which 400 ms were played.
fn speaking() -> Script {
    speaking_with(|_| {})
}

pub(super) fn speaking_with(change: impl FnOnce(&mut SessionOptions)) -> Script {
    let mut script = Script::new(change);
    script.ask().write(2, "Good morning, dear Ann.").words(3, [(0..4, 0.2), (5..12, 0.5)]);
    script.sound(3, 1_000).wait(400).forget();
    script
}

#[test]
fn speech_of_the_user_ends_the_answer_and_keeps_what_was_heard() {
    let mut script = speaking();
    script.speak(9).check(&[
        "start transcript 4",
        "speech started item_4 1152",
        "cancel 2",
        "cancel 3",
        "output item_3 Incomplete",
        "done item_3",
        "resp_2 Cancelled(Speech)",
        "warm [user: Hello | assistant: Good morning,]",
    ]);
    script.sound(3, 100).write(2, "more").check(&[]);
    script.wait(1_999).check(&[]);
    script.wait(1);
    assert_eq!(script.last(), "truncated item_3 688");
}

#[test]
fn the_faint_beginning_of_a_voice_is_left_out_and_moves_no_word() {
    let mut script = Script::new(|_| {});
    script.ask().write(2, "Good morning, dear Ann.").words(3, [(0..4, 0.2), (5..12, 0.71)]);
    let faint = Some(Ok(SpeechEvent::Audio(vec![0.001; 24 * 30])));
    script.forget().feed(SessionInput::Speech { stream: 3, event: faint }).check(&["go on 2"]);
    script.sound(3, 1_000);
    assert!(script.log.iter().any(|line| line.starts_with("measured")), "{:?}", script.log);
    let samples = |line: &String| line.strip_prefix("audio ")?.parse::<usize>().ok();
    assert_eq!(script.log.iter().filter_map(samples).sum::<usize>(), 24_000);
    // 688 ms are heard, and 30 ms came before them.
    script.wait(400).speak(9);
    assert_eq!(script.last(), "warm [user: Hello | assistant: Good morning,]");
}

#[test]
fn a_clear_voice_interrupts_at_once_and_an_unclear_one_after_300_ms() {
    let begins = ["start transcript 4", "speech started item_4 1152"];
    let mut script = speaking();
    script.frames(0.95, 2).check(&[]);
    script.frames(0.95, 1);
    assert_eq!(script.log[..2], begins);
    // A voice may begin softly.
    let mut script = speaking();
    script.frames(0.6, 1).frames(0.95, 1).check(&[]);
    script.frames(0.95, 1);
    assert_eq!(script.log[..2], begins);
    let mut script = speaking();
    script.frames(0.95, 2).speak(6).check(&begins[..1]);
    script.speak(1);
    assert_eq!(script.log[0], begins[1]);
    // A sound that ends before does not interrupt.
    let mut script = speaking();
    script.frames(0.95, 2).frames(0.6, 2).silence(20).check(&[]);
}

#[test]
fn the_client_knows_best_what_was_heard() {
    let mut script = speaking();
    script.speak(9).forget();
    script.truncate("item_3", 1_001).check(&["error invalid_value"]);
    script.truncate("item_3", 300).check(&["truncated item_3 300"]);
    let retrieve = RealtimeCommand::RetrieveItem { id: "item_3".to_owned() };
    script.command(retrieve).check(&["retrieved 'Good'"]);
    script.wait(1_500).check(&[]);
}

#[test]
fn a_cough_does_not_end_the_answer_but_a_word_does() {
    let mut script = speaking();
    script.speak(7).silence(1).check(&["start transcript 4", "discard 4"]);
    script.speak(6);
    script.transcript(5, TranscriptEvent::Interim("stop".to_owned()));
    assert!(script.log.contains(&"resp_2 Cancelled(Speech)".to_owned()), "{:?}", script.log);
}

#[test]
fn without_echo_cancellation_the_session_does_not_hear_itself() {
    let mut script = Script::new(|options| options.client_cancels_echo = false);
    script.ask().write(2, "Good morning, dear Ann.").sound(3, 500).forget();
    script.speak(20).check(&[]);
    script.silence(10).speak(6);
    assert_eq!(script.log[0], "start transcript 4");
}

#[test]
fn the_client_ends_turns_without_turn_detection() {
    let mut script = Script::new(manual);
    script.command(RealtimeCommand::CommitInput).check(&["error input_audio_buffer_commit_empty"]);
    script.speak(2).check(&["start transcript 1", "warm []"]);
    script.command(RealtimeCommand::CommitInput).command(respond()).check(&[
        "end sound 1",
        "committed item_1",
        "added item_1",
        "done item_1",
        "created resp_2",
    ]);
    script.heard_text(1, " Hello").check(&[
        "heard 'Hello'",
        "transcript 'Hello'",
        "start chat 2 [user: Hello]",
    ]);
    script.command(respond()).check(&["error conversation_already_has_active_response"]);
    let cancel = || RealtimeCommand::CancelResponse { id: None };
    script.command(cancel()).check(&["cancel 2", "resp_2 Cancelled(Client)"]);
    script.command(cancel()).check(&["error response_cancel_not_active"]);
    script.speak(2).command(RealtimeCommand::ClearInput);
    assert_eq!(script.log.split_off(2), ["cancel 3", "cleared"]);
}

#[test]
fn items_have_an_order_and_ids_of_their_own() {
    let mut script = Script::new(manual);
    script.command(text_item("one", "a")).check(&["added one", "done one"]);
    script.command(text_item("one", "a")).check(&["error item_already_exists"]);
    script.command(text_item("", "b")).check(&["added item_1", "done item_1"]);
    script.command(text_item("item_1", "c")).check(&["error item_already_exists"]);
    let delete = || RealtimeCommand::DeleteItem { id: "one".to_owned() };
    script.command(delete()).check(&["deleted one"]);
    script.command(delete()).check(&["error item_delete_invalid_item_id"]);
    script.command(respond()).check(&["created resp_2", "start chat 1 [user: b]"]);
}

#[test]
fn an_id_is_used_only_by_an_item_that_was_added() {
    let mut script = Script::new(manual);
    script.command(text_item("", "a")).check(&["added item_1", "done item_1"]);
    // Not one of the session's own, although it has the number of one.
    script.command(text_item("msg_1", "b")).check(&["added msg_1", "done msg_1"]);
    let too_long = "c".repeat(TEXT_BYTES_MAX);
    script.command(text_item("item_9", &too_long)).check(&["error conversation_full"]);
    script.command(text_item("item_9", "c")).check(&["added item_9", "done item_9"]);
    script.command(text_item("", "d")).check(&["added item_10", "done item_10"]);
}

#[test]
fn four_responses_may_run_outside_the_conversation() {
    let mut script = Script::new(manual);
    let options = ResponseOptions { is_out_of_band: true, ..ResponseOptions::default() };
    for _ in 0..4 {
        script.command(RealtimeCommand::CreateResponse(Box::new(options.clone())));
    }
    script.log.clear();
    script.respond_with(options);
    script.check(&["error too_many_responses"]);
    script.write(1, "aside").check(&["start speech 5"]);
}

#[test]
fn a_response_may_have_a_speech_model_and_a_speed_of_its_own() {
    let mut script = Script::new(manual);
    let (speech_model, speed) = (Some("tts".to_owned()), Speed::new(2.0).ok());
    let options =
        ResponseOptions { speech_model: speech_model.clone(), speed, ..ResponseOptions::default() };
    script.respond_with(options);
    let event = Some(Ok(ChatEvent::Text("Hello".to_owned())));
    script.session.handle(SessionInput::Chat { stream: 1, event }, script.now);
    let mut effects = std::iter::from_fn(|| script.session.next_effect());
    let start = effects.find_map(|effect| match effect {
        SessionEffect::StartSpeech(start) => Some((start.model, Some(start.speed))),
        _ => None,
    });
    assert_eq!(start, Some((speech_model, speed)));
}

#[test]
fn a_measured_turn_names_the_model_that_answered() {
    let mut script = Script::new(|_| {});
    script.ask().write(2, "Good morning, Ann.");
    let mut changed = Box::new(script.session.settings().clone());
    changed.model = Some("other".to_owned());
    script.command(RealtimeCommand::Update(changed));
    let event = Some(Ok(SpeechEvent::Audio(vec![0.5; 24 * 210])));
    script.session.handle(SessionInput::Speech { stream: 3, event }, script.now);
    let mut effects = std::iter::from_fn(|| script.session.next_effect());
    let model = effects.find_map(|effect| match effect {
        SessionEffect::TurnMeasured { model, .. } => Some(model),
        _ => None,
    });
    assert_eq!(model, Some(None));
}

#[test]
fn a_failed_model_fails_its_response_and_the_session_goes_on() {
    let mut script = Script::new(|_| {});
    script.ask().write(2, "Good morning, Ann.").forget();
    let detail = "it broke".to_owned();
    let event = Some(Err(ModelError::EngineFailed { engine: "speech", detail }));
    script.feed(SessionInput::Speech { stream: 3, event });
    assert_eq!(script.log[..3], ["cancel 2", "output item_3 Incomplete", "done item_3"]);
    assert!(script.log[3].starts_with("resp_2 Failed("), "{:?}", script.log);
    script.log.clear();
    script.command(respond()).check(&["created resp_4", "start chat 4 [user: Hello]"]);
}

#[test]
fn the_voice_is_fixed_after_the_first_sound() {
    let mut script = speaking();
    let settings = || script.session.settings().clone();
    let mut changed = Box::new(settings());
    changed.voice = Some("am_adam".to_owned());
    let mut same = Box::new(settings());
    same.instructions = "Be brief.".to_owned();
    script.command(RealtimeCommand::Update(changed)).check(&["error cannot_update_voice"]);
    script.command(RealtimeCommand::Update(same)).check(&["session updated"]);
}

pub(super) fn idle_after_5_s(options: &mut SessionOptions) {
    let detection = options.settings.turn_detection.as_mut().unwrap();
    if let TurnDetector::Server { idle_timeout, .. } = &mut detection.detector {
        *idle_timeout = Some(Duration::from_secs(5));
    }
}

#[test]
fn the_session_speaks_after_noise_and_after_an_interruption_too() {
    let mut script = Script::new(idle_after_5_s);
    script.speak(20).silence(16).heard_text(1, " [BLANK_AUDIO]").forget();
    script.wait(4_999).check(&[]);
    script.wait(1);
    assert_eq!(script.log[0], "idle item_2");
    let mut script = Script::new(idle_after_5_s);
    script.ask().write(2, "Good morning, Ann.").finish(2).sound(3, 1_000);
    script.command(RealtimeCommand::CancelResponse { id: None }).forget();
    script.wait(6_000);
    assert!(script.log.iter().any(|line| line.starts_with("idle")), "{:?}", script.log);
}

#[test]
fn the_session_does_not_speak_while_a_later_turn_waits_for_its_text() {
    let mut script = Script::new(idle_after_5_s);
    script.speak(20).silence(16).speak(20).silence(16).heard_text(1, " [BLANK_AUDIO]").forget();
    script.wait(6_000).check(&[]);
    script.heard_text(2, " Hello").check(&[
        "heard 'Hello'",
        "transcript 'Hello'",
        "created resp_3",
        "start chat 3 [user: Hello]",
    ]);
}

/// The person would hear nothing, and not know why.
#[test]
fn an_empty_answer_is_a_failed_response() {
    let mut script = Script::new(|_| {});
    script.ask();
    script.finish(2);
    assert!(script.log.len() == 1 && script.log[0].contains("empty_answer"), "{:?}", script.log);
}

#[test]
fn after_a_long_silence_the_session_speaks() {
    let mut script = Script::new(idle_after_5_s);
    script.ask().write(2, "Good morning, Ann.").finish(2).sound(3, 1_000).end_speech(3).forget();
    script.wait(5_999).check(&[]);
    script.wait(1).check(&[
        "idle item_4",
        "committed item_4",
        "added item_4",
        "done item_4",
        "created resp_5",
        "start chat 4 [user: Hello | assistant: Good morning, Ann. | user: (silence)]",
    ]);
}

#[test]
fn a_transcription_session_never_answers() {
    let mut script = Script::new(|options| options.settings.kind = SessionKind::Transcription);
    script.speak(20).silence(16).heard_text(1, " Hello");
    assert_eq!(script.log.pop().as_deref(), Some("transcript 'Hello'"));
    assert!(!script.log.iter().any(|line| line.contains("chat") || line.contains("warm")));
    script.log.clear();
    script.command(respond()).check(&["error invalid_session_type"]);
}

#[test]
fn a_turn_ends_when_the_microphone_falls_silent() {
    let mut script = Script::new(|_| {});
    script.speak(20).wait(1_999).forget();
    script.wait(1);
    assert_eq!(script.log[..2], ["speech stopped item_1 640", "end sound 1"]);
}

#[test]
fn a_microphone_is_not_silent_while_its_sound_waits_to_be_read() {
    let mut script = Script::new(|_| {});
    script.speak(20).wait(1_999).forget();
    script.session.expect_sound(script.now);
    script.wait(1_999).check(&[]);
    script.wait(1);
    assert_eq!(script.log[0], "speech stopped item_1 640");
}
