//! The sound of a script: how long a text lasts, when each piece is due, and its bytes.
//! The sound is a tone of known length, so a test knows what a client should measure.

use std::sync::LazyLock;
use std::time::Duration;

use hob_core::wav_header;
use rusty_mp3::{Mp3Encode, encoder_header};

use super::script::{AudioDelivery, Script};
use crate::timeline::SoundFormat;

/// Samples per second; every piece is 16-bit mono.
pub(super) const RATE_HZ: u32 = 24_000;
/// A frame of MPEG-2 layer III at 24 kHz and 64 kbit/s holds 24 ms.
const MP3_FRAME_MS: f64 = 24.0;
const MP3_FRAME_SAMPLES: usize = 576;
const MP3_KBIT_S: u32 = 64;
/// A frame of silence and a frame of the tone. Each is complete in itself, so frames can be sent in any order.
static MP3_FRAMES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [mp3_frame(0), mp3_frame(AMPLITUDE)]);
/// About −10 dBFS.
const AMPLITUDE: i16 = 10_000;
/// Half a period of the tone, in samples: 400 Hz.
const HALF_PERIOD: usize = 30;

pub(super) fn content_type(format: SoundFormat) -> &'static str {
    match format {
        SoundFormat::Pcm => "audio/pcm",
        SoundFormat::Wav => "audio/wav",
        SoundFormat::Mp3 => "audio/mpeg",
    }
}

/// A piece of the sound, and when it is due.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) at: Duration,
    pub(super) from_ms: f64,
    pub(super) until_ms: f64,
}

pub(super) fn audio_ms(script: &Script, text: &str) -> f64 {
    script.audio_silence_ms + text.chars().count() as f64 * script.audio_ms_per_char
}

/// Computing starts after `ttft_ms`; each second of sound then takes `audio_rtf` seconds.
pub(super) fn pieces(script: &Script, text: &str, is_first: bool) -> Vec<Piece> {
    let all_ms = audio_ms(script, text);
    let start_ms = script.ttft_ms + if is_first { script.cold_ms } else { 0.0 };
    let due = |computed_ms: f64| {
        Duration::from_secs_f64((start_ms + computed_ms * script.audio_rtf) / 1e3)
    };
    let ends = match script.audio {
        AudioDelivery::Streamed => stepped(all_ms, script.audio_chunk_ms),
        AudioDelivery::HoldAll => vec![all_ms],
        AudioDelivery::PerSentence => sentence_ends(script, text),
    };
    let starts = std::iter::once(0.0).chain(ends.iter().copied());
    starts
        .zip(&ends)
        .map(|(from_ms, until_ms)| Piece { at: due(*until_ms), from_ms, until_ms: *until_ms })
        .collect()
}

fn stepped(all_ms: f64, step_ms: f64) -> Vec<f64> {
    let steps = (all_ms / step_ms).ceil().max(1.0) as u32;
    (1..=steps).map(|step| (f64::from(step) * step_ms).min(all_ms)).collect()
}

fn sentence_ends(script: &Script, text: &str) -> Vec<f64> {
    let mut chars = 0;
    let ends = text.split_inclusive(['.', '!', '?']).map(|sentence| {
        chars += sentence.chars().count();
        script.audio_silence_ms + chars as f64 * script.audio_ms_per_char
    });
    let ends: Vec<f64> = ends.collect();
    // A text without sentences needs one piece too, or its request would get no answer.
    if ends.is_empty() { vec![script.audio_silence_ms] } else { ends }
}

/// The bytes of a piece; the first one starts with the header.
pub(super) fn bytes(format: SoundFormat, piece: &Piece, script: &Script) -> Vec<u8> {
    match format {
        SoundFormat::Pcm => samples(piece, script),
        SoundFormat::Wav if piece.from_ms > 0.0 => samples(piece, script),
        // The length is not known when a stream starts.
        SoundFormat::Wav => [wav_header(RATE_HZ, u32::MAX), samples(piece, script)].concat(),
        SoundFormat::Mp3 => {
            let frames = |ms: f64| (ms / MP3_FRAME_MS).round() as usize;
            let [silence, tone] = &*MP3_FRAMES;
            let silent = frames(script.audio_silence_ms);
            let frame = |place: usize| if place < silent { silence } else { tone };
            (frames(piece.from_ms)..frames(piece.until_ms))
                .flat_map(|place| frame(place).iter().copied())
                .collect()
        }
    }
}

/// The third frame of an encoder: its first frames hold the silence of the encoder's own delay.
fn mp3_frame(amplitude: i16) -> Vec<u8> {
    let level = f32::from(amplitude) / f32::from(i16::MAX);
    let sample = |place: usize| {
        if (place / HALF_PERIOD).is_multiple_of(2) { level } else { -level }
    };
    let mut encoder = Mp3Encode::new();
    let frames = (0..3).filter_map(|number| {
        let samples: Vec<f32> =
            (0..MP3_FRAME_SAMPLES).map(|at| sample(number * MP3_FRAME_SAMPLES + at)).collect();
        let header = encoder_header(RATE_HZ, 1, MP3_KBIT_S).ok()?;
        encoder.encode_frame(&header, &[&samples], None).ok()
    });
    frames.last().unwrap_or_default()
}

fn samples(piece: &Piece, script: &Script) -> Vec<u8> {
    let at = |ms: f64| (ms * f64::from(RATE_HZ) / 1e3).round() as usize;
    let silent = at(script.audio_silence_ms);
    let sample = |place: usize| match place {
        _ if place < silent => 0,
        _ if (place / HALF_PERIOD).is_multiple_of(2) => AMPLITUDE,
        _ => -AMPLITUDE,
    };
    (at(piece.from_ms)..at(piece.until_ms)).flat_map(|place| sample(place).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(pairs: &str, text: &str) -> Vec<(u128, f64)> {
        let base = "ttft_ms=100,audio_rtf=0.5,audio_ms_per_char=100,audio_chunk_ms=400";
        let script = Script::default().with(base).unwrap().with(pairs).unwrap();
        let pieces = pieces(&script, text, false);
        pieces.iter().map(|piece| (piece.at.as_millis(), piece.until_ms)).collect()
    }

    #[test]
    fn pieces_are_due_as_scripted() {
        let text = "Hi you.Bye";
        assert_eq!(due("", text), [(300, 400.0), (500, 800.0), (600, 1000.0)]);
        assert_eq!(due("audio=hold_all", text), [(600, 1000.0)]);
        assert_eq!(due("audio=per_sentence", text), [(450, 700.0), (600, 1000.0)]);
        assert_eq!(due("audio=per_sentence", ""), [(100, 0.0)]);
    }

    #[test]
    fn pieces_joined_last_as_long_as_the_text() {
        let script = Script::default().with("audio_silence_ms=100").unwrap();
        let text = "One sentence. And another one.";
        let length_ms = audio_ms(&script, text);
        let joined = |format: SoundFormat| -> Vec<u8> {
            pieces(&script, text, false).iter().flat_map(|p| bytes(format, p, &script)).collect()
        };
        let pcm = joined(SoundFormat::Pcm);
        assert_eq!(pcm.len(), (length_ms * 48.0) as usize);
        assert_eq!(joined(SoundFormat::Wav).len(), pcm.len() + 44);
        assert!(pcm[..4800].iter().all(|byte| *byte == 0) && pcm[4800] != 0);
        assert_eq!(joined(SoundFormat::Mp3).len() / 192, (length_ms / 24.0).round() as usize);
    }
}
