//! Decisions of the alias route: which target is asked, and what follows when it fails.
//! Pure functions: time and random numbers are arguments, and no server is asked here.

mod circuit_breaker;
mod context;
mod continuation;
mod retries;
mod strategy;
mod view;

use std::time::Duration;

use crate::{Clock, Fault, ModelError};

pub use circuit_breaker::{BreakerFailure, BreakerState, CircuitBreaker, FIRST_COOL_DOWN, Probe};
pub use context::{Fit, prompt_bytes, prompt_tokens_guess, tokens_of};
pub use continuation::{AnswerSoFar, PiecesSoFar, RestartCheck, RestartDecision, is_break};
pub use retries::RetryBudget;
pub use strategy::{Strategy, TargetFacts, UnknownStrategy, order};
pub use view::{ListedModel, Reachable, RouteView, TargetStatus, TargetView, UpstreamView};

/// What to do after a failure that came before the client received anything.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryDecision {
    pub retry: Retry,
    pub fall_back: FallBack,
    pub cool_down: CoolDown,
}

/// Whether to ask the same target once more.
#[derive(Clone, Debug, PartialEq)]
pub enum Retry {
    No,
    Once {
        after: Duration,
    },
    /// Without the parameter that the target does not know. The target remembers it.
    WithoutField {
        field: String,
    },
    /// Only if no other target is left.
    IfLast {
        after: Duration,
    },
}

/// Whether to ask another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallBack {
    Any,
    /// Only a target with a larger context.
    LargerContext,
    /// The request itself is at fault.
    No,
}

/// Whether the failed target is left alone for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoolDown {
    No,
    /// Counts as one of several failures that open the circuit.
    Counts,
    /// At once, for this long.
    For(Duration),
}

/// Before a refused connection is tried again.
const RECONNECT: Duration = Duration::from_millis(50);
/// Before an overloaded server that named no time is asked again.
const OVERLOAD: Duration = Duration::from_millis(100);
/// A cool-down that ends this soon is waited for, not reported.
const SHORT: Duration = Duration::from_secs(1);

// Cool-downs after these failures. That of a rate limit applies if the server named no time.
const RATE_LIMIT: Duration = Duration::from_secs(5);
const UNREACHABLE: Duration = Duration::from_secs(2);
const WRONG_KEY: Duration = Duration::from_secs(60);
const NO_CREDIT: Duration = Duration::from_secs(600);
const NO_SUCH_MODEL: Duration = Duration::from_secs(60);
const OUT_OF_MEMORY: Duration = Duration::from_secs(10);

impl RetryDecision {
    /// For a failure before the first content.
    pub fn after(error: &ModelError) -> RetryDecision {
        match error {
            ModelError::Upstream { fault, .. } => of_fault(fault),
            ModelError::Unanswered { last, .. } => RetryDecision::after(last),
            ModelError::TooLong { .. } => {
                decision(Retry::No, FallBack::LargerContext, CoolDown::No)
            }
            ModelError::Busy { .. }
            | ModelError::Loading { .. }
            | ModelError::Resting { .. }
            | ModelError::NoTemplate
            | ModelError::NoneCapable { .. }
            | ModelError::Incapable { .. }
            | ModelError::NotBuilt { .. }
            | ModelError::SpeechPartMissing { .. }
            // Only this model refuses it: its template cannot say the conversation, or it does not know the language. A schema
            // is not sent on: other models of this hob would refuse it, too, or crash as this one did.
            | ModelError::InvalidField { field: "messages" | "language", .. }
            // The models that hold the memory become idle soon.
            | ModelError::NoRoom { retry_after: Some(_), .. } => {
                decision(Retry::No, FallBack::Any, CoolDown::No)
            }
            ModelError::OutOfMemory { .. } | ModelError::NoRoom { retry_after: None, .. } => {
                decision(Retry::No, FallBack::Any, CoolDown::For(OUT_OF_MEMORY))
            }
            ModelError::WorkerLost { .. } | ModelError::EngineFailed { .. } => {
                decision(Retry::No, FallBack::Any, CoolDown::Counts)
            }
            ModelError::EmptyText
            | ModelError::TextTooLong { .. }
            | ModelError::UnknownVoice { .. }
            | ModelError::MissingField { .. }
            | ModelError::InvalidField { .. } => decision(Retry::No, FallBack::No, CoolDown::No),
        }
    }
}

/// Chooses which of two failures the client sees: the later one, unless it only says that a target could not
/// take the request. The first target's refusal of a field is the clearest.
pub fn more_informative(earlier: Option<ModelError>, later: ModelError) -> ModelError {
    let is_field = |error: &ModelError| matches!(error, ModelError::InvalidField { .. });
    match earlier {
        Some(earlier) if is_field(&earlier) && is_field(&later) => earlier,
        Some(earlier) if rank(&earlier) > rank(&later) => earlier,
        _ => later,
    }
}

/// How much a failure says: 0, the target lacks an ability; 1, the request does not suit it, such as a small context; 2, the
/// real fault.
fn rank(error: &ModelError) -> u8 {
    match error {
        ModelError::NoneCapable { .. }
        | ModelError::Incapable { .. }
        | ModelError::NoTemplate
        | ModelError::NotBuilt { .. } => 0,
        ModelError::InvalidField { field: "messages" | "language", .. }
        | ModelError::TooLong { .. }
        | ModelError::Upstream { fault: Fault::TooLong { .. }, .. } => 1,
        _ => 2,
    }
}

fn of_fault(fault: &Fault) -> RetryDecision {
    match fault {
        Fault::Unreachable { .. } => {
            decision(Retry::Once { after: RECONNECT }, FallBack::Any, CoolDown::For(UNREACHABLE))
        }
        Fault::Overloaded { retry_after: None, .. } => {
            decision(Retry::Once { after: OVERLOAD }, FallBack::Any, CoolDown::Counts)
        }
        Fault::Overloaded { retry_after: Some(wait), .. } => {
            decision(Retry::No, FallBack::Any, CoolDown::For(*wait))
        }
        Fault::Limited { retry_after, .. } => {
            let wait = retry_after.unwrap_or(RATE_LIMIT);
            let again = if wait <= SHORT { Retry::IfLast { after: wait } } else { Retry::No };
            decision(again, FallBack::Any, CoolDown::For(wait))
        }
        // No time is left for another target.
        Fault::TimedOut { clock: Clock::Total, .. } => {
            decision(Retry::No, FallBack::No, CoolDown::Counts)
        }
        Fault::TimedOut { .. }
        | Fault::Failed { .. }
        | Fault::Reported { .. }
        | Fault::CutOff
        | Fault::Empty
        | Fault::InvalidAnswer { .. } => decision(Retry::No, FallBack::Any, CoolDown::Counts),
        Fault::KeyRefused { .. } => decision(Retry::No, FallBack::Any, CoolDown::For(WRONG_KEY)),
        Fault::NoCredit { .. } => decision(Retry::No, FallBack::Any, CoolDown::For(NO_CREDIT)),
        Fault::NoSuchModel { .. } => {
            decision(Retry::No, FallBack::Any, CoolDown::For(NO_SUCH_MODEL))
        }
        Fault::TooLong { .. } => decision(Retry::No, FallBack::LargerContext, CoolDown::No),
        Fault::UnknownParameter { field, .. } => {
            decision(Retry::WithoutField { field: field.clone() }, FallBack::Any, CoolDown::No)
        }
        Fault::Refused { .. } | Fault::Circular { .. } => {
            decision(Retry::No, FallBack::No, CoolDown::No)
        }
    }
}

fn decision(retry: Retry, fall_back: FallBack, cool_down: CoolDown) -> RetryDecision {
    RetryDecision { retry, fall_back, cool_down }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_fault(fault: Fault) -> RetryDecision {
        RetryDecision::after(&ModelError::upstream("a/b", fault))
    }

    fn message() -> String {
        "no".to_owned()
    }

    #[test]
    fn each_fault_has_its_decision() {
        let seconds = Duration::from_secs;
        let once = |after| Retry::Once { after };
        let overloaded = |retry_after| Fault::Overloaded { message: message(), retry_after };
        let limited = |s| Fault::Limited { message: message(), retry_after: Some(seconds(s)) };
        let too_long = Fault::TooLong { message: message(), needed: None, available: None };
        let field = || "min_p".to_owned();
        let unknown = Fault::UnknownParameter { field: field(), message: message() };
        let (any, none, counts) = (FallBack::Any, FallBack::No, CoolDown::Counts);
        let for_s = |s| CoolDown::For(seconds(s));
        for (fault, again, next, rest) in [
            (Fault::Unreachable { detail: message() }, once(RECONNECT), any, for_s(2)),
            (overloaded(None), once(OVERLOAD), any, counts),
            (overloaded(Some(seconds(9))), Retry::No, any, for_s(9)),
            (limited(30), Retry::No, any, for_s(30)),
            (limited(1), Retry::IfLast { after: seconds(1) }, any, for_s(1)),
            (Fault::Failed { message: message() }, Retry::No, any, counts),
            (Fault::CutOff, Retry::No, any, counts),
            (Fault::Empty, Retry::No, any, counts),
            (Fault::KeyRefused { message: message() }, Retry::No, any, for_s(60)),
            (Fault::NoCredit { message: message() }, Retry::No, any, for_s(600)),
            (too_long, Retry::No, FallBack::LargerContext, CoolDown::No),
            (unknown, Retry::WithoutField { field: field() }, any, CoolDown::No),
            (Fault::Refused { message: message() }, Retry::No, none, CoolDown::No),
            (Fault::Circular { message: message() }, Retry::No, none, CoolDown::No),
        ] {
            assert_eq!(for_fault(fault.clone()), decision(again, next, rest), "{fault}");
        }
        let spent = Fault::TimedOut { clock: Clock::Total, after: seconds(600) };
        assert_eq!(for_fault(spent).fall_back, FallBack::No);
        let silent = Fault::TimedOut { clock: Clock::FirstToken, after: seconds(45) };
        assert_eq!(for_fault(silent), decision(Retry::No, FallBack::Any, CoolDown::Counts));
    }

    #[test]
    fn the_real_fault_is_reported_rather_than_a_missing_ability() {
        let silent = Fault::TimedOut { clock: Clock::FirstToken, after: Duration::from_secs(45) };
        let silent = ModelError::upstream("a/b", silent);
        let failed = ModelError::upstream("a/c", Fault::Failed { message: message() });
        let long = Fault::TooLong { message: message(), needed: None, available: None };
        let long = ModelError::upstream("a/d", long);
        let own = ModelError::TooLong { needed: 9, available: 5 };
        let needs = "tools".to_owned();
        let incapable = ModelError::Incapable { target: "a/e".to_owned(), needs };
        let invalid = |field| ModelError::InvalidField { field, reason: message() };
        let (refused, wrong) = (invalid("messages"), invalid("regex"));
        for (earlier, later, told) in [
            (None, &incapable, &incapable),
            (Some(&failed), &refused, &failed),
            (Some(&incapable), &refused, &refused),
            (Some(&refused), &wrong, &refused),
            (Some(&failed), &wrong, &wrong),
            (Some(&silent), &failed, &failed),
            (Some(&failed), &silent, &silent),
            (Some(&silent), &long, &silent),
            (Some(&silent), &own, &silent),
            (Some(&failed), &incapable, &failed),
            (Some(&failed), &ModelError::NoTemplate, &failed),
            (Some(&long), &incapable, &long),
            (Some(&incapable), &own, &own),
            (Some(&long), &failed, &failed),
            (Some(&own), &long, &long),
        ] {
            assert_eq!(
                &more_informative(earlier.cloned(), later.clone()),
                told,
                "{earlier:?} {later}"
            );
        }
    }

    #[test]
    fn a_local_model_that_is_not_ready_leaves_the_request_to_the_next_target() {
        let retry_after = Duration::from_secs(3);
        for error in [ModelError::Busy { retry_after }, ModelError::Loading { retry_after }] {
            assert_eq!(
                RetryDecision::after(&error),
                decision(Retry::No, FallBack::Any, CoolDown::No),
                "{error}"
            );
        }
        let too_long = ModelError::TooLong { needed: 9, available: 5 };
        assert_eq!(RetryDecision::after(&too_long).fall_back, FallBack::LargerContext);
        let lost = ModelError::WorkerLost { engine: "chat", detail: message() };
        assert_eq!(RetryDecision::after(&lost).cool_down, CoolDown::Counts);
        for (field, next) in [("messages", FallBack::Any), ("response_format", FallBack::No)] {
            let refused = ModelError::InvalidField { field, reason: message() };
            assert_eq!(
                RetryDecision::after(&refused),
                decision(Retry::No, next, CoolDown::No),
                "{field}"
            );
        }
        assert_eq!(RetryDecision::after(&ModelError::EmptyText).fall_back, FallBack::No);
    }
}
