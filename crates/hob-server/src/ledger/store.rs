//! The ledger's file: SQLite with one table and a version. Files of older versions are upgraded.
//! Other programs may read and write the file while a server writes it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, TransactionBehavior, params};

use super::rows::{Outcome, Period, RequestRecord};

/// Version of the table. A file with a later version is left unchanged.
const VERSION: u32 = STEPS.len() as u32;

/// The first version with the key of a request.
const VERSION_WITH_KEY: u32 = 2;

/// The upgrade from each version to the next. Released steps never change, because files with those versions exist.
const STEPS: [&str; 4] = [
    TABLE,
    "ALTER TABLE requests ADD COLUMN key TEXT;",
    ATTEMPTS,
    "ALTER TABLE requests ADD COLUMN turn_stages TEXT;",
];

/// How long to wait while another program locks the file.
const BUSY_TIME_MAX: Duration = Duration::from_secs(5);
const BUSY_NAP: Duration = Duration::from_millis(5);

/// A row takes about 200 bytes.
const ROWS_MAX: u32 = 1_000_000;

/// Adds columns for the other targets that were tried, and for their results.
const ATTEMPTS: &str = "
    ALTER TABLE requests ADD COLUMN attempts TEXT;
    ALTER TABLE requests ADD COLUMN overhead_ms REAL;
    ALTER TABLE requests ADD COLUMN thought_anyway INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE requests ADD COLUMN counted_here INTEGER NOT NULL DEFAULT 0;";

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS requests (
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
    CREATE INDEX IF NOT EXISTS requests_by_time ON requests (started_unix_ms);";

/// Writes and reads a row. Each column has the name of its field. A file of an older version lacks the `later` ones.
macro_rules! columns {
    ($($column:ident)+; later: $($later:ident)+) => {
        const INSERT: &str = concat!(
            "INSERT INTO requests (started_unix_ms, outcome",
            $(", ", stringify!($column),)+
            $(", ", stringify!($later),)+
            ") VALUES (:started_unix_ms, :outcome",
            $(", :", stringify!($column),)+
            $(", :", stringify!($later),)+
            ")"
        );

        fn insert_one(
            insert: &mut rusqlite::Statement<'_>,
            entry: &RequestRecord,
        ) -> rusqlite::Result<usize> {
            insert.execute(params![
                to_sql(entry.started_unix_ms),
                entry.outcome.name(),
                $(entry.$column,)+
                $(entry.$later,)+
            ])
        }

        fn entry(row: &Row<'_>) -> rusqlite::Result<RequestRecord> {
            let outcome: String = row.get("outcome")?;
            let outcome = Outcome::ALL.into_iter().find(|known| known.name() == outcome);
            Ok(RequestRecord {
                started_unix_ms: u64::try_from(row.get::<_, i64>("started_unix_ms")?).unwrap_or(0),
                outcome: outcome.unwrap_or_default(),
                $($column: row.get(stringify!($column))?,)+
                $($later: since(row, stringify!($later))?,)+
            })
        }
    };
}

columns! {
    route alias target is_streamed is_warm load_ms queue_ms first_ms total_ms predicted_ms
    prompt_tokens cached_tokens completion_tokens reasoning_tokens audio_ms error;
    later: key attempts overhead_ms thought_anyway counted_here turn_stages
}

/// All columns that the file has: reading does not upgrade a file.
const SELECT: &str = "
    SELECT * FROM requests
    WHERE started_unix_ms >= ?1 ORDER BY started_unix_ms DESC, id DESC LIMIT ?2";

/// Selects answers that ended since a time. No answer takes a day, so rows that began earlier than a day
/// before are skipped; the index is by start. Rows from two days later on were written while the clock was wrong. They
/// would count on each day until theirs.
const TOKENS: &str = "
    SELECT key, sum(prompt_tokens + completion_tokens) AS tokens FROM requests
    WHERE key IS NOT NULL AND started_unix_ms >= ?1 - 86400000 AND started_unix_ms + total_ms >= ?1
        AND started_unix_ms < ?1 + 2 * 86400000
    GROUP BY key";

/// Why the ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the ledger's folder {path} cannot be made: {error}", path = .path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("the ledger {path} is of version {found}, and this hob knows {VERSION}; use a newer hob, or move the file away", path = .path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("the ledger {path} cannot be used: {error}", path = .path.display())]
    Sqlite { path: PathBuf, error: rusqlite::Error },
    #[error("the ledger's thread does not start: {0}")]
    Thread(io::Error),
}

/// A ledger that is open for writing.
#[derive(Debug)]
pub(super) struct Store(Connection);

impl Store {
    /// Creates the file if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Store, LedgerError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| LedgerError::Folder { path: folder.to_path_buf(), error })?;
        }
        let failed = |error| LedgerError::Sqlite { path: path.to_path_buf(), error };
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY_TIME_MAX).map_err(failed)?;
        // If the process is killed, committed rows are kept. A power failure may lose the last rows.
        journal(&connection).map_err(failed)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        match bring_up_to_date(&mut connection).map_err(failed)? {
            ..=VERSION => Ok(Store(connection)),
            found => Err(LedgerError::Version { path: path.to_path_buf(), found }),
        }
    }

    /// Writes all of them, or none.
    pub(super) fn write(&mut self, entries: &[RequestRecord]) -> rusqlite::Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for entry in entries {
                insert_one(&mut insert, entry)?;
            }
        }
        transaction.commit()
    }

    /// Time since 1970; `None` if there is no row.
    pub(super) fn newest(&self) -> rusqlite::Result<Option<Duration>> {
        let newest = "SELECT max(started_unix_ms) FROM requests";
        let newest: Option<i64> = self.0.query_row(newest, [], |row| row.get(0))?;
        Ok(newest.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis))
    }

    /// Deletes older rows, and the oldest beyond a million.
    pub(super) fn prune(&self, before_unix_ms: u64) -> rusqlite::Result<()> {
        self.0.execute(
            "DELETE FROM requests WHERE started_unix_ms < ?1",
            params![to_sql(before_unix_ms)],
        )?;
        self.0.execute(
            "DELETE FROM requests WHERE id <= (SELECT max(id) FROM requests) - ?1",
            params![ROWS_MAX],
        )?;
        Ok(())
    }
}

/// The rows of a period, latest first. No rows if there is no ledger yet.
///
/// # Errors
/// [`LedgerError`]: the file is not a ledger, or has a later version.
pub fn read(path: &Path, period: Period) -> Result<Vec<RequestRecord>, LedgerError> {
    match open_to_read(path)? {
        // The file was created a moment ago and is empty.
        None | Some((_, 0)) => Ok(Vec::new()),
        Some((connection, _)) => select(&connection, period)
            .map_err(|error| LedgerError::Sqlite { path: path.to_path_buf(), error }),
    }
}

/// Tokens of answers that ended since then, by key name.
pub(super) fn tokens_since(
    path: &Path,
    unix_ms: u64,
) -> Result<BTreeMap<String, u64>, LedgerError> {
    match open_to_read(path)? {
        None | Some((_, ..VERSION_WITH_KEY)) => Ok(BTreeMap::new()),
        Some((connection, _)) => sum_tokens(&connection, unix_ms)
            .map_err(|error| LedgerError::Sqlite { path: path.to_path_buf(), error }),
    }
}

/// Opens a file of a known version; `None` if there is no file.
fn open_to_read(path: &Path) -> Result<Option<(Connection, u32)>, LedgerError> {
    if !path.exists() {
        return Ok(None);
    }
    let failed = |error| LedgerError::Sqlite { path: path.to_path_buf(), error };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIME_MAX).map_err(failed)?;
    match version(&connection).map_err(failed)? {
        found @ ..=VERSION => Ok(Some((connection, found))),
        found => Err(LedgerError::Version { path: path.to_path_buf(), found }),
    }
}

fn select(connection: &Connection, period: Period) -> rusqlite::Result<Vec<RequestRecord>> {
    let since = to_sql(period.since_unix_ms.unwrap_or(0));
    // For SQLite, a negative limit means no limit.
    let limit = period.rows_max.map_or(-1, i64::from);
    connection.prepare(SELECT)?.query_map(params![since, limit], entry)?.collect()
}

fn sum_tokens(connection: &Connection, unix_ms: u64) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut query = connection.prepare(TOKENS)?;
    let sums = query.query_map(params![to_sql(unix_ms)], |row| {
        Ok((row.get("key")?, u64::try_from(row.get::<_, i64>("tokens")?).unwrap_or(0)))
    })?;
    sums.collect()
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// If two programs change the journal mode of a new file at the same time, SQLite rejects one of them without waiting.
fn journal(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY_TIME_MAX;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < until =>
            {
                thread::sleep(BUSY_NAP);
            }
            done => return done,
        }
    }
}

/// Applies all missing steps and returns the file's version. If two programs do this at the same time,
/// the second waits, and finds the steps applied.
fn bring_up_to_date(connection: &mut Connection) -> rusqlite::Result<u32> {
    let found = version(connection)?;
    if found >= VERSION {
        return Ok(found);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken = version(&transaction)? as usize;
    for step in STEPS.iter().skip(taken) {
        transaction.execute_batch(step)?;
    }
    let reached = VERSION.max(taken as u32);
    transaction.pragma_update(None, "user_version", reached)?;
    transaction.commit()?;
    Ok(reached)
}

/// Nothing in a file from before the column existed.
fn since<T: FromSql + Default>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    match row.get(column) {
        Err(rusqlite::Error::InvalidColumnName(_)) => Ok(T::default()),
        value => value,
    }
}

/// SQLite's integers are signed.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
