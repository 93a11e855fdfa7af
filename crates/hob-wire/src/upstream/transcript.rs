//! Transcription by other servers: the form fields that hob sends, and the answers that it reads.
//! An answer is one JSON body, OpenAI's events, or events without a type: with a text, or like pieces of a chat.

use hob_core::{
    Chunking, Fault, HeardWord, Segment, SoundFile, TranscriptEvent, TranscriptRequest,
    TranscriptSummary, TranscriptTask, TranscriptUsage,
};
use serde_json::Value;

use super::PieceError;
use super::fault::reported;

/// The format in which hob requests a transcript. Some servers do not support all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedFormat {
    /// With language, duration and times.
    Verbose,
    /// The text alone.
    Short,
    /// The text in events, while the server transcribes.
    Events,
    /// The text with times, as it is understood. Only hob streams times.
    TimedEvents,
}

/// The path of the request, relative to `/v1`.
pub fn transcript_path(task: TranscriptTask) -> &'static str {
    match task {
        TranscriptTask::Transcribe => "audio/transcriptions",
        TranscriptTask::Translate => "audio/translations",
    }
}

/// All fields of the form except the file.
pub fn transcript_fields(
    request: &TranscriptRequest,
    model: &str,
    shape: RequestedFormat,
) -> Vec<(&'static str, String)> {
    let format = match shape {
        RequestedFormat::Verbose => "verbose_json",
        RequestedFormat::Short | RequestedFormat::Events | RequestedFormat::TimedEvents => "json",
    };
    let mut fields = vec![("model", model.to_owned()), ("response_format", format.to_owned())];
    let of_speaker = request.task == TranscriptTask::Transcribe;
    fields.extend(request.language.clone().filter(|_| of_speaker).map(|code| ("language", code)));
    fields.extend(request.prompt.clone().map(|prompt| ("prompt", prompt)));
    fields.extend(request.temperature.map(|degree| ("temperature", degree.to_string())));
    if matches!(shape, RequestedFormat::Events | RequestedFormat::TimedEvents) {
        fields.push(("stream", "true".to_owned()));
    }
    let has_times = matches!(shape, RequestedFormat::Verbose | RequestedFormat::TimedEvents);
    let wished = [("segment", request.timestamps.segments), ("word", request.timestamps.words)];
    for (granularity, _) in wished.into_iter().filter(|(_, is_wished)| has_times && *is_wished) {
        fields.push(("timestamp_granularities[]", granularity.to_owned()));
    }
    // OpenAI's translations have no such field.
    let chunking = request.chunking.filter(|_| of_speaker);
    fields.extend(chunking.map(chunking_fields).unwrap_or_default());
    fields
}

/// As OpenAI's clients write them in a form.
fn chunking_fields(chunking: Chunking) -> Vec<(&'static str, String)> {
    let Chunking::ServerVad { threshold, prefix_padding_ms, silence_ms } = chunking else {
        return vec![("chunking_strategy", "auto".to_owned())];
    };
    let values = [
        ("chunking_strategy[type]", Some("server_vad".to_owned())),
        ("chunking_strategy[threshold]", threshold.map(|value| value.to_string())),
        ("chunking_strategy[prefix_padding_ms]", prefix_padding_ms.map(|ms| ms.to_string())),
        ("chunking_strategy[silence_duration_ms]", silence_ms.map(|ms| ms.to_string())),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The name and type under which hob sends a file. Servers choose the decoder by the name, and names of
/// clients may be wrong or private.
pub fn sound_name(file: &SoundFile) -> (String, &'static str) {
    let bytes = &file.bytes[..];
    let is_mpeg = |bytes: &[u8]| matches!(bytes, [0xff, second, ..] if second & 0xe0 == 0xe0);
    let (extension, kind) = match bytes {
        [b'R', b'I', b'F', b'F', ..] => ("wav", "audio/wav"),
        [b'f', b'L', b'a', b'C', ..] => ("flac", "audio/flac"),
        [b'O', b'g', b'g', b'S', ..] => ("ogg", "audio/ogg"),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => ("webm", "audio/webm"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => ("mp4", "audio/mp4"),
        [b'I', b'D', b'3', ..] => ("mp3", "audio/mpeg"),
        bytes if is_mpeg(bytes) => ("mp3", "audio/mpeg"),
        _ => {
            let extension = file.name.as_deref().and_then(|name| name.rsplit_once('.'));
            let extension = extension.map_or("bin", |(_, extension)| extension);
            let plain: String =
                extension.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
            return (format!("audio.{plain}"), "application/octet-stream");
        }
    };
    (format!("audio.{extension}"), kind)
}

/// A transcript that came whole, in either form of JSON.
///
/// # Errors
/// The body is not a transcript, or reports a failure of the server.
pub fn parse_transcript(body: &str) -> Result<Vec<TranscriptEvent>, Fault> {
    let invalid_answer = |detail: String| Fault::InvalidAnswer { detail };
    let answer: Value = serde_json::from_str(body).map_err(|error| {
        invalid_answer(format!("the answer is not the JSON of a transcript: {error}"))
    })?;
    if !answer["error"].is_null() {
        return Err(reported(&answer["error"]));
    }
    let Some(text) = answer["text"].as_str() else {
        return Err(invalid_answer("the transcript has no field 'text'".to_owned()));
    };
    let mut events = Vec::new();
    if !text.is_empty() {
        events.push(TranscriptEvent::Delta(text.to_owned()));
    }
    events.extend(list(&answer["segments"]).map(|entry| TranscriptEvent::Segment(segment(entry))));
    events.extend(list(&answer["words"]).map(|entry| TranscriptEvent::Word(word(entry))));
    events.push(TranscriptEvent::Done(transcribed(&answer)));
    Ok(events)
}

/// Reads a transcript that comes as server-sent events.
#[derive(Debug, Default)]
pub struct TranscriptReader {
    has_text: bool,
    /// Whether an event without a type was read, as vLLM and Speaches write them. Such servers send no last event, so the
    /// end of the stream is the end.
    is_plain: bool,
    is_over: bool,
}

impl TranscriptReader {
    /// Adds what one event says.
    ///
    /// # Errors
    /// After [`PieceError::Malformed`] the caller may read the next event. Any other error ends the transcript.
    pub fn read(&mut self, data: &str, said: &mut Vec<TranscriptEvent>) -> Result<(), PieceError> {
        if data == "[DONE]" {
            return self.end(said).map_err(PieceError::Failed);
        }
        let event: Value = serde_json::from_str(data).map_err(|_| PieceError::Malformed)?;
        if !event["error"].is_null() {
            return Err(PieceError::Failed(reported(&event["error"])));
        }
        match event["type"].as_str() {
            Some("transcript.text.delta") => self.add_text(event["delta"].as_str(), said),
            Some("transcript.text.segment") => said.push(TranscriptEvent::Segment(segment(&event))),
            Some("transcript.text.word") => said.push(TranscriptEvent::Word(word(&event))),
            Some("transcript.text.done") if !self.is_over => {
                if !self.has_text {
                    self.add_text(event["text"].as_str(), said);
                }
                self.is_over = true;
                said.push(TranscriptEvent::Done(transcribed(&event)));
            }
            Some(_) => {}
            None => {
                let text = match &event["choices"] {
                    // vLLM's last piece has usage and no choice.
                    Value::Array(choices) => {
                        choices.first().and_then(|one| one["delta"]["content"].as_str())
                    }
                    _ => Some(event["text"].as_str().ok_or(PieceError::Malformed)?),
                };
                self.is_plain = true;
                self.add_text(text, said);
            }
        }
        Ok(())
    }

    /// The server has closed the transcript.
    ///
    /// # Errors
    /// It was not complete.
    pub fn end(&mut self, said: &mut Vec<TranscriptEvent>) -> Result<(), Fault> {
        if self.is_over {
            return Ok(());
        }
        if !self.is_plain {
            return Err(Fault::CutOff);
        }
        self.is_over = true;
        said.push(TranscriptEvent::Done(TranscriptSummary::default()));
        Ok(())
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn add_text(&mut self, text: Option<&str>, said: &mut Vec<TranscriptEvent>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.has_text = true;
        said.push(TranscriptEvent::Delta(text.to_owned()));
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn segment(entry: &Value) -> Segment {
    let number = |field: &str| entry[field].as_f64().unwrap_or_default();
    let tokens = list(&entry["tokens"]).filter_map(count);
    Segment {
        text: entry["text"].as_str().unwrap_or_default().to_owned(),
        start_s: number("start"),
        end_s: number("end"),
        seek: count(&entry["seek"]).unwrap_or_default(),
        tokens: tokens.collect(),
        temperature: number("temperature") as f32,
        avg_logprob: number("avg_logprob") as f32,
        compression_ratio: number("compression_ratio") as f32,
        no_speech_prob: number("no_speech_prob") as f32,
    }
}

fn word(entry: &Value) -> HeardWord {
    let seconds = |field: &str| entry[field].as_f64().unwrap_or_default();
    let word = entry["word"].as_str().unwrap_or_default().to_owned();
    HeardWord { word, start_s: seconds("start"), end_s: seconds("end") }
}

fn transcribed(answer: &Value) -> TranscriptSummary {
    let usage = &answer["usage"];
    // Older servers write the duration as a text.
    let written = answer["duration"].as_str().and_then(|text| text.parse().ok());
    let duration = answer["duration"].as_f64().or(written).or_else(|| usage["seconds"].as_f64());
    let tokens = (count(&usage["input_tokens"]), count(&usage["output_tokens"]));
    TranscriptSummary {
        duration_s: duration.unwrap_or_default(),
        language: answer["language"].as_str().map(str::to_owned),
        usage: match tokens {
            (Some(input_tokens), Some(output_tokens)) => {
                Some(TranscriptUsage { input_tokens, output_tokens })
            }
            _ => None,
        },
        damage: answer["warning"].as_str().map(str::to_owned),
    }
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}
