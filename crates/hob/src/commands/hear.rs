//! `hob hear`: transcribes a file, stdin or the microphone, with a worker of its own or with a server.
//! Text goes to stdout as soon as it is final, and on a terminal in whole sentences if it is live.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use futures::{StreamExt, stream};
use hob_core::{
    LiveSound, Sound, SoundFile, Timestamps, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptStream, TranscriptTask, count_text, is_full_stop,
};
use hob_wire::{TranscriptAnswer, TranscriptFormat, spoken_language};
use indicatif::ProgressBar;

use crate::app::{App, block_on};
use crate::arguments::one_of;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, harmless};
use crate::recording::Recorder;
use crate::remote::{Remote, TranscriptInput};
use crate::settings::Overrides;
use crate::signals::StopSignals;
use crate::sink::{PipeState, Sink, is_same_file};
use crate::wire_up::Transcription;

/// Maximum bytes of a recording. More than six hours of compressed sound.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Live text on a terminal goes to the next line after the end of a sentence, or after so many characters.
const LINE_CHARS: usize = 200;

/// Transcribe a sound file, or what you say
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HearArgs {
    /// The sound file (wav, flac, mp3, m4a, mp4, ogg, opus, webm), or "-" for stdin
    #[arg(required_unless_present = "live")]
    file: Option<PathBuf>,
    /// Transcribe the microphone until Ctrl-C
    #[arg(long, conflicts_with_all = ["file", "server"])]
    live: bool,
    /// The format of the result
    #[arg(short, long, value_parser = one_of(FORMATS), default_value = "text")]
    format: TranscriptFormat,
    /// The file to write, or "-" for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The spoken language, such as en or de; without it the model detects it
    #[arg(short, long)]
    language: Option<String>,
    /// Translate to English
    #[arg(long)]
    translate: bool,
    /// A text whose names, spelling and style the model imitates
    #[arg(long)]
    prompt: Option<String>,
    /// Add the time of each word; only with --format json
    #[arg(long)]
    words: bool,
    /// The transcription model: a name that `hob models` lists, or a Whisper file
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Use this server; without it, this command loads the model itself, even if a hob runs on this machine
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

const JSON_HELP: &str =
    "OpenAI's verbose_json: text, language, segments with times, and words with --words";

/// How `hob hear` writes a transcript.
const FORMATS: [(&str, &str, TranscriptFormat); 4] = [
    ("text", "The text alone", TranscriptFormat::Text),
    ("srt", "Subtitles", TranscriptFormat::Srt),
    ("vtt", "Subtitles for web pages", TranscriptFormat::Vtt),
    ("json", JSON_HELP, TranscriptFormat::VerboseJson),
];

const AFTER_HELP: &str = "\
Examples:
  hob hear talk.mp3
  hob hear -f srt -o talk.srt talk.mp4
  hob hear --words -f json talk.wav
  hob hear --live
  ffmpeg -i film.mkv -f wav - | hob hear -";

pub(crate) fn run(args: &HearArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    if args.words && args.format != TranscriptFormat::VerboseJson {
        return Err(Failure::usage("--words needs --format json: no other format has words"));
    }
    let transcription_model = args.model.clone().filter(|_| args.server.is_none());
    let flags = Overrides { transcription_model, ..Overrides::default() };
    let app = App::open(globals, flags, printer)?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        if args.live {
            // Ctrl-C ends the sound, and the rest of the text still comes.
            return transcribe_microphone(args, &app, signals).await;
        }
        signals.or(transcribe_file(args, &app)).await
    })
}

async fn transcribe_file(args: &HearArgs, app: &App<'_>) -> CliResult<Exit> {
    let language = language(args.language.as_deref())?;
    let file = args.file.as_deref().unwrap_or(Path::new("-"));
    if file != Path::new("-") && is_same_file(file, &args.output) {
        let sentence = format!("the text would take the place of {}", file.display());
        return Err(Failure::usage(sentence).hint("write another file with -o"));
    }
    let recording = file.to_owned();
    // Ctrl-C must end hob also while a pipe has no sound yet.
    let reading = tokio::task::spawn_blocking(move || read_recording(&recording));
    let bytes = reading.await.map_err(Failure::internal)??;
    let mut sink = output(args)?;
    let Some(address) = &args.server else {
        let sound = Sound::File(SoundFile { bytes, name: None });
        return transcribe_locally(args, app, args.request(sound, language), sink).await;
    };
    let remote = Remote::at(address, app.settings.server.api_key.read()?);
    let input = args.input(language.clone());
    if args.format != TranscriptFormat::VerboseJson {
        let events = remote.transcribe(args.task(), input, &bytes);
        return print(args, app, events, language, sink).await;
    }
    // Events have fewer fields than this format.
    let progress = app.printer.spinner("transcribing");
    let body = remote.transcribe_whole(args.task(), input, &bytes).await;
    progress.finish_and_clear();
    sink.write(body?.as_bytes())?;
    sink.finish()?;
    Ok(Exit::Done)
}

async fn transcribe_microphone(
    args: &HearArgs,
    app: &App<'_>,
    mut signals: StopSignals,
) -> CliResult<Exit> {
    let language = language(args.language.as_deref())?;
    let sink = output(args)?;
    let recorder = Recorder::start(&app.environment.path)?;
    let name = recorder.name();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (has_sound, has_ended) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (works, ends) = (Arc::clone(&has_sound), Arc::clone(&has_ended));
    let was_stopped = Cell::new(false);
    let samples = recorder.samples(async { drop(stopped.await) });
    let samples = samples.inspect(move |_| works.store(true, Ordering::Relaxed));
    // Its reader may also leave before the end.
    let end = std::iter::from_fn(move || {
        ends.store(true, Ordering::Relaxed);
        None
    });
    let samples = samples.chain(stream::iter(end));
    let sound = LiveSound::of_microphone(samples.boxed());
    let request = args.request(Sound::Live(sound), language);
    app.printer.note(format_args!("listening with {name}; press Ctrl-C to stop"));
    let stopping = async {
        signals.next().await;
        was_stopped.set(true);
        drop(stop);
        signals.next().await;
    };
    tokio::select! {
        heard = transcribe_locally(args, app, request, sink) => match heard {
            Ok(_) if !was_stopped.get() && !has_sound.load(Ordering::Relaxed) => {
                let sentence = format!("{name} ended without any sound");
                Err(Failure::engine(sentence).hint("check the microphone"))
            }
            Ok(exit) if !was_stopped.get() && has_ended.load(Ordering::Relaxed) => {
                app.printer.note(format_args!("{name} ended by itself; check the microphone"));
                Ok(exit)
            }
            heard => heard,
        },
        () = stopping => Err(crate::signals::interrupted()),
    }
}

impl HearArgs {
    fn task(&self) -> TranscriptTask {
        if self.translate { TranscriptTask::Translate } else { TranscriptTask::Transcribe }
    }

    fn timestamps(&self) -> Timestamps {
        let has_times = self.format != TranscriptFormat::Text;
        Timestamps { segments: has_times, words: has_times && self.words }
    }

    /// What a server gets. Its events become text and subtitles here.
    fn input(&self, language: Option<String>) -> TranscriptInput {
        let response_format = match self.format {
            TranscriptFormat::VerboseJson => TranscriptFormat::VerboseJson,
            TranscriptFormat::Json
            | TranscriptFormat::Text
            | TranscriptFormat::Srt
            | TranscriptFormat::Vtt => TranscriptFormat::Json,
        };
        let Timestamps { segments, words } = self.timestamps();
        let granularities = [("segment", segments), ("word", words)].into_iter();
        TranscriptInput {
            model: self.model.clone(),
            response_format: response_format.name(),
            language,
            prompt: self.prompt.clone(),
            timestamp_granularities: granularities
                .filter_map(|(name, is_wanted)| is_wanted.then_some(name))
                .collect(),
        }
    }

    fn request(&self, sound: Sound, language: Option<String>) -> TranscriptRequest {
        TranscriptRequest {
            sound,
            task: self.task(),
            language,
            prompt: self.prompt.clone(),
            timestamps: self.timestamps(),
            ..TranscriptRequest::default()
        }
    }
}

async fn transcribe_locally(
    args: &HearArgs,
    app: &App<'_>,
    request: TranscriptRequest,
    sink: Sink,
) -> CliResult<Exit> {
    let hearing = Transcription::start(app)?;
    let heard = match app.load(&hearing.name, &*hearing.worker).await {
        Ok(()) => {
            let language = request.language.clone();
            let events = async { hearing.worker.transcribe(request).await.map_err(Failure::from) };
            print(args, app, events, language, sink).await
        }
        Err(failure) => Err(failure),
    };
    hearing.worker.shutdown().await;
    heard
}

/// Writes a transcript while it is made. `language` is the one that the user named.
async fn print(
    args: &HearArgs,
    app: &App<'_>,
    events: impl Future<Output = CliResult<TranscriptStream>>,
    language: Option<String>,
    sink: Sink,
) -> CliResult<Exit> {
    let asked = Instant::now();
    // On a terminal, the text itself shows the progress.
    let is_on_terminal = args.format == TranscriptFormat::Text && io::stdout().is_terminal();
    let shares_terminal = is_on_terminal && matches!(sink, Sink::Stdout);
    let progress = app.printer.spinner(if args.live { "listening" } else { "transcribing" });
    let line = (shares_terminal && args.live).then(String::new);
    let mut output = TextOutput { sink, progress: &progress, line };
    let mut events = events.await?;
    let mut answer = TranscriptAnswer::default();
    let (mut heard_s, mut words) = (0.0, 0);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                output.end_line()?;
                return Err(Failure::from(error));
            }
        };
        match &event {
            TranscriptEvent::Delta(text) if args.format == TranscriptFormat::Text => {
                if shares_terminal && !args.live {
                    progress.finish_and_clear();
                }
                if output.add(text)? == PipeState::Closed {
                    return Ok(Exit::Done);
                }
                // Without times, the words are what shows that a long file goes on.
                if !args.live {
                    words += text.split_whitespace().count();
                    progress.set_message(format!("{} transcribed", count_text(words, "word")));
                }
            }
            TranscriptEvent::Interim(text) => output.show(text),
            TranscriptEvent::Segment(segment) => {
                progress.set_message(format!("{} transcribed", clock(segment.end_s)));
            }
            TranscriptEvent::Done(done) => heard_s = done.duration_s,
            TranscriptEvent::Delta(_) | TranscriptEvent::Word(_) => {}
        }
        answer.add(event);
    }
    progress.finish_and_clear();
    let rest = match args.format {
        TranscriptFormat::Text => output.rest(),
        format => answer.to_body(format, args.task(), language.as_deref()),
    };
    output.write(&rest)?;
    output.sink.finish()?;
    if let Some(warning) = answer.warning() {
        app.printer.note(format_args!("the text is incomplete: {warning}"));
    }
    if !is_on_terminal || !args.live {
        app.printer.note(speed_note(heard_s, asked.elapsed()));
    }
    Ok(Exit::Done)
}

/// The text, next to a spinner. On a terminal both would be in one line, and the spinner would remain between the words.
/// So it ends before the text of a file, and shows the line of live text that is not complete.
struct TextOutput<'p> {
    sink: Sink,
    progress: &'p ProgressBar,
    /// The incomplete line, if text is written in lines.
    line: Option<String>,
}

impl TextOutput<'_> {
    fn add(&mut self, text: &str) -> CliResult<PipeState> {
        let Some(line) = &mut self.line else { return self.write(text) };
        line.push_str(text);
        let ends_line = |c: char| matches!(c, '.' | '?' | '!') || is_full_stop(c);
        if line.ends_with(ends_line) || line.chars().count() >= LINE_CHARS {
            return self.end_line();
        }
        self.show("");
        Ok(PipeState::Open)
    }

    /// Writes the incomplete line, if text is written in lines.
    fn end_line(&mut self) -> CliResult<PipeState> {
        let Some(line) = &mut self.line else { return Ok(PipeState::Open) };
        let line = whole_line(&std::mem::take(line));
        self.show("");
        self.write(&line)
    }

    fn write(&mut self, text: &str) -> CliResult<PipeState> {
        let TextOutput { sink, progress, .. } = self;
        let is_shown = matches!(sink, Sink::Stdout) && io::stdout().is_terminal();
        let text = if is_shown { harmless(text) } else { Cow::Borrowed(text) };
        progress.suspend(|| sink.write(text.as_bytes()))
    }

    /// Shows the incomplete line, and text that may still change.
    fn show(&self, interim: &str) {
        let line = self.line.as_deref().unwrap_or_default();
        self.progress.set_message(harmless(format!("{line}{interim}").trim()).into_owned());
    }

    /// What ends the text.
    fn rest(&self) -> String {
        self.line.as_deref().map_or_else(|| "\n".to_owned(), whole_line)
    }
}

/// Empty for an empty line.
fn whole_line(line: &str) -> String {
    let line = line.trim();
    if line.is_empty() { String::new() } else { format!("{line}\n") }
}

/// "12.3 s of sound in 1.4 s, RTF 0.11".
fn speed_note(heard_s: f64, took: Duration) -> String {
    let took_s = took.as_secs_f64();
    let base = format!("{heard_s:.1} s of sound in {took_s:.1} s");
    if heard_s > 0.0 { format!("{base}, RTF {:.2}", took_s / heard_s) } else { base }
}

/// `75.2` as `1:15`.
fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn language(named: Option<&str>) -> CliResult<Option<String>> {
    let Some(named) = named else { return Ok(None) };
    let known = spoken_language(named).ok_or_else(|| {
        Failure::usage(format!("'{named}' is not a language of ISO 639-1"))
            .hint("use a two-letter code such as en, de or es, or leave --language out: the model then detects the language")
    })?;
    Ok(Some(known.to_owned()))
}

/// Reads the recording, which a server or a worker gets as it is.
fn read_recording(file: &Path) -> CliResult<Bytes> {
    let too_large = || {
        Failure::usage("the recording is larger than 2 GiB")
            .hint("cut it into parts, for example with ffmpeg -f segment")
    };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        if io::stdin().is_terminal() {
            return Err(Failure::usage("stdin is a terminal and contains no sound")
                .hint("name a file, pipe one into hob hear -, or use --live"));
        }
        io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        let opened = File::open(file);
        opened.and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    let read =
        read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    if read as u64 > FILE_BYTES_MAX { Err(too_large()) } else { Ok(Bytes::from(bytes)) }
}

/// Unlike sound, a transcript may be written to a terminal.
fn output(args: &HearArgs) -> CliResult<Sink> {
    if args.output == Path::new("-") { Ok(Sink::Stdout) } else { Sink::open(&args.output) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_and_clock_texts_are_readable() {
        let took = Duration::from_millis(1500);
        assert_eq!(speed_note(15.0, took), "15.0 s of sound in 1.5 s, RTF 0.10");
        assert_eq!(speed_note(0.0, took), "0.0 s of sound in 1.5 s");
        assert_eq!((clock(75.2), clock(3600.0)), ("1:15".to_owned(), "60:00".to_owned()));
    }

    #[test]
    fn live_text_comes_to_a_terminal_in_whole_sentences() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("text");
        let progress = ProgressBar::hidden();
        let sink = Sink::open(&place).expect("a file");
        let mut output = TextOutput { sink, progress: &progress, line: Some(String::new()) };
        for (text, shown) in [
            ("I saw", "I saw"),
            (" it.", ""),
            (" كيف حالك؟", ""),
            (" Then", "Then"),
            (" I", "Then I"),
        ] {
            assert_eq!(output.add(text), Ok(PipeState::Open));
            assert_eq!(output.line.as_deref().map(str::trim), Some(shown));
        }
        output.show(" left");
        assert_eq!(progress.message(), "Then I left");
        assert_eq!(output.rest(), "Then I\n");
        assert_eq!(output.end_line(), Ok(PipeState::Open));
        assert_eq!(output.rest(), "");
        output.sink.finish().expect("written");
        assert_eq!(
            fs_err::read_to_string(place).expect("a file"),
            "I saw it.\nكيف حالك؟\nThen I\n"
        );
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: HearArgs,
    }

    #[test]
    fn a_server_gets_the_times_that_the_format_shows() {
        for (line, format, granularities) in [
            (&["hob", "a.wav"][..], "json", &[][..]),
            (&["hob", "a.wav", "-f", "srt"], "json", &["segment"]),
            (&["hob", "a.wav", "-f", "json"], "verbose_json", &["segment"]),
            (&["hob", "a.wav", "-f", "json", "--words"], "verbose_json", &["segment", "word"]),
        ] {
            let Line { args } = clap::Parser::parse_from(line.iter().copied());
            let input = args.input(None);
            assert_eq!(input.response_format, format, "{line:?}");
            assert_eq!(input.timestamp_granularities, granularities, "{line:?}");
        }
    }

    #[test]
    fn a_language_is_a_code_with_or_without_a_region() {
        assert_eq!(language(Some("de-AT")), Ok(Some("de".to_owned())));
        let unknown = language(Some("klingon")).expect_err("no code");
        assert!(unknown.sentence.contains("'klingon'"), "{unknown}");
    }
}
