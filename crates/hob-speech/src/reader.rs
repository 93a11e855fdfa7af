//! Reads one text unit by unit, complete or still arriving.
//! Text after the next unit is neither normalised nor turned into phonemes before the unit is requested.

use std::collections::VecDeque;

use hob_core::Language;

use crate::asian::{self, is_asian};
use crate::lexicon::Lexicon;
use crate::normalise::{code_block, read_with};
use crate::phonemes::Phonemizer;
use crate::reading::Reading;
use crate::segment::{End, NeedMore, PAUSE_MS_MAX, Segment, next_segment, pause_mark};
use crate::spoken::SpokenUnit;
use crate::unit::{Turn, UNIT_PHONEMES_MIN, has_room, joined, length, units};

/// The reader looks this many characters past a unit, to know whether the following text can stand alone.
const TAIL_CHARS_MIN: usize = UNIT_PHONEMES_MIN;

/// Text that was read is dropped in steps of this many bytes, so that dropping stays cheap.
const FORGET_BYTES: usize = 16 * 1024;

/// A line that begins with this many backticks or tildes opens or closes a code block.
pub(crate) const FENCE_MARKS: usize = 3;

/// Reads one text to its end.
#[derive(Debug)]
pub struct Reader {
    language: Language,
    lexicon: Lexicon,
    /// The text that has arrived and was not dropped, from byte `forgotten` of the user's text on.
    text: String,
    forgotten: usize,
    /// The position in `text` where reading continues.
    at: usize,
    ended: bool,
    /// The writer pauses: the text so far is read without waiting for more.
    paused: bool,
    /// This text allows no decision. Nothing is computed again until more text arrives.
    waiting: bool,
    /// Only spaces stand between `at` and the beginning of its line.
    line_start: bool,
    /// Inside a code block, which this mark closes.
    fence: Option<char>,
    fence_opening: bool,
    /// Units that are ready, except that the last one may still get a tail.
    ready: VecDeque<SpokenUnit>,
    /// At least one sentence was read.
    begun: bool,
    /// The user wrote a pause after the last sentence.
    ends_with_pause: bool,
    done: bool,
    /// The pieces after the first pause, while what was written before it is not read. It is wanted at once, so that the
    /// voice begins early, and these must not make a longer sentence of it.
    after_pause: Vec<String>,
    ends_after_pause: bool,
    /// The first pause is over. Text after a later one makes a sentence with what is unread.
    has_paused: bool,
}

/// What follows in the text.
enum Next {
    Sentence(Reading, End),
    /// The user wrote a pause, in ms.
    Pause(u32),
    Nothing,
}

impl Reader {
    pub fn new(language: Language) -> Reader {
        Reader {
            language,
            lexicon: Lexicon::default(),
            text: String::new(),
            forgotten: 0,
            at: 0,
            ended: false,
            paused: false,
            waiting: false,
            line_start: true,
            fence: None,
            fence_opening: false,
            ready: VecDeque::new(),
            begun: false,
            ends_with_pause: false,
            done: false,
            after_pause: Vec::new(),
            ends_after_pause: false,
            has_paused: false,
        }
    }

    /// Reads with these pronunciations.
    #[must_use]
    pub fn with_lexicon(self, lexicon: Lexicon) -> Reader {
        Reader { lexicon, ..self }
    }

    /// Adds text, cut anywhere between characters. An empty piece means that the writer pauses.
    pub fn push(&mut self, piece: &str) {
        if self.paused && !self.has_paused {
            return self.after_pause.push(piece.to_owned());
        }
        self.paused = piece.is_empty();
        let last = self.text.chars().next_back();
        let middle_of_word =
            last.is_some_and(char::is_alphanumeric) && piece.chars().all(char::is_alphanumeric);
        self.text.push_str(piece);
        let unread = self.text.len() - self.at;
        if self.paused || !middle_of_word || unread > crate::segment::SENTENCE_BYTES_MAX {
            self.waiting = false;
        }
    }

    /// No more text will come.
    pub fn finish(&mut self) {
        if !self.after_pause.is_empty() {
            self.ends_after_pause = true;
            return;
        }
        self.ended = true;
        self.waiting = false;
    }

    /// Returns the next unit. `None` means that more text is needed, or, if [`Reader::is_done`], that the text has
    /// ended, or that the phonemizer failed: [`Phonemizer::take_failure`].
    pub fn next_unit(&mut self, phonemizer: &mut Phonemizer) -> Option<SpokenUnit> {
        self.unit_so_far(phonemizer)
            .or_else(|| self.goes_on_after_pause().then(|| self.unit_so_far(phonemizer))?)
    }

    /// Adds the text after the first pause. False without such text.
    fn goes_on_after_pause(&mut self) -> bool {
        let pieces = std::mem::take(&mut self.after_pause);
        self.has_paused |= !pieces.is_empty();
        pieces.iter().for_each(|piece| self.push(piece));
        if std::mem::take(&mut self.ends_after_pause) {
            self.finish();
        }
        !pieces.is_empty()
    }

    fn unit_so_far(&mut self, phonemizer: &mut Phonemizer) -> Option<SpokenUnit> {
        if self.waiting || self.done {
            return None;
        }
        match self.work(phonemizer) {
            Ok(Some(unit)) => Some(unit),
            Ok(None) => {
                self.done = self.ended;
                self.waiting = true;
                None
            }
            Err(NeedMore) => {
                self.waiting = true;
                if self.paused { self.last_unit() } else { None }
            }
        }
    }

    /// Whether every unit was returned and no text can follow.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Reads sentences until one unit is complete: it is long enough, and the text after it is either long enough to
    /// stand alone or empty.
    fn work(&mut self, phonemizer: &mut Phonemizer) -> Result<Option<SpokenUnit>, NeedMore> {
        loop {
            if self.ready.len() > 1 {
                return Ok(self.ready.pop_front());
            }
            if let Some(unit) = self.ready.front()
                && length(unit) >= UNIT_PHONEMES_MIN
                && !self.is_short_tail()?
            {
                return Ok(self.ready.pop_front());
            }
            let (reading, end) = match self.next_reading()? {
                Next::Sentence(reading, end) => (reading, end),
                Next::Nothing => return Ok(self.last_unit().or_else(|| self.final_pause())),
                Next::Pause(ms) => {
                    self.ends_with_pause = true;
                    let unit = self.ready.pop_front().unwrap_or_else(silent_unit);
                    return Ok(Some(with_pause(unit, ms)));
                }
            };
            let turn = if self.begun { Turn::Later } else { Turn::First };
            self.begun = true;
            self.ends_with_pause = false;
            let Some(sounds) = phonemizer.sounds(self.language, &reading) else {
                return Ok(None);
            };
            self.take(units(sounds, end, turn));
        }
    }

    /// Returns the next sentence that has a word, or the pause before it.
    fn next_reading(&mut self) -> Result<Next, NeedMore> {
        loop {
            self.forget();
            if let Some(fence) = self.fence {
                self.skip_code(fence)?;
            }
            self.skip_whitespace();
            if let Some(ms) = self.pause()? {
                return Ok(Next::Pause(ms));
            }
            let (reading, end) = match self.code_block()? {
                Some(reading) => (reading, End::Paragraph),
                None => {
                    let ended = self.ended || self.paused;
                    match next_segment((&self.text, self.language), self.at, ended)? {
                        Some(segment) => (self.read(&segment), segment.end),
                        None => return Ok(Next::Nothing),
                    }
                }
            };
            if !reading.is_empty() {
                return Ok(Next::Sentence(reading, end));
            }
        }
    }

    /// Passes the pauses that stand here, and returns their sum.
    fn pause(&mut self) -> Result<Option<u32>, NeedMore> {
        let (mut at, mut sum_ms) = (self.at, 0);
        while let Some(mark) = pause_mark(&self.text, at, self.ended || self.paused)? {
            sum_ms = (sum_ms + mark.ms).min(PAUSE_MS_MAX);
            let rest = &self.text[at + mark.bytes..];
            at = self.text.len() - rest.trim_start().len();
        }
        if at == self.at {
            return Ok(None);
        }
        self.line_start = self.text[self.at..at].contains('\n');
        self.at = at;
        Ok(Some(sum_ms))
    }

    fn skip_whitespace(&mut self) {
        let rest = &self.text[self.at..];
        let skipped = rest.len() - rest.trim_start().len();
        self.line_start |= rest[..skipped].contains('\n');
        self.at += skipped;
    }

    fn read(&mut self, segment: &Segment) -> Reading {
        self.at = segment.range.end;
        self.line_start = false;
        let text = &self.text[segment.range.clone()];
        let offset = self.forgotten + segment.range.start;
        let read = if is_asian(self.language) { asian::read } else { read_with };
        let mut reading = read(text, offset, self.language, &self.lexicon);
        if segment.end >= End::Line {
            reading.close();
        }
        reading
    }

    /// Handles a code fence at the beginning of a line: the block is announced, not read.
    fn code_block(&mut self) -> Result<Option<Reading>, NeedMore> {
        let rest = &self.text[self.at..];
        let Some(mark @ ('`' | '~')) = rest.chars().next().filter(|_| self.line_start) else {
            return Ok(None);
        };
        let marks = rest.chars().take_while(|c| *c == mark).count();
        if marks == rest.len() && marks < FENCE_MARKS && !self.ended {
            return Err(NeedMore);
        }
        if marks < FENCE_MARKS {
            return Ok(None);
        }
        let mut reading = Reading::default();
        let start = self.forgotten + self.at;
        reading.say(start..start + FENCE_MARKS, code_block(self.language));
        reading.mark('.');
        self.fence = Some(mark);
        self.at += FENCE_MARKS;
        // Skipping starts with the line of the opening fence, which must not close the block.
        self.fence_opening = true;
        Ok(Some(reading))
    }

    /// Skips whole lines up to the line that closes the block.
    fn skip_code(&mut self, fence: char) -> Result<(), NeedMore> {
        while self.fence.is_some() {
            let rest = &self.text[self.at..];
            let length = match rest.find('\n') {
                Some(length) => length,
                None if self.ended => rest.len(),
                None => return Err(NeedMore),
            };
            let line = rest[..length].trim();
            let closes = !self.fence_opening
                && line.len() >= FENCE_MARKS
                && line.chars().all(|c| c == fence);
            if closes || self.at + length == self.text.len() {
                self.fence = None;
            }
            self.fence_opening = false;
            self.line_start = true;
            self.at = (self.at + length + 1).min(self.text.len());
        }
        Ok(())
    }

    /// Whether the rest of the text is too short to be said alone, or is a pause, which belongs to the unit before it.
    fn is_short_tail(&mut self) -> Result<bool, NeedMore> {
        self.skip_whitespace();
        if pause_mark(&self.text, self.at, self.ended || self.paused)?.is_some() {
            return Ok(true);
        }
        let tail = &self.text[self.at..];
        let count = tail.chars().take(TAIL_CHARS_MIN).count();
        if count >= TAIL_CHARS_MIN {
            return Ok(false);
        }
        if self.ended || self.paused { Ok(true) } else { Err(NeedMore) }
    }

    /// Appends units to those that are ready. Joins two units if one of them is too short.
    fn take(&mut self, units: Vec<SpokenUnit>) {
        for unit in units {
            match self.ready.pop_back() {
                Some(last)
                    if length(&last).min(length(&unit)) < UNIT_PHONEMES_MIN
                        && has_room(&last, length(&unit)) =>
                {
                    self.ready.push_back(joined(last, unit));
                }
                Some(last) => self.ready.extend([last, unit]),
                None => self.ready.push_back(unit),
            }
        }
    }

    fn last_unit(&mut self) -> Option<SpokenUnit> {
        let mut unit = self.ready.pop_front()?;
        if self.ready.is_empty() && self.ended {
            unit.pause_after_ms = 0;
        }
        Some(unit)
    }

    /// Lets the pause of the unit before it be heard, once, although nothing follows.
    fn final_pause(&mut self) -> Option<SpokenUnit> {
        let is_heard = self.ended && self.begun && self.ends_with_pause;
        self.ends_with_pause &= !self.ended;
        is_heard.then(silent_unit)
    }

    fn forget(&mut self) {
        if self.at >= FORGET_BYTES {
            self.text.drain(..self.at);
            self.forgotten += self.at;
            self.at = 0;
        }
    }
}

fn silent_unit() -> SpokenUnit {
    SpokenUnit { phonemes: String::new(), words: Vec::new(), pause_after_ms: 0 }
}

/// A pause that the user wrote does not shorten the one of the sentence's end.
fn with_pause(unit: SpokenUnit, ms: u32) -> SpokenUnit {
    SpokenUnit { pause_after_ms: unit.pause_after_ms.max(ms), ..unit }
}

/// Whether anything of `text` would be heard. Stops at the first sentence that has a word.
pub fn is_speakable(text: &str) -> bool {
    let mut reader = Reader::new(Language::AmericanEnglish);
    reader.push(text);
    reader.finish();
    loop {
        match reader.next_reading() {
            Ok(Next::Pause(_)) => {}
            Ok(Next::Sentence(..)) => return true,
            Ok(Next::Nothing) | Err(NeedMore) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
