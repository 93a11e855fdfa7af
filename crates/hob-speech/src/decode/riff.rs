//! Whether a WAV file ends before its sound does: an upload or a recording that was stopped.
//! Symphonia reads such a file to its end, and does not say so.

/// Programs that do not know the length yet write one from here on, which promises nothing.
const UNKNOWN_BYTES_MIN: u32 = 0x7F00_0000;
/// Some programs count a few bytes too many.
const MISSING_BYTES_MIN: usize = 1_024;

pub(super) fn is_cut(file: &[u8]) -> bool {
    missing_bytes(file).is_some_and(|missing| missing >= MISSING_BYTES_MIN)
}

/// The bytes of sound that the header promises and the file does not have. `None` if there is no such promise.
fn missing_bytes(file: &[u8]) -> Option<usize> {
    let mut chunks = file.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WAVE")?;
    loop {
        let (kind, rest) = chunks.split_first_chunk::<4>()?;
        let (length, body) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        if kind == b"data" {
            let is_known = length < UNKNOWN_BYTES_MIN;
            return is_known.then(|| (length as usize).saturating_sub(body.len()));
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
