//! The recording of a spoken answer: when bytes arrived, when the first audible sample arrived, and how long it lasts.
//! WAV and PCM are read sample by sample. MP3 is decoded frame by frame until the first sound, after the timed part.

mod mp3;

use std::collections::BTreeMap;

use hob_core::enum_table;

use super::{RequestFault, check_whole, millis, replay};
use crate::drive::Exchange;
use crate::terms::Metric;
use crate::wav::WavSamples;

/// Samples above this are audible: −50 dBFS of 16 bits.
const AUDIBLE: i16 = 104;
/// Sample rate of raw PCM, as in OpenAI's speech API.
pub const PCM_RATE_HZ: u32 = 24_000;

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SoundFormat: name {
        Pcm = "pcm",
        Wav = "wav",
        Mp3 = "mp3",
    }
}

impl SoundFormat {
    pub fn by_name(name: &str) -> Option<SoundFormat> {
        SoundFormat::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Why a spoken answer has no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoundFault {
    #[error(transparent)]
    Answer(RequestFault),
    #[error("the sound is empty")]
    Empty,
    #[error("the sound is silence from beginning to end")]
    Silence,
    #[error("the bytes are not {expected}")]
    NotThis { expected: &'static str },
}

impl SoundFault {
    pub(crate) const STOPPED: SoundFault = SoundFault::Answer(RequestFault::Stopped);
}

/// One spoken answer. Times are milliseconds since the request was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundTimeline {
    pub ttfb_ms: f64,
    /// When the first byte of sound arrived, without a header.
    pub first_ms: f64,
    /// When the first sample above −50 dBFS arrived. For MP3: the end of the first frame with such a sample.
    pub ttfa_ms: f64,
    pub last_ms: f64,
    pub audio_s: f64,
    pub rate_hz: u32,
    /// Each read with sound. A read returns everything that has arrived.
    pub arrivals: Vec<ArrivalPoint>,
    pub gaps_ms: Vec<f64>,
    /// Greatest shortage of sound for a player that starts with the first sound.
    pub underrun_ms: f64,
    /// The bytes of the sound. They are hashed as evidence and then dropped.
    pub body: Vec<u8>,
}

/// When this many bytes of the answer had arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalPoint {
    pub at_ms: f64,
    pub bytes: usize,
}

impl SoundTimeline {
    /// Counts from the first audible sample, because early silence is not streaming.
    pub fn spread(&self) -> f64 {
        (self.last_ms - self.ttfa_ms) / self.last_ms
    }

    pub fn rtf(&self) -> f64 {
        self.last_ms / 1e3 / self.audio_s
    }

    /// All figures, by their names in records.
    pub fn by_name(&self) -> BTreeMap<Metric, f64> {
        [
            (Metric::TtfbMs, self.ttfb_ms),
            (Metric::TtfaMs, self.ttfa_ms),
            (Metric::WallMs, self.last_ms),
            (Metric::AudioS, self.audio_s),
            (Metric::Rtf, self.rtf()),
            (Metric::Spread, self.spread()),
            (Metric::UnderrunMs, self.underrun_ms),
        ]
        .into()
    }
}

/// Parses the recording of a spoken answer. `pcm_rate_hz` is the assumed rate of raw samples.
///
/// # Errors
/// The request failed, or its sound is empty, silent or in another format.
pub fn sound(
    exchange: &Exchange,
    format: SoundFormat,
    pcm_rate_hz: u32,
) -> Result<SoundTimeline, SoundFault> {
    let (mut body, mut arrivals) = (Vec::new(), Vec::new());
    let (status, head) = replay(exchange, |at, bytes| {
        body.extend_from_slice(bytes);
        if !bytes.is_empty() {
            arrivals.push(ArrivalPoint { at_ms: millis(at), bytes: body.len() });
        }
    });
    check_whole(exchange, status).map_err(SoundFault::Answer)?;
    let heard = AudibleRange::in_body(&body, format, pcm_rate_hz)?;
    timed(body, arrivals, heard, head.map_or(0.0, millis))
}

fn timed(
    body: Vec<u8>,
    arrivals: Vec<ArrivalPoint>,
    heard: AudibleRange,
    ttfb_ms: f64,
) -> Result<SoundTimeline, SoundFault> {
    let when = |bytes: usize| {
        let arrival = arrivals.iter().find(|arrival| arrival.bytes >= bytes);
        arrival.map(|arrival| arrival.at_ms).ok_or(SoundFault::Empty)
    };
    let ttfa_ms = when(heard.audible)?;
    let gaps = arrivals.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms);
    Ok(SoundTimeline {
        ttfb_ms,
        first_ms: when(heard.begin + 1)?,
        ttfa_ms,
        last_ms: when(body.len())?,
        audio_s: heard.played_s(body.len()),
        rate_hz: heard.rate_hz,
        gaps_ms: gaps.collect(),
        underrun_ms: underrun_ms(&arrivals, heard, ttfa_ms),
        arrivals,
        body,
    })
}

/// The greatest difference between what a player that starts with the first sound has to play and what it has received.
fn underrun_ms(arrivals: &[ArrivalPoint], heard: AudibleRange, started_ms: f64) -> f64 {
    let after = arrivals.windows(2).filter(|pair| pair[1].at_ms > started_ms);
    let starved = after.map(|pair| {
        let had_ms = (heard.played_s(pair[0].bytes) - heard.played_s(heard.audible)).max(0.0) * 1e3;
        pair[1].at_ms - started_ms - had_ms
    });
    starved.fold(0.0, f64::max)
}

/// Positions in the body, and the rate of the sound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AudibleRange {
    /// The first byte of sound.
    begin: usize,
    /// Bytes up to the end of the first audible sample or frame.
    audible: usize,
    rate_hz: u32,
    bytes_per_s: f64,
}

impl AudibleRange {
    fn in_body(
        body: &[u8],
        format: SoundFormat,
        pcm_rate_hz: u32,
    ) -> Result<AudibleRange, SoundFault> {
        match format {
            _ if body.is_empty() => Err(SoundFault::Empty),
            SoundFormat::Pcm => AudibleRange::in_samples(body, 0, pcm_rate_hz, 1),
            SoundFormat::Wav => AudibleRange::in_wav(body),
            SoundFormat::Mp3 => AudibleRange::in_mp3(body),
        }
    }

    fn in_samples(
        body: &[u8],
        begin: usize,
        rate_hz: u32,
        channels: u16,
    ) -> Result<AudibleRange, SoundFault> {
        let samples = body.get(begin..).unwrap_or_default();
        if samples.len() < 2 {
            return Err(SoundFault::Empty);
        }
        let mut pairs = samples.chunks_exact(2);
        let loud = |pair: &[u8]| {
            i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs() > AUDIBLE.unsigned_abs()
        };
        let place = pairs.position(loud).ok_or(SoundFault::Silence)?;
        let bytes_per_s = f64::from(rate_hz) * 2.0 * f64::from(channels);
        Ok(AudibleRange { begin, audible: begin + place * 2 + 2, rate_hz, bytes_per_s })
    }

    fn in_wav(body: &[u8]) -> Result<AudibleRange, SoundFault> {
        let found = WavSamples::find(body).ok_or(SoundFault::NotThis { expected: "WAV" })?;
        AudibleRange::in_samples(body, found.begin, found.rate_hz, found.channels)
    }

    fn in_mp3(body: &[u8]) -> Result<AudibleRange, SoundFault> {
        let mpeg = mp3::read(body).ok_or(SoundFault::NotThis { expected: "MP3" })?;
        let mp3::Mpeg { begin, audible_end, rate_hz, seconds } = mpeg;
        let audible = audible_end.ok_or(SoundFault::Silence)?;
        let bytes_per_s = (body.len() - begin) as f64 / seconds;
        Ok(AudibleRange { begin, audible, rate_hz, bytes_per_s })
    }

    fn played_s(&self, bytes: usize) -> f64 {
        bytes.saturating_sub(self.begin) as f64 / self.bytes_per_s
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::wav_header;

    use super::*;
    use crate::drive::{End, Recording};

    /// Half a second of sound for each piece, 100 ms apart, the first after 200 ms.
    fn heard(
        pieces: &[Vec<u8>],
        format: SoundFormat,
        step_ms: u64,
    ) -> Result<SoundTimeline, SoundFault> {
        let mut recording = Recording::default();
        recording.push(
            Duration::from_millis(150),
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        for (number, piece) in (0..).zip(pieces) {
            let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
            recording.push(Duration::from_millis(200 + step_ms * number), &bytes);
        }
        recording.push(Duration::from_secs(9), b"0\r\n\r\n");
        let zero = Duration::ZERO;
        let exchange =
            Exchange { job: 0, sched: zero, connect: None, sent: zero, recording, end: End::Whole };
        sound(&exchange, format, PCM_RATE_HZ)
    }

    fn half_second(sample: i16) -> Vec<u8> {
        sample.to_le_bytes().repeat(12_000)
    }

    #[test]
    fn the_first_audible_sample_counts() {
        let pieces = [half_second(0), half_second(50), half_second(9000), half_second(9000)];
        let got = heard(&pieces, SoundFormat::Pcm, 100).expect("sound");
        assert_eq!(
            (got.ttfb_ms, got.first_ms, got.ttfa_ms, got.last_ms),
            (150.0, 200.0, 400.0, 500.0)
        );
        assert!((got.audio_s - 2.0).abs() < 1e-9 && (got.rtf() - 0.25).abs() < 1e-9);
        assert!((got.spread() - 0.2).abs() < 1e-9);
        let arrivals: Vec<_> = got.arrivals.iter().map(|a| (a.at_ms, a.bytes)).collect();
        assert_eq!(arrivals, [(200.0, 24_000), (300.0, 48_000), (400.0, 72_000), (500.0, 96_000)]);
        assert!(got.underrun_ms < 1e-9);
    }

    #[test]
    fn a_wav_may_have_other_chunks_before_its_samples() {
        let header = wav_header(PCM_RATE_HZ, u32::MAX);
        let sound = half_second(9000);
        let wav = [&header[..12], b"JUNK\x04\0\0\0data", &header[12..], &sound[..]].concat();
        let got = heard(&[wav], SoundFormat::Wav, 100).expect("sound");
        assert_eq!((got.rate_hz, got.ttfa_ms), (PCM_RATE_HZ, 200.0));
        assert!((got.audio_s - 0.5).abs() < 1e-9, "{}", got.audio_s);
    }

    #[test]
    fn early_silence_is_not_streaming() {
        let late = [half_second(0), half_second(0), half_second(0), half_second(9000)];
        let got = heard(&late, SoundFormat::Pcm, 500).expect("sound");
        assert_eq!((got.first_ms, got.ttfa_ms, got.last_ms), (200.0, 1700.0, 1700.0));
        assert!(got.spread() < 0.1, "{}", got.spread());
    }

    #[test]
    fn an_underrun_is_found_when_sound_arrives_too_slowly() {
        // Half a second of sound, and the next piece after 700 ms: 200 ms of silence.
        let pieces = [half_second(9000), half_second(9000)];
        let got = heard(&pieces, SoundFormat::Pcm, 700).expect("sound");
        assert!((got.underrun_ms - 200.0).abs() < 1.0, "{}", got.underrun_ms);
    }

    /// Half a second of a tone or of silence, in independent frames.
    fn half_second_of_mp3(level: f32) -> Vec<u8> {
        let header = rusty_mp3::encoder_header(24_000, 1, 64).expect("a header");
        let mut encoder = rusty_mp3::Mp3Encode::new();
        let frame = |number: usize| {
            let samples: Vec<f32> =
                (0..576).map(|at| level * ((number * 576 + at) as f32 * 0.1).sin()).collect();
            encoder.encode_frame(&header, &[&samples], None).expect("a frame")
        };
        (0..20).map(frame).collect::<Vec<_>>().concat()
    }

    #[test]
    fn mp3_is_audible_from_its_first_tone() {
        let (silence, tone) = (half_second_of_mp3(0.0), half_second_of_mp3(0.3));
        let got = heard(&[tone.clone(), tone.clone()], SoundFormat::Mp3, 100).expect("sound");
        assert!((got.audio_s - 0.96).abs() < 1e-9, "{}", got.audio_s);
        assert_eq!((got.rate_hz, got.ttfa_ms), (24_000, 200.0));
        let late = [silence.clone(), silence.clone(), silence.clone(), tone];
        let got = heard(&late, SoundFormat::Mp3, 500).expect("sound");
        assert_eq!((got.first_ms, got.ttfa_ms, got.last_ms), (200.0, 1700.0, 1700.0));
        assert!(got.spread() < 0.1, "silence at first is not streaming: {}", got.spread());
        let silent = heard(&[silence.clone(), silence], SoundFormat::Mp3, 100);
        assert_eq!(silent.map(|sound| sound.audio_s), Err(SoundFault::Silence));
    }

    #[test]
    fn sound_that_cannot_be_judged_has_a_fault() {
        let rows = [
            (vec![], SoundFormat::Pcm, SoundFault::Empty),
            (vec![half_second(3)], SoundFormat::Pcm, SoundFault::Silence),
            (
                vec![b"{\"error\":1}".repeat(9)],
                SoundFormat::Wav,
                SoundFault::NotThis { expected: "WAV" },
            ),
            (vec![b"hello".to_vec()], SoundFormat::Mp3, SoundFault::NotThis { expected: "MP3" }),
        ];
        for (pieces, format, expected) in rows {
            let got = heard(&pieces, format, 100);
            assert_eq!(got.map(|sound| sound.audio_s), Err(expected));
        }
    }
}
