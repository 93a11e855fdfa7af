//! Times are exact: a click stays where it was, and a hole becomes silence.
//! Subtitles and word times depend on this.

use hob_speech::encode::{AudioFormat, Length};

use crate::cut::spoken;
use crate::sample::{RATE_HZ, WavKind, lag, wav};
use crate::{decode, decode_with_damage};

#[test]
fn a_click_stays_within_a_millisecond() {
    for rate_hz in [8_000, 11_025, 22_050, 44_100, 48_000, 96_000] {
        for click_ms in [1, 250, 999, 2_345] {
            let at = (rate_hz * click_ms / 1_000) as usize;
            let mut samples = vec![0.0; 3 * rate_hz as usize];
            samples[at] = 1.0;
            let heard = decode(wav(WavKind::S16, rate_hz, 1, &samples)).unwrap();
            let loudest = (0..heard.len()).max_by(|a, b| heard[*a].total_cmp(&heard[*b])).unwrap();
            let expected = (RATE_HZ * click_ms / 1_000) as usize;
            assert!(loudest.abs_diff(expected) <= 16, "{rate_hz} Hz, {click_ms} ms: {loudest}");
        }
    }
}

/// A broken packet in the middle of a Matroska file. The sound after it keeps its time.
#[test]
fn lost_packets_become_silence() {
    let mut file = include_bytes!("files/chirp-left.webm").to_vec();
    let (whole, undamaged) = decode_with_damage(file.clone());
    assert_eq!(undamaged, None);
    // An Opus packet with code 3 and no frames is invalid. Blocks of this file begin with their track and their time.
    let blocks: Vec<usize> = (0..file.len() - 8)
        .filter(|&at| file[at] == 0x81 && file[at + 3] == 0x80 && at > 500)
        .collect();
    for &at in &blocks[blocks.len() / 3..blocks.len() * 2 / 3] {
        file[at + 4..at + 6].copy_from_slice(&[0xFF, 0x00]);
    }
    let (heard, damage) = decode_with_damage(file);
    assert!(damage.is_some());
    assert!(heard.len().abs_diff(whole.len()) < 400, "{} of {}", heard.len(), whole.len());
    let power = |samples: &[f32]| samples.iter().map(|s| s * s).sum::<f32>();
    let hole = &heard[heard.len() * 2 / 5..heard.len() * 3 / 5];
    assert!(power(hole) < 0.01 * power(&whole[..hole.len()]), "the hole is not silent");
    // Matroska rounds times to milliseconds.
    let late = lag(&whole[11_500..], &heard[11_500..]);
    assert!(late.abs() <= 2 * 16, "the end moved by {late} samples");
}

#[test]
fn damage_at_the_very_end_is_reported() {
    let mut file = include_bytes!("files/chirp-left.webm").to_vec();
    // The track, the time and the flags of the last block.
    let last = file.windows(4).rposition(|block| block == [0x81, 0x03, 0xE9, 0x00]).unwrap();
    file[last + 4..last + 6].copy_from_slice(&[0xFF, 0x00]);
    let (heard, damage) = decode_with_damage(file);
    assert!((15_500..16_000).contains(&heard.len()), "{} samples", heard.len());
    let damage = damage.expect("damage").to_string();
    assert!(damage.starts_with("the sound is damaged at 1.0 s: "), "{damage}");
}

/// Symphonia leaves out an Ogg page with a wrong checksum.
#[test]
fn a_damaged_last_page_is_reported() {
    let mut file = include_bytes!("files/chirp-silk.opus").to_vec();
    let last = file.len() - 1;
    file[last] ^= 0xFF;
    let (heard, damage) = decode_with_damage(file);
    assert!(heard.len() > 15_000, "{} samples", heard.len());
    let damage = damage.expect("damage").to_string();
    assert!(damage.ends_with("its last page is damaged"), "{damage}");
}

/// The checksum or the first byte of the third page of sound is wrong. The page begins at 0.4 s, and its time is not lost:
/// Symphonia takes the next page for the one that follows the second, so the silence comes after that.
#[test]
fn a_damaged_page_in_the_middle_keeps_its_time_and_is_reported() {
    const SILK: &[u8] = include_bytes!("files/chirp-silk.opus");
    const PAGE: usize = 1_402;
    let whole = decode(SILK.to_vec()).unwrap();
    for at in [PAGE, PAGE + 100] {
        let mut file = SILK.to_vec();
        file[at] ^= 0xFF;
        for (file, before, at_s) in
            [(file.clone(), 0, "0.4"), ([SILK, &file].concat(), whole.len(), "1.4")]
        {
            let (heard, damage) = decode_with_damage(file);
            assert!(heard.len().abs_diff(before + whole.len()) < 16, "{}", heard.len());
            let says = format!("the sound is damaged at {at_s} s: one of its pages is damaged");
            assert_eq!(damage.expect("damage").to_string(), says);
        }
    }
}

/// The last frame has 16 ms.
#[test]
fn a_damaged_frame_of_a_flac_file_is_silent_and_reported() {
    let file = spoken(AudioFormat::Flac, Length::Samples(24_000));
    let (whole, undamaged) = decode_with_damage(file.clone());
    assert_eq!(undamaged, None);
    for (at, says) in [
        (file.len() / 2, "one of its frames is damaged"),
        (file.len() - 1, "the file ends before its sound does"),
    ] {
        let mut damaged = file.clone();
        damaged[at] ^= 0xFF;
        let (heard, damage) = decode_with_damage(damaged);
        assert!(heard.len().abs_diff(whole.len()) < 300, "{} of {}", heard.len(), whole.len());
        let damage = damage.expect("damage").to_string();
        assert!(damage.ends_with(says), "{damage}");
        let late = lag(&whole[..14_000], &heard[..14_000]);
        assert_eq!(late, 0, "{at}");
    }
}

#[test]
fn pieces_are_one_second_and_a_rest() {
    let file = wav(WavKind::S16, 44_100, 1, &vec![0.25; 44_100 * 5 / 2]);
    let mut decoder = hob_speech::decode::SoundDecoder::open(file.into()).unwrap();
    let mut lengths = Vec::new();
    while let Some(piece) = decoder.next_piece().unwrap() {
        lengths.push(piece.len());
    }
    assert_eq!(lengths, [16_000, 16_000, 8_000]);
    assert_eq!(decoder.next_piece(), Ok(None), "the end stays the end");
}
