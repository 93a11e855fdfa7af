//! The header of WAV files with one channel of 16-bit samples.
//! Encoded speech, requests to other servers and the benchmark write the same one.

/// Bytes of the header that the size of the whole file counts: all but the first eight.
pub const WAV_COUNTED_BYTES: u32 = 36;

/// The 44 bytes before the samples. A stream of unknown length has `u32::MAX` bytes of samples, which players read as
/// "until the end".
pub fn wav_header(rate_hz: u32, data_bytes: u32) -> Vec<u8> {
    let mut header = b"RIFF".to_vec();
    header.extend(data_bytes.saturating_add(WAV_COUNTED_BYTES).to_le_bytes());
    // 16 bytes of format: integer PCM, one channel.
    header.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    header.extend(rate_hz.to_le_bytes());
    header.extend(rate_hz.saturating_mul(2).to_le_bytes());
    // Two bytes and 16 bits for each sample.
    header.extend(b"\x02\0\x10\0data");
    header.extend(data_bytes.to_le_bytes());
    header
}
