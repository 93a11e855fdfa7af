//! The answer to `describe`: programs, and the voices and languages of each.
//! Home Assistant uses the first program of a list, and only entries that are installed.

use hob_core::Voice;
use serde::Serialize;

use crate::transcript::language_codes;

/// Everything that a port serves.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WyomingInfo {
    asr: Vec<Entry<AsrParts>>,
    tts: Vec<Entry<TtsParts>>,
    handle: [(); 0],
    intent: [(); 0],
    wake: [(); 0],
    mic: [(); 0],
    snd: [(); 0],
}

/// A speech model under one of its names.
#[derive(Clone, Copy, Debug)]
pub struct SpeechProgram<'a> {
    pub name: &'a str,
    pub voices: &'a [Voice],
}

/// A transcription model under one of its names.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptionProgram<'a> {
    pub name: &'a str,
    /// ISO 639-1 codes. Empty: unknown, and all are listed.
    pub languages: &'a [String],
}

/// A program, a model or a voice.
#[derive(Clone, Debug, Serialize)]
struct Entry<Parts> {
    name: String,
    description: String,
    version: &'static str,
    attribution: Attribution,
    installed: bool,
    #[serde(flatten)]
    parts: Parts,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Attribution {
    name: &'static str,
    url: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct TtsParts {
    /// The protocol's README says `models`; its library reads `voices`.
    voices: Vec<Entry<Languages>>,
    supports_synthesize_streaming: bool,
}

#[derive(Clone, Debug, Serialize)]
struct AsrParts {
    models: Vec<Entry<Languages>>,
    supports_transcript_streaming: bool,
    /// hob does not decide when a speaker has finished: the client sends `audio-stop`.
    requires_external_vad: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Languages {
    languages: Vec<String>,
}

impl WyomingInfo {
    pub fn speech<'a>(programs: impl IntoIterator<Item = SpeechProgram<'a>>) -> WyomingInfo {
        let tts = programs.into_iter().map(tts_program).collect();
        WyomingInfo { tts, ..WyomingInfo::default() }
    }

    pub fn transcription<'a>(
        programs: impl IntoIterator<Item = TranscriptionProgram<'a>>,
    ) -> WyomingInfo {
        let asr = programs.into_iter().map(asr_program).collect();
        WyomingInfo { asr, ..WyomingInfo::default() }
    }
}

fn tts_program(SpeechProgram { name, voices }: SpeechProgram<'_>) -> Entry<TtsParts> {
    let voices = voices.iter().map(voice_entry).collect();
    let parts = TtsParts { voices, supports_synthesize_streaming: true };
    entry(name, format!("{name}, spoken by hob"), parts)
}

fn voice_entry(voice: &Voice) -> Entry<Languages> {
    let description = format!("{} ({}, {})", voice.name, voice.language, voice.gender);
    entry(&voice.id, description, Languages { languages: vec![voice.language.tag().to_owned()] })
}

fn asr_program(program: TranscriptionProgram<'_>) -> Entry<AsrParts> {
    let TranscriptionProgram { name, languages } = program;
    let languages = match languages {
        [] => language_codes().map(str::to_owned).collect(),
        known => known.to_vec(),
    };
    let models = vec![entry(name, name.to_owned(), Languages { languages })];
    let parts =
        AsrParts { models, supports_transcript_streaming: true, requires_external_vad: true };
    entry(name, format!("{name}, heard by hob"), parts)
}

fn entry<Parts>(name: &str, description: String, parts: Parts) -> Entry<Parts> {
    Entry {
        name: name.to_owned(),
        description,
        version: env!("CARGO_PKG_VERSION"),
        attribution: Attribution { name: "hob", url: "" },
        installed: true,
        parts,
    }
}
