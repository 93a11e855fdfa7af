//! Files that are cut, damaged or lie about themselves: what can be heard is kept, and nothing stops the program.
//! The mutations are drawn by proptest, so each run tries other files.

use hob_speech::decode::{DecodeError, SoundDecoder};
use proptest::prelude::*;

use crate::sample::{RATE_HZ, WavKind, chirp, snr_db, wav};
use crate::{decode, decode_with_damage};

pub(crate) const FILES: &[&[u8]] = &[
    include_bytes!("files/chirp-44100.m4a"),
    include_bytes!("files/chirp-fragmented.mp4"),
    include_bytes!("files/chirp-aac.mkv"),
    include_bytes!("files/chirp-alac.m4a"),
    include_bytes!("files/chirp-vorbis.ogg"),
    include_bytes!("files/chirp-vorbis-stereo.webm"),
    include_bytes!("files/chirp-silk.opus"),
    include_bytes!("files/chirp-hybrid-60ms.opus"),
    include_bytes!("files/chirp-surround.opus"),
    include_bytes!("files/chirp-opus.mp4"),
    include_bytes!("files/chirp-left.webm"),
    include_bytes!("files/chirp-lame.mp3"),
    include_bytes!("files/chirp-adpcm.wav"),
    include_bytes!("files/chirp-alaw.wav"),
];

/// Reads to the end or to an error. No file of a few kilobytes may become more than two minutes of sound here: the
/// loop stops there, as a server does.
fn survive(file: Vec<u8>) -> Result<usize, DecodeError> {
    let mut decoder = SoundDecoder::open(file.into())?;
    let mut samples = 0;
    for _ in 0..120 {
        let Some(piece) = decoder.next_piece()? else { return Ok(samples) };
        assert!((1..=16_000).contains(&piece.len()), "a piece of {} samples", piece.len());
        assert!(piece.iter().all(|sample| sample.abs() <= 1.0), "a sample outside of -1 to 1");
        samples += piece.len();
    }
    Ok(samples)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_files_never_stop_the_program(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        in_header in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = FILES[file].to_vec();
        let reach = if in_header { bytes.len().min(700) } else { bytes.len() };
        for (at, value) in changes {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(bytes).ok();
    }

    #[test]
    fn noise_after_a_known_start_never_stops_the_program(
        file in 0..FILES.len(),
        start in 4..200_usize,
        noise in prop::collection::vec(any::<u8>(), 0..4_000),
    ) {
        survive([&FILES[file][..start], &noise].concat()).ok();
    }
}

#[test]
fn a_cut_file_keeps_what_comes_before_the_cut() {
    for (n, file) in FILES.iter().enumerate() {
        let cut = file.len() * 19 / 20;
        match decode(file[..cut].to_vec()) {
            Ok(heard) => assert!((2_000..16_000).contains(&heard.len()), "{n}: {}", heard.len()),
            // Files 3 and 9 are MP4 files with their index at the end. Without `aac`, files with AAC are refused.
            Err(error) => {
                assert!([3, 9].contains(&n) || cfg!(not(feature = "aac")), "{n}: {error}")
            }
        }
    }
}

#[test]
fn a_wav_that_promises_more_than_it_holds_is_read_to_its_end() {
    let samples = chirp(RATE_HZ, 0.5);
    for promised in [16_001_u32, 1 << 20, 0x7FFF_FFFE, u32::MAX - 1, u32::MAX] {
        let mut file = wav(WavKind::S16, RATE_HZ, 1, &samples);
        file[40..44].copy_from_slice(&promised.to_le_bytes());
        file[4..8].copy_from_slice(&promised.saturating_add(36).to_le_bytes());
        let heard = decode(file).unwrap();
        assert_eq!(heard.len(), samples.len(), "{promised}");
        assert!(snr_db(&samples, &heard) > 60.0, "{promised}");
    }
}

#[test]
fn a_cut_wav_is_heard_until_its_end() {
    let file = wav(WavKind::S16, RATE_HZ, 1, &chirp(RATE_HZ, 3.0));
    let (heard, damage) = decode_with_damage(file[..44 + 2 * 40_000].to_vec());
    assert_eq!(heard.len(), 40_000);
    let damage = damage.expect("damage").to_string();
    assert_eq!(damage, "the sound is damaged at 2.5 s: the file ends before its sound does");
    assert_eq!(decode_with_damage(file).1, None);
}

#[test]
#[cfg(feature = "aac")]
fn a_cut_mp4_says_that_it_is_cut() {
    let file = include_bytes!("files/chirp-44100.m4a");
    let (heard, damage) = decode_with_damage(file[..file.len() * 6 / 10].to_vec());
    assert!((2_000..16_000).contains(&heard.len()), "{}", heard.len());
    assert!(damage.is_some());
    assert_eq!(decode_with_damage(file.to_vec()).1, None);
}

#[test]
fn values_that_are_not_numbers_become_silence() {
    let mut samples = chirp(RATE_HZ, 0.5);
    samples[100] = f32::NAN;
    samples[200] = f32::INFINITY;
    samples[300] = f32::NEG_INFINITY;
    samples[400] = f32::MAX;
    for rate_hz in [RATE_HZ, 48_000] {
        let heard = decode(wav(WavKind::F32, rate_hz, 1, &samples)).unwrap();
        assert!(heard.iter().all(|sample| sample.abs() <= 1.0), "{rate_hz} Hz");
    }
    let heard = decode(wav(WavKind::F32, RATE_HZ, 1, &samples)).unwrap();
    assert_eq!((heard[100], heard[200], heard[300], heard[400]), (0.0, 0.0, 0.0, 1.0));
}
