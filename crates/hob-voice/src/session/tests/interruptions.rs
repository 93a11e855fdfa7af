//! What follows when an interruption was not speech: a cough, a door, music.
//! The answer is `speaking`'s: its model still writes, and "Good morning," was heard of it.

use hob_core::SpeechEvent;
use hob_core::realtime::{RealtimeCommand, ResponseOptions};

use super::Script;
use super::scenarios::speaking_with;
use crate::session::{SessionInput, SessionOptions};

/// The answer, interrupted by a turn that has ended and waits for its transcript.
fn interrupted(change: impl FnOnce(&mut SessionOptions)) -> Script {
    let mut script = speaking_with(change);
    script.speak(9).silence(16).forget();
    script
}

impl Script {
    /// What the voice was given to say, joined.
    fn said(&self, stream: u64) -> String {
        let begin = format!("say {stream} '");
        let texts = self.log.iter().filter_map(|line| line.strip_prefix(&begin));
        texts.filter_map(|text| text.strip_suffix('\'')).collect()
    }
}

#[test]
fn an_answer_that_a_noise_interrupted_goes_on_from_the_cut() {
    let mut script = interrupted(|_| {});
    script.heard_text(4, " [BLANK_AUDIO]").check(&[
        "transcript ''",
        "created resp_5",
        "start chat 5 [user: Hello | assistant: Good morning, dear Ann.]",
        "added item_6",
        "start speech 6",
    ]);
    script.write(5, " How are you today?").finish(5);
    assert_eq!(script.said(6), "dear Ann. How are you today?");
    script.sound(6, 500).end_speech(6);
    assert_eq!(script.last(), "resp_5 Completed");
}

#[test]
fn an_answer_that_the_model_has_written_is_only_spoken_on() {
    let mut script = speaking_with(|_| {});
    script.finish(2).end_speech(3).speak(9).silence(16).forget();
    script.heard_text(4, " (cough)").check(&[
        "transcript ''",
        "created resp_5",
        "added item_6",
        "start speech 5",
        "say 5 'dear Ann.'",
        "end text 5",
    ]);
}

/// The voice was faster than the model, so all that was written was heard.
#[test]
fn a_model_that_had_not_finished_goes_on_although_all_was_heard() {
    let mut script = speaking_with(|_| {});
    script.words(3, [(14..18, 0.8), (19..22, 1.0)]).wait(600).speak(9).silence(16).forget();
    script.heard_text(4, " [noise]").write(5, " How are you today?").finish(5);
    assert_eq!(script.said(6), "How are you today?");
}

#[test]
fn speech_and_the_client_end_an_answer_for_good() {
    let mut script = interrupted(|_| {});
    script.heard_text(4, " Stop.");
    assert_eq!(
        script.last(),
        "start chat 5 [user: Hello | assistant: Good morning, | user: Stop.]"
    );
    // A command after the interruption, for example another answer that was cancelled.
    let mut script = interrupted(|_| {});
    script
        .command(RealtimeCommand::ClearOutput)
        .heard_text(4, " [noise]")
        .check(&["transcript ''"]);
    let off = |options: &mut SessionOptions| {
        let detection = options.settings.turn_detection.as_mut().expect("server_vad");
        detection.resumes_response = false;
    };
    interrupted(off).heard_text(4, " [noise]").check(&["transcript ''"]);
}

#[test]
fn after_a_long_noise_the_answer_does_not_go_on() {
    let mut script = speaking_with(|_| {});
    script.speak(330).silence(16).forget();
    script.heard_text(4, " [noise]").check(&["transcript ''"]);
}

/// The cut that the client reports counts, and not the estimate.
#[test]
fn the_rest_begins_where_the_client_stopped() {
    let mut script = interrupted(|_| {});
    script.truncate("item_3", 300);
    script.heard_text(4, " [noise]").finish(5);
    assert_eq!(script.said(6), "morning, dear Ann.");
}

/// OpenAI's agents SDK for Python says what was heard before it cancels the response.
#[test]
fn a_client_may_say_what_was_heard_before_it_cancels_the_answer() {
    let mut script = speaking_with(|_| {});
    script.truncate("item_3", 300).check(&[]);
    script.command(RealtimeCommand::CancelResponse { id: None }).check(&[
        "cancel 2",
        "cancel 3",
        "output item_3 Incomplete",
        "done item_3",
        "resp_2 Cancelled(Client)",
        "truncated item_3 300",
    ]);
    script.command(RealtimeCommand::RetrieveItem { id: "item_3".to_owned() });
    script.check(&["retrieved 'Good'"]);
    script.wait(2_000).check(&[]);
    // Without a cancel, the item is cut at the end of its response.
    let mut script = speaking_with(|_| {});
    script.truncate("item_3", 300).finish(2).end_speech(3);
    assert_eq!(script.last(), "truncated item_3 300");
}

/// A person has stopped an answer whose sound had all been sent.
#[test]
fn an_answer_that_the_client_has_cut_is_not_cut_again_and_does_not_go_on() {
    let mut script = speaking_with(|_| {});
    script.finish(2).end_speech(3);
    script.truncate("item_3", 300).speak(9);
    assert_eq!(script.last(), "warm [user: Hello | assistant: Good]");
    script.silence(16).forget().heard_text(4, " [noise]").check(&["transcript ''"]);
}

/// OpenAI's agents SDK for Python rounds up.
#[test]
fn an_item_can_be_cut_in_the_millisecond_in_which_its_sound_ends() {
    let mut script = Script::new(|_| {});
    script.ask().write(2, "Good morning, Ann.").finish(2);
    let event = Some(Ok(SpeechEvent::Audio(vec![0.5; 24 * 210 + 1])));
    script.feed(SessionInput::Speech { stream: 3, event }).end_speech(3).forget();
    script.truncate("item_3", 212).check(&["error invalid_value"]);
    script.truncate("item_3", 211).check(&["truncated item_3 211"]);
}

#[test]
fn a_session_without_echo_cancellation_hears_the_person_after_the_client_has_cut_its_answer() {
    let mut script = speaking_with(|options| options.client_cancels_echo = false);
    script.finish(2).end_speech(3);
    script.truncate("item_3", 300);
    // The room still echoes for 300 ms.
    script.silence(10).forget().speak(6);
    assert_eq!(script.log[0], "start transcript 4");
}

/// The client plays it after the item, which was heard to its end.
#[test]
fn sound_outside_the_conversation_does_not_cut_the_item_before_it() {
    let mut script = speaking_with(|_| {});
    script.finish(2).end_speech(3).wait(600);
    let options = ResponseOptions { is_out_of_band: true, ..ResponseOptions::default() };
    script.respond_with(options);
    script.write(4, "Good evening, Bob.").sound(5, 1_000).speak(9);
    assert_eq!(script.last(), "warm [user: Hello | assistant: Good morning, dear Ann.]");
}

#[test]
fn a_question_whose_answer_a_noise_prevented_is_asked_again() {
    let mut script = Script::new(|_| {});
    script.ask().speak(9).silence(16).forget();
    let again = ["transcript ''", "created resp_4", "start chat 4 [user: Hello]"];
    script.heard_text(3, " [noise]").check(&again);
}

#[test]
fn each_of_two_cuts_is_reported() {
    let mut script = interrupted(|_| {});
    script.heard_text(4, " Stop.").write(5, "Good evening, dear Ann.").sound(6, 1_000).forget();
    script.speak(9);
    let reported = |line: &&String| line.starts_with("truncated");
    assert_eq!(script.log.iter().filter(reported).collect::<Vec<_>>(), ["truncated item_3 688"]);
    script.forget().wait(2_000);
    assert_eq!(script.log.iter().filter(reported).count(), 1);
}
