//! `hob eval judge`: a model compares the answers of two evaluations, each pair in both orders.
//! All output says that it was judged, and by which model: a judgement is not a measurement.

use std::path::PathBuf;

use clap::Args;
use hob_bench::drive::RequestLimits;
use hob_bench::eval::{ComparedArms, EVAL_SEED, JudgeFailure, JudgeRun, JudgedArms, verdict_file};
use hob_bench::record::RecordStore;
use hob_bench::runs::{Step, StopRule};
use hob_bench::workbench::Asker;
use hob_core::Kind;
use hob_eval::judge::{JUDGED_CHARS_MAX, JudgeTally, JudgedOutcome, JudgedShare};
use hob_eval::report::Estimate;
use serde_json::{Value, json};

use super::RECORDS;
use super::eval_report::AnsweredRecord;
use super::measuring::{progress, stoppable};
use super::queue::Turn;
use super::server::{Reached, ServerArgs, failure};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, count_text, or_dash, table};
use crate::signals::interrupted;

const OPINION: &str = "A model's judgement is an opinion, not a measurement.";
/// Limits the memory that the prompts of all items take.
const ITEMS_MAX: u32 = 10_000;
const TOKENS_DEFAULT: u32 = 2_048;
const TOKENS_MAX: u32 = 1 << 20;

/// Let a judge model compare the answers of two evaluations, in both orders
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
// `ServerArgs` has a model that answers; here it is the judge.
#[command(mut_arg("model", |arg| arg.long("judge").required(true).help("The model that judges")))]
pub(crate) struct JudgeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The first evaluation, by id or file
    #[arg(value_name = "A")]
    a: String,
    /// The second evaluation, by id or file
    #[arg(value_name = "B")]
    b: String,
    /// Maximum number of items to compare
    #[arg(long, value_name = "N", default_value_t = ITEMS_MAX, value_parser = clap::value_parser!(u32).range(1..=i64::from(ITEMS_MAX)))]
    items: u32,
    /// Maximum tokens of a judgement, thinking included
    #[arg(long, value_name = "N", default_value_t = TOKENS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(TOKENS_MAX)))]
    judge_tokens: u32,
    /// The folder of the records
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
    /// Print as JSON, with each item
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
The judge reads both answers to each item twice, once in each order. An answer that it prefers in
both orders wins; otherwise it is a tie, or unread if a verdict cannot be read. A model's judgement
is an opinion, not a measurement.
Verdicts are kept next to the record of A: after an interruption, the same command goes on.

Examples:
  hob eval judge 6b2d8c11 0a91f3e7 --judge qwen3:8b
  hob eval judge 6b2d8c11 0a91f3e7 --judge qwen3:32b --target http://127.0.0.1:11434 --items 50";

pub(crate) fn judge(args: &JudgeArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let store = RecordStore::new(&args.records);
    let a = AnsweredRecord::pick(&store, &args.a)?;
    let b = AnsweredRecord::pick(&store, &args.b)?;
    if a.record.id == b.record.id {
        return Err(Failure::usage("A and B are the same record")
            .hint("give the records of two evaluations"));
    }
    let arms = ComparedArms::of(&a.answered, &b.answered, args.items as usize);
    if arms.items.is_empty() {
        let why = left_out(&arms).join(" ");
        return Err(Failure::usage(format!("there is nothing to judge. {why}")).hint(
            "both records need visible answers to the same items, and the answers must differ",
        ));
    }
    let server = args.server.settle(Kind::Chat, globals, printer)?;
    let (records, tokens_max, printer) = (args.records.clone(), args.judge_tokens, *printer);
    let (path_a, id_b) = (a.path.clone(), b.record.id);
    let (arms, judged) = stoppable(move |stop| {
        let _turn = Turn::Awaited.take(&records, "hob eval judge", (stop, &printer))?;
        let Reached { target, started, .. } = server.reach(stop).map_err(failure)?;
        let file = verdict_file(&path_a, id_b, &target, started.as_ref());
        let asker = Asker { target, limits: RequestLimits::default(), seed: EVAL_SEED, stop };
        let mut tell = |step: Step<'_>| printer.faint(progress("judge", step, StopRule::default()));
        let judged = JudgeRun { arms: &arms, tokens_max, file }.ask_all(&asker, &mut tell);
        let judged = judged.map_err(failed)?;
        Ok((arms, judged))
    })?;
    if !judged.is_whole() {
        let (read, all) = (judged.read(), judged.all());
        let hint = format!("{read} of {all} verdicts are kept: the same command goes on");
        return Err(interrupted().hint(hint));
    }
    let judgement = Judgement { tally: judged.tally(arms.identical.len()), a, b, arms, judged };
    printer.report(args.json, &judgement.json(), || judgement.report_text())
}

fn failed(error: JudgeFailure) -> Failure {
    let sentence = error.to_string();
    let cause = failure(*error.source);
    Failure::new(cause.exit, sentence).hint("its verdicts are kept: the same command goes on")
}

/// The verdicts of a judge model on two records.
struct Judgement {
    a: AnsweredRecord,
    b: AnsweredRecord,
    arms: ComparedArms,
    judged: JudgedArms,
    tally: JudgeTally,
}

impl Judgement {
    fn report_text(&self) -> String {
        let JudgeTally { wins_a, wins_b, ties, unread, win_share_a, sign_test_p, .. } = &self.tally;
        let judge = &self.judged.judged_by;
        let mut table =
            table(["judged by", "A wins", "B wins", "ties", "unread", "win share of A"]);
        table.add_row([
            judge.clone(),
            wins_a.to_string(),
            wins_b.to_string(),
            ties.to_string(),
            unread.to_string(),
            or_dash(win_share_a.as_ref().map(percent)),
        ]);
        let mut lines = vec![
            format!("A: {}", name(&self.a)),
            format!("B: {}", name(&self.b)),
            format!("\n{}\n", table.trim_fmt()),
            format!("Judged by {judge}. {OPINION}"),
            format!("A tie counts half. Sign test over the wins: p = {sign_test_p:.3}."),
            format!("The two orders agree on {}.", share(&self.tally.agreement, "items")),
            format!(
                "The answer that stood first was preferred in {}; 50 % means no bias.",
                share(&self.tally.first_position, "verdicts that prefer one")
            ),
        ];
        lines.extend(self.first_unread().map(|why| format!("Unread, the first: {why}.")));
        lines.extend(left_out(&self.arms));
        lines.join("\n")
    }

    fn first_unread(&self) -> Option<&str> {
        self.judged.lines.iter().flatten().flatten().find_map(|line| line.why_unread.as_deref())
    }

    fn json(&self) -> Value {
        let Judgement { a, b, arms, judged, tally } = self;
        let record = |one: &AnsweredRecord| json!({ "record": one.record.id, "model": one.record.model.name, "arm": one.record.eval_arm() });
        let judged_items = arms.items.iter().zip(&judged.lines).map(|(item, lines)| {
            let outcome = JudgedOutcome::of(JudgedArms::verdicts(lines));
            json!({ "id": item.id, "outcome": outcome, "verdicts": lines })
        });
        let identical = arms.identical.iter().map(
            |id| json!({ "id": id, "outcome": JudgedOutcome::Tie, "is_identical": true, "verdicts": [] }),
        );
        json!({
            "judged_by": judged.judged_by,
            "note": OPINION,
            "a": record(a),
            "b": record(b),
            "tally": tally,
            "identical": arms.identical.len(),
            "without_answer": arms.without_answer,
            "unpaired": arms.unpaired,
            "beyond_limit": arms.beyond_limit,
            "shortened_answers": arms.shortened,
            "items": judged_items.chain(identical).collect::<Vec<Value>>(),
        })
    }
}

fn name(one: &AnsweredRecord) -> String {
    format!("{} ({})", one.record.eval_name(), one.record.short_id())
}

fn percent(estimate: &Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    format!("{:.0} % ({:.0} to {:.0})", value * 100.0, low * 100.0, high * 100.0)
}

fn share(counted: &JudgedShare, noun: &str) -> String {
    let JudgedShare { hits, of, share } = counted;
    let share = share.as_ref().map_or(String::new(), |share| format!(": {}", percent(share)));
    format!("{hits} of {of} {noun}{share}")
}

/// The items that the judge did not read, or not whole: one sentence for each reason.
fn left_out(arms: &ComparedArms) -> Vec<String> {
    let [silent_a, silent_b] = arms.without_answer;
    let items = |count: usize| count_text(count, "item");
    let (same, unpaired, beyond) = (arms.identical.len(), arms.unpaired, arms.beyond_limit);
    let silent = format!("A {}, B {}", items(silent_a), items(silent_b));
    let without_pair = "Left out, because the other record lacks the question";
    let shortened = count_text(arms.shortened, "answer");
    let cut =
        format!("The judge read only the first {JUDGED_CHARS_MAX} characters of {shortened}.");
    let rows = [
        (same, format!("Equal answers, ties without a judge: {}.", items(same))),
        (silent_a + silent_b, format!("Left out without a visible answer: {silent}.")),
        (unpaired, format!("{without_pair}: {}.", items(unpaired))),
        (beyond, format!("Left out by --items: {}.", items(beyond))),
        (arms.shortened, cut),
    ];
    rows.into_iter().filter(|(count, _)| *count > 0).map(|(_, sentence)| sentence).collect()
}
