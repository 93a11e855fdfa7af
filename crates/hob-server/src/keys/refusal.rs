//! Why the holder of a valid key gets no answer: the key may not do it, or not now. A name that a key may not use is
//! refused in the same way whether it exists or not, so refusals do not reveal names.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use axum::http::StatusCode;
use hob_core::{count_text, whole_seconds};

/// Maximum names in a message.
const NAMED_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyRefusal {
    #[error("this key may not use '{name}'; {}", usable(allowed))]
    NotAllowed { name: String, allowed: Vec<String> },
    /// The request named no model.
    #[error("this key may use no {kind} model; {}", usable(allowed))]
    NoneAllowed { kind: &'static str, allowed: Vec<String> },
    #[error("this key may not see {what}; {}", usable(allowed))]
    NotShown { what: &'static str, allowed: Vec<String> },
    #[error(
        "changing teams takes a key without `aliases`; set one with HOB_API_KEY, or [keys.NAME] in \
         hob.toml"
    )]
    MayNotChangeTeams,
    #[error(
        "another key started this run, and only that key approves or denies its calls; `hob team approve` and \
         `hob team deny` on hob's machine do so, too"
    )]
    MayNotDecide,
    #[error(
        "this key may send {} per minute; try again in {} s",
        count_text(.per_minute, "request"),
        whole_seconds(*.retry_after)
    )]
    TooFast { per_minute: NonZeroU32, retry_after: Duration },
    #[error("this key may have {} at a time; wait for the end of an answer", count_text(.at_once, "answer"))]
    TooMany { at_once: NonZeroU32 },
    #[error(
        "this key may use {} per day, and its running answers have reserved the rest; wait for the end of an answer",
        count_text(.per_day, "token")
    )]
    Reserved { per_day: NonZeroU64 },
    #[error(
        "this key has used its {} of today; the next day begins at midnight UTC, in {} min",
        count_text(.per_day, "token"),
        whole_seconds(*.midnight_in).div_ceil(60)
    )]
    Spent { per_day: NonZeroU64, midnight_in: Duration },
}

impl KeyRefusal {
    /// 403 for what the key may never do; 429 for a limit, because trying again later helps.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            KeyRefusal::NotAllowed { .. }
            | KeyRefusal::NoneAllowed { .. }
            | KeyRefusal::NotShown { .. }
            | KeyRefusal::MayNotChangeTeams
            | KeyRefusal::MayNotDecide => StatusCode::FORBIDDEN,
            _ => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The stable code for clients, and a label of the metric.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            KeyRefusal::NotAllowed { .. } | KeyRefusal::NoneAllowed { .. } => "model_not_allowed",
            KeyRefusal::NotShown { .. }
            | KeyRefusal::MayNotChangeTeams
            | KeyRefusal::MayNotDecide => "not_allowed",
            KeyRefusal::TooFast { .. } => "rate_limit_exceeded",
            KeyRefusal::TooMany { .. } => "concurrency_limit_exceeded",
            KeyRefusal::Spent { .. } | KeyRefusal::Reserved { .. } => "budget_exceeded",
        }
    }
}

fn usable(allowed: &[String]) -> String {
    let named = allowed.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match allowed.len() {
        0 => "it may use none".to_owned(),
        count if count > NAMED_MAX => {
            format!("it may use {named} and {} more", count - NAMED_MAX)
        }
        _ => format!("it may use {named}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_may_be_used_but_no_endless_list() {
        for (count, expected) in [
            (0, "this key may not use 'x'; it may use none"),
            (1, "this key may not use 'x'; it may use m1"),
            (5, "this key may not use 'x'; it may use m1, m2, m3, m4, m5"),
            (7, "this key may not use 'x'; it may use m1, m2, m3, m4, m5 and 2 more"),
        ] {
            let allowed = (1..=count).map(|number| format!("m{number}")).collect();
            let refusal = KeyRefusal::NotAllowed { name: "x".to_owned(), allowed };
            assert_eq!(refusal.to_string(), expected);
        }
    }

    #[test]
    fn it_says_how_long() {
        let midnight_in = Duration::from_millis(60_001);
        for (per_day, tokens) in
            [(NonZeroU64::MIN, "1 token"), (NonZeroU64::MAX, "18446744073709551615 tokens")]
        {
            let spent = KeyRefusal::Spent { per_day, midnight_in };
            let expected = format!(
                "this key has used its {tokens} of today; the next day begins at midnight UTC, in 2 min"
            );
            assert_eq!(spent.to_string(), expected);
        }
        let per_minute = NonZeroU32::new(60).expect("some");
        let fast = KeyRefusal::TooFast { per_minute, retry_after: Duration::from_millis(1) };
        assert_eq!(fast.to_string(), "this key may send 60 requests per minute; try again in 1 s");
    }
}
