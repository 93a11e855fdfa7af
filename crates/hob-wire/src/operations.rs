//! The table of hob's routes: method, path, what each takes and what it answers. The server registers its handlers
//! by this table, and `GET /openapi.json` and `docs/reference/api.md` are made from it.

mod table;

use schemars::{Schema, SchemaGenerator};
use serde::Serialize;

pub use table::*;

/// One route: a method on a path.
#[derive(Debug)]
pub struct Operation {
    pub method: OperationMethod,
    /// As the router writes it: `/v1/models/{*id}`. A path below `/v1` is also answered without `/v1`.
    pub path: &'static str,
    /// The name of the operation in `/openapi.json`.
    pub(crate) id: &'static str,
    pub(crate) group: OperationGroup,
    pub(crate) summary: &'static str,
    pub(crate) access: OperationAccess,
    pub(crate) input: OperationInput,
    pub(crate) answers: &'static [OperationAnswer],
}

hob_core::enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OperationMethod: name {
        Get = "GET",
        Post = "POST",
        Delete = "DELETE",
    }
}

/// The sections of the reference page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum OperationGroup {
    Speech,
    Transcription,
    Realtime,
    Chat,
    Responses,
    Teams,
    Pipelines,
    Ollama,
    Memory,
    Requests,
    Fit,
    State,
    Pages,
}

/// Whether a route needs a key, where hob has keys, and which errors it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationAccess {
    /// No key.
    Open,
    /// No key, but a wrong one is refused.
    List,
    /// A key, and no model.
    Keyed,
    /// A key; a model answers.
    Model,
}

/// Adds a type's schema to the document and returns a reference to it.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a request carries.
#[derive(Debug)]
pub(crate) enum OperationInput {
    Nothing,
    /// A JSON object with the fields of these types, under the name of the first part.
    Json(&'static str, &'static [SchemaOf]),
    /// A multipart form with a file in the field `file`.
    Form,
    /// A multipart form with a file and the fields of a type, or JSON that holds the file.
    FormOrJson(&'static str, SchemaOf, SchemaOf),
    /// The fields of a type, in the query of the address.
    Query(SchemaOf),
    /// A flag in the query of the address.
    Flag(&'static str, &'static str),
}

/// One form of a good answer.
#[derive(Debug)]
pub(crate) enum OperationAnswer {
    Json(SchemaOf),
    /// JSON with status 202: the work continues after the answer.
    Accepted(SchemaOf),
    /// Server-sent events, each with one of these types as JSON.
    Events(&'static [SchemaOf]),
    /// Lines of JSON, each of one of these types.
    Lines(&'static [SchemaOf]),
    /// Bytes or text of this media type.
    Raw(&'static str),
    /// A WebSocket. Each text of the client is of the first type, each of the server of the second.
    Socket(SchemaOf, SchemaOf),
    /// Always an error with this status: Ollama's routes that hob does not offer.
    NotOffered,
}

/// Whether this path, as the router writes it, is one of Ollama's routes. Their errors have a form of their own.
pub fn is_ollamas(path: &str) -> bool {
    let mut ollamas = OPERATIONS.iter().filter(|one| one.group == OperationGroup::Ollama);
    ollamas.any(|operation| operation.path == path)
}
