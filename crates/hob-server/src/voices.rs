//! `POST /audio/voices/combine` keeps a blend of voices under a name, and `DELETE /audio/voices/{name}` forgets it.
//! Keeping writes a file, so it runs on a blocking thread.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use hob_core::voice_blend::speaker;
use hob_core::{ModelError, Speech, Voice};
use hob_wire::{
    WireCombine, WireError, combined_voice, deleted_voice, local_voice, own_voice, parse_combine,
    voice_among,
};
use tokio::task::spawn_blocking;

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::headers::json;
use crate::kept_voices::NotKept;
use crate::observe::NamePath;
use crate::request_body::read_command;

/// Maximum characters of a kept voice's name.
const NAME_CHARS_MAX: usize = 64;

/// What keys restricted to some names may not change.
const SHARED: &str = "kept voices, which all clients share";

/// Without a name, says what the blend would be, and keeps nothing.
pub(crate) async fn combine(request: Request) -> Result<Response, ApiError> {
    let (context, WireCombine { voices: asked, name }) =
        read_command(request, parse_combine).await?;
    let model = context.resolve::<Speech>(None)?.model;
    let voices = model.model.voices();
    let blend = own_voice(voices, &asked);
    let first = speaker(voices, &blend)?.clone();
    let Some(name) = name else {
        let id = blend.clone();
        return Ok(json(combined_voice(&Voice { id, ..first }, &blend, false)));
    };
    context.caller.check_sees_all(SHARED)?;
    check_name(&name, voices)?;
    let kept = Arc::clone(&context.options().kept_voices);
    let (id, parts) = (name.clone(), blend.clone());
    let done = off_thread(move || kept.keep(&id, &parts)).await?;
    done.map_err(|error| match error {
        NotKept::Full => ApiError::from(WireError::invalid("name", error.to_string())),
        NotKept::Unwritten(_) => failed(&error),
    })?;
    Ok(json(combined_voice(&Voice { id: name, ..first }, &blend, true)))
}

pub(crate) async fn forget(
    context: RequestContext,
    NamePath(name): NamePath,
) -> Result<Response, ApiError> {
    context.caller.check_sees_all(SHARED)?;
    let kept = Arc::clone(&context.options().kept_voices);
    let asked = name.clone();
    let was_kept =
        off_thread(move || kept.remove(&asked)).await?.map_err(|error| failed(&error))?;
    if !was_kept {
        return Err(ModelError::UnknownVoice { voice: name, near: Vec::new() }.into());
    }
    Ok(json(deleted_voice(&name)))
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work).await.map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    ModelError::EngineFailed { engine: "voice", detail: error.to_string() }.into()
}

/// A name that can stand in a path and in a blend's place, and that no other voice has.
fn check_name(name: &str, voices: &[Voice]) -> Result<(), WireError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well || !name.chars().all(is_plain) || name.len() > NAME_CHARS_MAX {
        let reason = "must begin with a letter and have at most 64 letters, digits, '_' and '-'";
        return Err(WireError::invalid("name", reason));
    }
    let is_taken = voice_among(voices, name).is_some() || local_voice(name).is_some();
    if is_taken || name == "combine" {
        let reason = format!("is taken: '{name}' means another voice; choose another name");
        return Err(WireError::invalid("name", reason));
    }
    Ok(())
}
