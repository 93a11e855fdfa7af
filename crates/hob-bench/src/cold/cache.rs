//! Drops a file from the kernel's page cache or reads it into it, and checks the result, because the kernel may ignore a request.
//! Linux only; other systems cannot report it.

use std::io;
use std::path::Path;

/// Number of positions in a file that are checked.
#[cfg(target_os = "linux")]
const PLACES: u64 = 256;
#[cfg(target_os = "linux")]
const PIECE_BYTES: usize = 1 << 20;

/// Asks the kernel to drop a file from memory, and returns the share that is still there; None if unknown.
///
/// # Errors
/// The file cannot be opened, or the kernel refuses.
#[cfg(target_os = "linux")]
pub(super) fn drop_from_memory(file: &Path) -> io::Result<Option<f64>> {
    use rustix::fs::{Advice, fadvise};
    let opened = fs_err::File::open(file)?;
    // New data cannot be dropped before it is on the disk.
    opened.sync_all()?;
    fadvise(&opened, 0, None, Advice::DontNeed)?;
    let resident = resident_share(&opened);
    // The check itself has read some pages.
    fadvise(&opened, 0, None, Advice::DontNeed)?;
    Ok(resident)
}

/// Reads a whole file, and returns the share that stayed in memory.
///
/// # Errors
/// The file cannot be read.
#[cfg(target_os = "linux")]
pub(super) fn read_into_memory(file: &Path) -> io::Result<Option<f64>> {
    use std::io::Read as _;
    let mut opened = fs_err::File::open(file)?;
    let mut piece = vec![0; PIECE_BYTES];
    while opened.read(&mut piece)? > 0 {}
    Ok(resident_share(&opened))
}

/// Checks by reads that must not wait. They find what is in memory. Since Linux 5.10 such a read also starts to fetch missing
/// pages, and a fast disk may deliver them in time; so bytes that this thread fetched do not count.
#[cfg(target_os = "linux")]
fn resident_share(file: &fs_err::File) -> Option<f64> {
    use rustix::fs::{Advice, fadvise};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let bytes = file.metadata().ok()?.len();
    // Otherwise a miss would make the kernel read ahead.
    fadvise(file, 0, None, Advice::Random).ok()?;
    let (places, mut found) = (PLACES.min(bytes), 0_u32);
    let mut fetched = fetched_bytes()?;
    for place in 0..places {
        let mut byte = [0; 1];
        let at = u128::from(bytes) * u128::from(place) / u128::from(places);
        let into = &mut [io::IoSliceMut::new(&mut byte)];
        let is_found = match preadv2(file, into, u64::try_from(at).ok()?, ReadWriteFlags::NOWAIT) {
            Ok(_) => true,
            Err(Errno::AGAIN) => false,
            // This file system does not support it.
            Err(_) => return None,
        };
        let before = std::mem::replace(&mut fetched, fetched_bytes()?);
        found += u32::from(is_found && fetched == before);
    }
    (places > 0).then(|| f64::from(found) / places as f64)
}

/// Bytes that this thread has read from disks; None if the kernel does not count them.
#[cfg(target_os = "linux")]
fn fetched_bytes() -> Option<u64> {
    let account = fs_err::read_to_string("/proc/thread-self/io").ok()?;
    account.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn drop_from_memory(_file: &Path) -> io::Result<Option<f64>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux can drop a file from memory"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_into_memory(file: &Path) -> io::Result<Option<f64>> {
    io::copy(&mut fs_err::File::open(file)?, &mut io::sink())?;
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Much more than the check itself reads.
    const BYTES: usize = 32 << 20;
    const ROUNDS: usize = 20;

    #[test]
    fn a_file_is_read_into_memory_and_dropped() {
        // In the source folder, because a temporary folder may be in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let file = folder.path().join("weights");
        std::fs::write(&file, vec![7; BYTES]).expect("a file");
        let mut rounds = Vec::new();
        // The kernel may keep pages that another process uses, or need the memory for others.
        let is_obeyed = (0..ROUNDS).any(|_| {
            let (there, gone) =
                (read_into_memory(&file).expect("read"), drop_from_memory(&file).expect("dropped"));
            let before = fetched_bytes();
            let again = read_into_memory(&file).expect("read again");
            let fetched = fetched_bytes().zip(before).map(|(after, before)| after - before);
            rounds.push((there, gone, again, fetched));
            match (there, gone, again, fetched) {
                // Dropped pages had to be fetched.
                (Some(there), Some(gone), Some(again), Some(fetched)) => {
                    there > 0.9 && gone < 0.1 && again > 0.9 && fetched > BYTES as u64 * 9 / 10
                }
                // An unsupported file system returns None every time.
                unknown => matches!(unknown, (None, None, None, _)),
            }
        });
        assert!(is_obeyed, "{rounds:?}");
        assert_eq!(std::fs::read(&file).expect("still a file"), vec![7; BYTES]);
        assert!(drop_from_memory(&folder.path().join("none")).is_err());
    }
}
