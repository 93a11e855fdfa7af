//! A whole transcript as clients read it: JSON short and long, plain text, subtitles of two kinds.
//! A server that gives no times still gets its text into subtitles: one line, over the whole sound.

use hob_core::{HeardWord, Segment, TranscriptEvent, TranscriptSummary, TranscriptTask};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::json;
use crate::word::named;

/// ISO 639's code for an unknown language.
const UNDETERMINED: &str = "und";

hob_core::enum_table! {
    /// How a transcript is written.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum TranscriptFormat: name {
        #[default]
        Json = "json",
        Text = "text",
        Srt = "srt",
        Vtt = "vtt",
        VerboseJson = "verbose_json",
    }
}

named!(TranscriptFormat);

impl TranscriptFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            TranscriptFormat::Json | TranscriptFormat::VerboseJson => "application/json",
            TranscriptFormat::Text | TranscriptFormat::Srt => "text/plain; charset=utf-8",
            TranscriptFormat::Vtt => "text/vtt; charset=utf-8",
        }
    }
}

/// What was understood so far.
#[derive(Clone, Default, PartialEq)]
pub struct TranscriptAnswer {
    text: String,
    segments: Vec<Segment>,
    words: Vec<HeardWord>,
    done: TranscriptSummary,
}

hob_core::debug_fields!(TranscriptAnswer: text.len(), segments.len());

impl TranscriptAnswer {
    pub fn add(&mut self, event: TranscriptEvent) {
        match event {
            TranscriptEvent::Delta(text) => self.text.push_str(&text),
            TranscriptEvent::Segment(segment) => self.segments.push(segment),
            TranscriptEvent::Word(word) => self.words.push(word),
            TranscriptEvent::Interim(_) => {}
            TranscriptEvent::Done(done) => self.done = done,
        }
    }

    /// The body, in this format. `language` is the one that the request named.
    pub fn to_body(
        &self,
        format: TranscriptFormat,
        task: TranscriptTask,
        language: Option<&str>,
    ) -> String {
        match format {
            TranscriptFormat::Json => json(&Transcript {
                text: self.text.trim(),
                usage: self.usage(),
                warning: self.warning(),
            }),
            TranscriptFormat::Text => format!("{}\n", self.text.trim()),
            TranscriptFormat::Srt => self.srt(),
            TranscriptFormat::Vtt => self.vtt(),
            TranscriptFormat::VerboseJson => self.verbose(task, language),
        }
    }

    fn verbose(&self, task: TranscriptTask, language: Option<&str>) -> String {
        let segments = self.segments.iter().zip(0..);
        let words = self.words.iter().map(wire_word);
        json(&VerboseTranscript {
            task: task.name(),
            language: self.done.language.as_deref().or(language).unwrap_or(UNDETERMINED),
            duration: rounded(self.done.duration_s),
            text: self.text.trim(),
            segments: segments.map(|(segment, id)| wire_segment(segment, id)).collect(),
            words: (!self.words.is_empty()).then(|| words.collect()),
            usage: TranscriptUsage::Duration { seconds: rounded(self.done.duration_s) },
            warning: self.warning(),
        })
    }

    /// Why a part of the sound is missing, if the file is damaged.
    pub fn warning(&self) -> Option<&str> {
        self.done.damage.as_deref()
    }

    fn usage(&self) -> TranscriptUsage {
        match &self.done.usage {
            Some(usage) => tokens(usage.input_tokens, usage.output_tokens),
            None => TranscriptUsage::Duration { seconds: rounded(self.done.duration_s) },
        }
    }

    fn srt(&self) -> String {
        let cues = self.cues().into_iter().zip(1..);
        let cue = |(Cue { start_s, end_s, text }, number): (Cue, u32)| {
            // The arrow marks times, also inside of a text.
            let text = text.replace("-->", "-- >");
            format!("{number}\n{} --> {}\n{text}\n\n", stamp(start_s, ','), stamp(end_s, ','))
        };
        cues.map(cue).collect()
    }

    fn vtt(&self) -> String {
        let cue = |Cue { start_s, end_s, text }: Cue| {
            // "<" begins a tag, and "&" the name of a character.
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            format!("{} --> {}\n{text}\n\n", stamp(start_s, '.'), stamp(end_s, '.'))
        };
        "WEBVTT\n\n".to_owned() + &self.cues().into_iter().map(cue).collect::<String>()
    }

    fn cues(&self) -> Vec<Cue> {
        let text = self.text.trim();
        if self.segments.is_empty() && !text.is_empty() {
            return vec![Cue::new(0.0, self.done.duration_s, text)];
        }
        let cue = |segment: &Segment| Cue::new(segment.start_s, segment.end_s, &segment.text);
        self.segments.iter().map(cue).collect()
    }
}

/// A line of subtitles.
struct Cue {
    start_s: f64,
    end_s: f64,
    text: String,
}

impl Cue {
    /// An empty line would end the cue.
    fn new(start_s: f64, end_s: f64, text: &str) -> Cue {
        let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
        Cue { start_s, end_s, text: lines.collect::<Vec<_>>().join("\n") }
    }
}

/// A transcript in the format `json`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Transcript<'a> {
    text: &'a str,
    usage: TranscriptUsage,
    /// Why a part of the sound is missing, if the file is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// A transcript in the format `verbose_json`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct VerboseTranscript<'a> {
    task: &'static str,
    language: &'a str,
    duration: f64,
    text: &'a str,
    segments: Vec<TranscriptSegment<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<TranscriptWord<'a>>>,
    usage: TranscriptUsage,
    /// Why a part of the sound is missing, if the file is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// A part of the speech with its times, in seconds. Strict clients want all of these fields.
#[derive(JsonSchema, Serialize)]
struct TranscriptSegment<'a> {
    id: u32,
    seek: u32,
    start: f64,
    end: f64,
    text: &'a str,
    tokens: &'a [u32],
    temperature: f32,
    avg_logprob: f32,
    compression_ratio: f32,
    no_speech_prob: f32,
}

/// A word with its times, in seconds.
#[derive(JsonSchema, Serialize)]
pub(super) struct TranscriptWord<'a> {
    word: &'a str,
    start: f64,
    end: f64,
}

/// What a transcript counts as: seconds of sound, or tokens.
#[derive(JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum TranscriptUsage {
    Duration { seconds: f64 },
    Tokens { input_tokens: u32, output_tokens: u32, total_tokens: u32 },
}

pub(super) fn tokens(input_tokens: u32, output_tokens: u32) -> TranscriptUsage {
    let total_tokens = input_tokens.saturating_add(output_tokens);
    TranscriptUsage::Tokens { input_tokens, output_tokens, total_tokens }
}

fn wire_segment(segment: &Segment, id: u32) -> TranscriptSegment<'_> {
    TranscriptSegment {
        id,
        seek: segment.seek,
        start: rounded(segment.start_s),
        end: rounded(segment.end_s),
        text: &segment.text,
        tokens: &segment.tokens,
        temperature: segment.temperature,
        avg_logprob: segment.avg_logprob,
        compression_ratio: segment.compression_ratio,
        no_speech_prob: segment.no_speech_prob,
    }
}

pub(super) fn wire_word(word: &HeardWord) -> TranscriptWord<'_> {
    TranscriptWord { word: &word.word, start: rounded(word.start_s), end: rounded(word.end_s) }
}

/// To the millisecond: more is not known.
pub(super) fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// `00:01:02,345`.
fn stamp(seconds: f64, point: char) -> String {
    let ms = (seconds.max(0.0) * 1000.0).round() as u64;
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{point}{:03}", ms / 1000 % 60, ms % 1000)
}
