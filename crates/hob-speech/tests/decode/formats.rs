//! Every format comes back at its level, its length and its time.
//! The files were written by ffmpeg, or by hob's own encoders.

use hob_speech::encode::{AudioFormat, Length};

use crate::cut::{live_webm, spoken};
use crate::sample::{RATE_HZ, WavKind, chirp, lag, snr_db, wav};
use crate::{decode, decode_with_damage};

/// What a decoder may keep of the silence that an encoder put after the sound: one packet and some.
const TAIL_SAMPLES_MAX: usize = 800;

struct Written {
    name: &'static str,
    file: &'static [u8],
    snr_db_min: f64,
    /// Largest offset in samples: 1, except where the delay of the encoder is not in the file.
    late_max: i32,
    /// The share of the channels that hold the chirp.
    level: f32,
}

const fn written(name: &'static str, file: &'static [u8], snr_db_min: f64) -> Written {
    Written { name, file, snr_db_min, late_max: 1, level: 1.0 }
}

const WRITTEN: &[Written] = &[
    written("alac", include_bytes!("files/chirp-alac.m4a"), 60.0),
    written("vorbis in ogg", include_bytes!("files/chirp-vorbis.ogg"), 20.0),
    written("vorbis in webm", include_bytes!("files/chirp-vorbis-stereo.webm"), 20.0),
    written("opus by its speech coder", include_bytes!("files/chirp-silk.opus"), 8.0),
    written("opus by both coders, 60 ms", include_bytes!("files/chirp-hybrid-60ms.opus"), 10.0),
    written("opus in mp4", include_bytes!("files/chirp-opus.mp4"), 15.0),
    Written {
        level: 0.5,
        ..written("opus in webm, left channel", include_bytes!("files/chirp-left.webm"), 20.0)
    },
    Written {
        level: 5.0 / 6.0,
        ..written("opus, five of six channels", include_bytes!("files/chirp-surround.opus"), 15.0)
    },
    written("mp3 by lame", include_bytes!("files/chirp-lame.mp3"), 20.0),
    Written {
        late_max: 18,
        ..written("mp3 without a tag", include_bytes!("files/chirp-no-tag.mp3"), -6.0)
    },
    written("a-law", include_bytes!("files/chirp-alaw.wav"), 30.0),
    written("µ-law", include_bytes!("files/chirp-mulaw.wav"), 30.0),
    written("adpcm", include_bytes!("files/chirp-adpcm.wav"), 20.0),
];

const WRITTEN_AAC: &[Written] = &[
    written("aac in m4a", include_bytes!("files/chirp-44100.m4a"), 10.0),
    written("aac in fragments", include_bytes!("files/chirp-fragmented.mp4"), 10.0),
    written("aac in matroska", include_bytes!("files/chirp-aac.mkv"), 10.0),
];

#[test]
fn files_of_other_programs_come_back_in_time_and_level() {
    WRITTEN.iter().for_each(check);
    if cfg!(feature = "aac") {
        WRITTEN_AAC.iter().for_each(check);
    }
}

fn check(written: &Written) {
    let name = written.name;
    let heard = decode(written.file.to_vec()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let expected: Vec<f32> = chirp(RATE_HZ, 1.0).iter().map(|s| s * written.level).collect();
    let late = lag(&expected, &heard);
    assert!(late.abs() <= written.late_max, "{name}: {late} samples late");
    let snr = snr_db(&expected, &heard);
    assert!(snr >= written.snr_db_min, "{name}: {snr:.1} dB");
    let length = expected.len()..=expected.len() + TAIL_SAMPLES_MAX;
    assert!(length.contains(&heard.len()), "{name}: {} samples", heard.len());
}

#[test]
fn each_kind_of_wav_comes_back_exactly() {
    for kind in WavKind::ALL {
        let expected = chirp(RATE_HZ, 0.5);
        let heard = decode(wav(kind, RATE_HZ, 1, &expected)).unwrap();
        let snr_db_min = if matches!(kind, WavKind::U8) { 38.0 } else { 80.0 };
        assert_eq!(heard.len(), expected.len(), "{kind:?}");
        let snr = snr_db(&expected, &heard);
        assert!(snr >= snr_db_min, "{kind:?}: {snr:.1} dB");
    }
}

/// What a program leaves that crashed, or that writes to a pipe.
#[test]
fn a_wav_file_whose_sizes_say_nothing_is_read_to_its_end() {
    let expected = chirp(RATE_HZ, 0.5);
    let whole = wav(WavKind::F32, RATE_HZ, 1, &expected);
    let data_bytes = whole.len() as u32 - 44;
    for (riff, data) in [
        (0, 0),
        (36, 0),
        (0, data_bytes),
        (36 + data_bytes, u32::MAX),
        (u32::MAX, u32::MAX),
        (u32::MAX, 0x7FFF_F000),
    ] {
        let mut file = whole.clone();
        file[4..8].copy_from_slice(&riff.to_le_bytes());
        file[40..44].copy_from_slice(&data.to_le_bytes());
        let (heard, damage) = decode_with_damage(file);
        assert_eq!((heard.len(), damage), (expected.len(), None), "{riff} {data}");
        assert!(snr_db(&expected, &heard) > 100.0, "{riff} {data}");
    }
}

#[test]
fn each_rate_keeps_level_length_and_time() {
    for rate_hz in [
        4_000, 8_000, 11_025, 12_000, 15_999, 16_001, 22_050, 24_000, 32_000, 44_100, 48_000,
        88_200, 96_000, 192_000,
    ] {
        let seconds = 0.7;
        let heard = decode(wav(WavKind::F32, rate_hz, 1, &chirp(rate_hz, seconds))).unwrap();
        let expected = chirp(RATE_HZ, seconds);
        assert!(heard.len().abs_diff(expected.len()) <= 1, "{rate_hz} Hz: {}", heard.len());
        assert_eq!(lag(&expected, &heard), 0, "{rate_hz} Hz");
        let snr = snr_db(&expected, &heard);
        assert!(snr >= 50.0, "{rate_hz} Hz: {snr:.1} dB");
    }
}

#[test]
fn channels_are_averaged() {
    for (channels, level) in [(1, 1.0), (2, 0.5), (3, 1.0 / 3.0), (8, 0.125), (24, 1.0 / 24.0)] {
        let first_only: Vec<f32> = chirp(RATE_HZ, 0.2)
            .into_iter()
            .flat_map(|sample| (0..channels).map(move |n| if n == 0 { sample } else { 0.0 }))
            .collect();
        let heard = decode(wav(WavKind::F32, RATE_HZ, channels, &first_only)).unwrap();
        let expected: Vec<f32> = chirp(RATE_HZ, 0.2).iter().map(|sample| sample * level).collect();
        assert_eq!(heard.len(), expected.len(), "{channels} channels");
        assert!(snr_db(&expected, &heard) > 100.0, "{channels} channels");
    }
}

#[test]
fn what_hob_speaks_hob_hears() {
    let formats = [
        (AudioFormat::Wav, 80.0),
        (AudioFormat::Flac, 80.0),
        (AudioFormat::Mp3, 30.0),
        (AudioFormat::Opus, 12.0),
        (AudioFormat::Aac, 25.0),
    ];
    for (format, snr_db_min) in formats {
        if format == AudioFormat::Aac && !cfg!(feature = "aac") {
            continue;
        }
        for length in [Length::Unknown, Length::Samples(24_000)] {
            let file = spoken(format, length);
            let heard = decode(file).unwrap_or_else(|error| panic!("{format}: {error}"));
            let expected = chirp(RATE_HZ, 1.0);
            assert_eq!(lag(&expected, &heard), 0, "{format}");
            let snr = snr_db(&expected, &heard);
            assert!(snr >= snr_db_min, "{format}: {snr:.1} dB");
        }
    }
}

/// The first frames of this file are longer than the later ones, so its length cannot be guessed from them.
#[test]
fn an_mp3_of_variable_bitrate_without_a_tag_is_read_to_its_end() {
    const MP3: &[u8] = include_bytes!("files/chirp-no-tag.mp3");
    const FRAMES: usize = 200;
    let (header, kilobits_32, frame_bytes) = (20, 0x10, 104);
    let mut quiet = vec![0; frame_bytes];
    quiet[..4].copy_from_slice(&MP3[header..header + 4]);
    quiet[2] = quiet[2] & 0x0D | kilobits_32;
    let file = [MP3, &quiet.repeat(FRAMES)].concat();
    let heard = decode(file.clone()).unwrap();
    let behind_junk = decode([&[b'x'; 1_000][..], &file].concat()).unwrap();
    assert_eq!(behind_junk.len(), heard.len(), "something before the file changes nothing");
    let whole = decode(MP3.to_vec()).unwrap();
    let seconds = (FRAMES * 1_152) as f64 / 44_100.0;
    let expected = whole.len() + (seconds * 16_000.0) as usize;
    assert!(heard.len().abs_diff(expected) < 16, "{} instead of {expected}", heard.len());
}

#[test]
fn joined_files_are_heard_one_after_the_other() {
    let webm = include_bytes!("files/chirp-left.webm").to_vec();
    let vorbis = include_bytes!("files/chirp-vorbis-stereo.webm").to_vec();
    let live = live_webm();
    for files in [
        [
            include_bytes!("files/chirp-silk.opus").to_vec(),
            include_bytes!("files/chirp-hybrid-60ms.opus").to_vec(),
        ],
        [webm.clone(), vorbis.clone()],
        [vorbis, webm.clone()],
        [live.clone(), webm],
        [live.clone(), live],
    ] {
        let (heard, damage) = decode_with_damage(files.concat());
        let [first, second] = files.map(|file| decode(file).unwrap().len());
        let alone = first + second;
        assert!(heard.len().abs_diff(alone) < 16, "{} instead of {alone}", heard.len());
        assert_eq!(damage, None);
        let late = lag(&chirp(RATE_HZ, 1.0), &heard[first..]);
        assert!(late.abs() <= 1, "the second file is {late} samples late");
    }
}

/// HE-AAC says that half of the spectrum is to be guessed. hob decodes the other half, which holds the speech.
#[test]
#[cfg(feature = "aac")]
fn he_aac_is_decoded_without_its_guessed_half() {
    let mut file = include_bytes!("files/chirp-44100.m4a").to_vec();
    // The codec's header: AAC-LC, 44,100 Hz, one channel, no guessing. It becomes: HE-AAC with this core.
    let header = file.windows(5).position(|five| five == [0x12, 0x08, 0x56, 0xE5, 0x00]).unwrap();
    file[header..header + 5].copy_from_slice(&[0x2A, 0x08, 0x88, 0x00, 0x00]);
    let heard = decode(file).unwrap();
    assert_eq!(lag(&chirp(RATE_HZ, 1.0), &heard), 0);
}
