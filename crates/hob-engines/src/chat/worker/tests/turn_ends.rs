//! How likely the user's last message is complete: answers begin with it if their requests ask for it.

use std::sync::LazyLock;

use hob_core::chat::{Conversation, Message, Role};

use super::counter::next_letter;
use super::random_calls::{self, HERMES_IN_LETTERS, SMOLLM2};
use super::*;

/// How likely SmolLM2 takes the last message of a request for complete. `None`: it has no words.
pub(crate) fn words_complete(request: &ChatRequest) -> Option<f32> {
    static READER: LazyLock<RequestReader> =
        LazyLock::new(|| random_calls::reader(&HERMES_IN_LETTERS));
    let prepared = super::prepared(&READER, request).expect("it fits");
    let at = prepared.judged_at?;
    let token = |(position, &id): (usize, &u32)| BatchToken {
        id,
        position: position as u32,
        slot: 0,
        wants_logits: position == at,
    };
    let batch: Vec<BatchToken> = prepared.prompt[..=at].iter().enumerate().map(token).collect();
    let mut decoder = SMOLLM2.decoder().expect("a context");
    decoder.decode(&batch).expect("computed");
    Some(prepared.answering.turn_end(decoder.logits(at)).expect("numbers"))
}

fn asked(role: Role, text: &str) -> ChatRequest {
    let messages = vec![Message::new(role, text)];
    let prompt = Prompt::Chat(Conversation { messages, ..Conversation::default() });
    ChatRequest { prompt, judges_turn: true, ..continued("") }
}

/// After a `c`, a text ends with a probability of 0.2, and with a full stop of 0.05.
fn may_end_after_c(letter: u32) -> Vec<f32> {
    if letter != u32::from(b'c') {
        return next_letter(letter);
    }
    let mut logits = vec![-50.0; VOCABULARY];
    for (token, probability) in [(END, 0.2f32), (u32::from(b'.'), 0.05), (u32::from(b'd'), 0.75)] {
        logits[token as usize] = probability.ln();
    }
    logits
}

/// A model whose messages end with [`END`]. Its answer is "xyz".
fn judging() -> Counter {
    let template = Some("{{ messages[0].content }}\0w");
    Counter { logits_after: may_end_after_c, template, ..Counter::new(1) }
}

#[test]
fn an_answer_begins_with_how_likely_the_message_is_complete() {
    let mut rig = Rig::of(judging(), 8, None);
    let mut answered = |stream, request| {
        rig.ask(stream, request);
        let answer = rig.until_done(1).remove(&stream).expect("an answer");
        assert_eq!(answer.text, "xyz");
        (answer.turn_end, answer.end.expect("an end").1)
    };
    // The last word ends with the first pass, and the prompt with the second.
    let long: &str = &(" ".repeat(509) + "abc.");
    // The second time, all is in the cache. The last word is computed again, because the cache has no probabilities.
    for (stream, said, prompt, cached) in
        [(1, "abc.", 6, 0), (2, "abc.", 6, 2), (3, long, 515, 0), (4, long, 515, 511)]
    {
        let (turn_end, used) = answered(stream, asked(Role::User, said));
        assert!(turn_end.is_some_and(|chance| (chance - 0.25).abs() < 1e-4), "{turn_end:?}");
        assert_eq!(used, usage(prompt, cached, 3));
    }
    let unasked = ChatRequest { judges_turn: false, ..asked(Role::User, long) };
    assert_eq!(answered(5, unasked), (None, usage(515, 514, 3)));
    assert_eq!(answered(6, asked(Role::User, " ... ")).0, None, "no words");
    let text = ChatRequest { judges_turn: true, ..continued("abc.\0w") };
    assert_eq!(answered(7, text).0, None, "no conversation");
}

#[test]
fn a_cache_that_cannot_be_cut_is_kept_without_a_judgement() {
    let mut rig = Rig::of(Counter { can_truncate: false, ..judging() }, 8, None);
    for (stream, cached) in [(1, 0), (2, 5)] {
        rig.ask(stream, asked(Role::User, "abc."));
        let answer = rig.until_done(1).remove(&stream).expect("an answer");
        let end = Some((FinishReason::Stop, usage(6, cached, 3)));
        assert_eq!((answer.turn_end, answer.end), (None, end));
    }
}

#[test]
fn a_real_model_takes_sentences_for_more_complete_than_their_beginnings() {
    let chance = |text: &str| words_complete(&asked(Role::User, text)).expect("it has words");
    for (open, complete) in [
        ("Have you ever", "Have you ever been to Paris?"),
        ("The older I get", "How old are you?"),
        ("Navigate to twenty-two", "What is the capital of France?"),
    ] {
        assert!(chance(open) < chance(complete), "{open}: {}", chance(open));
        let without_mark = chance(complete.trim_end_matches('?'));
        assert_eq!(chance(complete).to_bits(), without_mark.to_bits());
    }
    assert_eq!(words_complete(&asked(Role::User, "?")), None);
    assert_eq!(words_complete(&asked(Role::Assistant, "Hello.")), None);
}
