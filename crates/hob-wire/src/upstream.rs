//! Other servers' protocols from the asking side: what hob sends there, and what it reads.
//! hob reads leniently and writes strictly, because servers differ more than their documentation says.

mod anthropic;
mod calls;
mod chunk;
mod embeddings;
mod extra;
mod fault;
mod finish;
mod lenient;
mod lists;
mod logprobs;
mod observe;
mod ollama;
mod pieces;
mod reader;
mod request;
mod speech;
mod text_frame;
mod thought;
mod transcript;

use hob_core::{ChatEvent, Fault};

pub use anthropic::{AnthropicReader, anthropic_continues, anthropic_drops, anthropic_request};
pub(crate) use calls::CallReader;
pub use embeddings::{
    ollama_embed_request, openai_embed_request, parse_ollama_vectors, parse_openai_vectors,
};
pub use fault::{HttpFailure, fault_of, fault_within};
pub use finish::FINISH_REPAIR;
pub use lists::{
    ListError, ServedModel, ollama_show_request, parse_anthropic_models, parse_llama_props,
    parse_ollama_ps, parse_ollama_show, parse_ollama_tags, parse_openai_models, parse_tabby_model,
};
pub use observe::{
    Observed, ObservedCounts, ObservedPart, ObservedText, TextKind, observe_ollama, observe_openai,
};
pub use ollama::{OllamaReader, ollama_path, ollama_request};
pub use pieces::{PieceKind, PieceTooLong, Pieces};
pub use reader::OpenAiReader;
pub use request::{
    CALL_SIGNATURE, LIMIT_NAMES, UnsupportedField, UpstreamDialect, unknown_fields, upstream_path,
    upstream_request,
};
pub use speech::{parse_voices, upstream_speech_request};
pub(crate) use thought::ThoughtSplitter;
pub use transcript::{
    RequestedFormat, TranscriptReader, parse_transcript, sound_name, transcript_fields,
    transcript_path,
};

/// Reads one streamed answer, piece by piece: the data of a server-sent event, or a line.
pub trait UpstreamReader: Send {
    /// Adds what `piece` says to `said`; often nothing. After [`ChatEvent::Done`] nothing follows.
    ///
    /// # Errors
    /// [`PieceError::Malformed`] may be skipped, and the next piece read; a failure is the answer's end.
    fn read(&mut self, piece: &str, said: &mut Vec<ChatEvent>) -> Result<(), PieceError>;

    /// The server has closed the answer. Adds what it left unsaid, the last event included.
    ///
    /// # Errors
    /// The answer was not complete.
    fn end(&mut self, said: &mut Vec<ChatEvent>) -> Result<(), Fault>;

    /// What hob has put right in the answer so far.
    fn repairs(&self) -> AnswerRepairs;
}

/// What hob put right in a server's answer, in one word for each repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerRepairs {
    pub repairs: Vec<&'static str>,
    /// Who counted the tokens of the answer. The prompt's are 0 if the server does not report them.
    pub usage: UsageSource,
}

/// Who counted the tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageSource {
    Reported,
    #[default]
    Counted,
}

/// Why a piece of an answer could not be read.
#[derive(Clone, Debug, PartialEq)]
pub enum PieceError {
    /// Not JSON, or JSON that is not part of an answer.
    Malformed,
    /// The server reports an error.
    Failed(Fault),
}
