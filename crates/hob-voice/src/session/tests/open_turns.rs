//! Turns of `semantic_vad` that sound complete while their words say that more must follow.
//! The turn model is asked after 4 silent frames, and a complete sentence ends after 8 (256 ms).

use hob_core::realtime::{Eagerness, OutputModality, SessionKind, TurnDetection, TurnDetector};
use hob_core::{ChatEvent, ModelError, TranscriptEvent, TranscriptSummary};

use super::Script;
use super::scenarios::semantic;
use crate::session::{SessionEffect, SessionInput, SessionOptions};

const OPEN: &str = " If it rains tomorrow.";

impl Script {
    /// A sentence that the turn model takes for complete, after 7 silent frames.
    fn sounds_complete(&mut self) -> &mut Script {
        self.sounds(0.9)
    }

    fn sounds(&mut self, probability: f32) -> &mut Script {
        self.speak(20).silence(7).feed(SessionInput::TurnJudged { turn: 2, probability })
    }

    /// A sentence that is complete and in doubt, and the beginning of its answer.
    fn is_answered_in_doubt(&mut self) -> &mut Script {
        self.sounds(0.7).transcribes(1, " Good morning.", Some("en"));
        self.write(3, "Good morning, Ann. How").forget()
    }

    fn understands(&mut self, stream: u64, text: &str) -> &mut Script {
        let event = Some(Ok(TranscriptEvent::Interim(text.to_owned())));
        self.feed(SessionInput::Transcript { stream, event })
    }

    /// The whole transcript, with the language that the transcriber heard.
    fn transcribes(&mut self, stream: u64, text: &str, language: Option<&str>) -> &mut Script {
        let language = language.map(str::to_owned);
        let summary = TranscriptSummary { language, ..TranscriptSummary::default() };
        for event in [TranscriptEvent::Delta(text.to_owned()), TranscriptEvent::Done(summary)] {
            self.feed(SessionInput::Transcript { stream, event: Some(Ok(event)) });
        }
        self
    }

    /// The chat model says how likely the words are complete, as a natural logarithm.
    fn judges_words(&mut self, stream: u64, complete_ln: f32) -> &mut Script {
        self.chat(stream, ChatEvent::TurnEnd { probability: complete_ln.exp() })
    }

    /// Further silent frames until the turn ends, of at most `frames_max`.
    fn frames_to_end(&mut self, frames_max: u32) -> Option<u32> {
        let is_end = |line: &String| line.starts_with("speech stopped");
        (0..=frames_max).find(|frames| {
            if *frames > 0 {
                self.silence(1);
            }
            self.log.iter().any(is_end)
        })
    }
}

fn eager(eagerness: Eagerness) -> impl FnOnce(&mut SessionOptions) {
    move |options: &mut SessionOptions| {
        let detector = TurnDetector::Semantic { eagerness };
        let detection = TurnDetection { detector, ..TurnDetection::default() };
        options.settings.turn_detection = Some(detection);
    }
}

/// A session whose chat model judges words. A sentence to which no rule objects is understood after 7 silent frames.
fn with_a_judge_of_words(eagerness: Eagerness) -> Script {
    let mut script = Script::new(eager(eagerness));
    script.session.set_judges_words(true);
    // No table has rules for a transcript without a language.
    script.sounds_complete().transcribes(1, " Good morning.", None);
    script
}

#[test]
fn an_open_sentence_keeps_the_turn_open_for_half_of_the_longest_silence() {
    for (eagerness, frames) in [
        (Eagerness::High, 32),
        (Eagerness::Medium, 63),
        (Eagerness::Auto, 63),
        (Eagerness::Low, 125),
    ] {
        let mut script = Script::new(eager(eagerness));
        script.sounds_complete().transcribes(1, OPEN, Some("english"));
        assert_eq!(script.frames_to_end(200), Some(frames - 7), "{eagerness:?}");
        // The turn model is not asked again about what it took for complete.
        assert_eq!(script.log.iter().filter(|line| line.starts_with("judge")).count(), 1);
    }
}

#[test]
fn a_sentence_that_may_be_complete_delays_nothing() {
    for (text, language) in [
        (" What are you looking for?", Some("english")),
        (" I did.", Some("english")),
        (" Good morning.", None),
        // No table says how sentences of this language end.
        (OPEN, None),
        (" [BLANK_AUDIO]", Some("english")),
    ] {
        let mut script = Script::new(semantic);
        script.sounds_complete().transcribes(1, text, language);
        assert_eq!(script.frames_to_end(9), Some(1), "{text}");
    }
}

#[test]
fn the_language_of_the_session_serves_a_transcriber_that_names_none() {
    for (language, frames) in [("en", 25), ("de", 1)] {
        let mut script = Script::new(|options| {
            semantic(options);
            let transcription = options.settings.transcription.get_or_insert_default();
            transcription.language = Some(language.to_owned());
        });
        script.sounds_complete().transcribes(1, OPEN, None);
        assert_eq!(script.frames_to_end(60), Some(frames), "{language}");
    }
}

#[test]
fn a_person_who_goes_on_has_one_turn() {
    let mut script = Script::new(semantic);
    script.sounds_complete().transcribes(1, OPEN, Some("en")).silence(10);
    assert_eq!(script.frames_to_end(0), None);
    script.log.clear();
    script.speak(20).check(&["discard 3", "start transcript 4"]);
    script.silence(7).feed(SessionInput::TurnJudged { turn: 5, probability: 0.9 });
    script.transcribes(4, " If it rains tomorrow, I stay at home.", Some("en")).silence(1);
    let started = "start chat 6 [user: If it rains tomorrow, I stay at home.]";
    assert!(script.log.contains(&started.to_owned()), "{:?}", script.log);
    assert!(script.log.contains(&"speech stopped item_1 2080".to_owned()), "{:?}", script.log);
}

/// The answer needs the text, so it begins at the same moment. The times of the turn show the wait as a part of the
/// transcript.
#[test]
fn a_transcript_that_has_begun_is_waited_for() {
    let mut script = Script::new(semantic);
    script.sounds_complete().understands(1, " Good").silence(3);
    assert_eq!(script.frames_to_end(0), None);
    script.log.clear();
    script.transcribes(1, " Good morning.", Some("en"));
    assert_eq!(
        script.log[..2],
        ["start chat 3 [user: Good morning.]", "speech stopped item_1 960"]
    );
    script.write(3, "Good morning, Ann.").sound(4, 210);
    let measured = "measured 256 64 0 0 0".to_owned();
    assert!(script.log.contains(&measured), "{:?}", script.log);
}

#[test]
fn a_transcript_is_not_waited_for_in_vain() {
    let failed = || SessionInput::Transcript { stream: 1, event: Some(Err(ModelError::EmptyText)) };
    // It does not come.
    let mut script = Script::new(semantic);
    script.sounds_complete().understands(1, " If it");
    assert_eq!(script.frames_to_end(60), Some(25));
    // It fails.
    let mut script = Script::new(semantic);
    script.sounds_complete().understands(1, " If it").silence(3).feed(failed());
    assert_eq!(script.frames_to_end(0), Some(0));
    // No answer needs it.
    let mut script = Script::new(|options| {
        semantic(options);
        options.settings.kind = SessionKind::Transcription;
    });
    script.sounds_complete().understands(1, " If it");
    assert_eq!(script.frames_to_end(60), Some(1));
}

#[test]
fn words_change_nothing_where_silence_alone_ends_turns() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(6).transcribes(1, OPEN, Some("en"));
    assert_eq!(script.frames_to_end(60), Some(10));
}

#[test]
fn a_sentence_in_doubt_waits_until_its_answer_can_be_heard() {
    let mut script = Script::new(eager(Eagerness::Auto));
    let begins = ["start speech 4", "say 4 'Good morning,'", "say 4 ''", "hold 3"];
    script.sounds(0.7).transcribes(1, " Good morning.", Some("en")).forget();
    script.write(3, "Good morning, Ann. How").check(&begins);
    script.silence(4).check(&[]);
    script.sound(4, 210).check(&[
        "speech stopped item_1 992",
        "committed item_1",
        "added item_1",
        "done item_1",
        "heard 'Good morning.'",
        "transcript 'Good morning.'",
        "created resp_2",
        "keep 3",
        "keep 4",
        "added item_3",
        "say 4 ' Ann. How'",
        "hold 3",
        "spoken 'Good morning, Ann. How'",
        "audio 2400",
        "audio 2400",
        "go on 3",
        "measured 352 0 0 0 0",
    ]);
    script.write(3, " are you?").finish(3).check(&["say 4 ' are you?'", "end text 4"]);
    script.end_speech(4);
    assert_eq!(script.last(), "resp_2 Completed");
}

/// The model may write all of its answer before the turn model says that the end is in doubt.
#[test]
fn an_answer_in_doubt_that_is_written_waits_until_it_can_be_heard_too() {
    let mut script = Script::new(eager(Eagerness::Auto));
    script.is_answered_in_doubt().finish(3).silence(4).check(&[]);
    script.sound(4, 210);
    assert_eq!(script.frames_to_end(0), Some(0));
    script.end_speech(4);
    assert_eq!(script.last(), "resp_2 Completed");
}

#[test]
fn an_early_voice_says_the_first_clause_of_text_in_pieces() {
    let mut script = Script::new(eager(Eagerness::Auto));
    script.sounds(0.7).transcribes(1, " Good morning.", Some("en")).forget();
    for piece in [" ", "Good", " mor", "ning,", " Ann. How"] {
        script.write(3, piece);
    }
    script.check(&["start speech 4", "say 4 'Good morning,'", "say 4 ''", "hold 3"]);
}

#[test]
fn an_early_voice_is_dropped_without_a_trace() {
    let mut script = Script::new(eager(Eagerness::Auto));
    script.is_answered_in_doubt().silence(3).forget();
    script.speak(20).check(&["discard 3", "discard 4", "start transcript 5"]);
    script.sound(4, 210).check(&[]);
    script.silence(7).feed(SessionInput::TurnJudged { turn: 6, probability: 0.9 });
    script.transcribes(5, " Good morning, Ann.", Some("en")).silence(1);
    let created = ["created resp_2", "speech stopped item_1 1856"];
    assert!(
        created.iter().all(|line| script.log.contains(&(*line).to_owned())),
        "{:?}",
        script.log
    );
}

#[test]
fn an_early_voice_that_fails_is_tried_again_when_the_turn_has_ended() {
    let mut script = Script::new(eager(Eagerness::Auto));
    script.is_answered_in_doubt().silence(3).forget();
    script.feed(SessionInput::Speech { stream: 4, event: Some(Err(ModelError::EmptyText)) });
    assert_eq!(script.frames_to_end(0), Some(0));
    let begins = ["start speech 5", "say 5 'Good morning,'", "say 5 ''", "say 5 ' Ann. How'"];
    let from = script.log.iter().position(|line| line == begins[0]).unwrap();
    assert_eq!(script.log[from..from + 4], begins);
}

#[test]
fn an_early_voice_that_fails_does_not_keep_its_answer_waiting() {
    for event in [Some(Err(ModelError::EmptyText)), None] {
        let mut script = Script::new(|_| {});
        script.speak(20).silence(6).heard_text(1, " Hello").write(2, "Good morning, Ann.").forget();
        script.feed(SessionInput::Speech { stream: 3, event }).check(&["go on 2"]);
    }
}

#[test]
fn doubt_ends_after_a_quarter_of_the_longest_silence() {
    for (eagerness, frames) in [
        (Eagerness::High, 16),
        (Eagerness::Medium, 32),
        (Eagerness::Auto, 32),
        (Eagerness::Low, 63),
    ] {
        for (probability, text) in [(0.7, " Good morning."), (0.9, " I need eggs.")] {
            let mut script = Script::new(eager(eagerness));
            script.sounds(probability).transcribes(1, text, Some("en"));
            assert_eq!(script.frames_to_end(200), Some(frames - 7), "{eagerness:?}: {text}");
        }
    }
}

#[test]
fn doubt_delays_no_answer_that_is_ready_or_not_begun() {
    // A model that acts is asked when the turn is over.
    let mut script = Script::new(eager(Eagerness::Auto));
    script.session.set_answers_early(false);
    script.sounds(0.7).transcribes(1, " Good morning.", Some("en"));
    assert_eq!(script.frames_to_end(9), Some(1));
    // An answer in writing has no voice to wait for.
    let mut script = Script::new(|options| {
        eager(Eagerness::Auto)(options);
        options.settings.output = OutputModality::Text;
    });
    script.is_answered_in_doubt();
    assert_eq!(script.frames_to_end(9), Some(1));
    // An answer that is too short for a clause.
    let mut script = Script::new(eager(Eagerness::Auto));
    script.sounds(0.7).transcribes(1, " Good morning.", Some("en")).write(3, "Yes.").finish(3);
    assert_eq!(script.frames_to_end(9), Some(1));
}

#[test]
fn words_that_the_chat_model_takes_for_open_keep_the_turn_open() {
    for (eagerness, frames) in [
        (Eagerness::High, 32),
        (Eagerness::Medium, 63),
        (Eagerness::Auto, 63),
        (Eagerness::Low, 125),
    ] {
        for complete_ln in [-5.5, f32::NEG_INFINITY] {
            let mut script = with_a_judge_of_words(eagerness);
            script.judges_words(3, complete_ln);
            assert_eq!(script.frames_to_end(200), Some(frames - 7), "{eagerness:?}");
        }
    }
}

#[test]
fn a_judgement_is_dropped_with_its_answer() {
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    script.judges_words(3, -5.5).silence(10);
    assert_eq!(script.frames_to_end(0), None);
    script.log.clear();
    script.speak(20).check(&["discard 3", "start transcript 4"]);
    script.silence(7).feed(SessionInput::TurnJudged { turn: 5, probability: 0.9 });
    script.transcribes(4, " Good morning, Ann.", None).silence(1);
    // It was on its way.
    script.judges_words(3, -0.5);
    assert_eq!(script.frames_to_end(0), None);
    script.judges_words(6, -0.5);
    assert_eq!(script.frames_to_end(0), Some(0));
}

/// The answer needs the model in any case. The times of the turn show the wait as a part of the time to its first text.
#[test]
fn words_that_are_complete_end_the_turn_as_soon_as_the_chat_model_says_so() {
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    script.silence(3);
    assert_eq!(script.frames_to_end(0), None);
    script.judges_words(3, -2.0);
    assert_eq!(script.frames_to_end(0), Some(0));
    script.write(3, "Good morning, Ann.").sound(4, 210);
    let measured = "measured 256 0 64 0 0".to_owned();
    assert!(script.log.contains(&measured), "{:?}", script.log);
    // The silence is too short when it says so.
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    script.judges_words(3, -2.0);
    assert_eq!(script.frames_to_end(9), Some(1));
}

#[test]
fn words_that_the_chat_model_doubts_wait_until_the_answer_can_be_heard() {
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    script.judges_words(3, -3.0).write(3, "Good morning, Ann. How").silence(4);
    assert_eq!(script.frames_to_end(0), None);
    script.sound(4, 210);
    assert_eq!(script.frames_to_end(0), Some(0));
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    script.judges_words(3, -3.0);
    assert_eq!(script.frames_to_end(200), Some(32 - 7));
}

#[test]
fn a_judgement_of_words_is_not_waited_for_in_vain() {
    // It does not come.
    let mut script = with_a_judge_of_words(Eagerness::Auto);
    assert_eq!(script.frames_to_end(60), Some(25));
    // Text comes instead, or the model fails.
    let text = ChatEvent::Text("Good".to_owned());
    for event in [Some(Ok(text)), Some(Err(ModelError::EmptyText)), None] {
        let mut script = with_a_judge_of_words(Eagerness::Auto);
        script.silence(3);
        assert_eq!(script.frames_to_end(0), None);
        script.feed(SessionInput::Chat { stream: 3, event });
        assert_eq!(script.frames_to_end(0), Some(0));
    }
    // A model that acts is asked when the turn is over.
    let mut script = Script::new(semantic);
    script.session.set_judges_words(true);
    script.session.set_answers_early(false);
    script.sounds_complete().transcribes(1, " Good morning.", None);
    assert_eq!(script.frames_to_end(9), Some(1));
}

/// Whether the early answer to a question is asked to judge its words.
fn asks_for_a_judgement(change: impl FnOnce(&mut SessionOptions)) -> bool {
    let mut script = Script::new(change);
    script.speak(20).silence(7).transcript(1, TranscriptEvent::Delta(" Hello.".to_owned()));
    let done = Some(Ok(TranscriptEvent::Done(TranscriptSummary::default())));
    script.session.handle(SessionInput::Transcript { stream: 1, event: done }, script.now);
    let mut effects = std::iter::from_fn(|| script.session.next_effect());
    let asked = effects.find_map(|effect| match effect {
        SessionEffect::StartChat(start) => Some(start.request.judges_turn),
        _ => None,
    });
    asked.expect("an early answer")
}

#[test]
fn words_are_judged_only_where_they_can_keep_a_turn_open() {
    assert!(asks_for_a_judgement(semantic));
    assert!(!asks_for_a_judgement(|_| {}));
}
