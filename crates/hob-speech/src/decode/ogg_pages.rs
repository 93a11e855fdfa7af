//! Which pages of an Ogg file are damaged. Symphonia leaves out a page with a wrong checksum, says nothing, and takes the next
//! page for the one that it has left out.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use symphonia::core::checksum::Crc32;
use symphonia::core::io::Monitor;

const MARK: &[u8; 4] = b"OggS";
const HEADER_BYTES: usize = 27;
/// Where the checksum of a page is. It counts as 0 in itself.
const CHECKSUM: Range<usize> = 22..26;
/// The flag of the first page of a track.
const FIRST_PAGE: u8 = 2;
/// After so many damaged pages, the rest of the file is not looked at. Each may cost the checksum of a long page.
const DAMAGED_PAGES_MAX: usize = 1_000;

/// What was found in the first of the files that were joined into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckedPages {
    /// Where the next file begins, or the end of the bytes.
    pub(super) end: usize,
    /// In the order of the file.
    pub(super) losses: VecDeque<PageLoss>,
}

/// One or more damaged pages of the track, with no whole one between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLoss {
    /// When the sound before them ends, in the track's ticks.
    pub(super) after: i64,
    /// When the sound of the last of them ends, as its header says. The header may be damaged.
    pub(super) end: Option<i64>,
    /// When the sound of the track's next page ends. `None`: no page follows.
    pub(super) next_end: Option<i64>,
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
    let (mut others, mut losses) = (BTreeSet::new(), VecDeque::<PageLoss>::new());
    let mut damaged_pages = 0;
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
            if losses.back().is_none_or(|loss| loss.next_end.is_some()) {
                losses.push_back(PageLoss { after: end_ticks, end: None, next_end: None });
            }
            // A page whose mark is damaged was skipped.
            let lost_at = if is_whole { at } else { at + skipped };
            let lost = Page::read(&file[lost_at..]);
            let lost = lost.filter(|lost| lost.track == track && lost.end_ticks >= end_ticks);
            if let Some(loss) = losses.back_mut() {
                loss.end = lost.map(|lost| lost.end_ticks);
            }
        }
        at += skipped;
        if !is_whole {
            damaged_pages += 1;
            if damaged_pages > DAMAGED_PAGES_MAX {
                break;
            }
            // The length of a damaged page may be wrong, so the next page may begin inside of it.
            let body = &file[at + MARK.len()..];
            let next = body.windows(MARK.len()).position(|bytes| bytes == MARK);
            at += MARK.len() + next.unwrap_or(body.len());
            continue;
        }
        if page.is_first && has_begun {
            return CheckedPages { end: at, losses };
        }
        has_begun |= !page.is_first;
        if page.track != track {
            others.insert(page.track);
        } else if page.end_ticks >= 0 {
            end_ticks = page.end_ticks;
            if let Some(loss) = losses.back_mut() {
                loss.next_end.get_or_insert(end_ticks);
            }
        }
        at += page.bytes.len();
    }
    CheckedPages { end: file.len(), losses }
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

    type Losses = [(i64, Option<i64>, Option<i64>)];

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
        let found = |end: usize, losses: &Losses| {
            let loss = |&(after, end, next_end)| PageLoss { after, end, next_end };
            CheckedPages { end, losses: losses.iter().map(loss).collect() }
        };
        let check = |file: &[u8], losses: &Losses| {
            assert_eq!(check_pages(file, 1), found(file.len(), losses), "{losses:?}");
        };
        let rows: [(&[usize], &Losses); 8] = [
            (&[2], &[(0, Some(100), Some(200))]),
            (&[3], &[]),
            (&[4], &[(100, None, Some(200))]),
            (&[5], &[(100, Some(200), Some(300))]),
            (&[6], &[]),
            (&[7], &[(200, Some(300), None)]),
            (&[4, 5], &[(100, Some(200), Some(300))]),
            (&[2, 3, 7], &[(0, Some(100), Some(200)), (200, Some(300), None)]),
        ];
        for (numbers, losses) in rows {
            let mut damaged = file.clone();
            numbers.iter().for_each(|number| damaged[(number + 1) * PAGE_BYTES - 1] ^= 1);
            check(&damaged, losses);
            let joined = [&damaged[..], &file].concat();
            assert_eq!(check_pages(&joined, 1), found(file.len(), losses), "the next file");
        }
        let mut without_mark = file.clone();
        without_mark[5 * PAGE_BYTES] ^= 1;
        check(&without_mark, &[(100, Some(200), Some(300))]);
        let mut too_long = file.clone();
        too_long[2 * PAGE_BYTES + HEADER_BYTES] += PAGE_BYTES as u8;
        check(&too_long, &[(0, Some(100), Some(200))]);
        check(&file[..file.len() - 1], &[]);
        check(&[&b"TAG"[..], &file, b"TAG"].concat(), &[]);
        check(&file, &[]);
    }
}
