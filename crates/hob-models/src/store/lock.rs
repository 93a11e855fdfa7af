//! Allows one change of a model at a time, across processes, with an advisory file lock.
//! The system releases the lock when the process ends, so it cannot stay behind.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use super::{Store, StoreError};
use crate::DiskError;
use crate::disk::make_folder;
use crate::progress::Watch;

/// Interval at which a waiting pull checks the lock and its cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone is not enough: a child process that is just starting may have the file open too.
        // An error does no harm, because the file is closed next.
        let _unlocked = self.file.unlock();
    }
}

impl Lock {
    /// Waits without a limit: the holder makes progress or fails.
    pub(crate) fn hold(
        store: &Store,
        name: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Lock, StoreError> {
        let mut told = false;
        loop {
            match Lock::try_hold(store, name) {
                Err(StoreError::InUse { .. }) => {}
                settled => return settled,
            }
            if !told {
                watch.waiting();
                told = true;
            }
            watch.check()?;
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) fn try_hold(store: &Store, name: &str) -> Result<Lock, StoreError> {
        make_folder(&store.locks())?;
        let path = store.lock(name);
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { name: name.to_owned() }),
            Err(TryLockError::Error(error)) => Err(DiskError::new(&path, &error).into()),
        }
    }
}

fn open(path: &Path) -> Result<File, DiskError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).open(path).map_err(DiskError::at(path))
}
