//! `hob doctor`: checks every part of the installation by running it.
//! It repairs nothing. Every warning says what to do.

mod chat;
mod check;
mod devices;
mod machine;
mod models;
mod sandbox;
mod speech;
mod tools;
mod transcription;
mod turn_taking;
mod upstreams;

use clap::Args;

use crate::app::{App, run_until_stopped};
use crate::failure::{CliResult, Exit};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::Overrides;
use crate::wire_up::missing_parts;

use check::{Check, Verdict};

/// Check the installation: load each model and let it answer, and check the other parts
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Each line is ok, warn (hob works, something could be better) or fail (something does not work).
The exit code is 7 when anything fails.";

pub(crate) fn run(args: &DoctorArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let findings = Findings { all: Vec::new(), prints: !args.json, printer };
    let findings = match App::open(globals, Overrides::default(), printer) {
        Ok(app) => run_until_stopped(examine(&app, findings))?,
        // Without settings nothing else can be checked.
        Err(failure) => findings.with([Check::failed("config", failure)])?,
    };
    if args.json {
        printer.json(&findings.all)?;
    }
    Ok(exit(&findings.all))
}

/// Printed one by one, because loading a model takes a while.
struct Findings<'a> {
    all: Vec<Check>,
    /// Whether each check is printed at once; JSON is printed at the end.
    prints: bool,
    printer: &'a Printer,
}

impl Findings<'_> {
    fn with(mut self, checks: impl IntoIterator<Item = Check>) -> CliResult<Self> {
        for check in checks {
            if self.prints {
                self.printer.data(&check)?;
            }
            self.all.push(check);
        }
        Ok(self)
    }
}

async fn examine<'a>(app: &App<'_>, findings: Findings<'a>) -> CliResult<Findings<'a>> {
    let findings = findings
        .with(machine::checks(&app.settings))?
        .with([tools::config(app)])?
        .with(tools::default_key(app))?
        .with(models::checks(app).await)?
        .with([speech::phonemizer(app)])?;
    let missing = missing_parts(app);
    let findings = findings
        .with([tools::espeak(app, &missing).await])?
        .with(speech::encoders())?
        .with([tools::players(&app.environment.path)])?
        .with([sandbox::check(app).await])?;
    let (spoken, wav) = speech::engine(app, missing).await;
    findings
        .with([spoken])?
        .with([turn_taking::engine(app, wav.as_deref()).await])?
        .with(transcription::engine(app, wav).await)?
        .with(devices::checks(app).await)?
        .with(chat::checks(app).await)?
        .with(upstreams::checks(app).await)?
        .with([tools::port(app).await])
}

fn exit(checks: &[Check]) -> Exit {
    let fails = checks.iter().any(|check| check.verdict == Verdict::Fail);
    if fails { Exit::Unhealthy } else { Exit::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_makes_the_exit_code() {
        let rows = [
            (vec![Check::ok("a", ""), Check::warn("b", "", "do")], Exit::Done),
            (vec![Check::ok("a", ""), Check::fail("b", "", "do")], Exit::Unhealthy),
        ];
        for (checks, expected) in rows {
            assert_eq!(exit(&checks), expected, "{checks:?}");
        }
    }

    #[test]
    fn a_finding_for_programs_says_the_same() {
        let checks = [Check::warn("players", "none", "install one")];
        let text = serde_json::to_string_pretty(&checks).expect("JSON");
        let expected = serde_json::json!([
            { "part": "players", "verdict": "warn", "found": "none", "to_do": "install one" }
        ]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), expected);
    }
}
