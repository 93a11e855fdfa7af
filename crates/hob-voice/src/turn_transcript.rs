//! The transcript of one turn, from its first sound to its text.
//! The transcriber may start over when a pause was not the end, and the client never sees text twice.

use hob_core::{ModelError, TranscriptEvent};

use crate::marks::TurnMarks;
use crate::open_sentence::{may_go_on, open_end};

#[derive(Debug, Default)]
pub(crate) struct TurnTranscript {
    pub(crate) stream: u64,
    pub(crate) item_id: String,
    /// The stream has been given all its sound.
    pub(crate) sound_ended: bool,
    /// The client asked for transcripts.
    pub(crate) is_shown: bool,
    /// A response follows the transcript of this turn.
    pub(crate) answer: Option<TurnMarks>,
    pub(crate) sound_s: f64,
    outcome: Option<Result<(), ModelError>>,
    /// As the transcriber names it.
    language: Option<String>,
    text: String,
    /// The beginning of `text` that the client has.
    shown: String,
    has_interim: bool,
    /// Text that may still change, and has not been taken.
    interim: Option<String>,
}

impl TurnTranscript {
    pub(crate) fn new(stream: u64, item_id: String, is_shown: bool) -> TurnTranscript {
        TurnTranscript { stream, item_id, is_shown, ..TurnTranscript::default() }
    }

    /// Starts over with another stream.
    pub(crate) fn restart(&mut self, stream: u64) {
        self.stream = stream;
        self.sound_ended = false;
        self.outcome = None;
        self.language = None;
        self.text.clear();
        self.has_interim = false;
        self.interim = None;
    }

    /// `None`: the stream ended.
    pub(crate) fn take(&mut self, event: Option<Result<TranscriptEvent, ModelError>>) {
        if self.outcome.is_some() {
            return;
        }
        match event {
            Some(Ok(TranscriptEvent::Delta(delta))) => self.text.push_str(&delta),
            Some(Ok(TranscriptEvent::Interim(text))) => {
                self.has_interim = is_words(&text);
                self.interim = Some(text);
            }
            Some(Ok(TranscriptEvent::Segment(_) | TranscriptEvent::Word(_))) => {}
            Some(Ok(TranscriptEvent::Done(summary))) => {
                self.language = summary.language;
                self.outcome = Some(Ok(()));
            }
            Some(Err(error)) => self.outcome = Some(Err(error)),
            None => self.outcome = Some(Err(broke_off())),
        }
    }

    pub(crate) fn has_words(&self) -> bool {
        self.has_interim || is_words(&self.text)
    }

    /// What was said; empty for noise.
    pub(crate) fn text(&self) -> &str {
        if is_words(&self.text) { self.text.trim() } else { "" }
    }

    /// What was said so far, if text that may still change has not been taken.
    pub(crate) fn words_so_far(&self) -> Option<String> {
        let text = format!("{}{}", self.text, self.interim.as_ref()?);
        is_words(&text).then(|| text.trim().to_owned())
    }

    pub(crate) fn outcome(&self) -> Option<&Result<(), ModelError>> {
        self.outcome.as_ref()
    }

    pub(crate) fn fail(&mut self, error: ModelError) {
        self.outcome = Some(Err(error));
    }

    /// Whether the transcript has a text to answer.
    pub(crate) fn is_answerable(&self) -> bool {
        self.outcome == Some(Ok(())) && !self.text().is_empty()
    }

    /// Whether more words must follow. `expected` is the language of a transcriber that names none.
    pub(crate) fn is_open_sentence(&self, expected: Option<&str>) -> bool {
        open_end(self.text(), self.language.as_deref().or(expected)).is_some()
    }

    /// Whether more words may follow a sentence that is complete.
    pub(crate) fn may_go_on(&self, expected: Option<&str>) -> bool {
        may_go_on(self.text(), self.language.as_deref().or(expected))
    }

    /// Text after the deltas that may still change, once. Empty: no more was understood.
    pub(crate) fn next_interim(&mut self) -> Option<String> {
        let text = self.interim.take().filter(|_| self.is_shown)?;
        Some(if self.has_interim { text } else { String::new() })
    }

    /// Text that the client has not seen. A transcript that contradicts what was shown shows no more.
    pub(crate) fn next_delta(&mut self) -> Option<String> {
        let text = self.text.trim_start();
        let delta = text.strip_prefix(self.shown.as_str())?;
        if !self.is_shown || delta.is_empty() || !is_words(text) {
            return None;
        }
        let delta = delta.to_owned();
        self.shown.push_str(&delta);
        Some(delta)
    }
}

fn broke_off() -> ModelError {
    let detail = "the transcript ended too early".to_owned();
    ModelError::EngineFailed { engine: "transcription", detail }
}

/// Transcribers write noise as `[BLANK_AUDIO]`, `(wind)`, `*cough*` or mere punctuation.
fn is_words(text: &str) -> bool {
    let mut closing = None;
    for c in text.chars() {
        match (closing, c) {
            (Some(end), c) if c == end => closing = None,
            (Some(_), _) => {}
            (None, '[') => closing = Some(']'),
            (None, '(') => closing = Some(')'),
            (None, '*') => closing = Some('*'),
            (None, c) if c.is_alphanumeric() => return true,
            (None, _) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use hob_core::TranscriptSummary;

    use super::*;

    #[test]
    fn noise_is_no_text() {
        for (text, words) in [
            (" [BLANK_AUDIO]", false),
            ("(wind blows) ...", false),
            ("*cough*", false),
            ("[music] Hello", true),
            (" Yes.", true),
        ] {
            assert_eq!(is_words(text), words, "{text}");
        }
    }

    #[test]
    fn a_transcript_that_starts_over_shows_no_text_twice() {
        let mut transcript = TurnTranscript::new(1, "item_1".to_owned(), true);
        let delta = |text: &str| Some(Ok(TranscriptEvent::Delta(text.to_owned())));
        transcript.take(delta(" Good"));
        assert_eq!(transcript.next_delta().as_deref(), Some("Good"));
        transcript.restart(2);
        transcript.take(delta(" Go"));
        assert_eq!(transcript.next_delta(), None);
        transcript.take(delta("od morning"));
        assert_eq!(transcript.next_delta().as_deref(), Some(" morning"));
        transcript.take(Some(Ok(TranscriptEvent::Done(TranscriptSummary::default()))));
        assert_eq!(transcript.text(), "Good morning");
    }
}
