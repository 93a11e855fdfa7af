//! Every route of hob. A route that is missing here cannot be registered.
//! Types of fields and answers carry their own descriptions; a row adds one sentence.

use schemars::SchemaGenerator;

use super::OperationAccess::{Keyed, List, Model, Open};
use super::OperationAnswer::{Accepted, Events, Json, Lines, NotOffered, Raw, Socket};
use super::OperationGroup::{
    Chat, Fit, Memory, Ollama, Pages, Pipelines, Realtime, Requests, Responses, Speech, State,
    Teams, Transcription,
};
use super::OperationInput::{Flag, Form, FormOrJson, Json as Body, Nothing, Query};
use super::OperationMethod::{Delete, Get, Post};
use super::{Operation, SchemaOf};
use crate::captions::CaptionedSound;
use crate::chat::{
    AnswerFields, ChatCompletion, ChatCompletionChunk, ChatFields, LogprobFields, OutputFields,
    SamplingFields, StatusChunk, ThinkingFields, ToolFields,
};
use crate::completions::{CompletionFields, TextCompletion};
use crate::embeddings::{EmbeddingFields, EmbeddingList};
use crate::error::ErrorEnvelope;
use crate::fit::{FitAnswer, FitFields, FitMachines, FitModels};
use crate::lifecycle::{LoadingLine, ResidenceFields, ResidentModel, ResidentModels};
use crate::lists::{AudioModels, ListedModel, ModelList, Readiness, VoiceList};
use crate::now::{NowView, ShownRequest};
use crate::ollama::{
    OllamaCard, OllamaChatFields, OllamaEmbedFields, OllamaEmbedding, OllamaEmbeddings,
    OllamaFailure, OllamaFields, OllamaGenerateFields, OllamaLine, OllamaNamedFields, OllamaPs,
    OllamaStatus, OllamaTags, OllamaVersion,
};
use crate::pipelines::{
    FilterFields, PipelineAddressFields, PipelineChanged, PipelineList, PipelineMessage,
    PipelineNameFields, ValveFields,
};
use crate::realtime::{
    ClientSecretFields, RealtimeClientEvent, RealtimeQueryFields, RealtimeServerEvent, SecretAnswer,
};
use crate::responses::{
    ConversationFields, ConversationItemFields, DeletedObject, InputTokenCount, ItemListFields,
    ResponseEvent, ResponseFields, ResponseItem, ResponseItemList, ResponseObject,
    ResponseViewFields, ShownConversation,
};
use crate::routes::{AliasRoute, UpstreamList};
use crate::speech::{CaptionFields, SpeechFields};
use crate::sse::{ErrorEvent, SpeechDelta, SpeechDone};
use crate::teams::{
    DecisionFields, RunAnswer, RunList, RunListFields, RunRow, StartRunFields, TeamList,
    TeamRunEvent, TeamView,
};
use crate::transcript::{
    InputAudioFields, Transcript, TranscriptDelta, TranscriptDone, TranscriptFields,
    TranscriptSegmentEvent, TranscriptWordEvent, VerboseTranscript,
};
use crate::voice_combining::{CombineFields, CombinedVoice, DeletedVoice};

macro_rules! schemas {
    ($($type:ty),*) => { &[$(SchemaGenerator::subschema_for::<$type> as SchemaOf),*] };
}

macro_rules! schema {
    ($type:ty) => {
        SchemaGenerator::subschema_for::<$type>
    };
}

macro_rules! operations {
    ($($name:ident: $method:ident $path:literal $id:literal, $group:ident, $access:ident,
        $summary:literal, $input:expr => $answers:expr;)*) => {
        $(pub const $name: Operation = Operation {
            method: $method,
            path: $path,
            id: $id,
            group: $group,
            summary: $summary,
            access: $access,
            input: $input,
            answers: &$answers,
        };)*

        /// Every route, in the order of the reference page.
        pub const OPERATIONS: &[Operation] = &[$($name),*];
    };
}

const CHAT_FIELDS: &[SchemaOf] = schemas![
    ChatFields,
    AnswerFields,
    SamplingFields,
    LogprobFields,
    OutputFields,
    ToolFields,
    ThinkingFields
];
const COMPLETION_FIELDS: &[SchemaOf] =
    schemas![CompletionFields, AnswerFields, SamplingFields, OutputFields];
const RESPONSE_FIELDS: &[SchemaOf] = schemas![ResponseFields, SamplingFields, ThinkingFields];
const TRANSCRIPT_EVENTS: &[SchemaOf] = schemas![
    TranscriptDelta,
    TranscriptSegmentEvent,
    TranscriptWordEvent,
    TranscriptDone,
    ErrorEvent
];
const OLLAMA_CHAT_FIELDS: &[SchemaOf] =
    schemas![OllamaChatFields, OllamaFields, LogprobFields, ToolFields];
const OLLAMA_GENERATE_FIELDS: &[SchemaOf] =
    schemas![OllamaGenerateFields, OllamaFields, LogprobFields];

operations! {
    SPEECH: Post "/v1/audio/speech" "createSpeech", Speech, Model,
        "Reads a text aloud.",
        Body("SpeechRequest", schemas![SpeechFields])
        => [Raw("audio/*"), Events(schemas![SpeechDelta, SpeechDone, ErrorEvent])];
    CAPTIONED_SPEECH: Post "/dev/captioned_speech" "createCaptionedSpeech", Speech, Model,
        "Reads a text aloud and says when each word is heard, as Kokoro-FastAPI does.",
        Body("CaptionedSpeechRequest", schemas![SpeechFields, CaptionFields])
        => [Json(schema!(CaptionedSound)), Lines(schemas![CaptionedSound])];
    AUDIO_MODELS: Get "/v1/audio/models" "listAudioModels", Speech, List,
        "Lists the models that speak.",
        Nothing => [Json(schema!(AudioModels))];
    VOICES: Get "/v1/audio/voices" "listVoices", Speech, List,
        "Lists the voices whose language can be read aloud.",
        Flag("legacy", "`true` lists names only, for older clients.") => [Json(schema!(VoiceList))];
    COMBINE_VOICES: Post "/v1/audio/voices/combine" "combineVoices", Speech, Keyed,
        "Keeps a blend of voices under a name, for the voices of the default model.",
        Body("CombineRequest", schemas![CombineFields]) => [Json(schema!(CombinedVoice))];
    DELETE_VOICE: Delete "/v1/audio/voices/{name}" "deleteVoice", Speech, Keyed,
        "Forgets a kept voice.",
        Nothing => [Json(schema!(DeletedVoice))];
    TRANSCRIPTIONS: Post "/v1/audio/transcriptions" "createTranscription", Transcription, Model,
        "Writes down what is said in a sound file.",
        FormOrJson("TranscriptionRequest", schema!(TranscriptFields), schema!(InputAudioFields))
        => [Json(schema!(Transcript)), Json(schema!(VerboseTranscript)), Raw("text/plain"), Raw("text/vtt"),
            Events(TRANSCRIPT_EVENTS)];
    TRANSLATIONS: Post "/v1/audio/translations" "createTranslation", Transcription, Model,
        "Writes down in English what is said in a sound file.",
        FormOrJson("TranscriptionRequest", schema!(TranscriptFields), schema!(InputAudioFields))
        => [Json(schema!(Transcript)), Json(schema!(VerboseTranscript)), Raw("text/plain"), Raw("text/vtt"),
            Events(TRANSCRIPT_EVENTS)];
    REALTIME: Get "/v1/realtime" "connectRealtime", Realtime, Model,
        "Opens a spoken conversation over a WebSocket.",
        Query(schema!(RealtimeQueryFields))
        => [Socket(schema!(RealtimeClientEvent), schema!(RealtimeServerEvent))];
    CLIENT_SECRETS: Post "/v1/realtime/client_secrets" "createClientSecret", Realtime, Keyed,
        "Makes a short-lived secret that opens realtime sessions, so that a page needs no key.",
        Body("ClientSecretRequest", schemas![ClientSecretFields]) => [Json(schema!(SecretAnswer))];
    CHAT: Post "/v1/chat/completions" "createChatCompletion", Chat, Model,
        "Answers a conversation.",
        Body("ChatRequest", CHAT_FIELDS)
        => [Json(schema!(ChatCompletion)),
            Events(schemas![ChatCompletionChunk, StatusChunk, ErrorEnvelope])];
    COMPLETIONS: Post "/v1/completions" "createCompletion", Chat, Model,
        "Continues a text or tokens as they stand, without a chat template.",
        Body("CompletionRequest", COMPLETION_FIELDS)
        => [Json(schema!(TextCompletion)), Events(schemas![TextCompletion, ErrorEnvelope])];
    CREATE_RESPONSE: Post "/v1/responses" "createResponse", Responses, Model,
        "Answers a conversation, and stores it so that later requests can continue it.",
        Body("ResponseRequest", RESPONSE_FIELDS)
        => [Json(schema!(ResponseObject)), Events(schemas![ResponseEvent])];
    COUNT_INPUT_TOKENS: Post "/v1/responses/input_tokens" "countInputTokens", Responses, Model,
        "Counts the tokens that a request has, with the conversation before it, and answers nothing.",
        Body("ResponseRequest", RESPONSE_FIELDS) => [Json(schema!(InputTokenCount))];
    COMPACT_RESPONSE: Post "/v1/responses/compact" "compactResponse", Responses, Keyed,
        "Not offered: only OpenAI's models can read a compacted conversation.", Nothing => [NotOffered];
    RESPONSE: Get "/v1/responses/{id}" "getResponse", Responses, Keyed,
        "Shows a stored response, or its events.",
        Query(schema!(ResponseViewFields))
        => [Json(schema!(ResponseObject)), Events(schemas![ResponseEvent])];
    DELETE_RESPONSE: Delete "/v1/responses/{id}" "deleteResponse", Responses, Keyed,
        "Deletes a stored response.",
        Nothing => [Json(schema!(DeletedObject))];
    CANCEL_RESPONSE: Post "/v1/responses/{id}/cancel" "cancelResponse", Responses, Keyed,
        "Shows a stored response. A response in progress ends when its client leaves.",
        Nothing => [Json(schema!(ResponseObject))];
    RESPONSE_INPUT: Get "/v1/responses/{id}/input_items" "listInputItems", Responses, Keyed,
        "Lists what a stored response answers: its input, with the conversation before it.",
        Query(schema!(ItemListFields)) => [Json(schema!(ResponseItemList))];
    CREATE_CONVERSATION: Post "/v1/conversations" "createConversation", Responses, Keyed,
        "Makes a conversation that responses can continue.",
        Body("ConversationRequest", schemas![ConversationFields]) => [Json(schema!(ShownConversation))];
    CONVERSATION: Get "/v1/conversations/{id}" "getConversation", Responses, Keyed,
        "Shows a conversation.",
        Nothing => [Json(schema!(ShownConversation))];
    UPDATE_CONVERSATION: Post "/v1/conversations/{id}" "updateConversation", Responses, Keyed,
        "Replaces the metadata of a conversation.",
        Body("ConversationRequest", schemas![ConversationFields]) => [Json(schema!(ShownConversation))];
    DELETE_CONVERSATION: Delete "/v1/conversations/{id}" "deleteConversation", Responses, Keyed,
        "Deletes a conversation with its items.",
        Nothing => [Json(schema!(DeletedObject))];
    CONVERSATION_ITEMS: Get "/v1/conversations/{id}/items" "listConversationItems", Responses, Keyed,
        "Lists the items of a conversation.",
        Query(schema!(ItemListFields)) => [Json(schema!(ResponseItemList))];
    ADD_CONVERSATION_ITEMS: Post "/v1/conversations/{id}/items" "createConversationItems", Responses, Keyed,
        "Adds items to a conversation.",
        Body("ConversationItemsRequest", schemas![ConversationItemFields])
        => [Json(schema!(ResponseItemList))];
    CONVERSATION_ITEM: Get "/v1/conversations/{id}/items/{item}" "getConversationItem", Responses, Keyed,
        "Shows an item of a conversation.",
        Nothing => [Json(schema!(ResponseItem))];
    DELETE_CONVERSATION_ITEM: Delete "/v1/conversations/{id}/items/{item}" "deleteConversationItem", Responses, Keyed,
        "Deletes an item of a conversation.",
        Nothing => [Json(schema!(ShownConversation))];
    EMBEDDINGS: Post "/v1/embeddings" "createEmbedding", Chat, Model,
        "Turns texts or tokens into vectors of length 1.",
        Body("EmbeddingRequest", schemas![EmbeddingFields]) => [Json(schema!(EmbeddingList))];
    MODELS: Get "/v1/models" "listModels", Chat, List,
        "Lists the models and aliases that requests may name, pulled models included.",
        Nothing => [Json(schema!(ModelList))];
    MODEL: Get "/v1/models/{*id}" "getModel", Chat, Keyed,
        "Shows a model, by any of its names.",
        Nothing => [Json(schema!(ListedModel))];
    DELETE_MODEL: Delete "/v1/models/{*id}" "deleteModel", Chat, Keyed,
        "Pretends to delete a model. hob answers it only with `dev.mock_unknown_models`.",
        Nothing => [Json(schema!(DeletedObject))];
    TEAMS: Get "/v1/teams" "listTeams", Teams, Keyed,
        "Lists the teams, also those whose file has a mistake.",
        Nothing => [Json(schema!(TeamList))];
    TEAM: Get "/v1/teams/{id}" "getTeam", Teams, Keyed,
        "Shows a team.",
        Nothing => [Json(schema!(TeamView))];
    RUNS: Get "/v1/runs" "listRuns", Teams, Keyed,
        "Lists the runs of teams, the newest first.",
        Query(schema!(RunListFields)) => [Json(schema!(RunList))];
    START_RUN: Post "/v1/runs" "createRun", Teams, Keyed,
        "Gives a task to a team. The run goes on in the server.",
        Body("RunRequest", schemas![StartRunFields]) => [Accepted(schema!(RunRow))];
    RUN: Get "/v1/runs/{id}" "getRun", Teams, Keyed,
        "Shows a run: its answer, its files, and the call that waits for approval.",
        Nothing => [Json(schema!(RunAnswer))];
    RUN_EVENTS: Get "/v1/runs/{id}/events" "listRunEvents", Teams, Keyed,
        "Streams what happens in a run, from its start or after `Last-Event-ID`, until it ends or waits.",
        Nothing => [Events(schemas![TeamRunEvent, ErrorEnvelope])];
    RUN_FILE: Get "/v1/runs/{id}/files/{*path}" "getRunFile", Teams, Keyed,
        "Downloads a file that a run has made.",
        Nothing => [Raw("text/plain")];
    DELETE_RUN: Delete "/v1/runs/{id}" "deleteRun", Teams, Keyed,
        "Deletes a run that has ended, with the files in its own folder.",
        Nothing => [Json(schema!(DeletedObject))];
    CANCEL_RUN: Post "/v1/runs/{id}/cancel" "cancelRun", Teams, Keyed,
        "Ends a run.",
        Nothing => [Json(schema!(RunAnswer))];
    RESUME_RUN: Post "/v1/runs/{id}/resume" "resumeRun", Teams, Keyed,
        "Goes on in the server with a run that was interrupted, or failed with its model.",
        Nothing => [Json(schema!(RunAnswer))];
    DECIDE_APPROVAL: Post "/v1/runs/{id}/approvals/{approval}" "decideApproval", Teams, Keyed,
        "Approves or denies the call that a run waits for. The run goes on in the server.",
        Body("ApprovalDecision", schemas![DecisionFields]) => [Json(schema!(RunAnswer))];
    PIPELINES: Get "/v1/pipelines" "listPipelines", Pipelines, Keyed,
        "Lists the teams that chats can use.",
        Nothing => [Json(schema!(PipelineList))];
    RELOAD_PIPELINES: Post "/v1/pipelines/reload" "reloadPipelines", Pipelines, Keyed,
        "Names the mistakes in team files. hob reads changed files without it, within a second.",
        Nothing => [Json(schema!(PipelineMessage))];
    ADD_PIPELINE: Post "/v1/pipelines/add" "addPipeline", Pipelines, Keyed,
        "Downloads a team file from a public address and adds the team.",
        Body("PipelineAddressRequest", schemas![PipelineAddressFields]) => [Json(schema!(PipelineChanged))];
    UPLOAD_PIPELINE: Post "/v1/pipelines/upload" "uploadPipeline", Pipelines, Keyed,
        "Adds a team by its file.",
        Form => [Json(schema!(PipelineChanged))];
    DELETE_PIPELINE: Delete "/v1/pipelines/delete" "deletePipeline", Pipelines, Keyed,
        "Takes a team out of service. Its file stays, with `.disabled` behind its name.",
        Body("PipelineNameRequest", schemas![PipelineNameFields]) => [Json(schema!(PipelineChanged))];
    VALVES: Get "/v1/{id}/valves" "getValves", Pipelines, Keyed,
        "Shows the valves of a team: the values in force.",
        Nothing => [Raw("application/json")];
    VALVES_SPEC: Get "/v1/{id}/valves/spec" "getValvesSpec", Pipelines, Keyed,
        "Describes the valves of a team as a JSON schema.",
        Nothing => [Raw("application/json")];
    UPDATE_VALVES: Post "/v1/{id}/valves/update" "updateValves", Pipelines, Keyed,
        "Changes valves. `null` or an empty text goes back to the team file's value, and a valve that is left out stays. Answers as `GET /v1/{id}/valves`.",
        Body("ValvesRequest", schemas![ValveFields]) => [Raw("application/json")];
    INLET: Post "/v1/{id}/filter/inlet" "filterInlet", Pipelines, Keyed,
        "Answers with the body, in which `x_hob_task` says what the request is for: `chat`, or a job such as `title_generation`.",
        Body("FilterRequest", schemas![FilterFields]) => [Raw("application/json")];
    OUTLET: Post "/v1/{id}/filter/outlet" "filterOutlet", Pipelines, Keyed,
        "Answers with the body.",
        Body("FilterRequest", schemas![FilterFields]) => [Raw("application/json")];
    OLLAMA_CHAT: Post "/api/chat" "ollamaChat", Ollama, Model,
        "Answers a conversation.",
        Body("OllamaChatRequest", OLLAMA_CHAT_FIELDS)
        => [Json(schema!(OllamaLine)), Lines(schemas![OllamaLine, OllamaFailure])];
    OLLAMA_GENERATE: Post "/api/generate" "ollamaGenerate", Ollama, Model,
        "Answers a prompt.",
        Body("OllamaGenerateRequest", OLLAMA_GENERATE_FIELDS)
        => [Json(schema!(OllamaLine)), Lines(schemas![OllamaLine, OllamaFailure])];
    OLLAMA_EMBED: Post "/api/embed" "ollamaEmbed", Ollama, Model,
        "Turns texts into vectors.",
        Body("OllamaEmbedRequest", schemas![OllamaEmbedFields]) => [Json(schema!(OllamaEmbeddings))];
    OLLAMA_EMBEDDINGS: Post "/api/embeddings" "ollamaEmbeddings", Ollama, Model,
        "Turns one text into a vector, for older clients.",
        Body("OllamaEmbedRequest", schemas![OllamaEmbedFields]) => [Json(schema!(OllamaEmbedding))];
    OLLAMA_TAGS: Get "/api/tags" "ollamaTags", Ollama, List,
        "Lists the chat models.",
        Nothing => [Json(schema!(OllamaTags))];
    OLLAMA_SHOW: Post "/api/show" "ollamaShow", Ollama, Keyed,
        "Shows a chat model.",
        Body("OllamaNamedRequest", schemas![OllamaNamedFields]) => [Json(schema!(OllamaCard))];
    OLLAMA_PS: Get "/api/ps" "ollamaPs", Ollama, Keyed,
        "Lists the chat models in memory.",
        Nothing => [Json(schema!(OllamaPs))];
    OLLAMA_VERSION: Get "/api/version" "ollamaVersion", Ollama, Open,
        "Names the version of Ollama whose API this is. hob's own version is in `/health`.",
        Nothing => [Json(schema!(OllamaVersion))];
    OLLAMA_PULL: Post "/api/pull" "ollamaPull", Ollama, Keyed,
        "Succeeds for a model that is here. hob downloads no model for a client.",
        Body("OllamaNamedRequest", schemas![OllamaNamedFields])
        => [Json(schema!(OllamaStatus)), Lines(schemas![OllamaStatus])];
    OLLAMA_CREATE: Post "/api/create" "ollamaCreate", Ollama, Keyed,
        "Not offered: hob's owner manages the model files.", Nothing => [NotOffered];
    OLLAMA_COPY: Post "/api/copy" "ollamaCopy", Ollama, Keyed,
        "Not offered: hob's owner manages the model files.", Nothing => [NotOffered];
    OLLAMA_DELETE: Delete "/api/delete" "ollamaDelete", Ollama, Keyed,
        "Not offered: hob's owner manages the model files.", Nothing => [NotOffered];
    OLLAMA_PUSH: Post "/api/push" "ollamaPush", Ollama, Keyed,
        "Not offered: hob's owner manages the model files.", Nothing => [NotOffered];
    OLLAMA_BLOB: Post "/api/blobs/{digest}" "ollamaBlob", Ollama, Keyed,
        "Not offered: hob's owner manages the model files.", Nothing => [NotOffered];
    RESIDENTS: Get "/api/hob/ps" "listResidents", Memory, Keyed,
        "Lists every model that hob holds, in memory or not.",
        Nothing => [Json(schema!(ResidentModels))];
    LOAD: Post "/api/hob/load" "loadModel", Memory, Keyed,
        "Loads a model into memory.",
        Body("ResidenceRequest", schemas![ResidenceFields])
        => [Json(schema!(ResidentModel)), Lines(schemas![LoadingLine, ResidentModel, ErrorEnvelope])];
    UNLOAD: Post "/api/hob/unload" "unloadModel", Memory, Keyed,
        "Unloads a model, also while it answers. The next request for it loads it again. A key with `aliases` unloads it after its answers.",
        Body("ResidenceRequest", schemas![ResidenceFields]) => [Json(schema!(ResidentModel))];
    NOW: Get "/api/hob/now" "getNow", Requests, Keyed,
        "Shows the requests that run, the latest that ended, and figures of the last hour.",
        Nothing => [Json(schema!(NowView))];
    REQUEST: Get "/api/hob/requests/{id}" "getRequest", Requests, Keyed,
        "Shows one request, by the value of `x-hob-request-id`.",
        Nothing => [Json(schema!(ShownRequest))];
    ROUTE: Get "/api/hob/routes/{*name}" "getRoute", Requests, Keyed,
        "Shows which targets would answer for an alias or `UPSTREAM/MODEL` now, in the order in which hob would try them.",
        Nothing => [Json(schema!(AliasRoute))];
    UPSTREAMS: Get "/api/hob/upstreams" "listUpstreams", Requests, Keyed,
        "Lists the other servers and their state.",
        Nothing => [Json(schema!(UpstreamList))];
    FIT_BY_QUERY: Get "/api/fit" "getFit", Fit, Keyed,
        "Says where a model would live on a machine and how fast it would be.",
        Query(schema!(FitFields)) => [Json(schema!(FitAnswer))];
    FIT: Post "/api/fit" "createFit", Fit, Keyed,
        "The same, with the fields in a body.",
        Body("FitRequest", schemas![FitFields]) => [Json(schema!(FitAnswer))];
    FIT_MODELS: Get "/api/fit/models" "listFitModels", Fit, Keyed,
        "Lists the models that can be assessed.",
        Nothing => [Json(schema!(FitModels))];
    FIT_MACHINES: Get "/api/fit/machines" "listFitMachines", Fit, Keyed,
        "Lists the machines, this one first.",
        Nothing => [Json(schema!(FitMachines))];
    HEALTH: Get "/v1/health" "getHealth", State, Open,
        "Answers while the server runs.",
        Nothing => [Raw("application/json")];
    READY: Get "/v1/ready" "getReady", State, Open,
        "Answers 200 if the default model would speak at once, else 503. Without a default, one chat model that is ready is enough.",
        Nothing => [Json(schema!(Readiness))];
    METRICS: Get "/v1/metrics" "getMetrics", State, Keyed,
        "Counters and histograms for Prometheus.",
        Nothing => [Raw("text/plain")];
    OPENAPI: Get "/openapi.json" "getOpenApi", State, Open,
        "This description of the API, as OpenAPI 3.1.",
        Nothing => [Raw("application/json")];
    HOME: Get "/" "getHome", Pages, Open,
        "The page for people. Programs that look for Ollama get a short text.",
        Nothing => [Raw("text/html")];
    BENCHMARKS: Get "/benchmarks" "getBenchmarks", Pages, Open,
        "Redirects to `/benchmarks/`.", Nothing => [Raw("text/html")];
    BENCHMARK_INDEX: Get "/benchmarks/" "getBenchmarkIndex", Pages, Open,
        "The pages of this hob's benchmark records.", Nothing => [Raw("text/html")];
    BENCHMARK_PAGE: Get "/benchmarks/{*path}" "getBenchmarkPage", Pages, Open,
        "A file of these pages.", Nothing => [Raw("text/html")];
}
