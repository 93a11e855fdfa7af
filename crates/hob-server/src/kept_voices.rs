//! Blends of voices that are kept under a name: a file in the folder of models, read once.
//! All clients share them. A model's own voice of the same name comes first.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hob_core::voice_blend::speaker;
use hob_core::{Voice, locked};
use hob_wire::voice_among;

/// Maximum number of kept voices.
pub(crate) const KEPT_VOICES_MAX: usize = 100;

/// Names and their blends.
#[derive(Debug, Default)]
pub struct KeptVoices {
    /// `None`: they are gone when the server ends.
    path: Option<PathBuf>,
    blends: Mutex<BTreeMap<String, String>>,
    /// Held for each change, while the file is written. Requests that only read `blends` do not wait for the disk.
    changing: Mutex<()>,
}

/// Why a voice is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKept {
    #[error(
        "{KEPT_VOICES_MAX} voices are kept already; delete one with DELETE /v1/audio/voices/NAME"
    )]
    Full,
    #[error("the list of kept voices cannot be written: {0}")]
    Unwritten(#[from] io::Error),
}

impl KeptVoices {
    /// Reads the file, which has a voice in each line: `warm=af_heart(2)+af_bella(1)`. It may be missing.
    ///
    /// # Errors
    /// It cannot be read, or a line is damaged.
    pub fn open(path: &Path) -> io::Result<KeptVoices> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let damaged = |line: &str| {
            let reason =
                format!("'{line}' is not a voice; write it as warm=af_heart(2)+af_bella(1)");
            io::Error::new(io::ErrorKind::InvalidData, reason)
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let blends = lines.map(|line| {
            let (name, blend) = line.split_once('=').ok_or_else(|| damaged(line))?;
            Ok::<_, io::Error>((name.trim().to_owned(), blend.trim().to_owned()))
        });
        let blends = Mutex::new(blends.collect::<io::Result<_>>()?);
        Ok(KeptVoices { path: Some(path.to_owned()), blends, changing: Mutex::default() })
    }

    /// The kept voices that these voices can make.
    pub fn among(&self, voices: &[Voice]) -> Vec<Voice> {
        let kept = |(name, blend): (&String, &String)| {
            let first = speaker(voices, blend).ok()?;
            Some(Voice { id: name.clone(), name: name.clone(), ..first.clone() })
        };
        locked(&self.blends).iter().filter_map(kept).collect()
    }

    /// The blend of a kept voice. Any other name stays.
    pub fn resolve(&self, voices: &[Voice], name: String) -> String {
        if voice_among(voices, &name).is_some() {
            return name;
        }
        locked(&self.blends).get(&name).cloned().unwrap_or(name)
    }

    /// Keeps a blend, in the place of one with the same name.
    pub(crate) fn keep(&self, name: &str, blend: &str) -> Result<(), NotKept> {
        let _changing = locked(&self.changing);
        let mut changed = locked(&self.blends).clone();
        if changed.len() >= KEPT_VOICES_MAX && !changed.contains_key(name) {
            return Err(NotKept::Full);
        }
        changed.insert(name.to_owned(), blend.to_owned());
        self.write(&changed)?;
        *locked(&self.blends) = changed;
        Ok(())
    }

    /// False if no kept voice has this name.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        let _changing = locked(&self.changing);
        let mut changed = locked(&self.blends).clone();
        if changed.remove(name).is_none() {
            return Ok(false);
        }
        self.write(&changed)?;
        *locked(&self.blends) = changed;
        Ok(true)
    }

    /// The file is never half written, because it is renamed when it is complete and on the disk.
    fn write(&self, blends: &BTreeMap<String, String>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let lines: String =
            blends.iter().map(|(name, blend)| format!("{name}={blend}\n")).collect();
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The new file is a pipe, which takes no more than its buffer holds until it is read.
    #[test]
    fn a_voice_is_found_while_the_file_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept_voices.txt");
        fs::write(&path, "warm=af_heart\n").expect("written");
        let kept = Arc::new(KeptVoices::open(&path).expect("a file"));
        let pipe = path.with_extension("new");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let (writes, asks) = (Arc::clone(&kept), kept);
        let writer = thread::spawn(move || writes.keep("long", &"x".repeat(1 << 20)));
        // Opens when the writer has opened it.
        let mut pipe = fs::File::open(pipe).expect("a pipe");
        let (sender, found) = sync_channel(1);
        thread::spawn(move || sender.send(asks.resolve(&[], "warm".to_owned())));
        let found = found.recv_timeout(Duration::from_secs(10));
        assert_eq!(found.as_deref(), Ok("af_heart"));
        io::copy(&mut pipe, &mut io::sink()).expect("the rest");
        drop(writer.join().expect("no panic"));
    }

    #[test]
    fn kept_voices_are_there_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept_voices.txt");
        let kept = KeptVoices::open(&path).expect("no file yet");
        kept.keep("warm", "af_heart(2)+af_bella(1)").expect("kept");
        kept.keep("cold", "af_sky").expect("kept");
        kept.keep("warm", "af_heart").expect("replaced");
        assert!(kept.remove("cold").expect("written"));
        assert!(!kept.remove("cold").expect("nothing to write"));
        let again = KeptVoices::open(&path).expect("a file");
        assert_eq!(again.resolve(&[], "warm".to_owned()), "af_heart");
        assert_eq!(again.resolve(&[], "cold".to_owned()), "cold");
        let names = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 1, "no half-written file is left");
    }

    #[test]
    fn the_list_has_a_limit_and_damage_is_named() {
        let kept = KeptVoices::default();
        for at in 0..KEPT_VOICES_MAX {
            kept.keep(&format!("v{at}"), "af_sky").expect("room");
        }
        assert!(matches!(kept.keep("more", "af_sky"), Err(NotKept::Full)));
        assert!(kept.keep("v1", "af_heart").is_ok(), "a change needs no room");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept_voices.txt");
        fs::write(&path, "warm=af_heart\n\nnonsense\n").expect("written");
        let error = KeptVoices::open(&path).expect_err("damaged").to_string();
        assert!(error.contains("'nonsense' is not a voice"), "{error}");
    }
}
