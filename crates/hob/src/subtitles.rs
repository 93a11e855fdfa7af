//! Subtitles of what `hob say` speaks: lines of the user's own words, with the times at which they are heard.
//! The engine or the server says when each word is heard. This file makes lines of the words.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use hob_core::{
    Segment, SpeechEvent, SpeechStream, SpeechText, TranscriptEvent, TranscriptTask, WordTiming,
    is_full_stop, locked,
};
use hob_speech::ShownText;
use hob_wire::{TranscriptAnswer, TranscriptFormat};

use crate::failure::{CliResult, Failure};
use crate::sink::Sink;

/// Two rows of a screen, in Latin letters. Characters of Japanese and Chinese are as wide as two of them.
const LINE_WIDTH_MAX: usize = 84;

/// Brackets before a word of Japanese or Chinese.
const WIDE_OPENING: &str = "「『（【〈《〔［";

/// Marks that French writes after a space, and that belong to the word before it.
const SPACED_MARKS: &str = "?!;:»";

/// Marks after the stop of a sentence.
const CLOSING: &str = "\"'”’“»)]*_」』）";

/// Longest time of one line.
const LINE_S_MAX: f32 = 7.0;

/// A stop ends a line if at least this much silence follows. Inside "Dr. Watson" there is less.
const STOP_S_MIN: f32 = 0.1;

/// The files to write, and what was spoken so far. Without files, nothing is kept.
pub(crate) struct Subtitles {
    files: Vec<(TranscriptFormat, Sink)>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    text: String,
    words: Vec<WordTiming>,
}

impl Subtitles {
    /// Creates the files, so that a wrong name costs no time.
    ///
    /// # Errors
    /// A file cannot be created, or is stdout.
    pub(crate) fn open(srt: Option<&Path>, vtt: Option<&Path>) -> CliResult<Subtitles> {
        let mut files = Vec::new();
        for (format, place) in [(TranscriptFormat::Srt, srt), (TranscriptFormat::Vtt, vtt)] {
            let Some(place) = place else { continue };
            if place == Path::new("-") {
                return Err(Failure::usage("subtitles cannot be written to stdout")
                    .hint("give a file name, such as --srt talk.srt"));
            }
            files.push((format, Sink::open(place)?));
        }
        Ok(Subtitles { files, heard: Arc::default() })
    }

    pub(crate) fn are_wanted(&self) -> bool {
        !self.files.is_empty()
    }

    /// Keeps the text on its way to the engine.
    pub(crate) fn read(&self, text: SpeechText) -> SpeechText {
        if self.files.is_empty() {
            return text;
        }
        match text {
            SpeechText::Whole(text) => {
                locked(&self.heard).text.push_str(&text);
                SpeechText::Whole(text)
            }
            SpeechText::Arriving(pieces) => {
                let heard = Arc::clone(&self.heard);
                let pieces = pieces.inspect(move |piece| locked(&heard).text.push_str(piece));
                SpeechText::Arriving(pieces.boxed())
            }
        }
    }

    /// Keeps the times of words on their way from the engine.
    pub(crate) fn listen(&self, stream: SpeechStream) -> SpeechStream {
        if self.files.is_empty() {
            return stream;
        }
        let heard = Arc::clone(&self.heard);
        let (rate_hz, events) = stream.into_parts();
        let events = events.inspect(move |event| {
            if let Ok(SpeechEvent::Words(words)) = event {
                locked(&heard).words.extend(words.iter().cloned());
            }
        });
        SpeechStream::new(rate_hz, events)
    }

    /// Writes the files, after the sound is complete.
    pub(crate) fn write(self) -> CliResult<()> {
        let mut answer = TranscriptAnswer::default();
        {
            let heard = locked(&self.heard);
            if self.are_wanted() && heard.words.is_empty() {
                let sentence = "this voice has no times of words, so there are no subtitles";
                return Err(Failure::server(sentence).hint("leave out --srt and --vtt"));
            }
            for line in lines(&heard.text, &heard.words) {
                answer.add(TranscriptEvent::Segment(line));
            }
        }
        for (format, mut sink) in self.files {
            let body = answer.to_body(format, TranscriptTask::Transcribe, None);
            sink.write(body.as_bytes())?;
            sink.finish()?;
        }
        Ok(())
    }
}

/// Bytes of the shown text, and seconds of the sound.
#[derive(Clone, Copy)]
struct Line {
    from: usize,
    to: usize,
    start_s: f32,
    end_s: f32,
}

fn lines(written: &str, words: &[WordTiming]) -> Vec<Segment> {
    let shown = ShownText::new(written);
    let text = shown.as_str();
    let mut lines = Vec::new();
    let mut line: Option<Line> = None;
    for word in words {
        let span = shown.place(word.span.start)..shown.place(word.span.end);
        let word = &WordTiming { span, ..word.clone() };
        let to = written_end(text, word.span.end);
        line = Some(match line {
            None => Line { from: 0, to, start_s: word.start_s, end_s: word.end_s },
            Some(line) if begins_line(text, line, word) => {
                lines.push(segment(text, line));
                Line { from: line.to, to, start_s: word.start_s, end_s: word.end_s }
            }
            Some(line) => Line { to: to.max(line.to), end_s: word.end_s, ..line },
        });
    }
    lines.extend(line.map(|line| segment(text, line)));
    lines
}

/// The end of a word with the marks that follow it without a space, or as in French with one. Japanese and Chinese words
/// follow each other without spaces, so there the next word ends it, too.
fn written_end(text: &str, end: usize) -> usize {
    let (before, rest) = text.split_at_checked(end).unwrap_or_default();
    let is_wide_word = before.chars().next_back().is_some_and(is_wide);
    let ends_wide_word = |c: char| c.is_alphanumeric() || matches!(c, '“' | '‘');
    let ends = |c: char| {
        c.is_whitespace()
            || is_wide(c)
            || WIDE_OPENING.contains(c)
            || (is_wide_word && ends_wide_word(c))
    };
    let mut to = end + rest.find(ends).unwrap_or(rest.len());
    while let Some(more) = spaced_marks(text.get(to..).unwrap_or_default()) {
        to += more;
    }
    to
}

/// The bytes of a space and the marks after it, if no word follows them without another space.
fn spaced_marks(rest: &str) -> Option<usize> {
    let marks = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
    let behind = marks.trim_start_matches(|c: char| SPACED_MARKS.contains(c));
    let is_apart = behind.chars().next().is_none_or(char::is_whitespace);
    (behind.len() < marks.len() && is_apart).then(|| rest.len() - behind.len())
}

/// Whether a character is written in words without spaces: ideographs and kana.
fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x3005..=0x3007 | 0x3041..=0x3096 | 0x309d..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff
        | 0x3400..=0x9fff | 0xf900..=0xfaff | 0xff66..=0xff9f | 0x2_0000..=0x3_ffff)
}

/// The width of a line, in Latin letters.
fn width(line: &str) -> usize {
    line.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Whether the line is over before this word. A word of which a part is in the line belongs to it.
fn begins_line(text: &str, line: Line, word: &WordTiming) -> bool {
    let Some(gap) = text.get(line.to..word.span.start) else { return false };
    let written = text.get(line.from..line.to).unwrap_or_default();
    let is_stop = written
        .trim_end_matches(|c: char| c.is_whitespace() || CLOSING.contains(c))
        .ends_with(|c: char| matches!(c, '.' | '!' | '?' | '…') || is_full_stop(c));
    let with_word = text.get(line.from..written_end(text, word.span.end)).unwrap_or_default();
    gap.contains('\n')
        || (is_stop && word.start_s - line.end_s >= STOP_S_MIN)
        || width(with_word.trim()) > LINE_WIDTH_MAX
        || word.end_s - line.start_s > LINE_S_MAX
}

fn segment(text: &str, line: Line) -> Segment {
    let written = text.get(line.from..line.to).unwrap_or_default();
    Segment {
        text: written.split_whitespace().collect::<Vec<_>>().join(" "),
        start_s: f64::from(line.start_s),
        end_s: f64::from(line.end_s),
        ..Segment::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word lasts 0.4 s; 0.3 s of silence follow a word that `pauses` contains.
    fn timed(text: &str, pauses: &[&str]) -> Vec<WordTiming> {
        let mut now_s = 0.0;
        let mut at = 0;
        text.split_whitespace()
            .map(|word| {
                let start = at + text[at..].find(word).expect("a word of the text");
                at = start + word.len();
                let start_s = now_s;
                now_s += 0.4 + if pauses.contains(&word) { 0.3 } else { 0.0 };
                // As in the engine, marks are not part of the word.
                let end = start + word.trim_end_matches(['.', ',', '!', '"']).len();
                WordTiming { span: start..end, start_s, end_s: start_s + 0.4, phonemes: Vec::new() }
            })
            .collect()
    }

    fn check(text: &str, pauses: &[&str], expect: &[&str]) {
        check_timed(text, &timed(text, pauses), expect);
    }

    fn check_timed(text: &str, words: &[WordTiming], expect: &[&str]) {
        let lines = lines(text, words);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, expect, "{text}");
    }

    #[test]
    fn lines_end_with_sentences_and_line_breaks() {
        check("Dr. Watson left. He ran.", &["left."], &["Dr. Watson left.", "He ran."]);
        check("यह घर है। वह आया।", &["है।"], &["यह घर है।", "वह आया।"]);
        check("यह घर है॥ वह आया॥", &["है॥"], &["यह घर है॥", "वह आया॥"]);
        check("\"Go!\" he said.", &[], &["\"Go!\" he said."]);
        check("# A title\nand  text", &[], &["# A title", "and text"]);
        check("", &[], &[]);
    }

    #[test]
    fn a_mark_behind_a_space_stays_with_its_word() {
        let words = ["Tu", "viens", "Oui", "Allons", "Puis", "rien"];
        let words: Vec<(&str, f32)> =
            words.into_iter().zip([0.0, 0.4, 1.2, 2.0, 2.8, 3.2]).collect();
        let expect = ["Tu viens ?", "Oui.", "« Allons. »", "Puis rien !"];
        check_words("Tu viens\u{202f}? Oui. « Allons. » Puis rien !", &words, &expect);
        check_words(
            "It is :smile: now",
            &[("It", 0.0), ("is", 0.4), ("smile", 0.8), ("now", 8.0)],
            &["It is :smile:", "now"],
        );
    }

    #[test]
    fn a_long_sentence_has_several_lines() {
        let text = "word ".repeat(40);
        let lines = lines(&text, &timed(&text, &[]));
        assert!(lines.len() > 2, "{}", lines.len());
        for line in &lines {
            assert!(line.text.len() <= LINE_WIDTH_MAX, "{}", line.text);
            assert!(line.end_s - line.start_s <= f64::from(LINE_S_MAX), "{}", line.text);
        }
        let words: usize = lines.iter().map(|line| line.text.split(' ').count()).sum();
        assert_eq!(words, 40);
    }

    #[test]
    fn parts_of_one_written_word_stay_in_one_line() {
        let word = |span, start_s| WordTiming {
            span,
            start_s,
            end_s: start_s + 6.0,
            phonemes: Vec::new(),
        };
        let words = [word(0..3, 0.0), word(4..7, 6.0), word(8..11, 12.0)];
        check_timed("GPT-3.5 now", &words, &["GPT-3.5", "now"]);
    }

    /// The lines of a text with these words, which begin at these times and last 0.4 s.
    fn check_words(text: &str, words: &[(&str, f32)], expect: &[&str]) {
        let mut at = 0;
        let timed: Vec<WordTiming> = words
            .iter()
            .map(|&(word, start_s)| {
                let start = at + text[at..].find(word).expect("a word of the text");
                at = start + word.len();
                WordTiming { span: start..at, start_s, end_s: start_s + 0.4, phonemes: Vec::new() }
            })
            .collect();
        check_timed(text, &timed, expect);
    }

    #[test]
    fn pauses_and_phonemes_that_the_user_wrote_are_not_shown() {
        check_words(
            "Wait. [pause:2s] Now go.",
            &[("Wait", 0.0), ("Now", 2.4), ("go", 2.8)],
            &["Wait.", "Now go."],
        );
        check_words(
            "A [GIF](/ʤˈɪf/), not [Ms Ng](/mˈɪz ˈɪŋ/). Go.",
            &[("A", 0.0), ("GIF", 0.4), ("not", 0.8), ("Ms Ng", 1.2), ("Go", 2.0)],
            &["A GIF, not Ms Ng.", "Go."],
        );
        check_words(
            "[Ms Ng](/mˈɪz ˈɪŋ/) left",
            &[("Ms Ng", 0.0), ("left", 7.0)],
            &["Ms Ng", "left"],
        );
        check_words(
            "[東京](/tˈoːkjoː/)へ行く。",
            &[("東京", 0.0), ("へ", 0.4), ("行く", 0.8)],
            &["東京へ行く。"],
        );
    }

    #[test]
    fn phonemes_do_not_make_a_line_wider() {
        let text = "[cat](/kˈætkˈætkˈæt/) ".repeat(12);
        let words: Vec<(&str, f32)> =
            (0..12u8).map(|number| ("cat", f32::from(number) * 0.4)).collect();
        check_words(&text, &words, &[["cat"; 12].join(" ").as_str()]);
    }

    #[test]
    fn words_without_spaces_make_several_lines() {
        let words = ["今日", "は", "良い", "公園", "へ", "GPT", "と", "行く"];
        let starts_s: [f32; 8] = [0.0, 0.4, 0.8, 1.5, 1.9, 2.3, 2.7, 3.1];
        let words: Vec<(&str, f32)> = words.into_iter().zip(starts_s).collect();
        let expect = ["今日は良い。", "「公園へ」GPTと行く。"];
        check_words("今日は良い。「公園へ」GPTと行く。", &words, &expect);
    }

    #[test]
    fn wide_characters_count_twice() {
        let text = "猫".repeat(100);
        let word = |number: usize| {
            let (start, start_s) = (number * "猫".len(), number as f32 * 0.1);
            let span = start..start + "猫".len();
            WordTiming { span, start_s, end_s: start_s + 0.1, phonemes: Vec::new() }
        };
        let words: Vec<WordTiming> = (0..100).map(word).collect();
        let lines = lines(&text, &words);
        let lengths: Vec<usize> = lines.iter().map(|line| line.text.chars().count()).collect();
        assert_eq!(lengths, [42, 42, 16]);
    }

    #[test]
    fn subtitles_need_a_file() {
        let refused = Subtitles::open(Some(Path::new("-")), None).err().expect("refused");
        assert!(refused.to_string().contains("cannot be written to stdout"), "{refused}");
    }
}
