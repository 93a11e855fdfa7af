//! The account of one transcript: the sound that was heard, beside what every answer's account says.
//! Seconds and counts only: nothing of what was said is kept.

use hob_core::Transcribed;

use crate::account::Account;
use crate::ledger::{Outcome, RequestRecord};

/// Dropping it writes it down.
pub(crate) struct TranscriptAccount {
    pub(crate) answer: Account,
    heard_s: f64,
}

impl TranscriptAccount {
    pub(crate) fn new(answer: Account) -> TranscriptAccount {
        TranscriptAccount { answer, heard_s: 0.0 }
    }

    pub(crate) fn done(&mut self, done: &Transcribed) {
        self.heard_s = done.duration_s.max(0.0);
        self.answer.made(self.heard_s);
        let entry = &mut self.answer.entry;
        entry.audio_ms = self.heard_s * 1e3;
        if let Some(usage) = done.usage {
            entry.prompt_tokens = usage.input_tokens;
            entry.completion_tokens = usage.output_tokens;
        }
        self.answer.complete();
    }
}

impl Drop for TranscriptAccount {
    fn drop(&mut self) {
        let Account { metrics, label: model, entry: RequestRecord { outcome, .. }, .. } =
            &self.answer;
        // What was refused before it began stands among the requests, with its status.
        if self.answer.first().is_none() && *outcome == Outcome::Failed {
            return;
        }
        metrics.transcript(model, *outcome, self.heard_s);
    }
}
