//! Everything that the decoder rejects, with the text of the error.
//! The text names what was wrong, and what to send instead.

use hob_speech::decode::DecodeError;

use crate::decode;
use crate::sample::{RATE_HZ, WavKind, chirp, wav};

#[track_caller]
fn check(file: &[u8], says: &str) {
    let error = decode(file.to_vec()).map(|samples| samples.len()).unwrap_err();
    assert_eq!(error.to_string(), says);
}

#[test]
fn files_without_sound_or_of_another_codec_are_refused() {
    check(
        b"",
        "the file is empty: send a sound file (wav, flac, mp3, m4a, mp4, ogg, opus and webm are accepted)",
    );
    check(
        include_bytes!("files/no-sound.mp4"),
        "the isomp4 file has no sound track: send a file with sound (wav, flac, mp3, m4a, mp4, ogg, opus and webm)",
    );
    check(
        include_bytes!("files/chirp-ac3.mkv"),
        "hob cannot decode the codec AC-3: convert the file, for example to wav, flac, mp3 or opus",
    );
    #[cfg(not(feature = "aac"))]
    check(
        include_bytes!("files/chirp-44100.m4a"),
        "hob cannot decode the codec AAC: convert the file, for example to wav, flac, mp3 or opus",
    );
    check(
        &wav(WavKind::S16, RATE_HZ, 1, &[]),
        "the wave file holds no samples: send a file with sound (wav, flac, mp3, m4a, mp4, ogg, opus and webm)",
    );
    let mut tagged = wav(WavKind::S16, RATE_HZ, 1, &[]);
    tagged.extend(b"LIST\x04\0\0\0INFO");
    tagged[4] += 12;
    check(
        &tagged,
        "the wave file holds no samples: send a file with sound (wav, flac, mp3, m4a, mp4, ogg, opus and webm)",
    );
    check(
        &wav(WavKind::S16, RATE_HZ, 1, &[])[..30],
        "the sound is damaged at 0.0 s: the file ends in its header",
    );
}

#[test]
fn files_that_are_not_sound_are_refused() {
    let text = "I am a text file that is called sound.mp3. ".repeat(5_000);
    let picture = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0; 3_000]].concat();
    let json = br#"{"model": "whisper-1", "file": "RIFF"}"#.to_vec();
    for file in [text.into_bytes(), picture, json, vec![0; 100_000], vec![0xFF; 10_000], vec![7]] {
        let says = format!(
            "the file's {} bytes are not a sound format that hob reads (expected wav, flac, mp3, m4a, mp4, ogg, opus \
             and webm)",
            file.len()
        );
        check(&file, &says);
    }
}

#[test]
fn layouts_that_are_no_sound_are_refused() {
    let silence = [0.0; 1_000];
    for (rate_hz, channels) in [(0, 1), (1, 1), (999, 2), (768_001, 1), (4_000_000_000, 1)] {
        let says = format!(
            "the sound has {rate_hz} Hz and {channels} channels (expected 1000 to 768000 Hz and 1 to 32 channels)"
        );
        check(&wav(WavKind::S16, rate_hz, channels, &silence), &says);
    }
    for channels in [0, 1_000, 65_535] {
        let error = decode(wav(WavKind::U8, RATE_HZ, channels, &silence)).unwrap_err();
        assert!(matches!(error, DecodeError::Damaged { .. }), "{channels}: {error}");
    }
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let file = wav(WavKind::S16, RATE_HZ, 1, &chirp(RATE_HZ, 2.5));
    let error = hob_speech::decode::decode_all(file.into(), 2.0).unwrap_err();
    assert_eq!(error, DecodeError::TooLong { seconds_max: 2.0 });
    assert_eq!(error.to_string(), "the sound is longer than 2 s: send it in parts");
}
