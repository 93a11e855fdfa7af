//! Sessions with many turns: nothing of earlier ones stays, and the session does not hear itself.

use hob_core::VOICE_FRAME_SAMPLES;
use hob_core::realtime::RealtimeCommand;

use super::{Script, SessionEffect, SessionInput};

/// Turns after which a mistake of one in each would be seen.
const INTERRUPTIONS: usize = 200;
/// Turns of a session whose microphone hears its loudspeaker.
const ECHOES: usize = 20;

/// The streams of an answer that has been audible for some time.
#[derive(Clone, Copy)]
struct Answer {
    chat: u64,
    speech: u64,
}

impl Script {
    /// The last stream of this kind that was started.
    fn last_started(&self, kind: &str) -> u64 {
        let number = |line: &String| {
            let rest = line.strip_prefix("start ")?.strip_prefix(kind)?.strip_prefix(' ')?;
            rest.split(' ').next()?.parse().ok()
        };
        self.log.iter().rev().find_map(number).expect("a stream")
    }

    /// One spoken question, and the first second of its answer.
    fn ask_and_hear(&mut self) -> Answer {
        self.speak(20).silence(6);
        let transcript = self.last_started("transcript");
        self.heard_text(transcript, " Hello");
        let chat = self.last_started("chat");
        self.silence(10).write(chat, "Good morning, dear Ann. How are you?");
        let speech = self.last_started("speech");
        self.sound(speech, 1_000);
        Answer { chat, speech }
    }
}

#[test]
fn two_hundred_interruptions_leave_nothing_behind() {
    let mut script = Script::new(|_| {});
    let mut answer = script.ask_and_hear();
    for number in 0..INTERRUPTIONS {
        script.wait(400).forget();
        // The next question interrupts the answer.
        let old = std::mem::replace(&mut answer, script.ask_and_hear());
        let interrupted = |line: &&String| line.ends_with("Cancelled(Speech)");
        assert_eq!(script.log.iter().filter(interrupted).count(), 1, "turn {number}");
        assert!(answer.chat > old.chat && answer.speech > old.speech);
        script.log.clear();
        script.sound(old.speech, 100).write(old.chat, "more").check(&[]);
    }
    let session = &script.session;
    assert_eq!((session.responses.len(), session.transcripts.len()), (1, 0));
    assert!(session.turn.is_none() && session.early_answer.is_none() && session.due.is_none());
    // A question and an answer for each turn.
    assert_eq!(session.conversation.items().count(), 2 * (INTERRUPTIONS + 1));
}

#[test]
fn a_session_that_hears_its_loudspeaker_does_not_interrupt_itself() {
    let mut script = Script::new(|options| options.settings.listens_while_speaking = Some(false));
    for number in 0..ECHOES {
        let answer = script.ask_and_hear();
        script.log.clear();
        // The answer comes back into the microphone, and the room echoes a little longer.
        script.speak(31).frames(0.6, 6).check(&[]);
        script.finish(answer.chat).end_speech(answer.speech);
        assert!(script.last().ends_with("Completed"), "turn {number}: {:?}", script.log);
        script.silence(10);
    }
}

#[test]
fn the_clients_word_about_its_echo_wins_over_the_servers() {
    for (client, is_interrupted) in [(None, false), (Some(true), true), (Some(false), false)] {
        let mut script = Script::new(|options| {
            options.client_cancels_echo = false;
            options.settings.listens_while_speaking = client;
        });
        script.ask_and_hear();
        script.log.clear();
        script.speak(20);
        let interrupted = script.log.iter().any(|line| line.ends_with("Cancelled(Speech)"));
        assert_eq!(interrupted, is_interrupted, "{client:?}");
    }
}

#[test]
fn after_an_hour_of_silence_the_next_question_is_heard() {
    let mut script = Script::new(|_| {});
    script.silence(112_500).check(&[]);
    let begun = ["start transcript 1", "speech started item_1 3599680", "warm []"];
    script.speak(20).check(&begun);
    // The turn has ten frames (320 ms) before its speech, and nothing of the hour before.
    assert_eq!(script.heard[&1], 10 * 512 + 20 * 512);
}

/// The pieces of sound that wait for a model have a limit.
#[test]
fn minutes_of_speech_that_are_heard_again_are_few_pieces() {
    let mut script = Script::new(|options| options.settings.turn_detection = None);
    // 160 s.
    script.speak(5_000);
    let command = RealtimeCommand::Update(Box::default());
    script.session.handle(SessionInput::Command { command, event_id: None }, script.now);
    // The driver gives it back, and may do so in several inputs.
    let unheard = script.session.take_unheard();
    assert_eq!(unheard.len(), 5_000 * VOICE_FRAME_SAMPLES);
    script.session.handle(SessionInput::Sound(unheard), script.now);
    let mut pieces = 0;
    while let Some(effect) = script.session.next_effect() {
        pieces += usize::from(matches!(effect, SessionEffect::Hear { .. }));
    }
    assert!((1..=10).contains(&pieces), "{pieces}");
}
