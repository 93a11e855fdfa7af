//! Converts the body of a speech answer to samples. Reads only as fast as the client takes them.
//! hob requests raw samples. It also accepts a WAV file, and rejects every other format.

mod wav;

use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use hob_core::speech::SAMPLE_RATES_HZ;
use hob_core::{Fault, ModelError, SpeechEvent, SpeechStream};
use hob_wire::fault_within;

use crate::http::HttpResponse;
use crate::upstream_model::UpstreamModel;
use wav::{Coding, Samples, header};

/// Sample rate of `pcm` if the server names none.
const RATE_HZ: u32 = 24_000;
/// Bytes before a wav's first sample.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// The format of a body, from its content type.
#[derive(Debug, PartialEq, Eq)]
enum BodyFormat {
    /// Raw samples, at this rate.
    Pcm(u32),
    Wav,
    Json,
    Other(String),
}

struct Speaking {
    served: Arc<UpstreamModel>,
    response: HttpResponse,
    samples: Samples,
    /// Bytes that came with the header.
    first: Bytes,
    has_sound: bool,
    is_over: bool,
}

/// Resolves once the rate is known.
///
/// # Errors
/// The sound is in a format that hob cannot read.
pub(super) async fn spoken(
    served: Arc<UpstreamModel>,
    response: HttpResponse,
) -> Result<SpeechStream, ModelError> {
    let (samples, first, response) =
        open(&served, response).await.map_err(|fault| served.failed(fault))?;
    let rate_hz = samples.rate_hz;
    let (has_sound, is_over) = (false, false);
    let speaking = Speaking { served, response, samples, first, has_sound, is_over };
    let events = stream::unfold(speaking, async |mut speaking| {
        let event = speaking.next().await?;
        Some((event, speaking))
    });
    Ok(SpeechStream::new(rate_hz, events))
}

/// Reads up to the first sample.
async fn open(
    served: &UpstreamModel,
    mut response: HttpResponse,
) -> Result<(Samples, Bytes, HttpResponse), Fault> {
    let invalid_answer = |detail: String| Fault::InvalidAnswer { detail };
    let format = body_format(&response);
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| served.upstream.broken(&error))?;
        bytes.extend_from_slice(chunk.as_deref().unwrap_or_default());
        let is_whole = chunk.is_none();
        if bytes.len() < 4 && !is_whole {
            continue;
        }
        let is_wav = bytes.starts_with(b"RIFF");
        match &format {
            BodyFormat::Json if !is_whole && bytes.len() < HEADER_BYTES_MAX => continue,
            BodyFormat::Json => return Err(fault_within(&bytes)),
            BodyFormat::Other(content_type) if !is_wav => {
                return Err(invalid_answer(format!("'{content_type}', and 'pcm' was asked for")));
            }
            BodyFormat::Pcm(_) | BodyFormat::Wav if compressed(&bytes).is_some() => {
                let format = compressed(&bytes).unwrap_or_default();
                return Err(invalid_answer(format!("{format}, and 'pcm' was asked for")));
            }
            BodyFormat::Pcm(rate_hz) if !is_wav && !SAMPLE_RATES_HZ.contains(rate_hz) => {
                let detail = format!("pcm at {rate_hz} Hz; hob takes {SAMPLE_RATES_HZ:?} Hz");
                return Err(invalid_answer(detail));
            }
            BodyFormat::Pcm(rate_hz) if !is_wav => {
                return Ok((Samples::new(*rate_hz, 1, Coding::S16), bytes.into(), response));
            }
            BodyFormat::Wav if !is_wav => {
                return Err(invalid_answer("a wav without its header".to_owned()));
            }
            BodyFormat::Pcm(_) | BodyFormat::Wav | BodyFormat::Other(_) => {}
        }
        if let Some((samples, start)) = header(&bytes).map_err(invalid_answer)? {
            return Ok((samples, Bytes::from(bytes).slice(start..), response));
        }
        if is_whole || bytes.len() > HEADER_BYTES_MAX {
            return Err(invalid_answer("a wav whose header does not end".to_owned()));
        }
    }
}

fn body_format(response: &HttpResponse) -> BodyFormat {
    let content_type = response.header("content-type").unwrap_or_default();
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let rate_hz = parts.find_map(|part| part.strip_prefix("rate=")?.parse().ok());
    match essence.as_str() {
        "" | "application/octet-stream" | "audio/pcm" | "audio/x-pcm" | "audio/raw" => {
            BodyFormat::Pcm(rate_hz.unwrap_or(RATE_HZ))
        }
        "audio/wav" | "audio/wave" | "audio/x-wav" | "audio/vnd.wave" => BodyFormat::Wav,
        "application/json" => BodyFormat::Json,
        _ => BodyFormat::Other(essence),
    }
}

/// A compressed format. Servers may send it as `application/octet-stream`.
fn compressed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'I', b'D', b'3', ..] => Some("an mp3"),
        [b'O', b'g', b'g', b'S', ..] => Some("an ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("a flac"),
        _ => None,
    }
}

impl Speaking {
    async fn next(&mut self) -> Option<Result<SpeechEvent, ModelError>> {
        loop {
            if self.is_over {
                return None;
            }
            match self.read().await {
                Ok(samples) if samples.is_empty() => {}
                Ok(samples) => {
                    self.has_sound = true;
                    return Some(Ok(SpeechEvent::Audio(samples)));
                }
                Err(fault) => {
                    self.is_over = true;
                    return Some(Err(self.served.failed(fault)));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<f32>, Fault> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return Ok(self.samples.of(&first));
        }
        match self.response.chunk().await {
            Ok(Some(bytes)) => Ok(self.samples.of(&bytes)),
            Ok(None) if self.samples.are_missing() => Err(Fault::CutOff),
            Ok(None) if !self.has_sound => Err(Fault::Empty),
            Ok(None) => {
                self.is_over = true;
                Ok(Vec::new())
            }
            Err(error) => Err(self.served.upstream.broken(&error)),
        }
    }
}
