//! The words of a spoken text with their times, which travel with the sound.
//! They wait here until the sound that follows them is encoded.

use std::fmt;
use std::mem::take;

use hob_core::WordTiming;
use hob_wire::CaptionWord;

/// Words that were not sent yet. Without a text, no word is kept.
#[derive(Default)]
pub(crate) struct Captions {
    text: Option<String>,
    waiting: Vec<CaptionWord>,
}

impl fmt::Debug for Captions {
    /// Says how many words, never which: texts do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captions").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Captions {
    pub(crate) fn of(text: String) -> Captions {
        Captions { text: Some(text), waiting: Vec::new() }
    }

    pub(crate) fn add(&mut self, words: &[WordTiming]) {
        let Some(text) = &self.text else { return };
        for word in words {
            let (start_byte, end_byte) = (word.span.start as u64, word.span.end as u64);
            match self.waiting.last_mut() {
                // A written word of several spoken ones, such as "$5".
                Some(last) if (last.start_byte, last.end_byte) == (start_byte, end_byte) => {
                    last.end_time = word.end_s;
                }
                _ => self.waiting.push(CaptionWord {
                    word: text.get(word.span.clone()).unwrap_or_default().to_owned(),
                    start_time: word.start_s,
                    end_time: word.end_s,
                    start_byte,
                    end_byte,
                }),
            }
        }
    }

    /// The words that the next sound is sent with.
    pub(crate) fn take(&mut self) -> Vec<CaptionWord> {
        take(&mut self.waiting)
    }
}
