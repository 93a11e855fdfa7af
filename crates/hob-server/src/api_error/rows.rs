//! The status and code of failures that have a type of their own: of encoding, fitting, runs of teams and keys. A file
//! apart, because the table of all failures is long.

use std::time::Duration;

use axum::http::StatusCode;
use hob_speech::encode::EncodeError;

use super::{ErrorRow, Retry, unavailable};
use crate::fit_service::Unanswerable;
use crate::keys::KeyRefusal;
use crate::team_service::RunRefusal;

/// When one of a key's answers will end is unknown, and a retry costs little.
const ANSWER_ENDS: Duration = Duration::from_secs(1);

/// Runs take minutes, and a retry costs little.
const RUN_ENDS: Duration = Duration::from_secs(15);

pub(super) fn encode_row(error: &EncodeError) -> ErrorRow<'_> {
    match error {
        EncodeError::TooLongForWav { .. } | EncodeError::UnsupportedRate { .. } => {
            ErrorRow::new(StatusCode::BAD_REQUEST).param("response_format")
        }
        EncodeError::NotBuilt { .. } => {
            ErrorRow::new(StatusCode::NOT_IMPLEMENTED).code("not_built").param("response_format")
        }
        EncodeError::NotFinite { .. }
        | EncodeError::WrongLength { .. }
        | EncodeError::Codec { .. } => ErrorRow::new(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

pub(super) fn fit_row(error: &Unanswerable) -> ErrorRow<'_> {
    match error {
        Unanswerable::Unknown { field: "model", .. } => {
            ErrorRow::new(StatusCode::NOT_FOUND).code("model_not_found").param("model")
        }
        Unanswerable::Unknown { field, .. } => ErrorRow::new(StatusCode::NOT_FOUND).param(field),
        Unanswerable::Unreadable { .. } | Unanswerable::Impossible { .. } => {
            ErrorRow::new(StatusCode::BAD_REQUEST).param("model")
        }
    }
}

pub(super) fn run_row(refusal: &RunRefusal) -> ErrorRow<'_> {
    match refusal {
        RunRefusal::NoTeam { .. } => ErrorRow::new(StatusCode::NOT_FOUND).code("team_not_found"),
        RunRefusal::NoRun { .. } => ErrorRow::new(StatusCode::NOT_FOUND).code("run_not_found"),
        RunRefusal::NoFile { .. } => ErrorRow::new(StatusCode::NOT_FOUND),
        RunRefusal::BrokenTeam(_) | RunRefusal::TooLarge(_) => {
            ErrorRow::new(StatusCode::BAD_REQUEST)
        }
        RunRefusal::Conflict(_) => ErrorRow::new(StatusCode::CONFLICT),
        RunRefusal::Full { .. } => unavailable("runs_full").after(RUN_ENDS),
        RunRefusal::Failed(_) => ErrorRow::new(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

pub(super) fn key_row(refusal: &KeyRefusal) -> ErrorRow<'_> {
    let row = ErrorRow::new(refusal.status()).code(refusal.code());
    match refusal {
        KeyRefusal::NotAllowed { .. } | KeyRefusal::NoneAllowed { .. } => row.param("model"),
        KeyRefusal::TooFast { retry_after, .. } => row.after(*retry_after),
        KeyRefusal::TooMany { .. } | KeyRefusal::Reserved { .. } => row.after(ANSWER_ENDS),
        KeyRefusal::Spent { midnight_in, .. } => row.retry(Retry::NotBefore(*midnight_in)),
        KeyRefusal::NotShown { .. } | KeyRefusal::MayNotChangeTeams | KeyRefusal::MayNotDecide => {
            row
        }
    }
}
