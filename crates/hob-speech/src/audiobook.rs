//! Sound files with chapters: parts that the encoder made one by one become one M4B or MP3 file.
//! Bytes in, bytes out. The caller keeps the parts and writes the file.

mod frames;
mod id3;
mod mp4;

use crate::encode::AudioFormat;
use frames::{FrameKind, split_frame};

/// A format with chapter marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookFormat {
    /// AAC in MP4, with a track of chapter titles for Apple's players and a list of chapters for others.
    M4b,
    /// MP3 after an ID3v2.4 tag with `CHAP` and `CTOC` frames.
    Mp3,
}

impl BookFormat {
    /// The format of the parts.
    pub fn sound(self) -> AudioFormat {
        match self {
            BookFormat::M4b => AudioFormat::Aac,
            BookFormat::Mp3 => AudioFormat::Mp3,
        }
    }
}

/// A part file that is incomplete, or was not written by this version of hob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sound is damaged at byte {at}")]
pub struct DamagedPart {
    pub at: usize,
}

/// A file that is being joined. All parts are measured first, because chapter marks come before the sound.
/// Memory: 2 bytes per frame of AAC, about 170 KB per hour, and for [`BookFile::head`] three times as much.
#[derive(Clone, Debug)]
pub struct BookFile {
    format: BookFormat,
    title: String,
    chapters: Vec<ChapterMark>,
    /// Sample rate and length of the first frame; all others must match.
    kind: Option<FrameKind>,
    samples: u64,
    sound_bytes: u64,
    /// The bytes of each frame, for MP4 only.
    frame_bytes: Vec<u16>,
}

/// A chapter, and the sample at which it begins.
#[derive(Clone, Debug)]
struct ChapterMark {
    title: String,
    start: u64,
}

impl BookFile {
    pub fn new(format: BookFormat, title: &str) -> BookFile {
        BookFile {
            format,
            title: title.to_owned(),
            chapters: Vec::new(),
            kind: None,
            samples: 0,
            sound_bytes: 0,
            frame_bytes: Vec::new(),
        }
    }

    /// The next part begins a chapter.
    pub fn begin_chapter(&mut self, title: &str) {
        self.chapters.push(ChapterMark { title: title.to_owned(), start: self.samples });
    }

    /// Counts the frames of the next part.
    ///
    /// # Errors
    /// The part does not consist of whole frames, or its sample rate differs from that of the first part.
    pub fn measure(&mut self, part: &[u8]) -> Result<(), DamagedPart> {
        let mut rest = part;
        while !rest.is_empty() {
            let damaged = DamagedPart { at: part.len() - rest.len() };
            let (frame, behind) = split_frame(self.format, rest).ok_or(damaged)?;
            if *self.kind.get_or_insert(frame.kind) != frame.kind {
                return Err(damaged);
            }
            self.samples += u64::from(frame.kind.samples);
            self.sound_bytes += frame.body.len() as u64;
            if self.format == BookFormat::M4b {
                let bytes = u16::try_from(frame.body.len()).map_err(|_| damaged)?;
                self.frame_bytes.push(bytes);
            }
            rest = behind;
        }
        Ok(())
    }

    /// Seconds of sound that were measured.
    pub fn sound_s(&self) -> f64 {
        self.seconds(self.samples)
    }

    /// The bytes before the first part, when all parts were measured.
    pub fn head(&self) -> Vec<u8> {
        match self.format {
            BookFormat::M4b => mp4::head(self),
            BookFormat::Mp3 => id3::tag(self),
        }
    }

    /// The bytes of a part in the file.
    ///
    /// # Errors
    /// The part does not consist of whole frames.
    pub fn part(&self, part: &[u8]) -> Result<Vec<u8>, DamagedPart> {
        let mut out = Vec::with_capacity(part.len());
        let mut rest = part;
        while !rest.is_empty() {
            let damaged = DamagedPart { at: part.len() - rest.len() };
            let (frame, behind) = split_frame(self.format, rest).ok_or(damaged)?;
            out.extend_from_slice(frame.body);
            rest = behind;
        }
        Ok(out)
    }

    /// The bytes after the last part.
    pub fn tail(&self) -> Vec<u8> {
        match self.format {
            BookFormat::M4b => mp4::titles(self).concat(),
            BookFormat::Mp3 => Vec::new(),
        }
    }

    fn rate_hz(&self) -> u32 {
        self.kind.map_or(1, |kind| kind.rate_hz)
    }

    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.rate_hz())
    }

    fn ms(&self, samples: u64) -> u64 {
        samples * 1000 / u64::from(self.rate_hz())
    }

    /// Title, start and end of each chapter, in milliseconds.
    fn chapters_ms(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let ends = self.chapters.iter().skip(1).map(|chapter| chapter.start);
        let ends = ends.chain([self.samples]);
        let timed = self.chapters.iter().zip(ends);
        timed.map(move |(chapter, end)| {
            (chapter.title.as_str(), self.ms(chapter.start), self.ms(end))
        })
    }
}
