//! Writes the ledger on its own thread behind a bounded queue, so that no request waits for the
//! disk. Rows that find the queue full are counted and dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use super::rows::RequestRecord;
use super::store::{LedgerError, Store, tokens_since};

/// Rows that wait to be written.
const QUEUE_MAX: usize = 4096;

/// Rows in one transaction.
const BATCH_MAX: usize = 1024;

/// Interval between deletions of old rows, while rows are written.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// A ledger that is open for writing. Dropping it writes the rows that still wait.
#[derive(Debug)]
pub struct Ledger {
    /// `None` during drop, and if the file cannot be used.
    entries: Option<SyncSender<RequestRecord>>,
    lost: Arc<AtomicU64>,
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Ledger {
    /// Opens or creates the file, and keeps rows for this long.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn open(path: &Path, keep: Duration) -> Result<Ledger, LedgerError> {
        let store = Store::open(path)?;
        let (entries, to_write) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let opened = Opened::now(store.newest().unwrap_or_default());
        let writing = Writing { store, keep, opened, lost: Arc::clone(&lost) };
        let thread = thread::Builder::new().name("ledger".to_owned());
        let thread = thread.spawn(move || writing.run(&to_write)).map_err(LedgerError::Thread)?;
        Ok(Ledger { entries: Some(entries), lost, path: path.to_path_buf(), thread: Some(thread) })
    }

    /// A ledger whose file cannot be used. All its rows are lost.
    pub fn unusable(path: &Path) -> Ledger {
        Ledger { entries: None, lost: Arc::default(), path: path.to_path_buf(), thread: None }
    }

    /// Never waits.
    pub fn write(&self, entry: RequestRecord) {
        let is_kept = self.entries.as_ref().is_some_and(|entries| entries.try_send(entry).is_ok());
        if !is_kept {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tokens of answers that ended since then, by key name, as far as they are written.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn tokens_since(&self, unix_ms: u64) -> Result<BTreeMap<String, u64>, LedgerError> {
        tokens_since(&self.path, unix_ms)
    }

    /// Rows that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        drop(self.entries.take());
        if let Some(thread) = self.thread.take() {
            // The panic was reported on that thread.
            let _panicked = thread.join();
        }
    }
}

/// How long to wait for more rows before a batch is written.
const GATHER: Duration = Duration::from_millis(20);

/// If the last row is older than this when hob starts, the clock may be wrong, and rows are not deleted for their
/// age.
const OFF_TIME_MAX: Duration = Duration::from_secs(86_400);

/// The wall clock when the ledger was opened. From then on elapsed time is used, because setting the clock to
/// another year would make every row look old.
struct Opened {
    at: Instant,
    unix: Duration,
}

impl Opened {
    /// `newest` is the time of the last row; `None` if there is no row.
    fn now(newest: Option<Duration>) -> Opened {
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Opened { at: Instant::now(), unix: believed(clock, newest) }
    }
}

/// A computer with a wrong clock may start in any year. For deletion by age, at most a day has passed since the last
/// row. Older rows are deleted at the next start.
fn believed(clock: Duration, newest: Option<Duration>) -> Duration {
    newest.map_or(clock, |newest| clock.min(newest + OFF_TIME_MAX))
}

struct Writing {
    store: Store,
    keep: Duration,
    opened: Opened,
    lost: Arc<AtomicU64>,
}

impl Writing {
    /// Runs until no sender is left.
    fn run(mut self, to_write: &Receiver<RequestRecord>) {
        self.prune();
        let mut pruned = Instant::now();
        let mut batch = Vec::new();
        while let Ok(entry) = to_write.recv() {
            batch.push(entry);
            // A transaction for each row would cost more than the request itself.
            thread::sleep(GATHER);
            batch.extend(to_write.try_iter().take(BATCH_MAX - 1));
            if let Err(error) = self.store.write(&batch) {
                self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                tracing::warn!(%error, rows = batch.len(), "the ledger cannot be written");
            }
            batch.clear();
            if pruned.elapsed() >= PRUNE_EVERY {
                self.prune();
                pruned = Instant::now();
            }
        }
    }

    fn prune(&self) {
        let now = self.opened.unix + self.opened.at.elapsed();
        let before = now.saturating_sub(self.keep);
        if let Err(error) = self.store.prune(before.as_millis() as u64) {
            tracing::warn!(%error, "old rows of the ledger cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Period, read};
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn now_ms() -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        now.as_millis() as u64
    }

    fn entry(started_unix_ms: u64) -> RequestRecord {
        RequestRecord {
            started_unix_ms,
            route: "chat".to_owned(),
            alias: "fast".to_owned(),
            target: "smol".to_owned(),
            key: Some("laptop".to_owned()),
            is_streamed: true,
            is_warm: true,
            load_ms: None,
            queue_ms: Some(0.5),
            first_ms: Some(150.25),
            total_ms: 1150.5,
            predicted_ms: Some(1000.0),
            prompt_tokens: 45,
            cached_tokens: 3,
            completion_tokens: 101,
            reasoning_tokens: 7,
            audio_ms: 0.0,
            outcome: Outcome::Complete,
            error: None,
            attempts: Some("gpu/q=overloaded 12 ms".to_owned()),
            overhead_ms: Some(0.25),
            thought_anyway: true,
            counted_here: true,
            turn_stages: Some("endpoint 250.0".to_owned()),
        }
    }

    #[test]
    fn rows_are_read_latest_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/ledger.sqlite3");
        assert_eq!(read(&path, Period::default()).expect("no ledger is an empty one"), []);
        let now = now_ms();
        let failed = RequestRecord {
            outcome: Outcome::Failed,
            error: Some("worker_lost".to_owned()),
            first_ms: None,
            ..entry(now + 1)
        };
        let ledger = Ledger::open(&path, DAY).expect("a ledger");
        ledger.write(entry(now));
        ledger.write(failed.clone());
        drop(ledger);
        let all = read(&path, Period::default()).expect("rows");
        assert_eq!(all, [failed.clone(), entry(now)]);
        assert_eq!(all[1].tokens_per_s(), Some(100.0));
        let latest = Period { rows_max: Some(1), ..Period::default() };
        assert_eq!(read(&path, latest).expect("rows"), all[..1]);
        let since = Period { since_unix_ms: Some(now + 1), ..Period::default() };
        assert_eq!(read(&path, since).expect("rows"), [failed]);
    }

    #[test]
    fn old_rows_are_forgotten_when_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        let now = now_ms();
        let ledger = Ledger::open(&path, DAY).expect("a ledger");
        ledger.write(entry(now - 2 * 86_400_000));
        ledger.write(entry(now));
        drop(ledger);
        assert_eq!(read(&path, Period::default()).expect("rows").len(), 2);
        drop(Ledger::open(&path, DAY).expect("the same"));
        assert_eq!(read(&path, Period::default()).expect("rows"), [entry(now)]);
    }

    #[test]
    fn a_clock_that_jumps_ahead_loses_no_rows() {
        let year = 365 * DAY;
        let newest = 50 * year;
        for (clock, expected) in [
            (newest + DAY / 2, newest + DAY / 2),
            (newest + 10 * year, newest + DAY),
            (newest - year, newest - year),
        ] {
            assert_eq!(believed(clock, Some(newest)), expected);
        }
        assert_eq!(believed(newest, None), newest);

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        let ledger = Ledger::open(&path, DAY).expect("a ledger");
        let long_ago = now_ms() - 10 * 365 * 86_400_000;
        ledger.write(entry(long_ago));
        drop(ledger);
        drop(Ledger::open(&path, 2 * DAY).expect("ten years later, says the clock"));
        assert_eq!(read(&path, Period::default()).expect("rows"), [entry(long_ago)]);
    }

    #[test]
    fn it_is_read_and_opened_again_while_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        let ledgers = [1, 2].map(|_| Ledger::open(&path, DAY).expect("a ledger"));
        for row in 0..200 {
            ledgers[row % 2].write(entry(now_ms()));
            read(&path, Period::default()).expect("readable at any moment");
        }
        let lost: u64 = ledgers.iter().map(Ledger::lost).sum();
        drop(ledgers);
        assert_eq!((read(&path, Period::default()).expect("rows").len(), lost), (200, 0));
    }

    #[test]
    fn a_file_that_is_no_ledger_is_left_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        std::fs::write(&path, "my diary, and nothing that a database would hold".repeat(9))
            .expect("written");
        let refused = Ledger::open(&path, DAY).expect_err("no database").to_string();
        assert!(refused.contains("not a database"), "{refused}");
        let newer = folder.path().join("newer.sqlite3");
        let connection = rusqlite::Connection::open(&newer).expect("a file");
        connection.pragma_update(None, "user_version", 99).expect("set");
        let refused = Ledger::open(&newer, DAY).expect_err("newer").to_string();
        assert!(
            refused.ends_with(
                "is of version 99, and this hob knows 4; use a newer hob, or move the file away"
            ),
            "{refused}"
        );
        assert!(read(&newer, Period::default()).is_err());
    }

    #[test]
    fn a_slow_disk_delays_no_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        let ledger = Ledger::open(&path, DAY).expect("a ledger");
        // Locks the file for longer than the writer waits in this test.
        let other = rusqlite::Connection::open(&path).expect("the file");
        other.execute_batch("BEGIN IMMEDIATE").expect("taken");
        let entries = QUEUE_MAX + BATCH_MAX + 100;
        (0..entries).for_each(|_| ledger.write(entry(now_ms())));
        let lost = ledger.lost();
        assert!((1..=entries as u64 - QUEUE_MAX as u64).contains(&lost), "{lost}");
        other.execute_batch("COMMIT").expect("given back");
        drop(ledger);
        let kept = read(&path, Period::default()).expect("rows").len() as u64;
        assert_eq!(kept + lost, entries as u64);
    }
}
