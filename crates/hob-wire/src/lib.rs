//! The JSON of OpenAI's, Ollama's, Anthropic's and hob's own APIs: request bodies become types, and types become answers.
//! No sockets. It reads the status codes of other servers; `hob-server` chooses those of hob's own answers.

mod captions;
mod census;
mod chat;
mod completions;
mod embeddings;
mod error;
mod fields;
mod fit;
mod keep_alive;
mod lifecycle;
mod lists;
mod names;
mod now;
mod ollama;
mod openai_answer;
mod openapi;
pub mod operations;
mod parameters;
mod pipelines;
mod realtime;
mod request_value;
mod responses;
mod routes;
mod speech;
mod sse;
mod teams;
mod transcript;
mod upstream;
mod url;
mod voice_combining;
mod word;
mod wyoming;

pub use captions::{CaptionPhoneme, CaptionWord, captioned_sound};
pub use chat::{CallShape, ChatAnswer, ChatChunks, ChatDelivery, UsageChunk, WireChat, parse_chat};
pub use completions::{CompletionAnswer, CompletionChunks, Echo, WireCompletion, parse_completion};
pub use embeddings::{VectorEncoding, WireEmbeddings, embeddings, parse_embeddings};
pub use error::{ErrorBody, ErrorKind, WireError};
pub use fit::{
    FitAnswer, FitModel, FitRequest, fit_machines, fit_models, parse_fit, parse_fit_query,
};
pub use lifecycle::{
    ResidenceRequest, ResidentModel, ResidentModels, ResidentPool, loading_line, parse_residence,
    resident, residents,
};
pub use lists::{
    ModelEntry, ModelKind, audio_models, deleted_model, model, models, models_of_pipelines,
    readiness, state_name, voice_ids, voices,
};
pub use names::{
    is_default_realtime_model, is_default_speech_model, is_default_transcript_model,
    language_agrees, local_speech_model, local_voice, openai_voices, own_voice, voice_among,
};
pub use now::{
    AliasView, FailedView, NowView, Produced, QueueFigures, RequestEnd, RequestView, Stage,
    TargetQueue, now, request,
};
pub use ollama::{
    OllamaAction, OllamaAnswer, OllamaDelivery, OllamaEmbed, OllamaModel, OllamaNamed,
    OllamaRequest, OllamaResident, OllamaShape, is_tag_of, ollama_embedding, ollama_embeddings,
    ollama_error, ollama_loaded, ollama_ps, ollama_show, ollama_success, ollama_tags,
    ollama_unloaded, ollama_version, parse_ollama_chat, parse_ollama_embed,
    parse_ollama_embeddings, parse_ollama_generate, parse_ollama_named, tagged,
};
pub use openai_answer::{AnswerChunks, AnswerHead, CollectedAnswer};
pub use openapi::openapi;
pub use parameters::Parameters;
pub use pipelines::{
    Valve, ValveChange, ValveKind, inlet, outlet, parse_pipeline_address, parse_pipeline_name,
    parse_valves, pipeline_changed, pipeline_error, pipeline_message, pipelines, valves,
    valves_spec,
};
pub use realtime::{
    ClientInput, ClientSecret, RealtimeDialect, RealtimeWriter, SOUND_BYTES_MAX, TurnStagesMs,
    WireClientSecret, parse_client_event, parse_client_secret, parse_realtime_query,
    turn_stages_event,
};
pub use responses::{
    InputEntry, ItemOrder, ItemPage, ResponseAnswer, ResponseItem, ResponseSettings,
    ResponseSource, ResponseView, WireConversation, WireResponse, conversation,
    conversation_deleted, estimated_input_tokens, input_tokens, parse_conversation,
    parse_conversation_items, parse_item_page, parse_response, parse_response_view,
    response_deleted, response_items, run_deleted,
};
pub use routes::{AliasRoute, RouteTarget, TargetFailure, UpstreamList, UpstreamState};
pub use speech::{
    SpeechDelivery, WireSpeech, ignored_header, parse_captioned_speech, parse_speech,
};
pub use sse::{SpeechUsage, chat_failed, error_event, speech_delta, speech_done};
pub use teams::{
    RunAnswer, RunApproval, RunFileView, RunRow, RunVerdict, StartRun, TeamAgentView,
    TeamFileError, TeamView, parse_decision, parse_run_list, parse_start_run, run, run_event, runs,
    team, teams,
};
pub use transcript::{
    FormField, TranscriptAnswer, TranscriptFormat, WireTranscript, checked_language,
    parse_transcript_form, parse_transcript_json, spoken_language, transcript_delta,
    transcript_done, transcript_failed, transcript_segment, transcript_word,
};
pub use upstream::{
    AnswerRepairs, AnthropicReader, CALL_SIGNATURE, FINISH_REPAIR, HttpFailure, LIMIT_NAMES,
    ListError, Observed, ObservedCounts, ObservedPart, ObservedText, OllamaReader, OpenAiReader,
    PieceError, PieceKind, PieceTooLong, Pieces, RequestedFormat, ServedModel, TextKind,
    TranscriptReader, UnsupportedField, UpstreamDialect, UpstreamReader, UsageSource,
    anthropic_continues, anthropic_drops, anthropic_request, fault_of, fault_within,
    observe_ollama, observe_openai, ollama_embed_request, ollama_path, ollama_request,
    ollama_show_request, openai_embed_request, parse_anthropic_models, parse_llama_props,
    parse_ollama_ps, parse_ollama_show, parse_ollama_tags, parse_ollama_vectors,
    parse_openai_models, parse_openai_vectors, parse_tabby_model, parse_transcript, parse_voices,
    sound_name, transcript_fields, transcript_path, unknown_fields, upstream_path,
    upstream_request, upstream_speech_request,
};
pub use url::percent_encoded;
pub use voice_combining::{WireCombine, combined_voice, deleted_voice, parse_combine};
pub use wyoming::{
    SpeechProgram, TranscriptionProgram, WyomingAnswer, WyomingDecoder, WyomingError, WyomingEvent,
    WyomingInfo, WyomingTranscribe, WyomingVoice,
};
