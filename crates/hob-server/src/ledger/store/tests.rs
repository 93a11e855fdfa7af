//! Old files: hob reads, upgrades and writes what its first version wrote.
//! The old table is copied here, so that it cannot change by accident.

use std::thread;

use super::super::Ledger;
use super::*;

const DAY: Duration = Duration::from_secs(86_400);

/// A file of the first version, with one row.
const FIRST: &str = "
    CREATE TABLE requests (
        id INTEGER PRIMARY KEY,
        started_unix_ms INTEGER NOT NULL,
        route TEXT NOT NULL,
        alias TEXT NOT NULL,
        target TEXT NOT NULL,
        is_streamed INTEGER NOT NULL,
        is_warm INTEGER NOT NULL,
        load_ms REAL,
        queue_ms REAL,
        first_ms REAL,
        total_ms REAL NOT NULL,
        predicted_ms REAL,
        prompt_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        audio_ms REAL NOT NULL,
        outcome TEXT NOT NULL,
        error TEXT
    ) STRICT;
    CREATE INDEX requests_by_time ON requests (started_unix_ms);
    INSERT INTO requests VALUES (1, 1000, 'chat', 'fast', 'smol', 1, 1, NULL, 0.5, 150.0, 1150.0,
        1000.0, 45, 3, 101, 7, 0.0, 'complete', NULL);
    PRAGMA user_version = 1;";

fn first_row() -> RequestRecord {
    RequestRecord {
        started_unix_ms: 1000,
        route: "chat".to_owned(),
        alias: "fast".to_owned(),
        target: "smol".to_owned(),
        key: None,
        is_streamed: true,
        is_warm: true,
        load_ms: None,
        queue_ms: Some(0.5),
        first_ms: Some(150.0),
        total_ms: 1150.0,
        predicted_ms: Some(1000.0),
        prompt_tokens: 45,
        cached_tokens: 3,
        completion_tokens: 101,
        reasoning_tokens: 7,
        audio_ms: 0.0,
        outcome: Outcome::Complete,
        error: None,
        ..RequestRecord::default()
    }
}

fn first_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.sqlite3");
    let connection = Connection::open(&path).expect("a file");
    connection.pragma_update(None, "journal_mode", "WAL").expect("set, as it always was");
    connection.execute_batch(FIRST).expect("made");
    (folder, path)
}

fn version_of(path: &Path) -> u32 {
    version(&Connection::open(path).expect("a file")).expect("a version")
}

#[test]
fn an_old_file_is_read_as_it_is_and_written_once_it_is_up_to_date() {
    let (_folder, path) = first_file();
    assert_eq!(read(&path, Period::default()).expect("rows"), [first_row()]);
    assert_eq!(tokens_since(&path, 0).expect("sums"), BTreeMap::new());
    assert_eq!(version_of(&path), 1, "reading changes nothing");

    let mut store = Store::open(&path).expect("brought up to date");
    let second =
        RequestRecord { started_unix_ms: 2000, key: Some("laptop".to_owned()), ..first_row() };
    store.write(std::slice::from_ref(&second)).expect("written");
    assert_eq!(read(&path, Period::default()).expect("rows"), [second, first_row()]);
    assert_eq!(version_of(&path), VERSION);
}

#[test]
fn programs_that_come_at_once_do_not_trip_over_each_other() {
    let (_folder, path) = first_file();
    thread::scope(|scope| {
        let openers = [(); 4].map(|()| scope.spawn(|| Ledger::open(&path, 100_000 * DAY)));
        for opener in openers {
            opener.join().expect("no panic").expect("a ledger");
        }
    });
    assert_eq!(read(&path, Period::default()).expect("rows"), [first_row()]);
}

#[test]
fn programs_that_make_it_at_once_do_not_trip_over_each_other() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.sqlite3");
        thread::scope(|scope| {
            let openers = [(); 8].map(|()| scope.spawn(|| Store::open(&path).map(drop)));
            for opener in openers {
                opener.join().expect("no panic").expect("a ledger");
            }
        });
        assert_eq!(version_of(&path), VERSION);
    }
}

#[test]
fn tokens_belong_to_the_day_on_which_their_answer_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.sqlite3");
    let mut store = Store::open(&path).expect("made");
    let midnight = 20_000 * 86_400_000;
    let row = |key: Option<&str>, started_unix_ms, total_ms, tokens| RequestRecord {
        key: key.map(str::to_owned),
        started_unix_ms,
        total_ms,
        prompt_tokens: tokens,
        completion_tokens: 1,
        ..RequestRecord::default()
    };
    let rows = [
        row(Some("laptop"), midnight - 5000, 4999.0, 1000),
        row(Some("laptop"), midnight - 5000, 5000.0, 200),
        row(Some("laptop"), midnight, 1.0, 30),
        row(Some("phone"), midnight + 1, 1.0, u32::MAX),
        row(Some("phone"), midnight + 2, 1.0, u32::MAX),
        row(Some("old"), midnight - 9000, 1.0, 5),
        row(None, midnight, 1.0, 7),
        row(Some("phone"), midnight + 2 * 86_400_000, 1.0, 4000),
    ];
    store.write(&rows).expect("written");
    let expected = [("laptop", 232), ("phone", 2 * (u64::from(u32::MAX) + 1))];
    let expected = expected.map(|(key, tokens)| (key.to_owned(), tokens));
    assert_eq!(tokens_since(&path, midnight).expect("sums"), BTreeMap::from(expected));
}
