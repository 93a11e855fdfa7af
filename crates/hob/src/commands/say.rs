//! `hob say`: reads text aloud, with an engine of its own or a server.
//! Both deliver samples, so format, player and progress are the same.

mod book;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use book::BookJob;
use clap::Args;
use futures::StreamExt;
use futures::stream::BoxStream;
use hob_core::voice_blend::spoken_voices;
use hob_core::{Language, ModelError, SpeechModel, SpeechPace, SpeechRequest, SpeechText, Speed};
use hob_speech::encode::AudioFormat;
use hob_speech::is_speakable;

use crate::app::{App, run_until_stopped};
use crate::commands::models::voice_table;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::model_store::ModelStore;
use crate::playback::Player;
use crate::printer::Printer;
use crate::remote::{Remote, SpeechInput};
use crate::settings::Overrides;
use crate::sink::{Sink, is_same_file};
use crate::speaking::{Destination, Progress, SoundFigures, deliver};
use crate::stdin_text::StdinText;
use crate::subtitles::Subtitles;
use crate::wire_up::{Speech, kept_voices, meant_voice, missing_parts};

/// Maximum bytes of a text for a server, which gets it in one piece.
const REMOTE_TEXT_BYTES_MAX: usize = 16 << 20;

/// Read text aloud, or write the sound to a file
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SayArgs {
    /// The text; without it, or with "-", hob reads stdin and speaks each
    /// sentence as soon as the next one begins. A text file, with -o FILE.m4b or
    /// FILE.mp3, becomes an audiobook
    text: Vec<String>,
    /// The stored speech model, such as kokoro-4bit of `hob quantize`
    #[arg(short, long, conflicts_with = "server")]
    model: Option<String>,
    /// The voice (--voices lists them), or a blend of voices: "af_heart(2)+af_bella(1)"
    #[arg(short, long)]
    voice: Option<String>,
    /// mp3, wav, pcm, opus, flac or aac [default: from the file's name, else mp3]
    #[arg(short, long, value_parser = format)]
    format: Option<AudioFormat>,
    /// The file to write, or "-" for stdout; without it hob plays the sound, or writes it to stdout
    /// if that is a file or a pipe
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Speaking rate, from 0.25 to 4; 1 is the voice's normal rate
    #[arg(long, default_value = "1", value_parser = speed)]
    speed: Speed,
    /// Also write subtitles with the times of the words, as SRT
    #[arg(long, value_name = "FILE")]
    srt: Option<PathBuf>,
    /// Also write subtitles with the times of the words, as WebVTT
    #[arg(long, value_name = "FILE")]
    vtt: Option<PathBuf>,
    /// Also play the sound when it is written to a file
    #[arg(long)]
    play: bool,
    /// Use this server; without it, this command loads the model itself, even if a hob runs here
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// CPU threads of the engine; 0 lets hob choose
    #[arg(long, value_name = "N", conflicts_with = "server")]
    threads: Option<u16>,
    /// List the voices and exit
    #[arg(long)]
    voices: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob say \"Good evening.\"
  hob say -v bm_george -o hello.mp3 \"Good evening.\"
  hob say -o book.opus --srt book.srt < book.txt
  hob say book.txt -o book.m4b
  hob say --server http://nas:8484 \"Good evening.\"
  hob say -f wav -o - \"Good evening.\" | aplay

Audiobooks have chapters. A chapter begins with a Markdown heading (# or ##), or with a line after
an empty line that says \"Chapter 1\", \"PART II\", \"Book the First\" (also volume, act, canto), or is
a word such as \"Prologue\". hob keeps the finished parts in FILE.parts: after Ctrl-C or a crash,
repeat the command to continue. Another text or voice starts from the beginning.";

fn format(text: &str) -> Result<AudioFormat, String> {
    AudioFormat::parse(text).map_err(|error| error.to_string())
}

fn speed(text: &str) -> Result<Speed, String> {
    let rate = text.parse().map_err(|_| "expected a number from 0.25 to 4".to_owned())?;
    Speed::new(rate).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &SayArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let speech_model = args.model.clone();
    let flags = Overrides { threads: args.threads, speech_model, ..Overrides::default() };
    let app = App::open(globals, flags, printer)?;
    if args.voices {
        return run_until_stopped(list_voices(args, &app));
    }
    run_until_stopped(say(args, &app)).map_err(|failure| book::with_resume_hint(args, failure))
}

async fn list_voices(args: &SayArgs, app: &App<'_>) -> CliResult<Exit> {
    let table = match remote(args, app)? {
        Some(remote) => voice_table(remote.voices().await?),
        None => {
            let own = ModelStore::open(app).speech()?.voices;
            let missing = missing_parts(app);
            let has_voice =
                |(language, _): &(&Language, &String)| own.iter().any(|v| v.language == **language);
            for (language, needs) in missing.iter().filter(has_voice) {
                app.printer.note(format!("{language} is not listed: it needs {needs}"));
            }
            let own = spoken_voices(&own, &missing);
            let kept = kept_voices(&app.settings)?.among(&own);
            voice_table(own.into_iter().chain(kept))
        }
    };
    app.printer.data(table)?;
    Ok(Exit::Done)
}

/// The text to speak, and where it comes from.
enum TextSource {
    Whole(String),
    Stdin(StdinText),
}

async fn say(args: &SayArgs, app: &App<'_>) -> CliResult<Exit> {
    if let Some(job) = BookJob::from_args(args)? {
        return job.speak(args, app).await;
    }
    let given = given(&args.text)?;
    check_outputs(args)?;
    let to = destination(args, app)?;
    let subtitles = Subtitles::open(args.srt.as_deref(), args.vtt.as_deref())?;
    let figures = match given {
        // The API answers this with silence. On a command line it is a mistake.
        TextSource::Whole(text) if !is_speakable(&text) => return Err(ModelError::EmptyText.into()),
        TextSource::Whole(text) => speak(args, app, to, SpeechText::Whole(text), subtitles).await?,
        TextSource::Stdin(stdin) => {
            let (pieces, broken) = stdin.split();
            tokio::select! {
                figures = speak(args, app, to, SpeechText::Arriving(pieces), subtitles) => figures?,
                failure = broken => return Err(failure),
            }
        }
    };
    app.printer.note(figures.sentence());
    Ok(Exit::Done)
}

async fn speak(
    args: &SayArgs,
    app: &App<'_>,
    to: Destination,
    text: SpeechText,
    subtitles: Subtitles,
) -> CliResult<SoundFigures> {
    let voice = args.voice.clone().unwrap_or_else(|| app.settings.speech.default_voice.clone());
    match remote(args, app)? {
        Some(remote) => {
            let input = whole(subtitles.read(text)).await?;
            let progress = Progress::new(None, app.printer);
            let asked = Instant::now();
            let input = SpeechInput { input, voice, speed: args.speed.rate() };
            let stream = match subtitles.are_wanted() {
                true => subtitles.listen(remote.speak_timed(input).await?),
                false => remote.speak(input).await?,
            };
            let figures = deliver(stream, to, progress, asked).await?;
            subtitles.write()?;
            Ok(figures)
        }
        None => {
            let speech = Speech::start(app)?;
            let voice = meant_voice(&app.settings, speech.worker.voices(), &voice)?;
            let (speed, pace) = (args.speed, pace(&to));
            let request = SpeechRequest::new(subtitles.read(text), voice);
            let request = SpeechRequest { speed, pace, ..request };
            let figures = speak_here(&speech, app, to, request, &subtitles).await;
            speech.worker.shutdown().await;
            let figures = figures?;
            subtitles.write()?;
            Ok(figures)
        }
    }
}

/// Steady for a file that is not played meanwhile, so that it has the same bytes in every run.
fn pace(to: &Destination) -> SpeechPace {
    match (&to.file, &to.player) {
        (Some((_, Sink::File { .. })), None) => SpeechPace::Steady,
        _ => SpeechPace::Live,
    }
}

async fn speak_here(
    speech: &Speech,
    app: &App<'_>,
    to: Destination,
    request: SpeechRequest,
    subtitles: &Subtitles,
) -> CliResult<SoundFigures> {
    app.load(&speech.name, &*speech.worker).await?;
    let text = match &request.text {
        SpeechText::Whole(text) => Some(text.as_str()),
        SpeechText::Arriving(_) => None,
    };
    let progress = Progress::new(text, app.printer);
    let asked = Instant::now();
    let stream = subtitles.listen(speech.worker.speak(request).await?);
    deliver(stream, to, progress, asked).await
}

fn remote(args: &SayArgs, app: &App<'_>) -> CliResult<Option<Remote>> {
    let Some(address) = &args.server else { return Ok(None) };
    Ok(Some(Remote::at(address, app.settings.server.api_key.read()?)))
}

/// A server needs the whole text in one request.
async fn whole(text: SpeechText) -> CliResult<String> {
    let mut pieces: BoxStream<'static, String> = match text {
        SpeechText::Whole(text) => return Ok(text),
        SpeechText::Arriving(pieces) => pieces,
    };
    let mut whole = String::new();
    while let Some(piece) = pieces.next().await {
        whole.push_str(&piece);
        if whole.len() > REMOTE_TEXT_BYTES_MAX {
            return Err(Failure::usage(format!(
                "the text is longer than {REMOTE_TEXT_BYTES_MAX} bytes, the limit for a server"
            ))
            .hint("leave out --server: the local engine speaks a text while it arrives"));
        }
    }
    // A server answers this with silence.
    if is_speakable(&whole) { Ok(whole) } else { Err(ModelError::EmptyText.into()) }
}

fn given(words: &[String]) -> CliResult<TextSource> {
    match words {
        [] if io::stdin().is_terminal() => Err(Failure::usage("there is no text to speak")
            .hint("for example hob say \"Good evening.\", or pipe text into hob say")),
        [] => Ok(TextSource::Stdin(StdinText::read())),
        [dash] if dash == "-" => Ok(TextSource::Stdin(StdinText::read())),
        [file] if book::is_text_file(file) => Err(Failure::usage(format!(
            "{file} is a file, and hob would speak its name, not its text"
        ))
        .hint(format!("to speak its text: hob say < {file}, or hob say {file} -o book.m4b"))),
        words => Ok(TextSource::Whole(words.join(" "))),
    }
}

/// # Errors
/// One output would take the place of another.
fn check_outputs(args: &SayArgs) -> CliResult<()> {
    let places: Vec<&PathBuf> =
        [&args.output, &args.srt, &args.vtt].into_iter().flatten().collect();
    for (at, place) in places.iter().enumerate() {
        if places[..at].iter().any(|other| is_same_file(other, place)) {
            let sentence = format!("{} is the file of two outputs", place.display());
            return Err(Failure::usage(sentence).hint("give each of -o, --srt and --vtt its own"));
        }
    }
    Ok(())
}

/// Checked before a model is loaded, so that a wrong file name costs no time.
fn destination(args: &SayArgs, app: &App<'_>) -> CliResult<Destination> {
    let format = match (&args.format, &args.output) {
        (Some(format), _) => *format,
        (None, Some(output)) => format_of(output)?,
        (None, None) => AudioFormat::Mp3,
    };
    let to_stdout = args.output.is_none() && !args.play && !io::stdout().is_terminal();
    let file = match &args.output {
        Some(output) => Some((format, Sink::open(output)?)),
        None if to_stdout => Some((format, Sink::stdout()?)),
        None => None,
    };
    let player = match (&file, args.play) {
        (Some(_), false) => None,
        _ => Some(Player::first(&app.environment.path)?),
    };
    Ok(Destination { file, player })
}

fn format_of(output: &Path) -> CliResult<AudioFormat> {
    let ending = output.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        None => Ok(AudioFormat::Mp3),
        // The usual ending of Opus files.
        Some("ogg" | "oga") => Ok(AudioFormat::Opus),
        Some(ending) => AudioFormat::parse(ending)
            .map_err(|error| Failure::usage(error).hint("give the format with -f")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_says_the_format() {
        let rows = [
            ("a.mp3", Some(AudioFormat::Mp3)),
            ("a.WAV", Some(AudioFormat::Wav)),
            ("a.b.flac", Some(AudioFormat::Flac)),
            ("a.ogg", Some(AudioFormat::Opus)),
            ("-", Some(AudioFormat::Mp3)),
            ("hello", Some(AudioFormat::Mp3)),
            ("a.doc", None),
        ];
        for (name, expected) in rows {
            assert_eq!(format_of(Path::new(name)).ok(), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_text_for_a_server_is_gathered_up_to_a_limit() {
        let pieces = |count| {
            let pieces = futures::stream::iter(vec!["a".repeat(1 << 20); count]);
            SpeechText::Arriving(pieces.boxed())
        };
        assert_eq!(whole(pieces(2)).await.map(|text| text.len()), Ok(2 << 20));
        assert_eq!(whole(pieces(17)).await.expect_err("too long").exit, Exit::Usage);
    }
}
