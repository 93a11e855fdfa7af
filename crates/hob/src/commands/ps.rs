//! `hob ps`: lists the loaded models of a running hob, their memory, and when they will be unloaded.
//! Only a running server knows this.

use std::time::Duration;

use clap::Args;
use hob_wire::{ResidentModel, ResidentPool};
use jiff::Timestamp;

use crate::app::App;
use crate::failure::{CliResult, Exit};
use crate::printer::{Column, duration_text, or_dash, rows};
use crate::running_server::ServerOption;

const MB: u64 = 1_000_000;

/// List the loaded models of a running hob
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    #[command(flatten)]
    server: ServerOption,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PsArgs, app: &App<'_>) -> CliResult<Exit> {
    let residents = args.server.ask(app, async |remote| remote.residents().await)?;
    app.printer.report(args.json, &residents, || resident_table(&residents, Timestamp::now()))
}

fn resident_table(residents: &[ResidentModel], now: Timestamp) -> String {
    let columns: &[Column<'_, ResidentModel>] = &[
        ("model", &|r| r.name.clone()),
        ("kind", &|r| r.kind.clone()),
        ("state", &|r| r.state.clone()),
        ("memory", &|r| or_dash(r.resident_bytes.map(megabytes))),
        ("predicted", &|r| or_dash(r.predicted_bytes.map(megabytes))),
        ("graphics", &|r| or_dash(on_cards(r))),
        ("context", &|r| or_dash(r.context_length.map(|tokens| tokens.to_string()))),
        ("in flight", &|r| r.in_flight.to_string()),
        ("expires", &|r| expires(r, now)),
    ];
    let notes = residents.iter().filter_map(|resident| {
        Some(format!("\n{}: {}", resident.name, resident.placement_note.as_ref()?))
    });
    rows(columns, residents).trim_fmt() + &notes.collect::<String>()
}

/// What each graphics card holds, next to what was predicted for it.
fn on_cards(resident: &ResidentModel) -> Option<String> {
    let cards = resident.pools.iter().filter(|pool| pool.pool != "RAM");
    let cards: Vec<String> = cards.filter_map(on_card).collect();
    let all = Some(resident.vram_bytes).filter(|bytes| *bytes > 0).map(megabytes);
    if cards.is_empty() { all } else { Some(cards.join(", ")) }
}

fn on_card(used: &ResidentPool) -> Option<String> {
    let (taken, predicted) = (megabytes(used.taken_bytes?), megabytes(used.predicted_bytes));
    Some(format!("{} {taken} of {predicted}", used.pool))
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(MB))
}

/// When the model will be unloaded if no further request comes.
fn expires(resident: &ResidentModel, now: Timestamp) -> String {
    match &resident.expires_at {
        None if resident.state == "warm" => "never".to_owned(),
        None => "-".to_owned(),
        Some(text) => match text.parse::<Timestamp>() {
            Ok(at) => left(Duration::try_from(now.duration_until(at)).unwrap_or_default()),
            Err(_) => text.clone(),
        },
    }
}

fn left(time: Duration) -> String {
    match time.as_secs() {
        0 => "now".to_owned(),
        _ => format!("in {}", duration_text(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> ResidentModel {
        ResidentModel {
            name: "smollm2".to_owned(),
            kind: "chat".to_owned(),
            state: "warm".to_owned(),
            ready_in_s: None,
            resident_bytes: Some(190_400_000),
            predicted_bytes: Some(200_000_000),
            vram_bytes: 0,
            pools: Vec::new(),
            placement_note: None,
            in_flight: 2,
            expires_at: None,
            context_length: Some(8192),
            load_ms: Some(300),
        }
    }

    #[test]
    fn the_list_says_what_is_held_and_until_when() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let at = |text: &str| Some(text.to_owned());
        let cold = ResidentModel {
            state: "cold".to_owned(),
            resident_bytes: None,
            context_length: None,
            ..resident()
        };
        let rows = [
            (resident(), "smollm2 chat warm 191 MB 200 MB - 8192 2 never"),
            (cold, "smollm2 chat cold - 200 MB - - 2 -"),
            (
                ResidentModel { expires_at: at("2026-11-21T10:04:30Z"), ..resident() },
                "smollm2 chat warm 191 MB 200 MB - 8192 2 in 4 min",
            ),
            (
                ResidentModel { vram_bytes: 1, expires_at: at("soon"), ..resident() },
                "smollm2 chat warm 191 MB 200 MB 1 MB 8192 2 soon",
            ),
        ];
        for (resident, expected) in rows {
            let list = resident_table(&[resident], now);
            let line = list.lines().nth(1).expect("a line");
            assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        }
    }

    #[test]
    fn each_card_has_what_was_taken_and_predicted_and_a_model_elsewhere_has_a_note() {
        let pool = |pool: &str, taken_bytes| ResidentPool {
            pool: pool.to_owned(),
            predicted_bytes: 3 * MB,
            taken_bytes,
        };
        let pools = vec![pool("RAM", Some(9)), pool("GPU 0", Some(2 * MB)), pool("GPU 1", None)];
        let placement_note = Some("it runs on the processor".to_owned());
        let resident = ResidentModel { pools, placement_note, ..resident() };
        let list = resident_table(&[resident], Timestamp::UNIX_EPOCH);
        let lines: Vec<&str> = list.lines().collect();
        assert!(lines[1].contains(" GPU 0 2 MB of 3 MB "), "{list}");
        assert_eq!(lines[2], "smollm2: it runs on the processor");
    }

    #[test]
    fn times_are_said_as_roughly_as_they_matter() {
        let rows =
            [(0, "now"), (1, "in 1 s"), (119, "in 119 s"), (300, "in 5 min"), (7200, "in 2 h")];
        for (seconds, expected) in rows {
            assert_eq!(left(Duration::from_secs(seconds)), expected);
        }
    }
}
