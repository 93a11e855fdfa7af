//! The words of a spoken text with their times, which travel with the sound.
//! They wait here until the sound that follows them is encoded.

use std::mem::take;

use hob_core::{PhonemeTiming, WordTiming};
use hob_wire::{CaptionPhoneme, CaptionWord};

/// Words that were not sent yet. Without a text, no word is kept.
#[derive(Default)]
pub(crate) struct Captions {
    text: Option<String>,
    has_phonemes: bool,
    waiting: Vec<CaptionWord>,
}

hob_core::debug_fields!(Captions: waiting.len());

impl Captions {
    pub(crate) fn of(text: String, has_phonemes: bool) -> Captions {
        Captions { text: Some(text), has_phonemes, waiting: Vec::new() }
    }

    pub(crate) fn add(&mut self, words: &[WordTiming]) {
        let Some(text) = &self.text else { return };
        for word in words {
            let phonemes: Option<Vec<CaptionPhoneme>> =
                self.has_phonemes.then(|| word.phonemes.iter().map(caption_phoneme).collect());
            let (start_byte, end_byte) = (word.span.start as u64, word.span.end as u64);
            match self.waiting.last_mut() {
                // A written word of several spoken ones, such as "$5".
                Some(last) if (last.start_byte, last.end_byte) == (start_byte, end_byte) => {
                    last.end_time = word.end_s;
                    if let Some((all, more)) = last.phonemes.as_mut().zip(phonemes) {
                        all.extend(more);
                    }
                }
                _ => self.waiting.push(CaptionWord {
                    word: text.get(word.span.clone()).unwrap_or_default().to_owned(),
                    start_time: word.start_s,
                    end_time: word.end_s,
                    start_byte,
                    end_byte,
                    phonemes,
                }),
            }
        }
    }

    /// The words that the next sound is sent with.
    pub(crate) fn take(&mut self) -> Vec<CaptionWord> {
        take(&mut self.waiting)
    }
}

fn caption_phoneme(phoneme: &PhonemeTiming) -> CaptionPhoneme {
    CaptionPhoneme {
        phoneme: phoneme.phoneme.clone(),
        start_time: phoneme.start_s,
        end_time: phoneme.end_s,
    }
}
