//! The bytes of an answer as they were read, with a time stamp for each read.
//! They are parsed later, after the last answer.

use std::time::Duration;

/// One answer as it arrived. Its memory is allocated before the request is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub(crate) bytes: Vec<u8>,
    pub(crate) reads: Vec<Mark>,
}

/// One read: when it returned, and where its bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Time since the start of the drive.
    pub(crate) at: Duration,
    pub(crate) end: usize,
}

impl Recording {
    pub(super) fn with_room(bytes: usize, reads: usize) -> Recording {
        Recording { bytes: Vec::with_capacity(bytes), reads: Vec::with_capacity(reads) }
    }

    pub(crate) fn push(&mut self, at: Duration, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.reads.push(Mark { at, end: self.bytes.len() });
    }

    /// The bytes of each read, with its time.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Duration, &[u8])> {
        let starts = std::iter::once(0).chain(self.reads.iter().map(|mark| mark.end));
        starts.zip(&self.reads).map(|(start, mark)| (mark.at, &self.bytes[start..mark.end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_reads() {
        let mut recording = Recording::with_room(8, 2);
        let rows = [(Duration::from_millis(1), &b"abc"[..]), (Duration::from_millis(3), b"d")];
        rows.iter().for_each(|(at, bytes)| recording.push(*at, bytes));
        assert_eq!(recording.pieces().collect::<Vec<_>>(), rows);
    }
}
