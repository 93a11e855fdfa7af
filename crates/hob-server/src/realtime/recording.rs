//! Writes a session to disk: both sides as WAV files, and its events as JSON lines.
//! A thread of its own writes behind a bounded queue, so that no session waits for the disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use hob_core::Sound;
use hob_speech::encode::{AudioFormat, Encoder, Length};

/// Pieces of sound and events that wait for the disk.
const QUEUE_MAX: usize = 256;
/// Sound of one side of a session, 256 MiB of 16 bits: more than an hour and a half at 24 kHz.
const SAMPLES_MAX: u64 = 128 << 20;
const EVENT_BYTES_MAX: usize = 64 << 20;
/// All recordings of a server. Beyond this, no session is recorded.
const ALL_BYTES_MAX: u64 = 8 << 30;

/// The recording of one session. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct SessionRecording {
    queue: SyncSender<Entry>,
    began: Instant,
    has_lost: bool,
}

#[derive(Debug)]
enum Entry {
    /// Sound of the client, 16 kHz.
    Heard(Vec<f32>),
    Spoken {
        samples: Vec<f32>,
        rate_hz: u32,
    },
    /// A line of JSON.
    Event(String),
}

/// Who sent an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum SentBy {
    Client,
    Server,
}

impl SessionRecording {
    /// Begins to write into a new folder of this name. `None`: the failure is logged, and the session goes on without a
    /// recording. Reads the sizes of all recordings, so it is called on a blocking thread.
    pub(super) fn begin(all: &Path, name: &str) -> Option<SessionRecording> {
        let (queue, entries) = sync_channel(QUEUE_MAX);
        let folder = all.join(name);
        let unrecorded = |error: &io::Error| {
            tracing::warn!(%error, folder = %folder.display(), "a session is not recorded");
        };
        let files = open(all, &folder).inspect_err(unrecorded).ok()?;
        let writing = move || {
            if let Err(error) = write(files, &entries) {
                tracing::warn!(%error, "the rest of a session is not recorded");
            }
        };
        let started = thread::Builder::new().name("recording".to_owned()).spawn(writing);
        started.inspect_err(unrecorded).ok()?;
        Some(SessionRecording { queue, began: Instant::now(), has_lost: false })
    }

    pub(super) fn record_user(&mut self, samples: &[f32]) {
        self.put(Entry::Heard(samples.to_vec()));
    }

    pub(super) fn record_assistant(&mut self, samples: &[f32], rate_hz: u32) {
        self.put(Entry::Spoken { samples: samples.to_vec(), rate_hz });
    }

    /// An event as valid JSON, without sound.
    pub(super) fn event(&mut self, from: SentBy, json: &str) {
        let from = match from {
            SentBy::Client => "client",
            SentBy::Server => "server",
        };
        let ms = self.began.elapsed().as_millis();
        // A line break in JSON can only be white space.
        let json = json.replace(['\n', '\r'], " ");
        self.put(Entry::Event(format!("{{\"ms\":{ms},\"from\":\"{from}\",\"event\":{json}}}\n")));
    }

    /// Never waits.
    fn put(&mut self, entry: Entry) {
        if self.queue.try_send(entry).is_err() && !self.has_lost {
            self.has_lost = true;
            tracing::warn!("a recording of a session is incomplete");
        }
    }
}

/// The files of a new recording, if there is room for one.
fn open(all: &Path, folder: &Path) -> io::Result<SessionFiles> {
    let bytes = bytes_below(all)?;
    if bytes > ALL_BYTES_MAX {
        let gib = ALL_BYTES_MAX >> 30;
        let full = format!("{} has more than {gib} GiB: delete recordings", all.display());
        return Err(io::Error::other(full));
    }
    create_private(folder)?;
    SessionFiles::create(folder)
}

fn write(mut files: SessionFiles, entries: &Receiver<Entry>) -> io::Result<()> {
    for entry in entries {
        files.write(entry)?;
    }
    files.finish()
}

/// Bytes of the recordings in a folder that may not exist.
fn bytes_below(all: &Path) -> io::Result<u64> {
    if !all.exists() {
        return Ok(0);
    }
    let mut bytes = 0;
    for session in fs::read_dir(all)? {
        let session = session?;
        if !session.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(session.path())? {
            bytes += file?.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Creates a folder that only this user can read: it has what people said.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

struct SessionFiles {
    folder: PathBuf,
    events: BufWriter<File>,
    event_bytes: usize,
    heard: WavFile,
    /// Begins with the first answer, whose rate it has.
    spoken: Option<WavFile>,
}

impl SessionFiles {
    fn create(folder: &Path) -> io::Result<SessionFiles> {
        Ok(SessionFiles {
            folder: folder.to_path_buf(),
            events: BufWriter::new(File::create(folder.join("events.jsonl"))?),
            event_bytes: 0,
            heard: WavFile::create(&folder.join("heard.wav"), Sound::RATE_HZ)?,
            spoken: None,
        })
    }

    fn write(&mut self, entry: Entry) -> io::Result<()> {
        match entry {
            Entry::Heard(samples) => self.heard.write(&samples),
            Entry::Spoken { samples, rate_hz } => {
                let spoken = match &mut self.spoken {
                    Some(spoken) => spoken,
                    none => none.insert(WavFile::create(&self.folder.join("spoken.wav"), rate_hz)?),
                };
                // A file has one rate. Another speech model in the same session may have another one.
                if spoken.rate_hz == rate_hz { spoken.write(&samples) } else { Ok(()) }
            }
            Entry::Event(line) => {
                self.event_bytes += line.len();
                if self.event_bytes > EVENT_BYTES_MAX {
                    return Ok(());
                }
                self.events.write_all(line.as_bytes())
            }
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.events.flush()?;
        self.heard.finish()?;
        self.spoken.map_or(Ok(()), WavFile::finish)
    }
}

/// A WAV file. Its header has no length until it is finished.
struct WavFile {
    file: BufWriter<File>,
    encoder: Encoder,
    rate_hz: u32,
    samples: u64,
}

impl WavFile {
    fn create(path: &Path, rate_hz: u32) -> io::Result<WavFile> {
        let encoder = Encoder::new(AudioFormat::Wav, rate_hz, Length::Unknown);
        let mut encoder = encoder.map_err(io::Error::other)?;
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&encoder.encode(&[]).map_err(io::Error::other)?)?;
        Ok(WavFile { file, encoder, rate_hz, samples: 0 })
    }

    fn write(&mut self, samples: &[f32]) -> io::Result<()> {
        let room = usize::try_from(SAMPLES_MAX - self.samples).unwrap_or(usize::MAX);
        let samples = &samples[..samples.len().min(room)];
        self.samples += samples.len() as u64;
        self.file.write_all(&self.encoder.encode(samples).map_err(io::Error::other)?)
    }

    fn finish(mut self) -> io::Result<()> {
        let length = Length::Samples(self.samples);
        let exact = Encoder::new(AudioFormat::Wav, self.rate_hz, length);
        let header = exact.and_then(|mut exact| exact.encode(&[])).map_err(io::Error::other)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_has_both_sides_and_the_events() {
        let all = tempfile::tempdir().expect("a folder");
        let folder = all.path().join("sess_1");
        let (queue, entries) = sync_channel(QUEUE_MAX);
        let mut recording = SessionRecording { queue, began: Instant::now(), has_lost: false };
        recording.event(SentBy::Client, "{\"type\":\n\"response.create\"}");
        recording.record_user(&[0.0, 1.0]);
        recording.record_user(&[-2.0]);
        recording.record_assistant(&[0.5; 100], 24_000);
        recording.record_assistant(&[0.5; 100], 22_050);
        drop(recording);
        write(open(all.path(), &folder).expect("files"), &entries).expect("written");
        let read = |name: &str| fs::read(folder.join(name)).expect("a file");
        let events = String::from_utf8(read("events.jsonl")).expect("text");
        assert!(events.starts_with("{\"ms\":") && events.lines().count() == 1, "{events}");
        assert!(
            events.ends_with("\"from\":\"client\",\"event\":{\"type\": \"response.create\"}}\n")
        );
        let heard = read("heard.wav");
        let header = |file: &[u8]| {
            let number = |at: usize| {
                file[at..at + 4].iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte))
            };
            (number(24), number(40))
        };
        assert_eq!((header(&heard), heard.len()), ((16_000, 6), 50));
        assert_eq!(heard[44..], [0, 0, 0xFF, 0x7F, 0x00, 0x80]);
        let spoken = read("spoken.wav");
        assert_eq!((header(&spoken), spoken.len()), ((24_000, 200), 244));
        assert_eq!(bytes_below(all.path()).expect("readable"), (50 + 244 + events.len()) as u64);
    }

    #[test]
    fn a_session_does_not_wait_for_a_slow_disk() {
        let (queue, entries) = sync_channel(1);
        let mut recording = SessionRecording { queue, began: Instant::now(), has_lost: false };
        recording.record_user(&[0.0]);
        assert!(!recording.has_lost);
        recording.record_user(&[0.0]);
        assert!(recording.has_lost);
        drop(entries);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_recordings() {
        use std::os::unix::fs::PermissionsExt as _;
        let all = tempfile::tempdir().expect("a folder");
        let folder = all.path().join("recordings").join("sess_1");
        create_private(&folder).expect("created");
        for folder in [folder.as_path(), folder.parent().expect("a folder")] {
            let mode = fs::metadata(folder).expect("a folder").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }
}
