//! Which target is asked, and what follows when it fails: decisions as functions of what is known.
//! Told the time, and told chance where it needs some; asks nobody itself.

mod context;
mod continuing;
mod health;
mod pick;
mod retries;
mod view;

use std::time::Duration;

use crate::{Clock, Fault, ModelError};

pub use context::{BYTES_PER_TOKEN, Fit, prompt_bytes, tokens_of};
pub use continuing::{Joint, Said, Seam, Spoken, is_break};
pub use health::{Admits, Failure, Health, REST_FIRST, Trial};
pub use pick::{Pick, Standing, UnknownPick, order};
pub use retries::RetryBudget;
pub use view::{
    ListedModel, Reachable, RouteView, TargetStatus, TargetView, UpstreamResolver, UpstreamView,
};

/// What follows from a failure that came before anything was said to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Consequence {
    pub again: Again,
    pub next: Next,
    pub rest: Rest,
}

/// Whether the same target is asked once more.
#[derive(Clone, Debug, PartialEq)]
pub enum Again {
    No,
    Once {
        after: Duration,
    },
    /// Without the parameter that it does not know, which is then remembered.
    Without {
        field: String,
    },
    /// Only if nobody else is left.
    IfLast {
        after: Duration,
    },
}

/// Whether another target is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Any,
    /// Only one that holds more tokens.
    LargerContext,
    /// The failure is the request's own.
    None,
}

/// Whether the target is left alone for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    No,
    /// One failure of several that make it rest.
    Counts,
    /// At once, and for so long.
    For(Duration),
}

/// Before a refused connection is tried again.
const RECONNECT: Duration = Duration::from_millis(50);
/// Before an overloaded server that named no time is asked again.
const OVERLOAD: Duration = Duration::from_millis(100);
const RATE_LIMIT: Duration = Duration::from_secs(5);
/// A limit that ends so soon is waited for rather than reported.
const SHORT: Duration = Duration::from_secs(1);
const UNREACHABLE: Duration = Duration::from_secs(2);
const WRONG_KEY: Duration = Duration::from_secs(60);
const NO_CREDIT: Duration = Duration::from_secs(600);
const NO_SUCH_MODEL: Duration = Duration::from_secs(60);
const OUT_OF_MEMORY: Duration = Duration::from_secs(10);

impl Consequence {
    /// Of a failure before the first content.
    pub fn of(error: &ModelError) -> Consequence {
        match error {
            ModelError::Upstream { fault, .. } => of_fault(fault),
            ModelError::Unanswered { last, .. } => Consequence::of(last),
            ModelError::TooLong { .. } => consequence(Again::No, Next::LargerContext, Rest::No),
            ModelError::Busy { .. }
            | ModelError::Loading { .. }
            | ModelError::Resting { .. }
            | ModelError::NoTemplate
            | ModelError::NoneCapable { .. }
            | ModelError::NotBuilt { .. } => consequence(Again::No, Next::Any, Rest::No),
            // Others are done with it before long.
            ModelError::NoRoom { retry_after: Some(_), .. } => {
                consequence(Again::No, Next::Any, Rest::No)
            }
            ModelError::OutOfMemory { .. } | ModelError::NoRoom { retry_after: None, .. } => {
                consequence(Again::No, Next::Any, Rest::For(OUT_OF_MEMORY))
            }
            ModelError::WorkerLost { .. } | ModelError::EngineFailed { .. } => {
                consequence(Again::No, Next::Any, Rest::Counts)
            }
            ModelError::EmptyText
            | ModelError::TextTooLong { .. }
            | ModelError::UnknownVoice { .. }
            | ModelError::LanguageNotSpoken { .. }
            | ModelError::MissingField { .. }
            | ModelError::InvalidField { .. } => consequence(Again::No, Next::None, Rest::No),
        }
    }
}

/// Of two failures of one request, the one to tell its client: the later, unless that only says that a
/// target was of no use for it.
pub fn more_telling(earlier: Option<ModelError>, later: ModelError) -> ModelError {
    match earlier {
        Some(earlier) if telling(&earlier) > telling(&later) => earlier,
        _ => later,
    }
}

/// How much a failure says: that a target cannot do it, that it does not hold it, what really went wrong.
fn telling(error: &ModelError) -> u8 {
    match error {
        ModelError::NoneCapable { .. } | ModelError::NoTemplate | ModelError::NotBuilt { .. } => 0,
        ModelError::TooLong { .. } | ModelError::Upstream { fault: Fault::TooLong { .. }, .. } => 1,
        _ => 2,
    }
}

fn of_fault(fault: &Fault) -> Consequence {
    match fault {
        Fault::Unreachable { .. } => {
            consequence(Again::Once { after: RECONNECT }, Next::Any, Rest::For(UNREACHABLE))
        }
        Fault::Overloaded { retry_after: None, .. } => {
            consequence(Again::Once { after: OVERLOAD }, Next::Any, Rest::Counts)
        }
        Fault::Overloaded { retry_after: Some(wait), .. } => {
            consequence(Again::No, Next::Any, Rest::For(*wait))
        }
        Fault::Limited { retry_after, .. } => {
            let wait = retry_after.unwrap_or(RATE_LIMIT);
            let again = if wait <= SHORT { Again::IfLast { after: wait } } else { Again::No };
            consequence(again, Next::Any, Rest::For(wait))
        }
        // Whoever ran out of its whole time has none left for others.
        Fault::TimedOut { clock: Clock::Total, .. } => {
            consequence(Again::No, Next::None, Rest::Counts)
        }
        Fault::TimedOut { .. }
        | Fault::Failed { .. }
        | Fault::Reported { .. }
        | Fault::CutOff
        | Fault::Empty
        | Fault::Nonsense { .. } => consequence(Again::No, Next::Any, Rest::Counts),
        Fault::KeyRefused { .. } => consequence(Again::No, Next::Any, Rest::For(WRONG_KEY)),
        Fault::NoCredit { .. } => consequence(Again::No, Next::Any, Rest::For(NO_CREDIT)),
        Fault::NoSuchModel { .. } => consequence(Again::No, Next::Any, Rest::For(NO_SUCH_MODEL)),
        Fault::TooLong { .. } => consequence(Again::No, Next::LargerContext, Rest::No),
        Fault::UnknownParameter { field, .. } => {
            consequence(Again::Without { field: field.clone() }, Next::Any, Rest::No)
        }
        Fault::Refused { .. } | Fault::Circular { .. } => {
            consequence(Again::No, Next::None, Rest::No)
        }
    }
}

fn consequence(again: Again, next: Next, rest: Rest) -> Consequence {
    Consequence { again, next, rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fault: Fault) -> Consequence {
        Consequence::of(&ModelError::upstream("a/b", fault))
    }

    fn message() -> String {
        "no".to_owned()
    }

    #[test]
    fn what_helps_depends_on_what_failed() {
        let seconds = Duration::from_secs;
        let once = |after| Again::Once { after };
        for (fault, again, next, rest) in [
            (
                Fault::Unreachable { detail: message() },
                once(RECONNECT),
                Next::Any,
                Rest::For(seconds(2)),
            ),
            (
                Fault::Overloaded { message: message(), retry_after: None },
                once(OVERLOAD),
                Next::Any,
                Rest::Counts,
            ),
            (
                Fault::Overloaded { message: message(), retry_after: Some(seconds(9)) },
                Again::No,
                Next::Any,
                Rest::For(seconds(9)),
            ),
            (
                Fault::Limited { message: message(), retry_after: Some(seconds(30)) },
                Again::No,
                Next::Any,
                Rest::For(seconds(30)),
            ),
            (
                Fault::Limited { message: message(), retry_after: Some(seconds(1)) },
                Again::IfLast { after: seconds(1) },
                Next::Any,
                Rest::For(seconds(1)),
            ),
            (Fault::Failed { message: message() }, Again::No, Next::Any, Rest::Counts),
            (Fault::CutOff, Again::No, Next::Any, Rest::Counts),
            (Fault::Empty, Again::No, Next::Any, Rest::Counts),
            (
                Fault::KeyRefused { message: message() },
                Again::No,
                Next::Any,
                Rest::For(seconds(60)),
            ),
            (Fault::NoCredit { message: message() }, Again::No, Next::Any, Rest::For(seconds(600))),
            (
                Fault::TooLong { message: message(), needed: None, available: None },
                Again::No,
                Next::LargerContext,
                Rest::No,
            ),
            (
                Fault::UnknownParameter { field: "min_p".to_owned(), message: message() },
                Again::Without { field: "min_p".to_owned() },
                Next::Any,
                Rest::No,
            ),
            (Fault::Refused { message: message() }, Again::No, Next::None, Rest::No),
            (Fault::Circular { message: message() }, Again::No, Next::None, Rest::No),
        ] {
            assert_eq!(of(fault.clone()), consequence(again, next, rest), "{fault}");
        }
        let spent = Fault::TimedOut { clock: Clock::Total, after: seconds(600) };
        assert_eq!(of(spent).next, Next::None);
        let silent = Fault::TimedOut { clock: Clock::FirstToken, after: seconds(45) };
        assert_eq!(of(silent), consequence(Again::No, Next::Any, Rest::Counts));
    }

    #[test]
    fn what_really_went_wrong_is_told_rather_than_who_was_of_no_use() {
        let silent = Fault::TimedOut { clock: Clock::FirstToken, after: Duration::from_secs(45) };
        let silent = ModelError::upstream("a/b", silent);
        let failed = ModelError::upstream("a/c", Fault::Failed { message: message() });
        let long = Fault::TooLong { message: message(), needed: None, available: None };
        let long = ModelError::upstream("a/d", long);
        let own = ModelError::TooLong { needed: 9, available: 5 };
        let needs = "tools".to_owned();
        let incapable = ModelError::NoneCapable { alias: "a/e".to_owned(), needs };
        for (earlier, later, told) in [
            (None, &incapable, &incapable),
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
            assert_eq!(&more_telling(earlier.cloned(), later.clone()), told, "{earlier:?} {later}");
        }
    }

    #[test]
    fn a_model_of_our_own_that_is_not_ready_leaves_it_to_the_next() {
        let retry_after = Duration::from_secs(3);
        for error in [ModelError::Busy { retry_after }, ModelError::Loading { retry_after }] {
            assert_eq!(
                Consequence::of(&error),
                consequence(Again::No, Next::Any, Rest::No),
                "{error}"
            );
        }
        let too_long = ModelError::TooLong { needed: 9, available: 5 };
        assert_eq!(Consequence::of(&too_long).next, Next::LargerContext);
        let lost = ModelError::WorkerLost { engine: "chat", detail: message() };
        assert_eq!(Consequence::of(&lost).rest, Rest::Counts);
        assert_eq!(Consequence::of(&ModelError::EmptyText).next, Next::None);
    }
}
