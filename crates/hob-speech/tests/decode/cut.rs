//! Files that end before their sound does say so. A whole file does not, and neither does a live recording.
//! What is heard before the cut is kept.

use hob_speech::encode::{AudioFormat, Encoder, Length};

use crate::broken::FILES;
use crate::decode_with_damage;
use crate::sample::chirp;

const VORBIS: &[u8] = include_bytes!("files/chirp-vorbis.ogg");
const OPUS: &[u8] = include_bytes!("files/chirp-silk.opus");
const WEBM: &[u8] = include_bytes!("files/chirp-left.webm");
const MP3_WITH_TAG: &[u8] = include_bytes!("files/chirp-lame.mp3");
const MP3: &[u8] = include_bytes!("files/chirp-no-tag.mp3");

pub(crate) fn spoken(format: AudioFormat, length: Length) -> Vec<u8> {
    let mut encoder = Encoder::new(format, 24_000, length).unwrap();
    let mut file = encoder.encode(&chirp(24_000, 1.0)).unwrap();
    file.extend(encoder.finish().unwrap());
    file
}

/// What a browser records: no size of the segment and of the cluster, and no index at the end.
pub(crate) fn live_webm() -> Vec<u8> {
    const SEGMENT_SIZE: usize = 40;
    const CLUSTER_SIZE: usize = 443;
    const CUES: usize = 8_912;
    let mut file = WEBM[..CUES].to_vec();
    file[SEGMENT_SIZE + 1..SEGMENT_SIZE + 8].fill(0xFF);
    file[CLUSTER_SIZE..CLUSTER_SIZE + 2].copy_from_slice(&[0x7F, 0xFF]);
    file
}

#[test]
fn a_whole_file_is_not_called_cut() {
    let mut files: Vec<Vec<u8>> = FILES.iter().map(|file| file.to_vec()).collect();
    if !cfg!(feature = "aac") {
        files.drain(..3);
    }
    files.push(MP3.to_vec());
    for format in [AudioFormat::Wav, AudioFormat::Flac, AudioFormat::Mp3, AudioFormat::Opus] {
        files.push(spoken(format, Length::Unknown));
        files.push(spoken(format, Length::Samples(24_000)));
    }
    for (n, file) in files.into_iter().enumerate() {
        assert_eq!(decode_with_damage(file).1, None, "{n}");
    }
}

/// Zeros are no element, and the other bytes are one that promises more than follows.
#[test]
fn what_follows_a_matroska_file_is_no_damage() {
    let whole = decode_with_damage(WEBM.to_vec()).0;
    for junk in [&[0; 100][..], &[0xEC, 0xE4]] {
        let (heard, damage) = decode_with_damage([WEBM, junk].concat());
        assert_eq!((heard.len(), damage), (whole.len(), None), "{junk:?}");
    }
}

#[test]
fn a_second_file_that_is_cut_says_so() {
    let whole = decode_with_damage(WEBM.to_vec()).0;
    for (length, says) in [
        (6_000, "the file ends before its sound does"),
        (100, "another file follows that cannot be read: the file ends in its header"),
    ] {
        let (heard, damage) = decode_with_damage([WEBM, &WEBM[..length]].concat());
        assert_eq!(heard.len() > whole.len() + 2_000, length == 6_000, "{length}: {}", heard.len());
        let damage = damage.map(|damage| damage.to_string()).unwrap_or_default();
        assert!(damage.ends_with(says), "{length}: {damage}");
    }
}

#[test]
fn a_cut_file_says_that_it_is_cut() {
    let (flac, live) = (spoken(AudioFormat::Flac, Length::Samples(24_000)), live_webm());
    for (file, length) in [
        (VORBIS, 3_900),
        (OPUS, 2_000),
        (WEBM, 6_000),
        (&live[..], 8_900),
        (MP3_WITH_TAG, 2_700),
        (MP3, MP3.len() - 50),
        (&flac[..], flac.len() * 6 / 10),
    ] {
        let (heard, damage) = decode_with_damage(file[..length].to_vec());
        assert!((2_000..17_000).contains(&heard.len()), "{length}: {}", heard.len());
        let damage = damage.map(|damage| damage.to_string()).unwrap_or_default();
        assert!(damage.ends_with("the file ends before its sound does"), "{length}: {damage}");
    }
}

/// Some encoders do not mark the last page of an Ogg file, and a browser may end a recording after any block.
#[test]
fn a_recording_may_end_after_any_page_block_or_frame() {
    let (flac, live) = (spoken(AudioFormat::Flac, Length::Unknown), live_webm());
    for (file, length) in [
        (VORBIS, 4_430),
        (OPUS, 2_908),
        (&live[..], 8_912),
        (&live[..], 8_667),
        (MP3, 6_132),
        (&flac[..], flac.len() * 6 / 10),
    ] {
        let (heard, damage) = decode_with_damage(file[..length].to_vec());
        assert!(heard.len() > 2_000, "{length}: {}", heard.len());
        assert_eq!(damage, None, "{length}");
    }
}
