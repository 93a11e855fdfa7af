//! The state of one request inside the worker: its sound so far, and the parts that wait for the engine.
//! The sound is cut into parts while it is read, so a long file is never in memory as samples.

use std::collections::VecDeque;

use hob_core::{Sound, TranscriptEvent, TranscriptSummary, VoiceDetector};
use hob_speech::decode::SoundDecoder;

use super::agreement::Agreement;
use super::parts::{CutOptions, SoundCutter, SoundPart};
use super::pause_watch::{PAUSE_FRAMES, PauseWatch};
use super::protocol::{BeginTranscript, LIVE_UNREAD_SAMPLES_MAX};
use super::vad::FRAME_SAMPLES;
use super::whisper::{WhisperOptions, WhisperText, language_name};

/// Seconds of new live sound after which the unfinished part is transcribed again. A smaller value shows text sooner and costs more computing.
const INTERIM_S: f64 = 0.8;

/// Seconds of unfinished speech without any text, after which no pause ends a pass. If a pass takes longer than the speaker
/// goes on without a pause, all passes would end too early otherwise, and no text would come before the end.
const TEXTLESS_S_MAX: f64 = 4.0;

/// Samples of a part whose language is that of all later parts: 5 s. One short word is too little: Whisper is trained to
/// detect the language of 30 s.
const LANGUAGE_SAMPLES_MIN: usize = 5 * Sound::RATE_HZ as usize;

/// Pieces of at most a second that one turn reads. A file that is silent for hours would keep the engine otherwise.
const TURN_PIECES_MAX: usize = 30;

/// Seconds before the first certain speech in which it may really have begun.
const ONSET_S: f64 = 0.2;

const RATE_HZ: f64 = Sound::RATE_HZ as f64;

/// A request whose sound is being heard.
#[derive(Debug)]
pub(super) struct Recording<V> {
    begin: BeginTranscript,
    source: Source,
    vad: V,
    parts: SoundCutter,
    /// Samples that do not fill a frame yet.
    rest: Vec<f32>,
    waiting: VecDeque<SoundPart>,
    samples_heard: u64,
    /// Samples of `samples_heard` that the server knows of.
    samples_reported: u64,
    /// The language of the longest part with text, and its samples.
    detected: Option<(String, usize)>,
    has_text: bool,
    pub(super) has_started: bool,
    has_ended: bool,
    agreement: Agreement,
    /// The sample at which the last pass over the unfinished part ended.
    heard_until: u64,
    /// The sample at which the last pass ended that was not ended early.
    understood_until: u64,
    /// A pass over the unfinished part in a pause, and its text.
    guess: Option<(SoundPart, WhisperText)>,
    /// The tokens of the last pass over the unfinished part, and its language.
    draft: Vec<u32>,
    likely_language: Option<String>,
}

/// Where the samples come from.
#[derive(Debug)]
enum Source {
    /// The bytes of a file that has not arrived completely.
    Arriving(Vec<u8>),
    File(Box<SoundDecoder>),
    Samples(VecDeque<f32>),
}

/// What the engine should do next for a request.
#[derive(Debug)]
pub(super) enum Task {
    /// Wait for more sound, or for the next turn.
    Wait,
    Hear(SoundPart),
    /// The part was heard before, in the pause that ended it.
    Keep(SoundPart, WhisperText),
    /// Hear the part that is not finished, for text that may change.
    Peek(SoundPart, PeekReason),
    Finish,
    /// The sound cannot be read further.
    Refuse(String),
}

/// Why an unfinished part is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeekReason {
    /// The speaker goes on, and sees what was understood.
    Progress,
    /// The speaker may have finished.
    Pause,
}

impl<V: VoiceDetector> Recording<V> {
    pub(super) fn new(begin: BeginTranscript, vad: V) -> Recording<V> {
        let (options, source) = if begin.is_live {
            (CutOptions::live(), Source::Samples(VecDeque::new()))
        } else {
            (CutOptions::recording(begin.chunking), Source::Arriving(Vec::new()))
        };
        Recording {
            begin,
            source,
            vad,
            parts: SoundCutter::new(options),
            rest: Vec::new(),
            waiting: VecDeque::new(),
            samples_heard: 0,
            samples_reported: 0,
            detected: None,
            has_text: false,
            has_started: false,
            has_ended: false,
            agreement: Agreement::default(),
            heard_until: 0,
            understood_until: 0,
            guess: None,
            draft: Vec::new(),
            likely_language: None,
        }
    }

    pub(super) fn push_file(&mut self, bytes: &[u8]) {
        if let Source::Arriving(file) = &mut self.source {
            file.extend_from_slice(bytes);
        }
    }

    /// # Errors
    /// The engine is too far behind live sound.
    pub(super) fn push_samples(&mut self, samples: &[f32]) -> Result<(), String> {
        if let Source::Arriving(_) = self.source {
            self.source = Source::Samples(VecDeque::new());
        }
        if let Source::Samples(unread) = &mut self.source {
            unread.extend(samples);
            if self.begin.is_live && unread.len() > LIVE_UNREAD_SAMPLES_MAX {
                let unread_s = unread.len() as f64 / RATE_HZ;
                let max_s = LIVE_UNREAD_SAMPLES_MAX as f64 / RATE_HZ;
                return Err(format!(
                    "it is {unread_s:.0} s behind the live sound (at most {max_s} s): use a smaller model, or let nothing else run"
                ));
            }
        }
        Ok(())
    }

    /// No more sound will come.
    ///
    /// # Errors
    /// The file is not sound that can be decoded.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.has_ended = true;
        if let Source::Arriving(file) = &mut self.source {
            let bytes = std::mem::take(file).into();
            let decoder = SoundDecoder::open(bytes).map_err(|error| error.to_string())?;
            self.source = Source::File(Box::new(decoder));
        }
        Ok(())
    }

    /// Whether [`Recording::next_task`] may find something to do.
    pub(super) fn is_ready(&self) -> bool {
        self.has_ended
            || !self.waiting.is_empty()
            || matches!(&self.source, Source::Samples(unread) if !unread.is_empty())
    }

    /// Whether a person has spoken to the end, and waits for the text.
    pub(super) fn is_awaited(&self) -> bool {
        self.begin.is_live && self.has_ended
    }

    /// Reads sound until a part is complete, or for as long as a turn may take.
    pub(super) fn next_task(&mut self) -> Task {
        for _ in 0..TURN_PIECES_MAX {
            if let Some(part) = self.waiting.pop_front() {
                let guess = self.guess.take();
                return match guess.filter(|(heard, _)| heard.says_the_same_as(&part)) {
                    Some((_, text)) => Task::Keep(part, text),
                    None => Task::Hear(part),
                };
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) if self.has_ended => return Task::Finish,
                Ok(false) => return self.peek(),
                Err(reason) => return Task::Refuse(reason),
            }
        }
        Task::Wait
    }

    /// Reads up to a second. False if there is no more sound now.
    fn read(&mut self) -> Result<bool, String> {
        let piece = match &mut self.source {
            Source::Arriving(_) => None,
            Source::File(decoder) => decoder.next_piece().map_err(|error| error.to_string())?,
            Source::Samples(unread) if unread.is_empty() => None,
            Source::Samples(unread) => {
                let count = unread.len().min(Sound::RATE_HZ as usize);
                Some(unread.drain(..count).collect())
            }
        };
        match piece {
            Some(samples) => self.take(&samples),
            None if !self.has_ended => return Ok(false),
            None => return Ok(self.flush()),
        }
        Ok(true)
    }

    /// Samples of live sound that were read since the last report, once they are worth one.
    pub(super) fn take_report(&mut self) -> Option<u32> {
        let new = self.samples_heard - self.samples_reported;
        if !self.begin.is_live || new < u64::from(Sound::RATE_HZ) {
            return None;
        }
        self.samples_reported = self.samples_heard;
        u32::try_from(new).ok()
    }

    fn take(&mut self, samples: &[f32]) {
        self.samples_heard += samples.len() as u64;
        self.rest.extend_from_slice(samples);
        let (frames, _) = self.rest.as_chunks::<FRAME_SAMPLES>();
        let used = frames.len() * FRAME_SAMPLES;
        for frame in frames {
            let probability = self.vad.probability(frame);
            self.waiting.extend(self.parts.push(frame, probability));
        }
        self.rest.drain(..used);
    }

    /// Completes the last frame with silence, and the last part. False if that was done before.
    fn flush(&mut self) -> bool {
        if !self.rest.is_empty() {
            let mut frame = [0.0; FRAME_SAMPLES];
            frame[..self.rest.len()].copy_from_slice(&self.rest);
            self.rest.clear();
            let probability = self.vad.probability(&frame);
            self.waiting.extend(self.parts.push(&frame, probability));
        }
        self.waiting.extend(self.parts.finish());
        !self.waiting.is_empty()
    }

    fn peek(&mut self) -> Task {
        let open = if self.begin.is_live { self.parts.open_part() } else { None };
        let Some(part) = open else { return Task::Wait };
        let until = part.end_sample();
        let silent_frames = (until - part.speech_end) / FRAME_SAMPLES as u64;
        let (reason, is_due) = if silent_frames >= PAUSE_FRAMES {
            let is_heard = self.guess.as_ref().is_some_and(|(one, _)| one.says_the_same_as(&part));
            (PeekReason::Pause, !is_heard)
        } else {
            let new = until.saturating_sub(self.heard_until.max(part.start_sample));
            // In a silence that may become a pause, this pass would delay the one over the pause.
            let is_speaking = part.speech_end == until;
            (PeekReason::Progress, is_speaking && new as f64 / RATE_HZ >= INTERIM_S)
        };
        if !is_due {
            return Task::Wait;
        }
        self.heard_until = until;
        Task::Peek(part, reason)
    }

    /// What listens while such a pass over the unfinished part is computed. `None`: the pass is computed to its end.
    pub(super) fn pause_watch(&self, part: &SoundPart, reason: PeekReason) -> Option<PauseWatch<V>>
    where
        V: Clone,
    {
        let understood_until = self.understood_until.max(part.start_sample);
        let textless_s = part.end_sample().saturating_sub(understood_until) as f64 / RATE_HZ;
        let is_speech = reason == PeekReason::Progress;
        (textless_s <= TEXTLESS_S_MAX)
            .then(|| PauseWatch::new(self.vad.clone(), self.rest.clone(), is_speech))
    }

    /// How to hear a part of so many samples with speech.
    pub(super) fn options(&self, samples: usize) -> WhisperOptions {
        WhisperOptions {
            task: self.begin.task,
            language: self.language(samples),
            prompt: self.begin.prompt.clone(),
            temperature: self.begin.temperature,
            words: self.begin.words,
            segments: self.begin.segments,
            draft: self.draft.clone(),
            likely_language: self.likely_language.clone(),
        }
    }

    /// The requested language, or that of an earlier part, unless this one is longer and so says more about its language.
    fn language(&self, samples: usize) -> Option<String> {
        let enough = samples.min(LANGUAGE_SAMPLES_MIN);
        let known = self.detected.as_ref().filter(|(_, longest)| *longest >= enough);
        self.begin.language.clone().or_else(|| known.map(|(language, _)| language.clone()))
    }

    /// How to hear an unfinished part. Only the text of a pause may become final, so only that one needs times, which take
    /// another pass of the decoder.
    pub(super) fn peek_options(&self, samples: usize, reason: PeekReason) -> WhisperOptions {
        let options = self.options(samples);
        let may_be_final = reason == PeekReason::Pause;
        WhisperOptions {
            words: options.words && may_be_final,
            segments: options.segments && may_be_final,
            ..options
        }
    }

    /// The events of a part that is complete.
    pub(super) fn add_part(&mut self, part: &SoundPart, text: WhisperText) -> Vec<TranscriptEvent> {
        let [start_s, speech_s] =
            [part.start_sample, part.speech_start].map(|at| at as f64 / RATE_HZ);
        // Whisper often lets its first word begin with the sound. A word that ends before the first certain speech stays.
        let begin = |from_s: f64, to_s: f64| match to_s > speech_s {
            true => from_s.max(speech_s - ONSET_S),
            false => from_s,
        };
        let whole: String = text.segments.iter().map(|segment| segment.text.as_str()).collect();
        let samples = part.spoken_samples();
        let is_longest = self.detected.as_ref().is_none_or(|(_, longest)| samples > *longest);
        if is_longest && !whole.trim().is_empty() {
            self.detected = Some((text.language, samples));
        }
        self.draft.clear();
        self.likely_language = self.detected.as_ref().map(|(language, _)| language.clone());
        let delta = self.agreement.finish(&whole);
        let mut events = Vec::new();
        self.add_delta(delta, &mut events);
        let mut words = text.words;
        for word in &mut words {
            word.end_s += start_s;
            word.start_s = begin(word.start_s + start_s, word.end_s);
        }
        if self.begin.segments {
            let first_word_s = words.first().map_or(f64::INFINITY, |word| word.start_s);
            events.extend(text.segments.into_iter().map(|mut segment| {
                let from_s = segment.start_s + start_s;
                segment.end_s += start_s;
                segment.start_s = begin(from_s, segment.end_s).min(from_s.max(first_word_s));
                segment.seek = (start_s * 100.0).round() as u32;
                TranscriptEvent::Segment(segment)
            }));
        }
        events.extend(words.into_iter().map(TranscriptEvent::Word));
        events
    }

    /// The events of a part that is not complete.
    pub(super) fn peeked(
        &mut self,
        part: SoundPart,
        reason: PeekReason,
        text: WhisperText,
    ) -> Vec<TranscriptEvent> {
        let whole: String = text.segments.iter().map(|segment| segment.text.as_str()).collect();
        let agreed = self.agreement.pass(&whole);
        let mut events = Vec::new();
        self.add_delta(agreed.delta, &mut events);
        events.push(TranscriptEvent::Interim(agreed.interim));
        self.understood_until = part.end_sample();
        self.draft.clone_from(&text.tokens);
        self.likely_language = Some(text.language.clone());
        self.guess = (reason == PeekReason::Pause).then_some((part, text));
        events
    }

    /// Adds text. Leading spaces of the whole transcript are removed.
    fn add_delta(&mut self, delta: String, events: &mut Vec<TranscriptEvent>) {
        let delta = if self.has_text { delta } else { delta.trim_start().to_owned() };
        if !delta.is_empty() {
            self.has_text = true;
            events.push(TranscriptEvent::Delta(delta));
        }
    }

    pub(super) fn done(&self) -> TranscriptSummary {
        // OpenAI's answers name the language in English.
        let detected = self.detected.as_ref().map(|(language, _)| language);
        let language = self.begin.language.as_ref().or(detected);
        let name = language.and_then(|code| language_name(code)).map(str::to_owned);
        TranscriptSummary {
            duration_s: self.samples_heard as f64 / RATE_HZ,
            language: name.or_else(|| language.cloned()),
            usage: None,
            damage: match &self.source {
                Source::File(decoder) => decoder.damage().map(ToString::to_string),
                Source::Arriving(_) | Source::Samples(_) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{HeardWord, Segment};

    use super::*;

    #[derive(Debug)]
    struct Speech;

    impl VoiceDetector for Speech {
        fn probability(&mut self, _frame: &[f32]) -> f32 {
            1.0
        }

        fn reset(&mut self) {}
    }

    #[test]
    fn no_text_begins_long_before_the_first_speech_but_missed_words_keep_their_times() {
        let begin = BeginTranscript { segments: true, words: true, ..BeginTranscript::default() };
        let sample = |seconds: u64| seconds * u64::from(Sound::RATE_HZ);
        // Words in a part whose first certain speech comes after 3 s, where they begin then, and the segment.
        for (words, starts, segment_s) in [
            (vec![(0.0, 3.4), (3.4, 3.8)], vec![2.8, 3.4], 2.8),
            (vec![(0.5, 0.8), (2.9, 3.4)], vec![0.5, 2.9], 0.5),
            (vec![], vec![], 2.8),
        ] {
            let word = |(start_s, end_s)| HeardWord { word: "a".to_owned(), start_s, end_s };
            let words = words.into_iter().map(word).collect();
            let segments = vec![Segment { end_s: 4.0, text: "a".to_owned(), ..Segment::default() }];
            let text = WhisperText { segments, words, ..WhisperText::default() };
            let (speech_start, speech_end) = (sample(3), sample(4));
            let samples = vec![0.0; sample(4) as usize];
            let part = SoundPart { start_sample: 0, speech_start, speech_end, samples };
            let events = Recording::new(begin.clone(), Speech).add_part(&part, text);
            let (mut found, mut segment) = (Vec::new(), None);
            for event in events {
                match event {
                    TranscriptEvent::Word(word) => found.push(word.start_s),
                    TranscriptEvent::Segment(one) => segment = Some(one.start_s),
                    _ => {}
                }
            }
            assert_eq!((found, segment), (starts, Some(segment_s)));
        }
    }

    #[test]
    fn a_short_word_does_not_settle_the_language_of_all_that_follows() {
        let mut recording = Recording::new(BeginTranscript::default(), Speech);
        let samples = |seconds: usize| seconds * Sound::RATE_HZ as usize;
        // A part, what is known of the language of the next one of 2 s or of 9 s, and the language of the whole.
        for (seconds, language, text, next, name) in [
            (1, "en", " Okay.", [None, None], "english"),
            (3, "de", " Guten Tag.", [Some("de"), None], "german"),
            (4, "fr", "", [Some("de"), None], "german"),
            (2, "en", " Okay.", [Some("de"), None], "german"),
            (6, "de", " Wir fangen an.", [Some("de"), Some("de")], "german"),
        ] {
            // Silence of 3 s comes before the 960 ms that every part may have before its speech.
            let sound = vec![0.0; samples(3 + seconds)];
            let speech_start = (samples(3) + 30 * FRAME_SAMPLES) as u64;
            let (start_sample, speech_end) = (0, sound.len() as u64);
            let part = SoundPart { start_sample, speech_start, speech_end, samples: sound };
            let segment = Segment { text: text.to_owned(), ..Segment::default() };
            let (language, segments) = (language.to_owned(), vec![segment]);
            let text = WhisperText { language, segments, ..WhisperText::default() };
            recording.add_part(&part, text);
            let [short, long] = [2, 9].map(|seconds| recording.options(samples(seconds)));
            assert_eq!([&short, &long].map(|next| next.language.as_deref()), next, "{seconds} s");
            // A longer part costs no further step of the decoder if this guess is right.
            assert_eq!(long.likely_language.as_deref().and_then(language_name), Some(name));
            assert_eq!(recording.done().language.as_deref(), Some(name), "{seconds} s");
        }
    }
}
