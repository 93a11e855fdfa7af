//! Stores measurements and calibrations of this machine as a profile in hob's home, and adds them to each new probe.
//! Results of another CPU or another engine are not used; a note says so.

use std::io::Write;
use std::path::{Path, PathBuf};

use hob_core::machine::{Basis, Gpu};

use crate::facts::{MachineFacts, Stamp};
use crate::profile::{self, MachineFile, ProfileError};

const FILE: &str = "machine.toml";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineStore {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum MachineStoreError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("cannot store the measurements: {0}")]
    Io(#[from] std::io::Error),
}

impl MachineStore {
    pub fn in_home(home: &Path) -> MachineStore {
        MachineStore { path: home.join(FILE) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the stored results to the probed machine. A file that cannot be read gives a note and stays unchanged,
    /// because it only affects the accuracy of predictions.
    pub fn merge_into(&self, known: &mut MachineFacts, engine_version: &str) {
        if self.path.is_file() {
            match profile::read(&self.path).and_then(|file| file.facts(&self.path_text())) {
                Ok(kept) => self.merge(known, &kept, engine_version),
                Err(error) => known.notes.push(error.to_string()),
            }
        }
        known.share_bandwidth();
    }

    fn merge(&self, known: &mut MachineFacts, kept: &MachineFacts, engine_version: &str) {
        let (own, theirs) = (&known.machine.cpu, &kept.machine.cpu);
        if (&own.name, own.cores) != (&theirs.name, theirs.cores) {
            let of = theirs.name.as_deref().unwrap_or("another processor");
            let note = format!(
                "{} describes {of} with {} cores, so it is not used",
                self.path_text(),
                theirs.cores
            );
            known.notes.push(note);
            return;
        }
        known.machine.cpu.device.bandwidth = theirs.device.bandwidth.clone();
        if let Some(constants) = &theirs.device.constants {
            match self.is_of(kept.cpu_stamp.as_ref(), engine_version) {
                Ok(()) => {
                    known.machine.cpu.device.constants = Some(constants.clone());
                    known.cpu_stamp = kept.cpu_stamp.clone();
                }
                Err(note) => known.notes.push(note),
            }
        }
        for (number, gpu) in kept.machine.gpus.iter().enumerate() {
            let stamp = kept.gpu_stamps.get(number).and_then(Option::as_ref);
            self.merge_card(known, gpu, stamp, engine_version);
        }
    }

    /// Adds the stored results of a card to the first card with the same name and driver.
    fn merge_card(
        &self,
        known: &mut MachineFacts,
        kept: &Gpu,
        stamp: Option<&Stamp>,
        engine: &str,
    ) {
        let is_same = |gpu: &Gpu| gpu.name == kept.name && gpu.driver == kept.driver;
        let Some(number) = known.machine.gpus.iter().position(is_same) else { return };
        let gpu = &mut known.machine.gpus[number];
        if kept.device.bandwidth.as_ref().is_some_and(|fact| fact.basis == Basis::Measured) {
            gpu.device.bandwidth = kept.device.bandwidth.clone();
        }
        match (&kept.device.constants, self.is_of(stamp, engine)) {
            (None, _) => (),
            (Some(constants), Ok(())) => {
                gpu.device.constants = Some(constants.clone());
                known.gpu_stamps[number] = stamp.cloned();
            }
            (Some(_), Err(note)) => known.notes.push(note),
        }
    }

    fn is_of(&self, stamp: Option<&Stamp>, engine_version: &str) -> Result<(), String> {
        let with = stamp.map_or("an unknown engine", |stamp| stamp.engine_version.as_str());
        if with == engine_version {
            return Ok(());
        }
        Err(format!(
            "{} was calibrated with {with}, and this hob has {engine_version}, so it is not used; run `hob fit calibrate` again",
            self.path_text()
        ))
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// The folder is not writable.
    pub fn keep(&self, known: &MachineFacts) -> Result<(), MachineStoreError> {
        let text = MachineFile::of(known).to_toml()?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs_err::create_dir_all(folder)?;
        let draft = folder.join(format!("{FILE}.{}", std::process::id()));
        let mut file = fs_err::File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(fs_err::rename(&draft, &self.path)?)
    }

    fn path_text(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::machine::{Constants, Fact, Kernel};

    const ENGINE: &str = "llama.cpp b2";

    fn constants() -> Constants {
        Constants {
            basis: Basis::Calibrated,
            bandwidth_efficiency: 0.6,
            kv_bandwidth_efficiency: 0.3,
            layer_us: 10.0,
            recurrent_us: 0.0,
            experts_us: 0.0,
            token_us: 0.0,
            prefill_flops: None,
            kernels: vec![Kernel { quant: "Q8_0", bytes_s: 9e9, flop_s: Some(30e9) }],
            steadiness: 0.9,
        }
    }

    fn here() -> MachineFacts {
        profile::builtin("rtx-4070-laptop").expect("a profile")
    }

    fn calibrated() -> MachineFacts {
        let mut known = here();
        let stamp = Stamp { engine_version: ENGINE.to_owned(), date: "2026-07-31".to_owned() };
        known.machine.cpu.device.bandwidth =
            Some(Fact { value: 77e9, basis: Basis::Measured, source: "a copy".to_owned() });
        known.machine.cpu.device.constants = Some(constants());
        known.machine.gpus[0].device.constants = Some(constants());
        known.cpu_stamp = Some(stamp.clone());
        known.gpu_stamps = vec![Some(stamp)];
        known
    }

    fn kept() -> (tempfile::TempDir, MachineStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = MachineStore::in_home(&folder.path().join("new"));
        kept.keep(&calibrated()).expect("kept");
        (folder, kept)
    }

    #[test]
    fn what_was_calibrated_here_is_used_again() {
        let (_folder, kept) = kept();
        let mut known = here();
        kept.merge_into(&mut known, ENGINE);
        assert_eq!(known.machine, calibrated().machine);
        assert_eq!((known.cpu_stamp, known.gpu_stamps), {
            let calibrated = calibrated();
            (calibrated.cpu_stamp, calibrated.gpu_stamps)
        });
        assert_eq!(known.notes, [""; 0]);
    }

    #[test]
    fn another_engine_keeps_the_memory_and_not_the_kernels() {
        let (_folder, kept) = kept();
        let mut known = here();
        kept.merge_into(&mut known, "llama.cpp b3");
        assert_eq!(known.machine.cpu.device.constants, None);
        assert_eq!(known.machine.cpu.device.bandwidth.map(|fact| fact.value), Some(77e9));
        assert!(
            known.notes[0].contains("b2") && known.notes[0].contains("b3"),
            "{:?}",
            known.notes
        );
    }

    #[test]
    fn another_processor_and_a_damaged_file_are_said() {
        let (_folder, kept) = kept();
        let mut other = profile::builtin("n100").expect("a profile");
        let before = other.machine.clone();
        kept.merge_into(&mut other, ENGINE);
        assert_eq!((&other.machine, other.notes.len()), (&before, 1));
        fs_err::write(kept.path(), "schema = ").expect("a file");
        let mut known = here();
        kept.merge_into(&mut known, ENGINE);
        assert_eq!((known.machine, known.notes.len()), (here().machine, 1));
        let mut fresh = here();
        MachineStore::in_home(Path::new("/nowhere")).merge_into(&mut fresh, ENGINE);
        assert_eq!(fresh.notes, [""; 0]);
    }
}
