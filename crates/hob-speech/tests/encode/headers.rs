//! The headers: "unknown" in a stream, exact values if the length is known.
//! The test reads each field by its offset, from the documents of the formats.

use hob_speech::encode::{AudioFormat, Encoder, Length};

use crate::signal::voice;
use crate::{RATE_HZ, built, encode, ffmpeg};

const SAMPLES: usize = 2_000;

fn file(format: AudioFormat, length: Length) -> Vec<u8> {
    encode(format, length, &[&voice(RATE_HZ, SAMPLES)]).unwrap()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn wav_sizes(length: Length) -> (u32, u32) {
    let wav = file(AudioFormat::Wav, length);
    assert_eq!(
        (&wav[..4], &wav[8..16], &wav[36..40]),
        (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
    );
    assert_eq!(wav.len(), 44 + 2 * SAMPLES);
    (u32_at(&wav, 4), u32_at(&wav, 40))
}

#[test]
fn wav_says_unknown_in_a_stream_and_its_size_otherwise() {
    assert_eq!(wav_sizes(Length::Unknown), (0xFFFF_FFFF, 0xFFFF_FFFF));
    assert_eq!(wav_sizes(Length::Samples(2_000)), (36 + 4_000, 4_000));
}

/// RFC 9639 §8.2: block sizes, frame sizes, rate, channels, bits, total samples, MD5.
#[derive(Debug, PartialEq)]
struct StreamInfo {
    block_sizes: (u16, u16),
    frame_sizes: (u32, u32),
    rate_hz: u32,
    total_samples: u64,
    md5: String,
}

fn stream_info(flac: &[u8]) -> StreamInfo {
    assert_eq!(flac[..8], [b'f', b'L', b'a', b'C', 0x80, 0, 0, 34]);
    let body = &flac[8..42];
    let u16_at = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let u24_at = |at: usize| u32::from_be_bytes([0, body[at], body[at + 1], body[at + 2]]);
    let packed = u64::from_be_bytes(body[10..18].try_into().unwrap());
    StreamInfo {
        block_sizes: (u16_at(0), u16_at(2)),
        frame_sizes: (u24_at(4), u24_at(7)),
        rate_hz: (packed >> 44) as u32,
        total_samples: packed & 0xF_FFFF_FFFF,
        md5: body[18..].iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// What a program does that writes a file while it encodes.
#[test]
fn a_file_whose_header_is_written_last_is_the_whole_one() {
    let samples = voice(RATE_HZ, SAMPLES);
    for format in built() {
        let mut encoder = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
        let mut written = encoder.encode(&samples).unwrap();
        let end = encoder.finish_file().unwrap();
        written.extend(end.rest);
        written[..end.header.len()].copy_from_slice(&end.header);
        assert!(written == file(format, Length::Samples(SAMPLES as u64)), "{format}");
    }
}

#[test]
fn flac_says_unknown_in_a_stream() {
    let expect = StreamInfo {
        block_sizes: (576, 576),
        frame_sizes: (0, 0),
        rate_hz: RATE_HZ,
        total_samples: 0,
        md5: "0".repeat(32),
    };
    assert_eq!(stream_info(&file(AudioFormat::Flac, Length::Unknown)), expect);
}

#[test]
fn flac_of_known_length_states_its_frames_samples_and_md5() {
    let flac = file(AudioFormat::Flac, Length::Samples(SAMPLES as u64));
    let sizes = flac_frame_sizes(&flac);
    let expect = StreamInfo {
        block_sizes: (576, 576),
        frame_sizes: (*sizes.iter().min().unwrap(), *sizes.iter().max().unwrap()),
        rate_hz: RATE_HZ,
        total_samples: SAMPLES as u64,
        md5: ffmpeg::md5(AudioFormat::Flac, &flac),
    };
    assert_eq!(stream_info(&flac), expect);
}

/// Frames begin with a sync code and, here, with the count 0, 1, 2, 3. This is enough to find them in this file.
fn flac_frame_sizes(flac: &[u8]) -> Vec<u32> {
    let mut edges: Vec<usize> = Vec::new();
    for at in 42..flac.len() - 5 {
        let number = usize::from(flac[at + 4]);
        if flac[at..at + 2] == [0xFF, 0xF8] && number == edges.len() {
            edges.push(at);
        }
    }
    assert_eq!(edges.len(), SAMPLES.div_ceil(576));
    edges.push(flac.len());
    edges.windows(2).map(|edge| (edge[1] - edge[0]) as u32).collect()
}

/// An exact header needs the end of the sound first.
#[test]
fn only_flac_of_known_length_waits_for_the_end() {
    for format in built() {
        let mut encoder = Encoder::new(format, RATE_HZ, Length::Samples(4_800)).unwrap();
        let early = encoder.encode(&voice(RATE_HZ, 4_800)).unwrap();
        assert_eq!(early.is_empty(), format == AudioFormat::Flac, "{format}");
    }
}

#[test]
fn mp3_is_equal_frames_with_no_info_frame_and_no_reservoir() {
    let mp3 = file(AudioFormat::Mp3, Length::Unknown);
    let frames: Vec<&[u8]> = mp3.chunks(288).collect(); // 96 kbit/s, 576 samples, 24 kHz
    assert_eq!(frames.len(), (SAMPLES + 1_057).div_ceil(576));
    for frame in frames {
        assert_eq!(frame[..2], [0xFF, 0xF3], "sync, MPEG-2, layer III, no CRC");
        assert_eq!(frame[4], 0, "main data begins in the frame itself");
    }
    let tagged = mp3.windows(4).any(|four| four == b"Xing" || four == b"Info" || four == b"LAME");
    assert!(!tagged);
}

/// Page flags (2 first, 4 last), granule, and number of packets, per page.
fn ogg_pages(mut ogg: &[u8]) -> Vec<(u8, u64, usize)> {
    let mut pages = Vec::new();
    while !ogg.is_empty() {
        assert_eq!(&ogg[..4], b"OggS");
        let granule = u64::from_le_bytes(ogg[6..14].try_into().unwrap());
        let lacing = &ogg[27..27 + usize::from(ogg[26])];
        let packets = lacing.iter().filter(|&&length| length < 255).count();
        pages.push((ogg[5], granule, packets));
        let payload: usize = lacing.iter().map(|&length| usize::from(length)).sum();
        ogg = &ogg[27 + lacing.len() + payload..];
    }
    pages
}

#[test]
fn ogg_pages_start_small_and_end_on_the_sample() {
    let opus = encode(AudioFormat::Opus, Length::Unknown, &[&voice(RATE_HZ, 9_001)]).unwrap();
    let single = (1..=10).map(|packet| (0, packet * 960, 1));
    let threes = (1..=3).map(|page| (0, (10 + page * 3) * 960, 3));
    let headers = [(2, 0, 1), (0, 0, 1)];
    // 18 full packets. The other 361 samples and the delay of 156 need two more.
    let last = (4, 312 + 2 * 9_001, 1);
    let expect: Vec<_> = headers.into_iter().chain(single).chain(threes).chain([last]).collect();
    assert_eq!(ogg_pages(&opus), expect);
}

#[test]
fn opus_head_gives_the_pre_skip_and_the_source_rate() {
    let opus = file(AudioFormat::Opus, Length::Unknown);
    let mut expect = b"OpusHead".to_vec();
    expect.extend([1, 1, 0x38, 0x01, 0xC0, 0x5D, 0, 0, 0, 0, 0]); // 312 and 24,000
    assert_eq!(opus[28..28 + 19], expect);
}

#[test]
#[cfg(feature = "aac")]
fn aac_is_adts_frames_from_the_first_byte_to_the_last() {
    let mut aac = &file(AudioFormat::Aac, Length::Unknown)[..];
    let mut frames = 0;
    while !aac.is_empty() {
        assert_eq!(aac[..2], [0xFF, 0xF1], "sync, MPEG-4, no CRC");
        let bytes = u32::from_be_bytes([0, aac[3] & 3, aac[4], aac[5]]) >> 5;
        aac = &aac[bytes as usize..];
        frames += 1;
    }
    assert_eq!(frames, SAMPLES.div_ceil(1_024) + 1);
}
