//! The boxes of an M4B file (ISO 14496-12 and -14): the index first, so that a player starts before it has all of the file.
//! Chapters are written twice, as Apple's players and others read them: a text track, and the list `chpl`.

use std::ops::Range;

use super::BookFile;
use super::frames::AAC_SAMPLES;

/// Frames that share an entry of the offset table, 2.7 s of sound at 24 kHz.
const CHUNK_FRAMES: usize = 64;

/// `chpl` counts its chapters in one byte, and the bytes of a title too.
const LISTED_MAX: usize = 255;

/// Ticks per second of the movie and of the text track.
const MS_PER_S: u32 = 1_000;

/// `chpl` counts in steps of 100 ns.
const LISTED_PER_MS: u64 = 10_000;

const SOUND_TRACK: u32 = 1;
const TEXT_TRACK: u32 = 2;

/// Fixed-point numbers: 1.0 with 16 bits and with 30 bits after the point.
const ONE: u32 = 1 << 16;
const ONE_30: u32 = 1 << 30;

/// No rotation and no scaling.
const MATRIX: [u32; 9] = [ONE, 0, 0, 0, ONE, 0, 0, 0, ONE_30];

/// The language "und".
const UNDETERMINED: u16 = 0x55C4;

/// The largest header of a `mdat` box.
const MDAT_BYTES: usize = 16;

/// A text sample ends with its encoding: UTF-8.
const UTF_8: &[u8] = b"\0\0\0\x0Cencd\0\0\x01\0";

/// A title sample's description as in QuickTime's files: display flags, then no justification, colours, box and style
/// except font 1.
const TEXT_STYLE: [u8; 30] = {
    let mut style = [0; 30];
    style[3] = 1;
    style[23] = 1;
    style
};

/// Font 1, without a name.
const TEXT_FONTS: &[u8] = b"\0\0\0\x0Dftab\0\x01\0\x01\0";

/// Everything up to the first frame.
pub(super) fn head(book: &BookFile) -> Vec<u8> {
    let mut boxes = Boxes { out: Vec::new(), offsets: Vec::new() };
    boxes.out.reserve(4 * book.frame_bytes.len() + (64 << 10));
    boxes.put(b"ftyp", |b| b.bytes(b"M4B \0\0\x02\0M4B M4A mp42isom"));
    boxes.put(b"moov", |b| movie(b, book));
    boxes.shift_offsets(MDAT_BYTES as u64);
    let titles: usize = titles(book).iter().map(Vec::len).sum();
    boxes.u32(1);
    boxes.bytes(b"mdat");
    boxes.u64(MDAT_BYTES as u64 + book.sound_bytes + titles as u64);
    boxes.out
}

/// The samples of the text track.
pub(super) fn titles(book: &BookFile) -> Vec<Vec<u8>> {
    let sample = |title: &str| {
        let bytes = u16::try_from(title.len()).unwrap_or(u16::MAX);
        let title = &title.as_bytes()[..usize::from(bytes)];
        [&bytes.to_be_bytes()[..], title, UTF_8].concat()
    };
    book.chapters.iter().map(|chapter| sample(&chapter.title)).collect()
}

/// Boxes that are being written.
struct Boxes {
    out: Vec<u8>,
    /// The bytes of `out` with 64-bit offsets that count from the first frame.
    offsets: Vec<Range<usize>>,
}

impl Boxes {
    /// Writes a box. Its size becomes known when its body is written.
    fn put(&mut self, kind: &[u8; 4], body: impl FnOnce(&mut Boxes)) {
        let at = self.out.len();
        self.u32(0);
        self.bytes(kind);
        body(self);
        let size = u32::try_from(self.out.len() - at).unwrap_or(u32::MAX);
        self.out[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }

    /// A box with version and flags.
    fn put_full(&mut self, kind: &[u8; 4], version_flags: u32, body: impl FnOnce(&mut Boxes)) {
        self.put(kind, |b| {
            b.u32(version_flags);
            body(b);
        });
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32s(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.u32(*value));
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Makes the offsets count from the start of the file; `more` bytes follow before the first frame.
    fn shift_offsets(&mut self, more: u64) {
        let shift = self.out.len() as u64 + more;
        for range in std::mem::take(&mut self.offsets) {
            for entry in self.out[range].as_chunks_mut::<8>().0 {
                *entry = (u64::from_be_bytes(*entry) + shift).to_be_bytes();
            }
        }
    }
}

/// Version 1 of a box has 64-bit times: a book may last longer than 49 hours.
const LONG: u32 = 1 << 24;

fn movie(b: &mut Boxes, book: &BookFile) {
    let duration_ms = book.ms(book.samples);
    b.put_full(b"mvhd", LONG, |b| {
        times(b, MS_PER_S, duration_ms);
        b.u32(ONE);
        b.u16(0x0100);
        b.bytes(&[0; 10]);
        b.u32s(&MATRIX);
        b.bytes(&[0; 24]);
        b.u32(TEXT_TRACK + 1);
    });
    b.put(b"trak", |b| sound_track(b, book, duration_ms));
    if !book.chapters.is_empty() {
        b.put(b"trak", |b| text_track(b, book, duration_ms));
    }
    b.put(b"udta", |b| {
        if book.chapters.len() <= LISTED_MAX {
            chapter_list(b, book);
        }
        b.put_full(b"meta", 0, |b| metadata(b, &book.title));
    });
}

/// No dates, the unit of time, and the duration.
fn times(b: &mut Boxes, ticks_per_s: u32, duration: u64) {
    b.bytes(&[0; 16]);
    b.u32(ticks_per_s);
    b.u64(duration);
}

fn sound_track(b: &mut Boxes, book: &BookFile, duration_ms: u64) {
    const ENABLED: u32 = 7;
    const FULL_VOLUME: u16 = 0x0100;
    track_header(b, (SOUND_TRACK, ENABLED, FULL_VOLUME), duration_ms);
    if !book.chapters.is_empty() {
        b.put(b"tref", |b| b.put(b"chap", |b| b.u32(TEXT_TRACK)));
    }
    b.put(b"mdia", |b| {
        media_header(b, book.rate_hz(), book.samples);
        handler(b, b"soun", [0; 4], b"Sound\0");
        b.put(b"minf", |b| {
            b.put_full(b"smhd", 0, |b| b.u32(0));
            data_here(b);
            b.put(b"stbl", |b| sound_table(b, book));
        });
    });
}

fn text_track(b: &mut Boxes, book: &BookFile, duration_ms: u64) {
    // Not enabled: players use it for chapters, and do not show it.
    track_header(b, (TEXT_TRACK, 0, 0), duration_ms);
    b.put(b"mdia", |b| {
        media_header(b, MS_PER_S, duration_ms);
        handler(b, b"text", [0; 4], b"Chapters\0");
        b.put(b"minf", |b| {
            b.put(b"gmhd", |b| {
                b.put_full(b"gmin", 0, |b| b.bytes(b"\0\x40\x80\0\x80\0\x80\0\0\0\0\0"));
                b.put(b"text", |b| b.u32s(&MATRIX));
            });
            data_here(b);
            b.put(b"stbl", |b| text_table(b, book));
        });
    });
}

fn track_header(b: &mut Boxes, (id, flags, volume): (u32, u32, u16), duration_ms: u64) {
    b.put_full(b"tkhd", LONG | flags, |b| {
        b.bytes(&[0; 16]);
        b.u32s(&[id, 0]);
        b.u64(duration_ms);
        b.bytes(&[0; 12]);
        b.u16(volume);
        b.u16(0);
        b.u32s(&MATRIX);
        b.u32s(&[0, 0]);
    });
}

fn media_header(b: &mut Boxes, ticks_per_s: u32, duration: u64) {
    b.put_full(b"mdhd", LONG, |b| {
        times(b, ticks_per_s, duration);
        b.u16(UNDETERMINED);
        b.u16(0);
    });
}

fn handler(b: &mut Boxes, kind: &[u8; 4], maker: [u8; 4], name: &[u8]) {
    b.put_full(b"hdlr", 0, |b| {
        b.u32(0);
        b.bytes(kind);
        b.bytes(&maker);
        b.bytes(&[0; 8]);
        b.bytes(name);
    });
}

/// The samples are in this file.
fn data_here(b: &mut Boxes) {
    b.put(b"dinf", |b| {
        b.put_full(b"dref", 0, |b| {
            b.u32(1);
            b.put_full(b"url ", 1, |_| ());
        });
    });
}

fn sound_table(b: &mut Boxes, book: &BookFile) {
    let frames = book.frame_bytes.len();
    b.put_full(b"stsd", 0, |b| {
        b.u32(1);
        b.put(b"mp4a", |b| sound_entry(b, book));
    });
    b.put_full(b"stts", 0, |b| b.u32s(&[1, count(frames), AAC_SAMPLES]));
    let (whole, rest) = (frames / CHUNK_FRAMES, frames % CHUNK_FRAMES);
    let mut chunks = Vec::new();
    if whole > 0 {
        chunks.push([1, CHUNK_FRAMES as u32, 1]);
    }
    if rest > 0 {
        chunks.push([count(whole) + 1, count(rest), 1]);
    }
    b.put_full(b"stsc", 0, |b| {
        b.u32(count(chunks.len()));
        chunks.iter().for_each(|chunk| b.u32s(chunk));
    });
    let mut at = 0;
    let offsets = book.frame_bytes.chunks(CHUNK_FRAMES).map(|chunk| {
        let start = at;
        at += chunk.iter().copied().map(u64::from).sum::<u64>();
        start
    });
    let offsets: Vec<u64> = offsets.collect();
    offset_table(b, &offsets);
    b.put_full(b"stsz", 0, |b| {
        b.u32s(&[0, count(frames)]);
        book.frame_bytes.iter().for_each(|bytes| b.u32(u32::from(*bytes)));
    });
}

/// The codec: AAC with its configuration, in the nested descriptors of ISO 14496-1.
fn sound_entry(b: &mut Boxes, book: &BookFile) {
    let rate_hz = book.rate_hz();
    let config = book.kind.map_or(0, |kind| kind.config).to_be_bytes();
    let bits = (book.sound_bytes * 8) as f64 / book.sound_s().max(1e-3);
    let bits = (bits as u32).to_be_bytes();
    b.bytes(&[0, 0, 0, 0, 0, 0, 0, 1]);
    b.bytes(&[0; 8]);
    b.u16(1);
    b.u16(16);
    b.u32(0);
    b.u32(rate_hz.min(0xFFFF) << 16);
    b.put_full(b"esds", 0, |b| {
        b.bytes(&[3, 25, 0, 1, 0]);
        // MPEG-4 audio, an audio stream, no buffer size.
        b.bytes(&[4, 17, 0x40, 0x15, 0, 0, 0]);
        b.bytes(&bits);
        b.bytes(&bits);
        b.bytes(&[5, 2, config[0], config[1]]);
        b.bytes(&[6, 1, 2]);
    });
}

fn text_table(b: &mut Boxes, book: &BookFile) {
    let sizes: Vec<u32> = titles(book).iter().map(|title| count(title.len())).collect();
    b.put_full(b"stsd", 0, |b| {
        b.u32(1);
        b.put(b"text", |b| {
            b.bytes(&[0, 0, 0, 0, 0, 0, 0, 1]);
            b.bytes(&TEXT_STYLE);
            b.bytes(TEXT_FONTS);
        });
    });
    b.put_full(b"stts", 0, |b| {
        b.u32(count(sizes.len()));
        for (_, start_ms, end_ms) in book.chapters_ms() {
            b.u32s(&[1, u32::try_from(end_ms - start_ms).unwrap_or(u32::MAX)]);
        }
    });
    b.put_full(b"stsc", 0, |b| b.u32s(&[1, 1, count(sizes.len()), 1]));
    offset_table(b, &[book.sound_bytes]);
    b.put_full(b"stsz", 0, |b| {
        b.u32s(&[0, count(sizes.len())]);
        b.u32s(&sizes);
    });
}

fn offset_table(b: &mut Boxes, offsets: &[u64]) {
    b.put_full(b"co64", 0, |b| {
        b.u32(count(offsets.len()));
        let at = b.out.len();
        offsets.iter().for_each(|offset| b.u64(*offset));
        let end = b.out.len();
        b.offsets.push(at..end);
    });
}

fn chapter_list(b: &mut Boxes, book: &BookFile) {
    b.put_full(b"chpl", LONG, |b| {
        b.u32(0);
        b.bytes(&[book.chapters.len() as u8]);
        for (title, start_ms, _) in book.chapters_ms() {
            let title = &title[..title.floor_char_boundary(LISTED_MAX)];
            b.u64(start_ms * LISTED_PER_MS);
            b.bytes(&[title.len() as u8]);
            b.bytes(title.as_bytes());
        }
    });
}

/// The title, and that this is an audiobook, in iTunes' form.
fn metadata(b: &mut Boxes, title: &str) {
    const TEXT: u32 = 1;
    const NUMBER: u32 = 21;
    const AUDIOBOOK: &[u8] = &[2];
    handler(b, b"mdir", *b"appl", b"\0");
    b.put(b"ilst", |b| {
        for (name, kind, value) in
            [(b"\xA9nam", TEXT, title.as_bytes()), (b"stik", NUMBER, AUDIOBOOK)]
        {
            b.put(name, |b| {
                b.put(b"data", |b| {
                    b.u32s(&[kind, 0]);
                    b.bytes(value);
                });
            });
        }
    });
}

/// A table with more entries would be larger than its box can say; 4 billion frames last 5 years.
fn count(entries: usize) -> u32 {
    u32::try_from(entries).unwrap_or(u32::MAX)
}
