//! Everything that an encoder rejects, with the text of the error.
//! `Codec` errors are made in the codecs' own files. No public call can cause one.

use hob_speech::encode::{AudioFormat, EncodeError, Encoder, Length, UnknownFormat};

use crate::{RATE_HZ, built};

fn check(outcome: Result<Vec<u8>, EncodeError>, expect: EncodeError, says: &str) {
    assert_eq!(outcome, Err(expect.clone()));
    assert_eq!(expect.to_string(), says);
}

fn start(format: AudioFormat, rate_hz: u32, length: Length) -> Result<Vec<u8>, EncodeError> {
    Encoder::new(format, rate_hz, length).map(|_| Vec::new())
}

#[test]
fn a_rate_the_format_cannot_carry() {
    let accepted = AudioFormat::Opus.sample_rates_hz();
    check(
        start(AudioFormat::Opus, 44_100, Length::Unknown),
        EncodeError::UnsupportedRate {
            format: AudioFormat::Opus,
            sample_rate_hz: 44_100,
            accepted,
        },
        "opus does not support 44100 Hz (expected 8000, 12000, 16000, 24000, 48000)",
    );
    for format in AudioFormat::ALL {
        assert!(start(format, 0, Length::Unknown).is_err(), "{format}");
    }
}

#[test]
fn a_wav_that_its_own_header_could_not_describe() {
    let samples_max = 2_147_483_629;
    check(
        start(AudioFormat::Wav, RATE_HZ, Length::Samples(samples_max + 1)),
        EncodeError::TooLongForWav { samples: samples_max + 1, samples_max },
        "2147483630 samples do not fit into a wav file (at most 2147483629): use flac, or a stream",
    );
    assert_eq!(start(AudioFormat::Wav, RATE_HZ, Length::Samples(samples_max)), Ok(Vec::new()));
}

#[test]
fn a_sample_that_is_no_number() {
    for format in built() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut encoder = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
            encoder.encode(&[0.0; 100]).unwrap();
            check(
                encoder.encode(&[0.0, 0.5, bad]),
                EncodeError::NotFinite { index: 102 },
                "sample 102 is not a finite number",
            );
        }
    }
}

#[test]
fn more_or_fewer_samples_than_the_headers_promised() {
    for format in built() {
        let mut encoder = Encoder::new(format, RATE_HZ, Length::Samples(10)).unwrap();
        check(
            encoder.encode(&[0.0; 11]),
            EncodeError::WrongLength { promised: 10, given: 11 },
            "the header announced 10 samples, but the encoder got 11",
        );
        let short = Encoder::new(format, RATE_HZ, Length::Samples(10)).unwrap();
        check(
            short.finish(),
            EncodeError::WrongLength { promised: 10, given: 0 },
            "the header announced 10 samples, but the encoder got 0",
        );
    }
}

#[test]
#[cfg(not(feature = "aac"))]
fn a_format_that_is_not_built_says_how_to_get_it() {
    check(
        start(AudioFormat::Aac, RATE_HZ, Length::Unknown),
        EncodeError::NotBuilt { format: AudioFormat::Aac, feature: "aac" },
        "aac is not built into this hob: build it with `--features aac`, or use mp3 or opus",
    );
}

#[test]
fn a_format_that_hob_does_not_know() {
    for given in ["ogg", "MP3", "", " mp3"] {
        assert_eq!(AudioFormat::parse(given), Err(UnknownFormat { given: given.to_owned() }));
    }
    let long = AudioFormat::parse(&"x".repeat(100_000)).unwrap_err();
    assert_eq!(
        long.to_string(),
        format!(
            "'{}' is not an audio format (expected mp3, wav, pcm, opus, flac or aac)",
            "x".repeat(32)
        )
    );
}

#[test]
fn every_name_is_read_back_and_has_its_content_type() {
    let types = AudioFormat::ALL.map(|format| {
        assert_eq!(AudioFormat::parse(format.name()), Ok(format));
        format.content_type()
    });
    let expect = ["audio/mpeg", "audio/wav", "audio/pcm", "audio/ogg", "audio/flac", "audio/aac"];
    assert_eq!(types, expect);
}
