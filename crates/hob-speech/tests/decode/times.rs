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

/// An edit list begins with a pause if the sound of a film begins later than its pictures. Hours of it are a mistake.
#[test]
fn a_pause_before_the_sound_of_a_film_is_silence() {
    const EDITS: usize = 18_397;
    let alac = include_bytes!("files/chirp-alac.m4a");
    let whole = decode(alac.to_vec()).unwrap();
    // The ticks of the movie are milliseconds.
    for (pause_ms, silence) in [(500_u32, 8_000), (7_200_000, 0)] {
        // No place in the track, and the normal rate.
        let pause = [pause_ms.to_be_bytes(), [0xFF; 4], [0, 1, 0, 0]].concat();
        let mut file = [&alac[..EDITS + 16], &pause, &alac[EDITS + 16..]].concat();
        // The sizes of moov, trak, edts and elst, and the number of edits.
        for (size, more) in [(18_173, 12), (18_289, 12), (18_389, 12), (EDITS, 12), (EDITS + 12, 1)]
        {
            let bytes = &mut file[size..size + 4];
            let value = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) + more;
            bytes.copy_from_slice(&value.to_be_bytes());
        }
        let (heard, damage) = decode_with_damage(file);
        assert_eq!((heard.len(), damage), (silence + whole.len(), None), "{pause_ms} ms");
        assert!(heard[..silence].iter().all(|sample| *sample == 0.0), "{pause_ms} ms");
        assert_eq!(lag(&whole, &heard[silence..]), 0, "{pause_ms} ms");
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

fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|sample| sample * sample).sum()
}

/// The checksum or the first byte of a page of sound is wrong. The silence is where its sound was.
#[test]
fn a_damaged_page_of_opus_is_silent_and_reported() {
    const SILK: &[u8] = include_bytes!("files/chirp-silk.opus");
    let whole = decode(SILK.to_vec()).unwrap();
    // Bytes of the file, and the samples of its sound at 16 kHz. The last page follows the second one of these: what the
    // encoder put behind the sound is cut all the same.
    for (page, samples, [at_s, at_s_joined]) in
        [(1_402, 6_400..9_400, ["0.4", "1.4"]), (2_426, 12_800..15_800, ["0.8", "1.8"])]
    {
        for at in [page, page + 100] {
            let mut file = SILK.to_vec();
            file[at] ^= 0xFF;
            let joined = [SILK, &file].concat();
            for (file, before, at_s) in [(file, 0, at_s), (joined, whole.len(), at_s_joined)] {
                let (heard, damage) = decode_with_damage(file);
                assert!(heard.len().abs_diff(before + whole.len()) < 16, "{}", heard.len());
                let says = format!("the sound is damaged at {at_s} s: one of its pages is damaged");
                assert_eq!(damage.expect("damage").to_string(), says);
                let heard = &heard[before..];
                let hole = power(&heard[samples.clone()]);
                assert!(hole < 0.01 * power(&whole[samples.clone()]), "{page}: {hole}");
                if samples.end < 10_000 {
                    let late = lag(&whole[10_000..], &heard[10_000..]);
                    assert!(late.abs() <= 2, "{page}: the end moved by {late} samples");
                }
            }
        }
    }
}

/// A page has 128 ms, and two of them are damaged: one after the other, or with a whole page between them.
#[test]
fn damaged_pages_of_vorbis_are_silent() {
    const VORBIS: &[u8] = include_bytes!("files/chirp-vorbis.ogg");
    let whole = decode(VORBIS.to_vec()).unwrap();
    let rows = [
        ([3_808, 3_942], [5_800..7_500, 7_900..9_500], 10_500),
        ([3_808, 4_069], [5_800..7_500, 9_900..11_500], 12_500),
    ];
    for (pages, holes, end) in rows {
        let mut file = VORBIS.to_vec();
        pages.iter().for_each(|page| file[page + 50] ^= 0xFF);
        let (heard, damage) = decode_with_damage(file);
        assert!(damage.is_some());
        assert!(heard.len().abs_diff(whole.len()) < 16, "{} of {}", heard.len(), whole.len());
        for hole in holes {
            let heard = power(&heard[hole.clone()]);
            assert!(heard < 0.01 * power(&whole[hole.clone()]), "{hole:?}: {heard}");
        }
        let late = lag(&whole[end..], &heard[end..]);
        assert!(late.abs() <= 2, "the end moved by {late} samples");
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
