//! Records from the microphone through an installed program. hob links no audio library, because sound input differs
//! between systems, and each system has a program for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};

use crate::failure::{CliResult, Failure};
use crate::programs;

/// Bytes of one piece: 50 ms of samples of 2 bytes at 16 kHz.
const PIECE_BYTES: usize = 1600;

/// A program that writes samples (16 bits, little-endian, mono, 16 kHz) to standard output, and its arguments, with spaces
/// between them.
#[derive(Debug)]
struct KnownRecorder {
    name: &'static str,
    args: &'static str,
}

/// In the order to try.
const KNOWN: [KnownRecorder; 6] = [
    KnownRecorder {
        name: "parecord",
        args: "--raw --rate=16000 --channels=1 --format=s16le --latency-msec=50",
    },
    KnownRecorder { name: "pw-record", args: "--raw --rate=16000 --channels=1 --format=s16 -" },
    KnownRecorder { name: "arecord", args: "-q -t raw -f S16_LE -c 1 -r 16000" },
    KnownRecorder { name: "rec", args: "-q -t raw -r 16000 -e signed -b 16 -c 1 -" },
    KnownRecorder {
        name: "ffmpeg",
        args: match cfg!(target_os = "macos") {
            true => {
                "-loglevel error -nostdin -f avfoundation -i :default -ac 1 -ar 16000 -f s16le pipe:1"
            }
            false => "-loglevel error -nostdin -f alsa -i default -ac 1 -ar 16000 -f s16le pipe:1",
        },
    },
    KnownRecorder {
        name: "gst-launch-1.0",
        args: "-q autoaudiosrc ! audioconvert ! audioresample \
               ! audio/x-raw,format=S16LE,rate=16000,channels=1 ! fdsink fd=1",
    },
];

/// A running program that records. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Recorder {
    name: &'static str,
    child: Child,
    output: ChildStdout,
}

impl Recorder {
    /// Starts the first of `KNOWN` that is installed.
    ///
    /// # Errors
    /// No program that records is installed, or it does not start.
    pub(crate) fn start(path: &OsStr) -> CliResult<Recorder> {
        let found = KNOWN
            .iter()
            .find_map(|known| Some((known, programs::find(Path::new(known.name), path)?)));
        let Some((known, program)) = found else {
            let names = KNOWN.map(|known| known.name).join(", ");
            let sentence = format!("no program that records sound is installed ({names})");
            return Err(Failure::engine(sentence)
                .hint("install one, or pipe a recording into `hob hear -`"));
        };
        Recorder::spawn(known, &program)
    }

    fn spawn(known: &'static KnownRecorder, program: &PathBuf) -> CliResult<Recorder> {
        let name = known.name;
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::engine(format!("cannot start {name}: {reason}"))
        };
        let mut child = Command::new(program)
            .args(known.args.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C in a terminal is for hob alone: in `hob talk` it stops an answer, and the microphone stays on.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&error))?;
        let output = child.stdout.take().ok_or_else(|| failed(&"it has no output"))?;
        Ok(Recorder { name, child, output })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The samples as they arrive. Ends when the program ends, or with `stop`, which also ends the program.
    pub(crate) fn samples(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> BoxStream<'static, Vec<f32>> {
        let Recorder { child, output, .. } = self;
        let begun = (output, Vec::new(), child, Box::pin(stop));
        stream::unfold(begun, async |(mut output, mut half, child, mut stop)| {
            let mut bytes = vec![0; PIECE_BYTES];
            let read = tokio::select! {
                () = &mut stop => return None,
                read = output.read(&mut bytes) => read.ok().filter(|read| *read > 0)?,
            };
            half.extend_from_slice(&bytes[..read]);
            let (pairs, rest) = half.as_chunks::<2>();
            let samples: Vec<f32> = samples_of(pairs).collect();
            let rest = rest.to_vec();
            Some((samples, (output, rest, child, stop)))
        })
        .boxed()
    }
}

/// Samples of 16 bits, little-endian, as numbers from −1 to 1.
pub(crate) fn samples_of(pairs: &[[u8; 2]]) -> impl Iterator<Item = f32> {
    pairs.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32768.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Pid, WaitId, WaitIdOptions, getpgid, waitid};
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    use super::*;
    use crate::executable::write_executable;

    #[tokio::test]
    async fn samples_of_a_program_arrive_until_it_ends() {
        static KNOWN_SCRIPT: KnownRecorder = KnownRecorder { name: "script", args: "-r 16000" };
        const SCRIPT: &str = r#"#!/bin/sh
[ "$#: $*" = "2: -r 16000" ] || exit 1
printf '\000\100\000'; printf '\300'
"#;
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("script");
        write_executable(&program, SCRIPT);
        let recorder = Recorder::spawn(&KNOWN_SCRIPT, &program).expect("a shell");
        let samples: Vec<Vec<f32>> = recorder.samples(std::future::pending()).collect().await;
        assert_eq!(samples.concat(), [0.5, -0.5]);
    }

    #[tokio::test]
    async fn ctrl_c_does_not_reach_the_recorder_and_hob_ends_it() {
        static SLEEPER: KnownRecorder = KnownRecorder { name: "sleeper", args: "" };
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("sleeper");
        write_executable(&program, "#!/bin/sh\nexec /bin/sleep 1000\n");
        let recorder = Recorder::spawn(&SLEEPER, &program).expect("a shell");
        let id = recorder.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        assert_eq!(getpgid(id).ok(), id, "a group of its own");
        let mut samples = recorder.samples(std::future::ready(()));
        assert_eq!(samples.next().await, None);
        let id = WaitId::Pid(id.expect("an id"));
        let ended =
            spawn_blocking(move || waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let ended = timeout(Duration::from_secs(60), ended).await;
        assert!(ended.is_ok(), "the microphone is off before the last samples are read");
    }

    #[test]
    fn a_machine_without_recorders_gets_their_names() {
        let failure = Recorder::start(OsStr::new("/nowhere")).expect_err("no program");
        assert!(failure.sentence.contains("parecord, pw-record, arecord"), "{failure}");
    }
}
