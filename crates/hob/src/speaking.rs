//! Sends sound from a stream of events to a file, stdout or the speakers, and measures it.
//! The events may come from an engine of this process or from another hob.

use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::{SpeechEvent, SpeechStream, WordTiming};
use hob_speech::encode::{AudioFormat, Encoder, Length};
use indicatif::ProgressBar;

use crate::failure::{CliResult, Failure};
use crate::playback::{Player, Playing};
use crate::printer::Printer;
use crate::sink::{PipeState, Sink};

pub(crate) const BAR: &str = "{bar:30} {pos}/{len} characters · {msg}";

/// Where the sound goes: to a sink, to a player, or to both.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) file: Option<(AudioFormat, Sink)>,
    pub(crate) player: Option<Player>,
}

/// The outputs, opened for a sample rate.
#[derive(Debug)]
struct Outputs {
    file: Option<(Encoder, Sink)>,
    playing: Option<Playing>,
}

/// Figures of the finished sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoundFigures {
    pub(crate) sound_s: f64,
    pub(crate) first_audio: Duration,
    /// Time spent waiting for sound. Unknown with a player, because the engine then works ahead of it.
    pub(crate) waited: Option<Duration>,
}

impl SoundFigures {
    /// For people: "3.2 s of sound, the first after 112 ms, RTF 0.25".
    pub(crate) fn sentence(&self) -> String {
        let first_ms = self.first_audio.as_millis();
        let base = format!("{:.1} s of sound, the first after {first_ms} ms", self.sound_s);
        match self.rtf() {
            Some(rtf) => format!("{base}, RTF {rtf:.2}"),
            None => base,
        }
    }

    /// Seconds of work per second of sound.
    pub(crate) fn rtf(&self) -> Option<f64> {
        self.waited.filter(|_| self.sound_s > 0.0).map(|waited| waited.as_secs_f64() / self.sound_s)
    }
}

/// The progress through a text of known length. Text that is still arriving has no known length.
#[derive(Debug)]
pub(crate) struct Progress {
    text: Option<String>,
    /// Bytes of `text` that the bar has counted.
    counted: usize,
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(text: Option<&str>, printer: &Printer) -> Progress {
        let bar = match text {
            Some(text) => printer.bar(text.chars().count() as u64, BAR),
            None => printer.spinner(""),
        };
        // Counting the text is only needed for a visible bar.
        let text = text.filter(|_| printer.draws()).map(str::to_owned);
        Progress { text, counted: 0, bar }
    }

    fn advance_over(&mut self, words: &[WordTiming]) {
        let Some(text) = &self.text else { return };
        let end = words.iter().map(|word| word.span.end).max().unwrap_or_default();
        if let Some(new) = text.get(self.counted..end) {
            self.bar.inc(new.chars().count() as u64);
            self.counted = end;
        }
    }

    fn sounded(&self, sound_s: f64) {
        self.bar.set_message(format!("{sound_s:.1} s of sound"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Reads the stream to its end. `asked` is when the request was sent.
pub(crate) async fn deliver(
    mut stream: SpeechStream,
    to: Destination,
    mut progress: Progress,
    asked: Instant,
) -> CliResult<SoundFigures> {
    let rate_hz = stream.sample_rate_hz;
    let mut outputs = Outputs::open(to, rate_hz)?;
    let mut waited = Duration::ZERO;
    let mut since = asked;
    let mut first_audio = None;
    let mut samples_heard: u64 = 0;
    while let Some(event) = stream.next().await {
        waited += since.elapsed();
        match event? {
            SpeechEvent::Words(words) => progress.advance_over(&words),
            SpeechEvent::Audio(samples) => {
                first_audio.get_or_insert_with(|| asked.elapsed());
                samples_heard += samples.len() as u64;
                progress.sounded(seconds(samples_heard, rate_hz));
                if outputs.write(&samples).await? == PipeState::Closed {
                    break;
                }
            }
        }
        since = Instant::now();
    }
    let Some(first_audio) = first_audio else {
        return Err(
            Failure::engine("the model produced no sound").hint("`hob doctor` checks the model")
        );
    };
    let waited = outputs.playing.is_none().then_some(waited);
    // Stops the engine before waiting for the player, in case the reader left early.
    drop((stream, progress));
    outputs.finish().await?;
    Ok(SoundFigures { sound_s: seconds(samples_heard, rate_hz), first_audio, waited })
}

fn seconds(samples: u64, rate_hz: u32) -> f64 {
    samples as f64 / f64::from(rate_hz)
}

impl Outputs {
    fn open(to: Destination, rate_hz: u32) -> CliResult<Outputs> {
        let file = match to.file {
            Some((format, sink)) => Some((Encoder::new(format, rate_hz, Length::Unknown)?, sink)),
            None => None,
        };
        let playing = to.player.map(|player| player.start(rate_hz)).transpose()?;
        Ok(Outputs { file, playing })
    }

    async fn write(&mut self, samples: &[f32]) -> CliResult<PipeState> {
        let mut reader = PipeState::Open;
        if let Some((encoder, sink)) = &mut self.file {
            reader = sink.write(&encoder.encode(samples)?)?;
        }
        if let Some(playing) = &mut self.playing {
            playing.write(samples).await?;
        }
        Ok(reader)
    }

    async fn finish(self) -> CliResult<()> {
        if let Some((encoder, mut sink)) = self.file {
            let end = encoder.finish_file()?;
            sink.write(&end.rest)?;
            sink.begin_with(&end.header)?;
            sink.finish()?;
        }
        match self.playing {
            Some(playing) => playing.finish().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ModelError;
    use hob_speech::encode::encode_whole;

    use super::*;
    use crate::failure::Exit;
    use crate::printer::Volume;

    fn stream(events: Vec<Result<SpeechEvent, ModelError>>) -> SpeechStream {
        SpeechStream::new(24_000, futures::stream::iter(events))
    }

    async fn to_file(
        folder: &std::path::Path,
        events: Vec<Result<SpeechEvent, ModelError>>,
    ) -> CliResult<SoundFigures> {
        let printer = Printer::new(Volume::ErrorsOnly);
        let sink = Sink::open(&folder.join("a.pcm")).expect("a sink");
        let to = Destination { file: Some((AudioFormat::Pcm, sink)), player: None };
        deliver(stream(events), to, Progress::new(Some("hi"), &printer), Instant::now()).await
    }

    #[tokio::test]
    async fn every_sample_arrives_and_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let events = vec![
            Ok(SpeechEvent::Words(Vec::new())),
            Ok(SpeechEvent::Audio(vec![0.5; 12_000])),
            Ok(SpeechEvent::Audio(vec![0.5; 12_000])),
        ];
        let figures = to_file(folder.path(), events).await.expect("spoken");
        assert_eq!(figures.sound_s, 1.0);
        assert!(figures.waited.is_some());
        let written = fs_err::metadata(folder.path().join("a.pcm")).expect("a file");
        assert_eq!(written.len(), 48_000);
    }

    #[tokio::test]
    async fn a_file_has_an_exact_header() {
        let folder = tempfile::tempdir().expect("a folder");
        for format in [AudioFormat::Wav, AudioFormat::Flac] {
            let place = folder.path().join(format.name());
            let file = Some((format, Sink::open(&place).expect("a sink")));
            let events = vec![Ok(SpeechEvent::Audio(vec![0.5; 1_000])); 2];
            let to = Destination { file, player: None };
            let progress = Progress::new(None, &Printer::new(Volume::ErrorsOnly));
            deliver(stream(events), to, progress, Instant::now()).await.expect("spoken");
            let whole = encode_whole(format, 24_000, &[0.5; 2_000]).expect("a file");
            assert!(fs_err::read(place).expect("a file") == whole, "{format}");
        }
    }

    #[tokio::test]
    async fn a_failure_on_the_way_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let lost = ModelError::WorkerLost { engine: "speech", detail: "killed".to_owned() };
        let events = vec![Ok(SpeechEvent::Audio(vec![0.0; 240])), Err(lost)];
        let failure = to_file(folder.path(), events).await.expect_err("a failure");
        assert_eq!(failure.exit, Exit::Engine);
        assert_eq!(fs_err::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[tokio::test]
    async fn an_answer_without_a_sound_is_a_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let failure = to_file(folder.path(), Vec::new()).await.expect_err("a failure");
        assert_eq!(failure.sentence, "the model produced no sound");
    }

    #[test]
    fn figures_say_only_what_was_measured() {
        let first_audio = Duration::from_millis(112);
        let waited = Some(Duration::from_millis(800));
        let figures = SoundFigures { sound_s: 3.2, first_audio, waited };
        assert_eq!(figures.sentence(), "3.2 s of sound, the first after 112 ms, RTF 0.25");
        let played = SoundFigures { waited: None, ..figures };
        assert_eq!(played.sentence(), "3.2 s of sound, the first after 112 ms");
    }
}
