//! The times of each answered turn: in the log, in the metrics and in the ledger.
//! The stages add up to the whole, because each begins where the one before ends.

use std::time::{Duration, Instant, SystemTime};

use hob_core::Chat;
use hob_voice::TurnStages;
use hob_wire::{TurnStagesMs, turn_stages_event};

use super::chat_name;
use crate::context::RequestContext;
use crate::ledger::{Outcome, RequestRecord};
use crate::reloadable_state::ReloadableState;

/// The name of a turn among the routes of the ledger.
const ROUTE: &str = "realtime";

/// Writes down the turns of one session.
pub(super) struct TurnLog {
    pub(super) context: RequestContext,
    pub(super) state: ReloadableState,
}

/// A turn whose first audible sample is on its way to the client.
#[derive(Debug)]
pub(super) struct MeasuredTurn {
    pub(super) response_id: String,
    /// The chat model that answered. `None`: the server's default.
    pub(super) model: Option<String>,
    pub(super) stages: TurnStages,
    /// The time of the first audible sample, if it is played as soon as it is known.
    pub(super) audible_at: Instant,
    /// Whether the client wants to know the times.
    pub(super) is_reported: bool,
}

impl TurnLog {
    /// `sent_at`: when the first audible sample was handed to the socket. Returns the event for the client, if it
    /// wants one.
    pub(super) fn write(&self, turn: &MeasuredTurn, sent_at: Instant) -> Option<String> {
        let stages = parts(&turn.stages, sent_at.saturating_duration_since(turn.audible_at));
        let metrics = &self.context.services.metrics;
        stages.iter().for_each(|(stage, time)| metrics.turn_stage(stage, *time));
        let whole: Duration = stages.iter().map(|(_, time)| *time).sum();
        let shown = summary(&stages);
        let (alias, target) = self.names(turn.model.as_deref());
        let (id, name, whole_ms) = (self.context.id, alias.as_str(), whole.as_millis() as u64);
        tracing::info!(id, alias = name, first_ms = whole_ms, stages = shown.as_str(), "{ROUTE}");
        if let Some(ledger) = self.context.ledger() {
            ledger.write(RequestRecord { alias, target, ..self.record(whole, shown) });
        }
        turn.is_reported.then(|| turn_stages_event(&turn.response_id, in_ms(&stages)))
    }

    /// The chat model's name in the request, and its own, which a reload may have changed.
    fn names(&self, model: Option<&str>) -> (String, String) {
        let asked = model.map(str::to_owned);
        let context = self.context.for_next_request(self.state.config());
        let resolved =
            context.and_then(|context| context.resolve::<Chat>(chat_name(&context, asked)));
        match resolved {
            Ok(resolved) => (resolved.shown_name().to_owned(), resolved.model.name.clone()),
            Err(_) => (model.unwrap_or_default().to_owned(), String::new()),
        }
    }

    fn record(&self, whole: Duration, stages: String) -> RequestRecord {
        let began = SystemTime::now().checked_sub(whole).unwrap_or(SystemTime::UNIX_EPOCH);
        let since_1970 = began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let whole_ms = whole.as_secs_f64() * 1e3;
        RequestRecord {
            started_unix_ms: since_1970.as_millis() as u64,
            route: ROUTE.to_owned(),
            key: self.context.caller.key().map(str::to_owned),
            is_streamed: true,
            is_warm: true,
            first_ms: Some(whole_ms),
            total_ms: whole_ms,
            outcome: Outcome::Complete,
            turn_stages: Some(stages),
            ..RequestRecord::default()
        }
    }
}

fn parts(stages: &TurnStages, transport: Duration) -> [(&'static str, Duration); 6] {
    [
        ("endpoint", stages.endpoint),
        ("stt", stages.transcript),
        ("llm_ttfat", stages.first_text),
        ("sentence", stages.first_clause),
        ("tts_ttfa", stages.first_sound),
        ("transport", transport),
    ]
}

fn in_ms(stages: &[(&'static str, Duration); 6]) -> TurnStagesMs {
    let [endpoint, stt, llm_ttfat, sentence, tts_ttfa, transport] =
        stages.map(|(_, time)| (time.as_secs_f64() * 1e4).round() / 10.0);
    TurnStagesMs { endpoint, stt, llm_ttfat, sentence, tts_ttfa, transport }
}

/// `endpoint 250.1, stt 12.0, …`, in milliseconds.
fn summary(stages: &[(&'static str, Duration)]) -> String {
    let shown = stages.iter().map(|(name, time)| format!("{name} {:.1}", time.as_secs_f64() * 1e3));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_turn_add_up_to_the_whole() {
        let ms = Duration::from_millis;
        let stages = TurnStages {
            endpoint: ms(250),
            transcript: ms(10),
            first_text: ms(60),
            first_clause: ms(80),
            first_sound: ms(120),
        };
        let all = parts(&stages, ms(3));
        assert_eq!(all.iter().map(|(_, time)| *time).sum::<Duration>(), ms(523));
        let shown = "endpoint 250.0, stt 10.0, llm_ttfat 60.0, sentence 80.0, tts_ttfa 120.0, transport 3.0";
        assert_eq!(summary(&all), shown);
    }
}
