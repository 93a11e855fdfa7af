//! What Symphonia does not say about MP4 files: where the sound of a track begins and ends, and whether a file is cut.
//! Without the edit list, the silence that an encoder puts first would shift all times, by 23 to 48 ms for AAC.

/// The part of a track that is meant to be heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HeardRange {
    /// Silence before it, in a film whose sound begins later than its pictures.
    pub(super) pause_s: f64,
    pub(super) start_s: f64,
    /// `None` if the file does not know its length yet.
    pub(super) length_s: Option<f64>,
}

/// Finds the edit of the track with this number. `None` if the file has no such list, or a list with several cuts.
pub(super) fn heard_range(file: &[u8], track_id: u32) -> Option<HeardRange> {
    let moov = child(file, b"moov")?;
    let movie_scale = ticks_per_second(child(moov, b"mvhd")?)?;
    let track = boxes(moov)
        .filter(|(kind, _)| *kind == b"trak")
        .find(|(_, track)| child(track, b"tkhd").and_then(id_of_track) == Some(track_id))?
        .1;
    let media_scale = ticks_per_second(child(child(track, b"mdia")?, b"mdhd")?)?;
    let edits = edit_entries(child(child(track, b"edts")?, b"elst")?)?;
    let is_pause = |(_, media_time): &&(u64, i64)| *media_time < 0;
    let pause_s: f64 =
        edits.iter().take_while(is_pause).map(|(length, _)| *length as f64 / movie_scale).sum();
    let mut heard = edits.into_iter().filter(|edit| !is_pause(&edit));
    let (length, start) = heard.next()?;
    if heard.next().is_some() {
        return None;
    }
    let length_s = (length > 0).then_some(length as f64 / movie_scale);
    Some(HeardRange { pause_s, start_s: start as f64 / media_scale, length_s })
}

/// Whether the file has its index, but ends within its sound: an upload or a download that was stopped.
pub(super) fn is_cut(file: &[u8]) -> bool {
    let mut rest = file;
    while let Some((_, _, next)) = first_box(rest) {
        rest = next;
    }
    child(file, b"moov").is_some() && rest.get(4..8) == Some(b"mdat")
}

/// Walks the boxes of one level. Stops at a size that does not fit.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (kind, body, rest) = first_box(bytes)?;
        bytes = rest;
        Some((kind, body))
    })
}

/// Kind and body of the first box, and what follows it.
fn first_box(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<4>()?;
    let (header, size) = match u32::from_be_bytes(*size) {
        // To the end of the file.
        0 => (8, bytes.len()),
        1 => (16, u64::from_be_bytes(*rest.first_chunk()?).try_into().ok()?),
        size => (8, size as usize),
    };
    Some((kind, bytes.get(header..size)?, bytes.get(size..)?))
}

fn child<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes).find(|(other, _)| *other == kind).map(|(_, body)| body)
}

/// Ticks per second, of `mvhd` and `mdhd`. Version 1 has longer dates before them.
fn ticks_per_second(header: &[u8]) -> Option<f64> {
    let at = if *header.first()? == 1 { 20 } else { 12 };
    let ticks = u32::from_be_bytes(*header.get(at..)?.first_chunk()?);
    (ticks > 0).then_some(f64::from(ticks))
}

fn id_of_track(track_header: &[u8]) -> Option<u32> {
    let at = if *track_header.first()? == 1 { 20 } else { 12 };
    Some(u32::from_be_bytes(*track_header.get(at..)?.first_chunk()?))
}

/// Entries of the edit list: the length in ticks of the movie, and the start in ticks of the track, which is −1 for a pause.
fn edit_entries(list: &[u8]) -> Option<Vec<(u64, i64)>> {
    const ENTRIES_MAX: usize = 64;
    let wide = *list.first()? == 1;
    let entry = if wide { 20 } else { 12 };
    let read = |bytes: &[u8]| {
        Some(if wide {
            let (length, rest) = bytes.split_first_chunk()?;
            (u64::from_be_bytes(*length), i64::from_be_bytes(*rest.first_chunk()?))
        } else {
            let (length, rest) = bytes.split_first_chunk()?;
            (u32::from_be_bytes(*length).into(), i32::from_be_bytes(*rest.first_chunk()?).into())
        })
    };
    list.get(8..)?.chunks_exact(entry).take(ENTRIES_MAX).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_inside_of_its_sound_behind_a_box_with_a_long_size() {
        let long = b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x14abcd";
        let whole = [&b"\0\0\0\x08moov"[..], long, b"\0\0\0\x0Cmdatefgh"].concat();
        assert!(!is_cut(&whole));
        assert!(is_cut(&whole[..whole.len() - 1]));
    }
}
