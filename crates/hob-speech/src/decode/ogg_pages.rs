//! Which page of an Ogg file is damaged. Symphonia leaves out a page with a wrong checksum, and says nothing.
//! The first damage is the one to report, so nothing looks for a second one.

use std::collections::BTreeSet;
use std::ops::Range;

use symphonia::core::checksum::Crc32;
use symphonia::core::io::Monitor;

const MARK: &[u8; 4] = b"OggS";
const HEADER_BYTES: usize = 27;
/// Where the checksum of a page is. It counts as 0 in itself.
const CHECKSUM: Range<usize> = 22..26;
/// The flag of the first page of a track.
const FIRST_PAGE: u8 = 2;

/// What was found in the first of the files that were joined into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckedPages {
    /// Where the next file begins, or the end of the bytes.
    pub(super) end: usize,
    /// The time, in the track's ticks, after which a page is damaged. The pages after it were not looked at.
    pub(super) damaged_after: Option<i64>,
}

struct Page<'a> {
    bytes: &'a [u8],
    is_first: bool,
    /// When its sound ends, in ticks. −1: no packet ends in this page.
    end_ticks: i64,
    track: u32,
}

/// Compares the checksums of the pages up to the next file. A page that is not complete is not looked at, and
/// bytes before the first page or after the last one are no damage.
pub(super) fn check_pages(file: &[u8], track: u32) -> CheckedPages {
    let (mut at, mut end_ticks, mut has_begun) = (0, 0, false);
    let mut others = BTreeSet::new();
    while let Some(skipped) = file[at..].windows(MARK.len()).position(|bytes| bytes == MARK) {
        let Some(page) = Page::read(&file[at + skipped..]) else { break };
        let is_whole = page.has_right_checksum();
        let is_lost = if is_whole {
            skipped > 0 && !page.is_first
        } else {
            // The number of the track may be damaged.
            !others.contains(&page.track)
        };
        if is_lost {
            return CheckedPages { end: file.len(), damaged_after: Some(end_ticks) };
        }
        at += skipped;
        if is_whole && page.is_first && has_begun {
            return CheckedPages { end: at, damaged_after: None };
        }
        has_begun |= !page.is_first;
        if page.track != track {
            others.insert(page.track);
        } else if page.end_ticks >= 0 {
            end_ticks = page.end_ticks;
        }
        at += page.bytes.len();
    }
    CheckedPages { end: file.len(), damaged_after: None }
}

impl<'a> Page<'a> {
    /// `None`: the page is not complete.
    fn read(file: &'a [u8]) -> Option<Page<'a>> {
        let (header, rest) = file.split_at_checked(HEADER_BYTES)?;
        let lengths = rest.get(..usize::from(header[26]))?;
        let body_bytes: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        Some(Page {
            bytes: file.get(..HEADER_BYTES + lengths.len() + body_bytes)?,
            is_first: header[5] & FIRST_PAGE != 0,
            end_ticks: i64::from_le_bytes(*header[6..].first_chunk()?),
            track: u32::from_le_bytes(*header[14..].first_chunk()?),
        })
    }

    fn has_right_checksum(&self) -> bool {
        let mut computed = Crc32::new(0);
        computed.process_buf_bytes(&self.bytes[..CHECKSUM.start]);
        computed.process_buf_bytes(&[0; 4]);
        computed.process_buf_bytes(&self.bytes[CHECKSUM.end..]);
        self.bytes[CHECKSUM] == computed.crc().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_BYTES: usize = 31;

    /// A page with one packet.
    fn page(flags: u8, track: u32, end_ticks: i64) -> Vec<u8> {
        let mut page = b"OggS\0".to_vec();
        page.push(flags);
        page.extend(end_ticks.to_le_bytes());
        page.extend(track.to_le_bytes());
        page.extend([0; 8]);
        page.extend([1, 3, 7, 7, 7]);
        let mut computed = Crc32::new(0);
        computed.process_buf_bytes(&page);
        page[CHECKSUM].copy_from_slice(&computed.crc().to_le_bytes());
        page
    }

    #[test]
    fn a_damaged_page_of_the_track_is_found() {
        let file = [
            page(FIRST_PAGE, 1, 0),
            page(FIRST_PAGE, 9, 0),
            page(0, 1, 100),
            page(0, 9, 70),
            page(0, 1, -1),
            page(0, 1, 200),
            page(4, 9, 90),
            page(4, 1, 300),
        ]
        .concat();
        let whole = CheckedPages { end: file.len(), damaged_after: None };
        for (number, damaged_after) in
            [(2, Some(0)), (3, None), (4, Some(100)), (5, Some(100)), (6, None), (7, Some(200))]
        {
            let mut damaged = file.clone();
            damaged[(number + 1) * PAGE_BYTES - 1] ^= 1;
            let expected = CheckedPages { damaged_after, ..whole };
            assert_eq!(check_pages(&damaged, 1), expected, "{number}");
        }
        let mut without_mark = file.clone();
        without_mark[5 * PAGE_BYTES] ^= 1;
        let expected = CheckedPages { damaged_after: Some(100), ..whole };
        assert_eq!(check_pages(&without_mark, 1), expected);
        let joined = [&file[..], &file].concat();
        assert_eq!(check_pages(&joined, 1), whole, "the next file is not read");
        let cut = &file[..file.len() - 1];
        assert_eq!(check_pages(cut, 1), CheckedPages { end: cut.len(), ..whole });
        let tagged = [&b"TAG"[..], &file, b"TAG"].concat();
        assert_eq!(check_pages(&tagged, 1), CheckedPages { end: tagged.len(), ..whole });
        assert_eq!(check_pages(&file, 1), whole);
    }
}
