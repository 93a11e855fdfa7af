//! Whether an Ogg, Matroska or MP3 file ends inside of its sound: an upload or a recording that was stopped.
//! A recording that was stopped between two pages, blocks or frames looks like a whole one.

/// How a Matroska file begins.
pub(super) const MATROSKA: [u8; 4] = [0x1A, 0x45, 0xDF, 0xA3];
const SEGMENT: u64 = 0x1853_8067;
const CLUSTER: u64 = 0x1F43_B675;
/// The longest frame of MPEG audio, with its header.
const MP3_FRAME_BYTES_MAX: usize = 2_881;
/// The flag of the last page of an Ogg file.
const LAST_PAGE: u8 = 4;

/// A page, or the packet that begins in the last page, is not complete. The mark of the last page proves nothing,
/// because some encoders leave it out.
pub(super) fn is_ogg_cut(mut file: &[u8]) -> bool {
    let mut packet_goes_on = false;
    while let Some(page) = file.strip_prefix(b"OggS") {
        let Some((header, rest)) = page.split_first_chunk::<23>() else { return true };
        let Some((lengths, body)) = rest.split_at_checked(header[22].into()) else { return true };
        let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        let Some(next) = body.get(length..) else { return true };
        packet_goes_on = header[1] & LAST_PAGE == 0 && lengths.last() == Some(&u8::MAX);
        file = next;
    }
    packet_goes_on && file.is_empty()
}

/// Whether the last page says that no other follows.
pub(super) fn has_last_ogg_page(file: &[u8]) -> bool {
    let last = file.windows(6).rfind(|page| page.starts_with(b"OggS"));
    last.is_some_and(|page| page[5] & LAST_PAGE != 0)
}

/// Where a Matroska file ends: behind its segment, or where another file begins, since live recordings do not know the size
/// of their segment. `None`: its end is not known, or the bytes end before.
pub(super) fn matroska_end(file: &[u8]) -> Option<usize> {
    let mut rest = Some(file).filter(|file| file.starts_with(&MATROSKA))?;
    loop {
        let (id, size, body) = element(rest)?;
        rest = match size {
            Some(size) => body.get(size..)?,
            None if matches!(id, SEGMENT | CLUSTER) => body,
            None => return None,
        };
        if (id == SEGMENT && size.is_some()) || rest.starts_with(&MATROSKA) {
            return Some(file.len() - rest.len());
        }
    }
}

/// An element promises more bytes than follow. Live recordings do not know the sizes of their segment and clusters.
/// What follows a whole file is not sound of it.
pub(super) fn is_matroska_cut(mut file: &[u8]) -> bool {
    if matroska_end(file).is_some() {
        return false;
    }
    while let Some((id, size, body)) = element(file) {
        file = match size {
            None if matches!(id, SEGMENT | CLUSTER) => body,
            None => return false,
            Some(size) => match body.get(size..) {
                Some(next) => next,
                None => return true,
            },
        };
    }
    false
}

/// Identifier, size of the body if it is known, and what follows the header.
fn element(bytes: &[u8]) -> Option<(u64, Option<usize>, &[u8])> {
    let (id, rest) = variable_number(bytes, 4)?;
    let length = rest.first()?.leading_zeros() + 1;
    let (size, body) = variable_number(rest, 8)?;
    let unknown = (1_u64 << (7 * length)) - 1;
    let size = size & unknown;
    Some((id, usize::try_from(size).ok().filter(|_| size != unknown), body))
}

/// A number with the bit that marks its length.
fn variable_number(bytes: &[u8], length_max: usize) -> Option<(u64, &[u8])> {
    let length = bytes.first()?.leading_zeros() as usize + 1;
    let (number, rest) = bytes.split_at_checked(length).filter(|_| length <= length_max)?;
    Some((number.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), rest))
}

/// After the last whole frame comes the beginning of another one of the same kind and rate.
pub(super) fn is_mp3_cut(file: &[u8], last_frame: &[u8]) -> bool {
    let [_, kind, rate, _, ..] = last_frame else { return false };
    let from = file.len().saturating_sub(last_frame.len() + MP3_FRAME_BYTES_MAX);
    let end = &file[from..];
    let Some(at) = end.windows(last_frame.len()).rposition(|bytes| bytes == last_frame) else {
        return false;
    };
    let rest = &end[at + last_frame.len()..];
    matches!(rest, [0xFF, other_kind, other_rate, _, ..]
        if other_kind == kind && (other_rate ^ rate) & 0x0C == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages with these flags and these lengths of their parts.
    fn ogg(pages: &[(u8, &[u8])]) -> Vec<u8> {
        let mut file: Vec<u8> = Vec::new();
        for (flags, lengths) in pages {
            file.extend(b"OggS\0");
            file.push(*flags);
            file.extend([0; 20]);
            file.push(lengths.len() as u8);
            file.extend(*lengths);
            let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
            file.resize(file.len() + length, 7);
        }
        file
    }

    #[test]
    fn an_ogg_file_is_cut_inside_of_a_page_or_a_packet() {
        let whole = ogg(&[(2, &[19]), (0, &[255, 3]), (4, &[40])]);
        assert!(!is_ogg_cut(&whole));
        let ends = [0, 27 + 20, 2 * 27 + 20 + 260, whole.len()];
        for length in 0..whole.len() {
            // Three bytes of a page are not enough to know that it is one.
            let is_short = ends.iter().any(|end| (*end..*end + 4).contains(&length));
            assert_eq!(is_ogg_cut(&whole[..length]), !is_short, "{length}");
        }
        assert!(is_ogg_cut(&ogg(&[(2, &[19]), (0, &[9, 255])])));
        assert!(!is_ogg_cut(&ogg(&[(2, &[19]), (4, &[9, 255])])));
        assert!(!is_ogg_cut(&[&whole[..], b"TAG"].concat()));
    }

    #[test]
    fn the_last_page_of_an_ogg_file_may_say_so() {
        let marked = ogg(&[(2, &[19]), (4, &[40])]);
        assert!(has_last_ogg_page(&marked));
        assert!(has_last_ogg_page(&[&marked[..], b"TAG"].concat()));
        assert!(!has_last_ogg_page(&ogg(&[(2, &[19]), (0, &[40])])));
        assert!(!has_last_ogg_page(b"OggS"));
    }

    #[test]
    fn a_matroska_file_is_cut_inside_of_an_element() {
        let block = b"\xA3\x84abcd";
        let header = b"\x1A\x45\xDF\xA3\x81\0";
        let whole = |segment: &[u8], cluster: &[u8]| {
            let ids = [SEGMENT, CLUSTER].map(|id| (id as u32).to_be_bytes());
            [&header[..], &ids[0], segment, &ids[1], cluster, block, block].concat()
        };
        let known = whole(&[0x92], &[0x40, 12]);
        let live = whole(&[0x01, 255, 255, 255, 255, 255, 255, 255], &[0x7F, 255]);
        for file in [&known, &live] {
            assert!(!is_matroska_cut(file));
            assert!(is_matroska_cut(&file[..file.len() - 1]));
        }
        assert!(is_matroska_cut(&known[..known.len() - block.len()]));
        assert!(!is_matroska_cut(&live[..live.len() - block.len()]));
        assert!(!is_matroska_cut(&[&live[..], &[0; 16]].concat()));
        assert_eq!((matroska_end(&known), matroska_end(&live)), (Some(known.len()), None));
        for (first, second) in [(&known, &live), (&live, &known), (&live, &live)] {
            assert_eq!(matroska_end(&[&first[..], second].concat()), Some(first.len()));
        }
        // An element that promises 100 bytes, and has none.
        let followed = [&known[..], &[0xEC, 0x80 | 100]].concat();
        assert_eq!(matroska_end(&followed), Some(known.len()));
        assert!(!is_matroska_cut(&followed));
        assert!(is_matroska_cut(&[&live[..], &[0xEC, 0x80 | 100]].concat()));
    }

    #[test]
    fn an_mp3_file_is_cut_inside_of_a_frame() {
        let frame = [&[0xFF_u8, 0xFB, 0x34, 0xC4][..], &[5; 100]].concat();
        let file = [&frame[..], &frame].concat();
        assert!(!is_mp3_cut(&file, &frame));
        assert!(is_mp3_cut(&[&file[..], &frame[..50]].concat(), &frame));
        assert!(!is_mp3_cut(&[&file[..], &frame[..3]].concat(), &frame));
        assert!(!is_mp3_cut(&[&file[..], b"TAGtitle"].concat(), &frame));
        assert!(!is_mp3_cut(&[&file[..], &[0xFF, 0xFB, 0x38, 0xC4]].concat(), &frame));
        assert!(!is_mp3_cut(&frame, &[]));
    }
}
