//! Plays sound through an installed program. hob links no audio library, because
//! sound output differs between systems, and each system has a program for it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use hob_speech::encode::{AudioFormat, Encoder, Length, encode_whole};
use tempfile::TempPath;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

use crate::failure::{CliResult, Failure};
use crate::programs;

/// A program that plays sound, and its arguments, with spaces between them.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    name: &'static str,
    /// `{rate}` stands for the sample rate in Hz, `{file}` for a finished WAV file.
    args: &'static str,
    /// What to add so that sound is heard soon after it is written. `None`: it cannot play while more is written.
    live: Option<&'static str>,
}

/// In the order to try. Programs that read raw samples from standard input come first, because
/// sound then starts with the first samples; `afplay` needs a finished file.
const KNOWN: [Known; 6] = [
    Known {
        name: "paplay",
        args: "--raw --rate={rate} --channels=1 --format=s16le",
        live: Some("--latency-msec=60"),
    },
    Known {
        name: "pw-play",
        args: "--raw --rate={rate} --channels=1 --format=s16 -",
        live: Some("--latency=60ms"),
    },
    Known {
        name: "aplay",
        args: "-q -t raw -f S16_LE -c 1 -r {rate}",
        live: Some("--buffer-time=80000"),
    },
    Known {
        name: "ffplay",
        args: "-nodisp -autoexit -loglevel error -f s16le -ar {rate} -i pipe:0",
        live: Some("-fflags nobuffer -flags low_delay -probesize 32"),
    },
    Known {
        name: "play",
        args: "-q -t raw -r {rate} -e signed -b 16 -c 1 -",
        live: Some("--buffer 1024"),
    },
    Known { name: "afplay", args: "{file}", live: None },
];

/// An installed player.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Player {
    known: &'static Known,
    program: PathBuf,
}

impl Player {
    /// The installed players, best first.
    pub(crate) fn installed(path: &OsStr) -> Vec<Player> {
        let found = |known: &'static Known| {
            let program = programs::find(Path::new(known.name), path)?;
            Some(Player { known, program })
        };
        KNOWN.iter().filter_map(found).collect()
    }

    /// # Errors
    /// No player is installed.
    pub(crate) fn first(path: &OsStr) -> CliResult<Player> {
        Player::installed(path).into_iter().next().ok_or_else(|| none_of(|_| true))
    }

    /// The first that plays while more is written.
    ///
    /// # Errors
    /// No such player is installed.
    pub(crate) fn first_live(path: &OsStr) -> CliResult<Player> {
        let is_live = |known: &Known| known.live.is_some();
        let found = Player::installed(path).into_iter().find(|player| is_live(player.known));
        found.ok_or_else(|| none_of(is_live))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.known.name
    }

    /// Starts the program, which then waits for samples.
    pub(crate) fn start(self, sample_rate_hz: u32) -> CliResult<Playing> {
        if self.known.args.contains("{file}") {
            return Ok(Playing::Whole { player: self, sample_rate_hz, samples: Vec::new() });
        }
        Ok(Playing::Pipe(Box::new(self.pipe(sample_rate_hz, None, "")?)))
    }

    /// Starts the program so that sound is heard soon after it is written, if the program can do that.
    pub(crate) fn start_live(self, sample_rate_hz: u32) -> CliResult<Playing> {
        let live = self.known.live.unwrap_or_default();
        Ok(Playing::Pipe(Box::new(self.pipe(sample_rate_hz, None, live)?)))
    }

    fn pipe(
        &self,
        sample_rate_hz: u32,
        file: Option<TempPath>,
        more_args: &str,
    ) -> CliResult<Pipe> {
        let name = self.known.name;
        let rate = sample_rate_hz.to_string();
        let path = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let fill = |arg: &str| arg.replace("{rate}", &rate).replace("{file}", &path);
        let mut child = Command::new(&self.program)
            .args(more_args.split_whitespace())
            .args(self.known.args.split_whitespace().map(fill))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C in a terminal is for hob alone: in `hob talk` it stops an answer, and the player goes on.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::engine(format!("cannot start {name}: {error}")))?;
        let encoder = Encoder::new(AudioFormat::Pcm, sample_rate_hz, Length::Unknown)?;
        let input = child.stdin.take();
        Ok(Pipe { name, child, input, encoder, _file: file })
    }
}

fn none_of(suits: impl Fn(&Known) -> bool) -> Failure {
    let names: Vec<&str> =
        KNOWN.iter().filter(|known| suits(known)).map(|known| known.name).collect();
    let names = names.join(", ");
    Failure::engine(format!("no program that plays sound is installed ({names})"))
        .hint("install one, or write a file with -o hello.wav")
}

/// Sound that is being played.
#[derive(Debug)]
pub(crate) enum Playing {
    Pipe(Box<Pipe>),
    /// Collected until it is complete.
    Whole {
        player: Player,
        sample_rate_hz: u32,
        samples: Vec<f32>,
    },
}

/// A running player.
#[derive(Debug)]
pub(crate) struct Pipe {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    encoder: Encoder,
    /// The file that it plays, if it does not read its input. Deleted when the player has ended.
    _file: Option<TempPath>,
}

impl Playing {
    /// Waits while the player's buffer is full.
    pub(crate) async fn write(&mut self, new: &[f32]) -> CliResult<()> {
        match self {
            Playing::Pipe(pipe) => pipe.write(new).await,
            Playing::Whole { samples, .. } => {
                samples.extend_from_slice(new);
                Ok(())
            }
        }
    }

    /// Returns when the last sample was played.
    pub(crate) async fn finish(self) -> CliResult<()> {
        match self {
            Playing::Pipe(pipe) => pipe.finish().await,
            Playing::Whole { player, sample_rate_hz, samples } => {
                let file = wav_file(sample_rate_hz, &samples)?;
                player.pipe(sample_rate_hz, Some(file), "")?.finish().await
            }
        }
    }
}

impl Pipe {
    async fn write(&mut self, samples: &[f32]) -> CliResult<()> {
        let bytes = self.encoder.encode(samples)?;
        let Some(input) = &mut self.input else { return Ok(()) };
        match input.write_all(&bytes).await {
            Ok(()) => Ok(()),
            // The player has stopped reading: it has ended, or is about to.
            Err(_) => Err(stopped(self.name, self.child.wait().await)),
        }
    }

    async fn finish(mut self) -> CliResult<()> {
        drop(self.input.take());
        match self.child.wait().await {
            Ok(status) if status.success() => Ok(()),
            status => Err(stopped(self.name, status)),
        }
    }
}

fn wav_file(sample_rate_hz: u32, samples: &[f32]) -> CliResult<TempPath> {
    let bytes = encode_whole(AudioFormat::Wav, sample_rate_hz, samples)?;
    let write = || -> io::Result<TempPath> {
        let mut file = tempfile::Builder::new().suffix(".wav").tempfile()?;
        file.write_all(&bytes)?;
        Ok(file.into_temp_path())
    };
    write().map_err(|error| Failure::io("cannot write the temporary sound file", &error))
}

fn stopped(name: &str, status: io::Result<ExitStatus>) -> Failure {
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    Failure::engine(format!("{name} stopped playing ({how})"))
        .hint("check the sound device, or write a file with -o hello.wav")
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, getpgid};

    use super::*;
    use crate::executable::write_executable;
    use crate::failure::Exit;

    fn fake(folder: &Path, name: &str, script: &str) {
        write_executable(&folder.join(name), &format!("#!/bin/sh\n{script}\n"));
    }

    async fn play(folder: &Path) -> CliResult<()> {
        let mut playing = Player::first(folder.as_os_str())?.start(24_000)?;
        playing.write(&[0.0, 1.0]).await?;
        playing.write(&[-1.0]).await?;
        playing.finish().await
    }

    #[tokio::test]
    async fn a_player_that_reads_gets_raw_samples_and_their_rate() {
        let folder = tempfile::tempdir().expect("a folder");
        let heard = folder.path().join("heard");
        let script = format!("echo \"$@\" > {0}.args; /bin/cat > {0}", heard.display());
        fake(folder.path(), "aplay", &script);
        play(folder.path()).await.expect("played");
        assert_eq!(fs_err::read(&heard).expect("samples"), [0, 0, 255, 127, 0, 128]);
        let args = fs_err::read_to_string(heard.with_extension("args")).expect("arguments");
        assert_eq!(args, "-q -t raw -f S16_LE -c 1 -r 24000\n");
    }

    #[tokio::test]
    async fn a_live_player_is_asked_for_little_delay() {
        let folder = tempfile::tempdir().expect("a folder");
        fake(folder.path(), "afplay", "exit 1");
        let none = Player::first_live(folder.path().as_os_str()).expect_err("it needs a file");
        assert!(!none.sentence.contains("afplay"), "{none}");
        let heard = folder.path().join("heard");
        fake(folder.path(), "play", &format!("echo \"$@\" > {}; /bin/cat", heard.display()));
        let player = Player::first_live(folder.path().as_os_str()).expect("a player");
        player.start_live(24_000).expect("started").finish().await.expect("played");
        let args = fs_err::read_to_string(heard).expect("arguments");
        assert!(args.starts_with("--buffer 1024 -q -t raw -r 24000"), "{args}");
    }

    #[tokio::test]
    async fn ctrl_c_does_not_reach_the_player() {
        let folder = tempfile::tempdir().expect("a folder");
        fake(folder.path(), "aplay", "exec /bin/cat");
        let player = Player::first(folder.path().as_os_str()).expect("a player");
        let Playing::Pipe(pipe) = player.start(24_000).expect("started") else {
            panic!("it reads its input");
        };
        let id = pipe.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        assert_eq!(getpgid(id).ok(), id, "a group of its own");
    }

    #[tokio::test]
    async fn a_player_of_files_gets_a_whole_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let heard = folder.path().join("heard");
        fake(folder.path(), "afplay", &format!("/bin/cat \"$1\" > {}", heard.display()));
        play(folder.path()).await.expect("played");
        let wav = fs_err::read(&heard).expect("a file");
        assert_eq!((&wav[..4], wav.len()), (&b"RIFF"[..], 44 + 6));
    }

    #[tokio::test]
    async fn a_player_that_fails_and_none_at_all_are_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = play(folder.path()).await.expect_err("none");
        assert_eq!(none.exit, Exit::Engine);
        assert!(none.hint.unwrap_or_default().contains("-o hello.wav"));
        fake(folder.path(), "play", "exit 3");
        let failed = play(folder.path()).await.expect_err("failed");
        assert_eq!(failed.sentence, "play stopped playing (exit status: 3)");
    }
}
