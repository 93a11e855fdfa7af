//! The benchmark page, made from a folder of records and from the ledger.
//! Built on request, and again when it is too old; never on a thread that answers requests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_bench::record::{RecordError, RecordStore};
use hob_bench::site::{self, GAP_NEEDS, Material, Production, PublishedRuns, ServedModelFigures};
use hob_core::locked;
use hob_server::BenchmarkFiles;
use hob_server::ledger::{GroupBy, Outcome, Period, RequestRecord, read, summarise};
use jiff::Timestamp;

use crate::app::App;

/// Default folder of records, relative to the working folder.
pub(crate) const RECORDS: &str = "bench/records";
/// Older requests say nothing about today.
const LEDGER_DAYS: u64 = 30;
const MS_PER_DAY: u64 = 24 * 3600 * 1000;
/// Maximum age of a page. A thousand records take a second to build.
const KEPT: Duration = Duration::from_secs(30);

/// The files below `/benchmarks`.
#[derive(Debug)]
pub(crate) struct BenchmarkPages {
    records: RecordsFolder,
    ledger: PathBuf,
    /// Whether the page shows how long requests waited. Not once a key is required, because pages need none.
    shows_ledger: AtomicBool,
    built: Mutex<Option<Built>>,
}

/// The folder of records. Plans are in the folder `plans` next to it.
#[derive(Debug)]
pub(crate) struct RecordsFolder {
    path: PathBuf,
    /// What the page calls it.
    name: &'static str,
}

impl RecordsFolder {
    /// The folder of the settings, else that of the working folder if it exists, else that of the home of hob: a system
    /// service has no working folder of the user.
    pub(crate) fn of(app: &App<'_>) -> RecordsFolder {
        let (working, home) = (&app.environment.folders.working, &app.settings.home);
        let (path, name) = match &app.settings.server.records {
            Some(folder) => (folder.clone(), "the folder that its settings name"),
            None if working.join(RECORDS).is_dir() => {
                (working.join(RECORDS), "bench/records in its working folder")
            }
            None => (home.join(RECORDS), "bench/records in its folder of models"),
        };
        tracing::info!(folder = %path.display(), "/benchmarks shows {name}");
        RecordsFolder { path, name }
    }
}

#[derive(Debug)]
struct Built {
    at: Instant,
    files: HashMap<String, bytes::Bytes>,
}

impl BenchmarkPages {
    pub(crate) fn new(records: RecordsFolder, ledger: PathBuf) -> BenchmarkPages {
        let (shows_ledger, built) = (AtomicBool::new(true), Mutex::default());
        BenchmarkPages { records, ledger, shows_ledger, built }
    }

    /// From now on the pages leave out requests.
    pub(crate) fn hide_ledger(&self) {
        self.shows_ledger.store(false, Ordering::Release);
        *locked(&self.built) = None;
    }

    fn material(&self) -> Result<Material, RecordError> {
        let ledger = self.shows_ledger.load(Ordering::Acquire).then_some(self.ledger.as_path());
        material(&self.records.path, ledger, PublishedRuns::Shown)
    }

    fn build(&self) -> Result<Built, RecordError> {
        let mut material = self.material()?;
        material.queue(&self.records.path.with_file_name("plans"));
        material.folder = Some(self.records.name);
        let files =
            site::build(&material).into_iter().map(|file| (file.path, file.bytes.into())).collect();
        Ok(Built { at: Instant::now(), files })
    }
}

impl BenchmarkFiles for BenchmarkPages {
    fn file(&self, path: &str) -> Option<bytes::Bytes> {
        // A panic during a build leaves no partial page behind.
        let mut built = locked(&self.built);
        if built.as_ref().is_none_or(|built| built.at.elapsed() > KEPT) {
            match self.build() {
                Ok(new) => *built = Some(new),
                Err(error) => tracing::warn!(%error, "cannot build the page of benchmarks"),
            }
        }
        built.as_ref()?.files.get(path).cloned()
    }
}

/// The data of a page, without plans.
///
/// # Errors
/// The folder of records cannot be listed. If the ledger cannot be read, the page says so.
pub(crate) fn material(
    records: &Path,
    ledger: Option<&Path>,
    published: PublishedRuns,
) -> Result<Material, RecordError> {
    let mut material = Material::gather(&RecordStore::new(records), published)?;
    let now = Timestamp::now();
    material.built = Some(now);
    if let Some(file) = ledger.filter(|file| file.exists()) {
        let now_ms = u64::try_from(now.as_millisecond()).unwrap_or_default();
        let since = now_ms.saturating_sub(LEDGER_DAYS * MS_PER_DAY);
        match read(file, Period { since_unix_ms: Some(since), rows_max: None }) {
            Ok(entries) => material.production = production(entries),
            Err(error) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                material.skipped.push(site::without_folder(&error, folder));
            }
        }
    }
    Ok(material)
}

/// Waiting times of real requests (with loading), by the model that answered. Only successful ones, if there are enough.
/// Turns of spoken conversations are counted apart.
fn production(entries: Vec<RequestRecord>) -> Production {
    let complete = entries.into_iter().filter(|entry| entry.outcome == Outcome::Complete);
    let (turns, requests): (Vec<_>, Vec<_>) =
        complete.partition(|entry| entry.turn_stages.is_some());
    let mut served = waited(&requests, false);
    served.extend(waited(&turns, true));
    Production { served }
}

fn waited(complete: &[RequestRecord], are_turns: bool) -> Vec<ServedModelFigures> {
    let mut served = Vec::new();
    for summary in summarise(complete, GroupBy::Target) {
        let waits = complete
            .iter()
            .filter(|entry| entry.target == summary.name)
            .filter_map(|entry| entry.first_ms);
        let waits = hob_core::statistics::Sample::new(waits);
        let enough = waits.count() >= GAP_NEEDS;
        served.extend(waits.p50().filter(|_| enough).map(|first_p50_ms| ServedModelFigures {
            model: summary.name,
            requests: waits.count(),
            first_p50_ms,
            first_p95_ms: waits.p95(),
            are_turns,
        }));
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(target: &str, first_ms: f64, outcome: Outcome) -> RequestRecord {
        RequestRecord {
            target: target.to_owned(),
            first_ms: Some(first_ms),
            outcome,
            ..RequestRecord::default()
        }
    }

    #[test]
    fn once_there_are_keys_the_page_says_nothing_of_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let ledger = path("ledger.sqlite3");
        let now_ms = u64::try_from(Timestamp::now().as_millisecond()).expect("after 1970");
        let writing = hob_server::ledger::Ledger::open(&ledger, Duration::from_secs(86_400));
        let writing = writing.expect("a ledger");
        for _ in 0..GAP_NEEDS {
            let started_unix_ms = now_ms;
            writing
                .write(RequestRecord { started_unix_ms, ..entry("smol", 5.0, Outcome::Complete) });
        }
        drop(writing);
        let records = RecordsFolder { path: path("records"), name: "a folder" };
        let pages = BenchmarkPages::new(records, ledger);
        let models = || pages.material().expect("material").production.served.len();
        assert!(pages.file("index.html").is_some());
        assert_eq!(models(), 1);
        pages.hide_ledger();
        assert_eq!(models(), 0);
        assert!(pages.built.lock().expect("no panic").is_none(), "the page is built again");
    }

    #[test]
    fn a_damaged_ledger_is_named_without_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = folder.path().join("ledger.sqlite3");
        std::fs::write(&ledger, "no ledger".repeat(100)).expect("written");
        let material =
            material(folder.path(), Some(&ledger), PublishedRuns::LeftOut).expect("material");
        let [reason] = &material.skipped[..] else { panic!("{:?}", material.skipped) };
        assert!(reason.starts_with("the ledger ledger.sqlite3 cannot be used: "), "{reason}");
    }

    #[test]
    fn production_is_what_enough_complete_requests_waited() {
        let mut entries: Vec<RequestRecord> =
            (1..=20).map(|ms| entry("many", f64::from(ms), Outcome::Complete)).collect();
        entries.extend((0..50).map(|_| entry("many", 9_000.0, Outcome::Failed)));
        entries.extend((0..19).map(|_| entry("few", 1.0, Outcome::Complete)));
        let turn_stages = Some("endpoint 250.0".to_owned());
        let turn = |ms| RequestRecord {
            turn_stages: turn_stages.clone(),
            ..entry("many", ms, Outcome::Complete)
        };
        entries.extend((1..=20).map(|tenths| turn(f64::from(tenths) * 100.0)));
        let expected = ServedModelFigures {
            model: "many".to_owned(),
            requests: 20,
            first_p50_ms: 10.0,
            first_p95_ms: Some(19.0),
            are_turns: false,
        };
        let turns = ServedModelFigures {
            first_p50_ms: 1_000.0,
            first_p95_ms: Some(1_900.0),
            are_turns: true,
            ..expected.clone()
        };
        assert_eq!(production(entries), Production { served: vec![expected, turns] });
    }
}
