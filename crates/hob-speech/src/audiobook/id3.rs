//! The ID3v2.4 tag of an MP3 file: its title, its chapters (`CHAP`) and their table of contents (`CTOC`).
//! As in "ID3v2 Chapter Frame Addendum" 1.0.

use super::BookFile;

/// A table of contents counts its entries in one byte.
const ENTRIES_MAX: usize = 255;

/// "The entries are in order", and "this is the outermost table".
const ORDERED: u8 = 1;
const OUTERMOST: u8 = 2;

/// Instead of an offset in bytes: "use the time".
const NO_OFFSET: [u8; 4] = [0xFF; 4];

/// UTF-8.
const ENCODING: u8 = 3;

pub(super) fn tag(book: &BookFile) -> Vec<u8> {
    let mut frames = text_frame(b"TIT2", &book.title);
    let names: Vec<String> =
        (0..book.chapters.len()).map(|number| format!("chp{number}")).collect();
    frames.extend(contents(&names));
    for ((title, start_ms, end_ms), name) in book.chapters_ms().zip(&names) {
        let mut body = id(name);
        body.extend(ms(start_ms));
        body.extend(ms(end_ms));
        body.extend([NO_OFFSET, NO_OFFSET].concat());
        body.extend(text_frame(b"TIT2", title));
        frames.extend(frame(b"CHAP", &body));
    }
    [&b"ID3\x04\x00\x00"[..], &syncsafe(frames.len()), &frames].concat()
}

/// One table, or a table of tables if there are too many chapters.
fn contents(names: &[String]) -> Vec<u8> {
    if names.len() <= ENTRIES_MAX {
        return table("toc", ORDERED | OUTERMOST, names);
    }
    let tables = names.chunks(ENTRIES_MAX).take(ENTRIES_MAX);
    let table_names: Vec<String> = (0..tables.len()).map(|number| format!("toc{number}")).collect();
    let mut frames = table("toc", ORDERED | OUTERMOST, &table_names);
    for (name, names) in table_names.iter().zip(tables) {
        frames.extend(table(name, ORDERED, names));
    }
    frames
}

fn table(name: &str, flags: u8, entries: &[String]) -> Vec<u8> {
    let mut body = id(name);
    body.extend([flags, entries.len() as u8]);
    entries.iter().for_each(|entry| body.extend(id(entry)));
    frame(b"CTOC", &body)
}

fn text_frame(kind: &[u8; 4], text: &str) -> Vec<u8> {
    frame(kind, &[&[ENCODING][..], text.as_bytes()].concat())
}

fn frame(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&kind[..], &syncsafe(body.len()), &[0, 0], body].concat()
}

fn id(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// Beyond 49 days, the last time that fits.
fn ms(time_ms: u64) -> [u8; 4] {
    u32::try_from(time_ms).unwrap_or(u32::MAX).to_be_bytes()
}

/// Seven bits per byte, so that no size looks like the start of a sound frame.
fn syncsafe(size: usize) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| ((size >> shift) & 0x7F) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_seven_bits_in_each_byte() {
        assert_eq!(syncsafe(0x7F), [0, 0, 0, 0x7F]);
        assert_eq!(syncsafe(0x80), [0, 0, 1, 0]);
        assert_eq!(syncsafe(0x0FFF_FFFF), [0x7F; 4]);
    }

    #[test]
    fn many_chapters_are_in_tables_of_a_table() {
        let names =
            |count: usize| -> Vec<String> { (0..count).map(|n| format!("chp{n}")).collect() };
        let tables = |count| contents(&names(count)).windows(4).filter(|at| at == b"CTOC").count();
        assert_eq!((tables(1), tables(255), tables(256), tables(511)), (1, 1, 3, 4));
    }
}
