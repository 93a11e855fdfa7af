//! Speaks a book into one file with chapters. Each part is kept when it is spoken, so that the same command goes on
//! with the next one after Ctrl-C or a crash.

mod part_folder;

use std::cell::Cell;
use std::path::Path;

use futures::{StreamExt, stream};
use hob_core::{SpeechEvent, SpeechStream};
use hob_speech::audiobook::{BookFile, BookFormat};
use hob_speech::encode::{Encoder, Length};
use hob_speech::{BookChapter, BookPart, PartEnd, book_chapters, book_parts, is_speakable};
use indicatif::ProgressBar;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::bounded_file::read_text;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, count_text};
use crate::sink::Sink;
pub(crate) use part_folder::{PartFolder, Recipe};

pub(crate) const BAR: &str = "{bar:30} {percent} % · {msg} · {eta} left";

/// The most bytes of a book; the largest books have about 5 MB.
const BOOK_BYTES_MAX: u64 = 32 << 20;

/// While one part is spoken, the engine gets the next one, so that it never waits.
const PARTS_AT_ONCE: u32 = 2;

/// The longest pause after a part, at any speaking rate.
const PAUSE_S_MAX: f32 = 10.0;

/// A text, and how it is divided.
#[derive(Debug)]
pub(crate) struct Book {
    text: String,
    format: BookFormat,
    title: String,
    chapters: Vec<BookChapter>,
    parts: Vec<BookPart>,
}

impl Book {
    /// Its title is the name of the file.
    ///
    /// # Errors
    /// The file cannot be read, is too large, is not UTF-8, or has nothing to speak.
    pub(crate) fn read(file: &Path, format: BookFormat) -> CliResult<Book> {
        let text = read_text(file, BOOK_BYTES_MAX)
            .map_err(|error| Failure::usage(format!("cannot read the book: {error}")))?;
        let title = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Book::of(text, title, format)
    }

    fn of(text: String, title: String, format: BookFormat) -> CliResult<Book> {
        let chapters = book_chapters(&text, &title);
        let parts = book_parts(&text, &chapters);
        if parts.is_empty() {
            return Err(hob_core::ModelError::EmptyText.into());
        }
        Ok(Book { text, format, title, chapters, parts })
    }

    /// Speaks the parts that `folder` does not have, joins all parts in `output`, and removes the folder.
    /// `speed` shortens the pauses between parts. Returns the sentence for the user.
    ///
    /// # Errors
    /// A part cannot be spoken or written. The finished parts stay.
    pub(crate) async fn speak<F>(
        &self,
        output: &Path,
        folder: PartFolder,
        (speed, printer): (f32, &Printer),
        speak: impl Fn(String) -> F,
    ) -> CliResult<String>
    where
        F: Future<Output = CliResult<SpeechStream>>,
    {
        let missing = folder.missing(self.parts.len());
        let progress = self.progress(&missing, printer);
        self.speak_missing(missing, &folder, (speed, &progress), speak).await?;
        progress.finish_and_clear();
        let sound_s = self.join(&folder, output).await?;
        folder.remove()?;
        let chapters = count_text(self.chapters.len(), "chapter");
        Ok(format!("{chapters}, {} of sound in {}", length_text(sound_s), output.display()))
    }

    async fn speak_missing<F>(
        &self,
        missing: Vec<usize>,
        folder: &PartFolder,
        (speed, progress): (f32, &ProgressBar),
        speak: impl Fn(String) -> F,
    ) -> CliResult<()>
    where
        F: Future<Output = CliResult<SpeechStream>>,
    {
        let speak = &speak;
        let places =
            &Places { free: Semaphore::new(PARTS_AT_ONCE as usize), of_each: Cell::new(1) };
        let parts = stream::iter(missing).map(|number| async move {
            let part = &self.parts[number];
            let text = &self.text[part.range.clone()];
            let (stream, _place) = match is_speakable(text) {
                true => {
                    let (stream, place) = places.begin(|| speak(text.to_owned())).await?;
                    (Some(stream), place)
                }
                false => (None, None),
            };
            let pause_s = pause_s(part.end) / speed;
            write_part(stream, folder.sink(number)?, self.format, pause_s).await?;
            Ok::<usize, Failure>(number)
        });
        let mut spoken = std::pin::pin!(parts.buffered(PARTS_AT_ONCE as usize));
        while let Some(number) = spoken.next().await {
            self.advance(progress, number?);
        }
        Ok(())
    }

    /// Counts the bytes of the missing parts only, so that the time left is right.
    fn progress(&self, missing: &[usize], printer: &Printer) -> ProgressBar {
        let kept = self.parts.len() - missing.len();
        if kept > 0 {
            let all = count_text(self.parts.len(), "part");
            printer.note(format_args!("{kept} of {all} are already spoken"));
        }
        let bytes: usize = missing.iter().map(|number| self.parts[*number].range.len()).sum();
        let bar = printer.bar(bytes as u64, BAR);
        bar.set_message(match missing.first() {
            Some(number) => self.place(*number),
            None => String::new(),
        });
        bar
    }

    fn advance(&self, bar: &ProgressBar, number: usize) {
        bar.inc(self.parts[number].range.len() as u64);
        bar.set_message(self.place((number + 1).min(self.parts.len() - 1)));
    }

    /// "chapter 2 of 14".
    fn place(&self, number: usize) -> String {
        format!("chapter {} of {}", self.parts[number].chapter + 1, self.chapters.len())
    }

    /// Reads each part twice: chapter marks come before the sound, and need its length. Returns the seconds of sound.
    async fn join(&self, folder: &PartFolder, output: &Path) -> CliResult<f64> {
        let mut file = BookFile::new(self.format, &self.title);
        let mut latest = None;
        for (number, part) in self.parts.iter().enumerate() {
            if latest != Some(part.chapter) {
                latest = Some(part.chapter);
                file.begin_chapter(&self.chapters[part.chapter].title);
            }
            let bytes = folder.read(number)?;
            file.measure(&bytes).map_err(|damage| folder.damaged(number, &damage))?;
            // Lets Ctrl-C end it.
            tokio::task::yield_now().await;
        }
        let mut sink = Sink::open(output)?;
        sink.write(&file.head())?;
        for number in 0..self.parts.len() {
            let bytes = folder.read(number)?;
            sink.write(&file.part(&bytes).map_err(|damage| folder.damaged(number, &damage))?)?;
            tokio::task::yield_now().await;
        }
        sink.write(&file.tail())?;
        sink.finish()?;
        Ok(file.sound_s())
    }
}

/// Places for the parts that are spoken at the same time.
struct Places {
    free: Semaphore,
    /// Places that each part takes.
    of_each: Cell<u32>,
}

impl Places {
    /// Begins a part, which has its place until the permit is dropped. A server may take only one request at a time:
    /// once it has refused one, each part takes all places.
    async fn begin<F>(
        &self,
        speak: impl Fn() -> F,
    ) -> CliResult<(SpeechStream, Option<SemaphorePermit<'_>>)>
    where
        F: Future<Output = CliResult<SpeechStream>>,
    {
        let count = self.of_each.get();
        let place = self.take(count).await;
        match speak().await {
            Err(busy)
                if count < PARTS_AT_ONCE && busy.exit == Exit::Server && !busy.is_permanent =>
            {
                self.of_each.set(PARTS_AT_ONCE);
                drop(place);
                let place = self.take(PARTS_AT_ONCE).await;
                Ok((speak().await?, place))
            }
            begun => Ok((begun?, place)),
        }
    }

    /// `None` only if the semaphore is closed, which it never is.
    async fn take(&self, count: u32) -> Option<SemaphorePermit<'_>> {
        self.free.acquire_many(count).await.ok()
    }
}

/// "8.2 s", "3 min 20 s", "11 h 5 min".
fn length_text(sound_s: f64) -> String {
    let (seconds, minutes) = (sound_s.round() as u64, (sound_s / 60.0).round() as u64);
    match seconds {
        0..60 => format!("{sound_s:.1} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Silence after a part. Within a part the engine pauses for 0.6 s between paragraphs.
fn pause_s(end: PartEnd) -> f32 {
    match end {
        PartEnd::Chapter => 2.0,
        PartEnd::Paragraph => 0.6,
        PartEnd::Sentence => 0.3,
    }
}

/// Encodes the sound of a part, and the pause after it. A part without words, such as "* * *", is a pause.
async fn write_part(
    stream: Option<SpeechStream>,
    mut sink: Sink,
    format: BookFormat,
    pause_s: f32,
) -> CliResult<()> {
    /// For parts without words. The parts of a file have one rate.
    const RATE_HZ: u32 = 24_000;
    let rate_hz = stream.as_ref().map_or(RATE_HZ, |stream| stream.sample_rate_hz);
    let mut encoder = Encoder::new(format.sound(), rate_hz, Length::Unknown)?;
    let mut has_sound = stream.is_none();
    if let Some(mut stream) = stream {
        while let Some(event) = stream.next().await {
            if let SpeechEvent::Audio(samples) = event? {
                has_sound = true;
                sink.write(&encoder.encode(&samples)?)?;
            }
        }
    }
    if !has_sound {
        return Err(
            Failure::engine("the model produced no sound").hint("`hob doctor` checks the model")
        );
    }
    let silence = pause_s.min(PAUSE_S_MAX) * rate_hz as f32;
    sink.write(&encoder.encode(&vec![0.0; silence as usize])?)?;
    sink.write(&encoder.finish()?)?;
    sink.finish()
}

#[cfg(test)]
mod tests;
