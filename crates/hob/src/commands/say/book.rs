//! `hob say book.txt -o book.m4b`: a text file becomes an audiobook with chapters.
//! All options are checked before a model loads.

use std::collections::BTreeMap;
use std::path::Path;

use hob_core::{SpeechModel, SpeechPace, SpeechRequest, SpeechText};
use hob_engines::speech::kokoro::SAMPLE_RATE_HZ;
use hob_speech::audiobook::BookFormat;
use hob_speech::encode::{Encoder, Length};

use super::{SayArgs, remote};
use crate::app::App;
use crate::audiobook::{Book, PartFolder, Recipe};
use crate::failure::{CliResult, Exit, Failure};
use crate::remote::{Remote, SpeechInput};
use crate::sink::Sink;
use crate::wire_up::{Speech, meant_voice};

/// Endings of text files.
const TEXT_ENDINGS: [&str; 4] = ["txt", "text", "md", "markdown"];

/// A text file to speak, and the file to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct BookJob<'a> {
    file: &'a Path,
    output: &'a Path,
    format: BookFormat,
}

impl<'a> BookJob<'a> {
    /// The audiobook that the arguments ask for. `None` if they ask for none.
    ///
    /// # Errors
    /// An audiobook without a text file, or with an option that audiobooks do not have.
    pub(super) fn from_args(args: &'a SayArgs) -> CliResult<Option<BookJob<'a>>> {
        let Some(output) = args.output.as_deref() else { return Ok(None) };
        let format = match ending(output).as_deref() {
            Some("m4b") => BookFormat::M4b,
            Some("mp3") => BookFormat::Mp3,
            _ => return Ok(None),
        };
        let file = match &args.text[..] {
            [one] => Some(Path::new(one)).filter(|file| is_text(file)),
            _ => None,
        };
        // Without such a file, "notes.txt" is a text to speak.
        let file = match (file, format) {
            (Some(file), BookFormat::M4b) => file,
            (Some(file), BookFormat::Mp3) if file.is_file() => file,
            (_, BookFormat::Mp3) => return Ok(None),
            (None, BookFormat::M4b) => {
                return Err(Failure::usage("an m4b file is an audiobook, made of a text file")
                    .hint("for example hob say book.txt -o book.m4b"));
            }
        };
        let is_other_format = args.format.is_some_and(|other| other != format.sound());
        let unsupported = [
            (args.play, "--play"),
            (args.srt.is_some(), "--srt"),
            (args.vtt.is_some(), "--vtt"),
            (is_other_format, "another format (-f)"),
        ];
        match unsupported.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, name)) => Err(Failure::usage(format!("an audiobook cannot have {name}"))
                .hint(format!("pipe the text instead: hob say < {}", file.display()))),
            None => Ok(Some(BookJob { file, output, format })),
        }
    }

    pub(super) async fn speak(&self, args: &SayArgs, app: &App<'_>) -> CliResult<Exit> {
        let book = Book::read(self.file, self.format)?;
        // A missing encoder, and a file that cannot be written, must be found now and not after hours.
        drop(Encoder::new(self.format.sound(), SAMPLE_RATE_HZ, Length::Unknown)?);
        drop(Sink::open(self.output)?);
        let voice = args.voice.clone().unwrap_or_else(|| app.settings.speech.default_voice.clone());
        let spoken = match remote(args, app)? {
            Some(remote) => self.speak_there(&book, args, (&remote, voice.as_str()), app).await?,
            None => self.speak_here(&book, args, voice, app).await?,
        };
        app.printer.note(spoken);
        Ok(Exit::Done)
    }

    async fn speak_there(
        &self,
        book: &Book,
        args: &SayArgs,
        (remote, voice): (&Remote, &str),
        app: &App<'_>,
    ) -> CliResult<String> {
        // The server uses a lexicon of its own.
        let (speed, lexicon) = (args.speed, BTreeMap::new());
        let recipe = Recipe { engine: remote.base(), voice, speed, lexicon: &lexicon };
        let folder = PartFolder::open(self.output, book, recipe, app.printer)?;
        let speed = args.speed.rate();
        let speak =
            |input: String| remote.speak(SpeechInput { input, voice: voice.to_owned(), speed });
        book.speak(self.output, folder, (speed, app.printer), speak).await
    }

    async fn speak_here(
        &self,
        book: &Book,
        args: &SayArgs,
        voice: String,
        app: &App<'_>,
    ) -> CliResult<String> {
        let speech = Speech::start(app)?;
        let voice = meant_voice(&app.settings, speech.worker.voices(), &voice)?;
        let spoken = self.speak_with(book, args, (&speech, voice.as_str()), app).await;
        speech.worker.shutdown().await;
        spoken
    }

    async fn speak_with(
        &self,
        book: &Book,
        args: &SayArgs,
        (speech, voice): (&Speech, &str),
        app: &App<'_>,
    ) -> CliResult<String> {
        let (speed, lexicon) = (args.speed, &app.settings.speech.lexicon);
        let recipe = Recipe { engine: &speech.name, voice, speed, lexicon };
        let folder = PartFolder::open(self.output, book, recipe, app.printer)?;
        app.load(&speech.name, &*speech.worker).await?;
        let worker = &speech.worker;
        let speak = |input: String| {
            let request = SpeechRequest::new(SpeechText::Whole(input), voice);
            let request = SpeechRequest { speed, pace: SpeechPace::Steady, ..request };
            async move { worker.speak(request).await.map_err(Failure::from) }
        };
        book.speak(self.output, folder, (speed.rate(), app.printer), speak).await
    }
}

/// Adds to the error of an audiobook how to continue it.
pub(super) fn with_resume_hint(args: &SayArgs, failure: Failure) -> Failure {
    let is_book = matches!(BookJob::from_args(args), Ok(Some(_)));
    let is_broken = matches!(failure.exit, Exit::Interrupted | Exit::Engine | Exit::Server);
    if is_book && is_broken && failure.hint.is_none() {
        return failure.hint("repeat the command to continue after the last finished part");
    }
    failure
}

/// Whether the words on the command line are the name of a text file that exists.
pub(super) fn is_text_file(words: &str) -> bool {
    let file = Path::new(words);
    is_text(file) && file.is_file()
}

fn ending(file: &Path) -> Option<String> {
    Some(file.extension()?.to_string_lossy().to_lowercase())
}

fn is_text(file: &Path) -> bool {
    ending(file).is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()))
}
