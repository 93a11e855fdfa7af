//! One finding: the part, the verdict, what was found, and what to do.
//! Data, so that the same finding can be shown to a person and written as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Failure;
use crate::printer::{BAD, DOUBTFUL, GOOD};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) part: String,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_do: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Check {
    pub(super) fn ok(part: impl fmt::Display, found: impl fmt::Display) -> Check {
        let (part, found) = (part.to_string(), found.to_string());
        Check { part, verdict: Verdict::Ok, found, to_do: None }
    }

    pub(super) fn warn(
        part: impl fmt::Display,
        found: impl fmt::Display,
        to_do: impl fmt::Display,
    ) -> Check {
        let to_do = Some(to_do.to_string());
        Check { verdict: Verdict::Warn, to_do, ..Check::ok(part, found) }
    }

    pub(super) fn fail(
        part: impl fmt::Display,
        found: impl fmt::Display,
        to_do: impl fmt::Display,
    ) -> Check {
        Check { verdict: Verdict::Fail, ..Check::warn(part, found, to_do) }
    }

    pub(super) fn failed(part: impl fmt::Display, failure: Failure) -> Check {
        let check = Check::ok(part, failure.sentence);
        Check { verdict: Verdict::Fail, to_do: failure.hint, ..check }
    }
}

pub(super) fn too_slow(what: &str, time_max: Duration) -> Failure {
    Failure::engine(format!("no {what} within {} s", time_max.as_secs()))
        .hint("try again when the machine is less busy; `hob fit MODEL` says how much memory a model needs")
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, word) = match self.verdict {
            Verdict::Ok => (GOOD, "ok  "),
            Verdict::Warn => (DOUBTFUL, "warn"),
            Verdict::Fail => (BAD, "fail"),
        };
        write!(f, "{style}{word}{style:#}  {:<12} {}", self.part, self.found)?;
        match &self.to_do {
            Some(to_do) => write!(f, "\n{:19}→ {to_do}", ""),
            None => Ok(()),
        }
    }
}
