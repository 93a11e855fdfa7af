//! `hob quantize listened`: what listeners heard, from the records that the listening page saved.
//! All records of two models are counted together.

use std::path::{Path, PathBuf};

use clap::Args;
use hob_eval::listening::{
    AbxTally, ListeningRecord, ListeningTally, PreferenceTally, listening_tallies,
};
use hob_eval::report::Estimate;

use super::speech::percent;
use crate::bounded_file::read_text;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, count_text, table};

const RECORD_BYTES_MAX: u64 = 4 << 20;

/// Count what listeners heard, from records that the listening page saved
#[derive(Debug, Args)]
pub(super) struct ListenedArgs {
    /// Records of one or more listeners; those of the same two models are counted together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn listened(args: &ListenedArgs, printer: &Printer) -> CliResult<Exit> {
    let mut records: Vec<ListeningRecord> = Vec::new();
    for (at, file) in args.files.iter().enumerate() {
        let record = read(file)?;
        if let Some(same) = records.iter().position(|known| *known == record) {
            let (first, second) = (args.files[same].display(), args.files[at].display());
            return Err(Failure::usage(format!("{first} and {second} are the same record")).hint(
                "give each record once: answers that count twice make the interval too narrow",
            ));
        }
        records.push(record);
    }
    let tallies = listening_tallies(&records);
    printer.report(args.json, &tallies, || tally_table(&tallies))
}

fn read(file: &Path) -> CliResult<ListeningRecord> {
    let text = read_text(file, RECORD_BYTES_MAX).map_err(Failure::usage)?;
    ListeningRecord::read(&text).map_err(|error| {
        Failure::usage(format!("{}: {error}", file.display()))
            .hint("take files that the listening page of `hob quantize` saved")
    })
}

fn tally_table(tallies: &[ListeningTally]) -> String {
    let mut table = table(["source", "target", "test", "answers", "95 % interval", "p"]);
    for ListeningTally { source, target, abx, preference } in tallies {
        let mut add = |test: &str, answers: String, share: Option<Estimate>, p: f64| {
            let interval = share.map_or("–".to_owned(), |share| percent(&share));
            let p = if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") };
            table.add_row([source.clone(), target.clone(), test.to_owned(), answers, interval, p]);
        };
        if let Some(AbxTally { records, trials, correct, p, share }) = *abx {
            let tests = count_text(records, "test");
            add("ABX", format!("{correct} of {trials} right, {tests}"), share, p);
        }
        if let Some(heard) = preference {
            let PreferenceTally { records, source: before, target: after, none, .. } = heard;
            let tests = count_text(*records, "test");
            let answers = format!(
                "{after} for the target, {before} for the source, {none} for neither, {tests}"
            );
            add("preference", answers, heard.target_share, heard.p);
        }
        if abx.is_none() && preference.is_none() {
            add("–", "no answers".to_owned(), None, 1.0);
        }
    }
    format!(
        "{}\n\nThe interval is that of the share of right answers, or of answers for the target.\n\
         p is the chance of such a result if both sound alike; below 0.05 a difference was heard.",
        table.trim_fmt()
    )
}
