//! The sizes in the header of a WAV file: which of them say nothing, and whether the file ends before its sound does.
//! Symphonia refuses sizes that contradict each other, and reads a file that was cut without saying so.

use bytes::{Bytes, BytesMut};

/// Programs that do not know the length yet write 0, or a length from here on, which promises nothing.
const UNKNOWN_BYTES_MIN: u32 = 0x7F00_0000;
/// Some programs count a few bytes too many.
const MISSING_BYTES_MIN: usize = 1_024;

pub(super) fn is_cut(file: &[u8]) -> bool {
    missing_bytes(file).is_some_and(|missing| missing >= MISSING_BYTES_MIN)
}

/// Writes the size of the sound that is there into a header that does not say it: a program that writes to a pipe, or that
/// crashed, leaves such a header.
pub(super) fn with_sizes(file: Bytes) -> Bytes {
    let Some(SoundChunk { riff_bytes, at, promised }) = sound_chunk(&file) else { return file };
    let there = u32::try_from(file.len() - at).unwrap_or(u32::MAX);
    let end = 8 + u64::from(riff_bytes);
    let bytes = match promised {
        // A file without sound may have other chunks after it.
        0 if end <= at as u64 || riff_bytes >= UNKNOWN_BYTES_MIN => there,
        UNKNOWN_BYTES_MIN.. => there.min(promised),
        _ => promised,
    };
    let is_inside = at as u64 + u64::from(bytes) <= end;
    if bytes == promised && (is_inside || riff_bytes == u32::MAX) {
        return file;
    }
    let mut file = BytesMut::from(file);
    file[4..8].fill(0xFF);
    file[at - 4..at].copy_from_slice(&bytes.to_le_bytes());
    file.freeze()
}

/// The bytes of sound that the header promises and the file does not have. `None` if there is no such promise.
fn missing_bytes(file: &[u8]) -> Option<usize> {
    let SoundChunk { at, promised, .. } = sound_chunk(file)?;
    let is_known = promised < UNKNOWN_BYTES_MIN;
    is_known.then(|| (promised as usize).saturating_sub(file.len() - at))
}

struct SoundChunk {
    /// The size of everything after the first 8 bytes, as the header says.
    riff_bytes: u32,
    /// Where the sound begins.
    at: usize,
    /// The bytes of sound, as the header says.
    promised: u32,
}

fn sound_chunk(file: &[u8]) -> Option<SoundChunk> {
    let (riff_bytes, form) = file.strip_prefix(b"RIFF")?.split_first_chunk::<4>()?;
    let riff_bytes = u32::from_le_bytes(*riff_bytes);
    let mut chunks = form.strip_prefix(b"WAVE")?;
    loop {
        let (kind, rest) = chunks.split_first_chunk::<4>()?;
        let (length, body) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        if kind == b"data" {
            return Some(SoundChunk { riff_bytes, at: file.len() - body.len(), promised: length });
        }
        // Chunks begin at even places.
        chunks = body.get(length as usize + length as usize % 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that promises this many bytes of sound, and has that many.
    fn file(promised: u32, there: usize) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        file.extend([0; 16]);
        // A chunk of an odd length, and the byte that fills it up.
        file.extend(b"LIST\x03\0\0\0abc\0data");
        file.extend(promised.to_le_bytes());
        file.resize(file.len() + there, 0);
        file
    }

    #[test]
    fn a_file_is_cut_if_its_header_promises_more() {
        for (promised, there, missing) in [
            (8_000, 8_000, Some(0)),
            (8_000, 9_000, Some(0)),
            (8_000, 6_000, Some(2_000)),
            (0, 6_000, Some(0)),
            (0x7F00_0000, 6_000, None),
            (u32::MAX, 6_000, None),
        ] {
            let file = file(promised, there);
            assert_eq!(missing_bytes(&file), missing, "{promised} {there}");
            assert_eq!(is_cut(&file), missing == Some(2_000), "{promised} {there}");
        }
        let whole = file(8_000, 8_000);
        for cut in 0..whole.len() - 8_000 {
            assert_eq!(missing_bytes(&whole[..cut]), None, "{cut}");
        }
    }
}
