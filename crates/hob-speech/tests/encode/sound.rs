//! What is heard: every sample, at its position and level, and how soon the first one comes.
//! `docs/reference/formats.md` states these figures.

use hob_speech::encode::{AudioFormat, Encoder, Length};

use crate::signal::{snr_db, sweep, voice, worst_snr_db};
use crate::{RATE_HZ, built, encode, encode_at, ffmpeg, quantized};

/// Silence before the first sample, in samples: the delay of the codec.
fn delay(format: AudioFormat) -> usize {
    match format {
        AudioFormat::Mp3 => 1_057,
        AudioFormat::Aac => 1_024,
        AudioFormat::Wav | AudioFormat::Pcm | AudioFormat::Opus | AudioFormat::Flac => 0,
    }
}

/// Samples that a decoder returns for `samples` of input: whole frames, if the format cannot say where the sound
/// ends.
fn decoded_len(format: AudioFormat, rate_hz: u32, samples: usize) -> usize {
    let mp3_frame = if rate_hz < 32_000 { 576 } else { 1_152 };
    match format {
        AudioFormat::Mp3 => (samples + delay(format)).next_multiple_of(mp3_frame),
        AudioFormat::Aac => (samples + delay(format)).next_multiple_of(1_024),
        AudioFormat::Wav | AudioFormat::Pcm | AudioFormat::Opus | AudioFormat::Flac => samples,
    }
}

/// The file decoded by ffmpeg, at the original's rate and without the delay.
fn decode_whole(format: AudioFormat, rate_hz: u32, original: &[f32]) -> Vec<i16> {
    let file = encode_at(rate_hz, format, Length::Unknown, &[original]).unwrap();
    let decoded = decode_at(format, rate_hz, &file);
    let expect = decoded_len(format, rate_hz, original.len());
    assert_eq!(decoded.len(), expect, "{format} at {rate_hz} Hz");
    decoded[delay(format)..delay(format) + original.len()].to_vec()
}

/// Opus always decodes at 48 kHz. Nothing lies above 12 kHz, so the test takes every second sample, which avoids the
/// edges of a resampler.
fn decode_at(format: AudioFormat, rate_hz: u32, file: &[u8]) -> Vec<i16> {
    let decoder_hz = if format == AudioFormat::Opus { 48_000 } else { rate_hz };
    let decoded = ffmpeg::decode(format, decoder_hz, file);
    assert_eq!(decoded.complaints, "", "{format} at {rate_hz} Hz");
    let step = (decoder_hz / rate_hz) as usize;
    assert_eq!(decoded.samples.len() % step, 0, "{format} at {rate_hz} Hz");
    decoded.samples.into_iter().step_by(step).collect()
}

#[test]
fn a_lossless_format_returns_every_sample_exactly() {
    for format in [AudioFormat::Wav, AudioFormat::Pcm, AudioFormat::Flac] {
        for original in [voice(RATE_HZ, 50_001), sweep(RATE_HZ, 24_000)] {
            assert_eq!(decode_whole(format, RATE_HZ, &original), quantized(&original), "{format}");
        }
    }
}

#[test]
fn a_lossy_format_keeps_a_voice_at_its_level_and_place() {
    for (format, snr_db_min) in [(AudioFormat::Mp3, 45.0), (AudioFormat::Opus, 24.0)] {
        check_voice(format, snr_db_min);
    }
    if cfg!(feature = "aac") {
        check_voice(AudioFormat::Aac, 36.0);
    }
}

fn check_voice(format: AudioFormat, snr_db_min: f64) {
    let original = voice(RATE_HZ, 3 * 24_000 + 1);
    let snr = snr_db(&quantized(&original), &decode_whole(format, RATE_HZ, &original));
    assert!(snr >= snr_db_min, "{format}: {snr:.1} dB");
}

/// After a click, a gap or a repetition, at least one piece of 20 ms would have almost no signal over its error.
#[test]
fn a_sweep_in_small_pieces_has_no_gap_anywhere() {
    let original = sweep(RATE_HZ, 48_000);
    let pieces: Vec<&[f32]> = original.chunks(331).collect();
    for format in built() {
        let file = encode(format, Length::Unknown, &pieces).unwrap();
        let decoded = decode_at(format, RATE_HZ, &file);
        let heard = &decoded[delay(format)..delay(format) + original.len()];
        let worst = worst_snr_db(RATE_HZ, &quantized(&original), heard);
        assert!(worst >= 20.0, "{format}: {worst:.1} dB in the worst 20 ms");
    }
}

#[test]
fn every_rate_a_format_takes_comes_back_at_its_level_and_length() {
    for format in built() {
        for &rate_hz in format.sample_rates_hz() {
            let original = voice(rate_hz, rate_hz as usize / 2 + 7);
            let snr = snr_db(&quantized(&original), &decode_whole(format, rate_hz, &original));
            assert!(snr >= 20.0, "{format} at {rate_hz} Hz: {snr:.1} dB");
        }
    }
}

#[test]
fn the_last_sample_is_heard_whatever_the_length() {
    for format in built() {
        for samples in [1, 2, 31, 479, 480, 481, 575, 576, 577, 1_023, 1_024, 1_025, 4_001] {
            let original = vec![0.5; samples];
            let heard = decode_whole(format, RATE_HZ, &original);
            let last = f64::from(heard[samples - 1]) / 32_768.0;
            assert!(last > 0.2, "{format}, {samples} samples: the last one came back as {last}");
        }
    }
}

#[test]
fn no_samples_are_no_sound() {
    for format in built() {
        let file = encode(format, Length::Unknown, &[]).unwrap();
        assert_eq!(file, encode(format, Length::Unknown, &[&[], &[]]).unwrap(), "{format}");
        let silent = file.is_empty() || ffmpeg::decode(format, RATE_HZ, &file).samples.is_empty();
        assert!(silent, "{format}");
    }
}

#[test]
fn what_is_too_loud_is_clipped_and_does_not_wrap() {
    let loud = [1.5, -7.0, f32::MAX, f32::MIN, 1.0, -1.0];
    let file = encode(AudioFormat::Pcm, Length::Unknown, &[&loud]).unwrap();
    let expect = [32_767, -32_768, 32_767, -32_768, 32_767, -32_768];
    assert_eq!(ffmpeg::decode(AudioFormat::Pcm, RATE_HZ, &file).samples, expect);
}

/// Samples of input until the first bytes after the header come out. A decoder can already play those bytes.
#[test]
fn the_first_sound_needs_few_samples() {
    let expect = |format| match format {
        AudioFormat::Wav | AudioFormat::Pcm => 1,
        AudioFormat::Opus => 480,
        AudioFormat::Mp3 | AudioFormat::Flac => 576,
        AudioFormat::Aac => 1_024,
    };
    for format in built() {
        let (samples, prefix) = until_first_sound(format);
        assert_eq!(samples, expect(format), "{format}");
        let heard = ffmpeg::decode(format, RATE_HZ, &followed(format, &prefix)).samples;
        assert!(!heard.is_empty(), "{format}: the first {} bytes decode to nothing", prefix.len());
    }
}

/// ffmpeg accepts an mp3 frame only if another header follows.
fn followed(format: AudioFormat, prefix: &[u8]) -> Vec<u8> {
    prefix.repeat(if format == AudioFormat::Mp3 { 2 } else { 1 })
}

fn until_first_sound(format: AudioFormat) -> (usize, Vec<u8>) {
    let mut encoder = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
    let mut prefix = encoder.encode(&[]).unwrap();
    for (taken, sample) in voice(RATE_HZ, 48_000).into_iter().enumerate() {
        let bytes = encoder.encode(&[sample]).unwrap();
        if !bytes.is_empty() {
            prefix.extend(bytes);
            return (taken + 1, prefix);
        }
    }
    panic!("{format}: two seconds went in and nothing came out");
}

/// No format holds back more sound after its start than 60 ms, one Ogg page.
#[test]
fn sound_keeps_coming_in_small_steps() {
    for format in built() {
        let mut encoder = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
        let mut silent_ms = 0;
        for piece in voice(RATE_HZ, 72_000).chunks_exact(24) {
            silent_ms = if encoder.encode(piece).unwrap().is_empty() { silent_ms + 1 } else { 0 };
            assert!(silent_ms < 60, "{format}: nothing for {silent_ms} ms");
        }
    }
}
