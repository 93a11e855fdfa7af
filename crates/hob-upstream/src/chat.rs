//! A chat model of another server: one request, one answer.
//! Retries and fallbacks are the route's task.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::{BYTES_PER_TOKEN, Effort, Thinking};
use hob_core::routing::prompt_bytes;
use hob_core::{
    ChatCard, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, Fault, ModelError,
    ModelState,
};
use hob_wire::{
    AnthropicReader, CALL_SIGNATURE, LIMIT_NAMES, OllamaReader, OpenAiReader, PieceKind,
    UnsupportedField, UpstreamReader, anthropic_continues, anthropic_drops, anthropic_request,
    ollama_embed_request, ollama_path, ollama_request, openai_embed_request, parse_ollama_vectors,
    parse_openai_vectors, upstream_path, upstream_request,
};

use crate::UpstreamKind;
use crate::chat_answer::{Expected, events};
use crate::upstream_model::UpstreamModel;

/// Bytes of an answer with vectors.
const VECTORS_BYTES_MAX: usize = 16 << 20;

/// One chat model of one server.
#[derive(Debug)]
pub(crate) struct UpstreamChat {
    served: Arc<UpstreamModel>,
    card: ChatCard,
}

/// A request as it will be sent.
struct UpstreamCall {
    path: String,
    body: String,
    reader: Box<dyn UpstreamReader>,
    pieces: PieceKind,
    dropped: Vec<String>,
}

impl UpstreamChat {
    pub(crate) fn new(served: Arc<UpstreamModel>) -> UpstreamChat {
        let card = ChatCard {
            // The server has one, which is not visible from here.
            template: Some(String::new()),
            architecture: served.upstream.options.kind.name().to_owned(),
            calls_tools: true,
            thinks: true,
            infills: true,
            sees: true,
            takes_unknown: true,
            ..ChatCard::default()
        };
        UpstreamChat { served, card }
    }

    async fn ask(&self, request: ChatRequest) -> Result<ChatStream, ModelError> {
        let upstream = &self.served.upstream;
        let kind = upstream.kind().await;
        let request = self.with_allowed_thinking(request);
        let call = self.call(&request, kind);
        let call = call.map_err(|UnsupportedField { field }| self.served.incapable(field))?;
        let trace = request.trace.clone();
        let hops = trace.hops();
        trace.note(|data| data.dropped.clone_from(&call.dropped));
        let failed = |fault| self.failed(&call.path, fault);
        let partial_bytes = request.partial.as_ref().map_or(0, String::len);
        let prompt_bytes = prompt_bytes(&request.prompt) + partial_bytes;
        let response = upstream.post(&call.path, call.body, hops).await.map_err(failed)?;
        let asked = Expected {
            served: Arc::clone(&self.served),
            reader: call.reader,
            pieces: call.pieces,
            trace,
            prompt_tokens: prompt_bytes.div_ceil(BYTES_PER_TOKEN) as u32,
        };
        events(asked, response).map_err(failed)
    }

    /// A server without completions answers with 404, and its model may chat all the same. What is said about a missing
    /// model names it.
    fn failed(&self, path: &str, fault: Fault) -> ModelError {
        match fault {
            Fault::NoSuchModel { message }
                if path == "completions" && !message.contains(&self.served.model) =>
            {
                self.served.incapable("completions")
            }
            fault => self.served.failed(fault),
        }
    }

    /// A continuation must not think again. And some servers refuse thinking parameters for a model that
    /// does not think.
    fn with_allowed_thinking(&self, mut request: ChatRequest) -> ChatRequest {
        if request.partial.is_some() {
            request.thinking = Thinking { effort: Some(Effort::None), tokens_max: None };
        }
        let UpstreamModel { upstream, model, .. } = &*self.served;
        let thinks = upstream.with_listed(model, |said| said.thinks).flatten();
        if thinks == Some(false) {
            request.thinking = Thinking::default();
        }
        request
    }

    fn call(
        &self,
        request: &ChatRequest,
        kind: UpstreamKind,
    ) -> Result<UpstreamCall, UnsupportedField> {
        let UpstreamModel { upstream, model, .. } = &*self.served;
        match kind {
            UpstreamKind::Anthropic => Ok(UpstreamCall {
                path: "messages".to_owned(),
                body: anthropic_request(request, model, &self.served.fields_left_out())?,
                reader: Box::new(AnthropicReader::default()),
                pieces: PieceKind::Event,
                dropped: anthropic_drops(request, model).into_iter().map(str::to_owned).collect(),
            }),
            UpstreamKind::Ollama => Ok(UpstreamCall {
                path: format!("/{}", ollama_path(request)),
                body: ollama_request(request, model, upstream.options.num_ctx)?,
                reader: Box::new(OllamaReader::default()),
                pieces: PieceKind::Line,
                dropped: Vec::new(),
            }),
            _ => {
                let mut without = self.served.fields_left_out();
                let [refuses_usual, refuses_newer] =
                    LIMIT_NAMES.map(|name| without.iter().any(|field| field == name));
                if !upstream.is_openais && !refuses_usual {
                    without.push(LIMIT_NAMES[1].to_owned());
                }
                let body = upstream_request(request, model, kind.dialect(), &without)?;
                if !(refuses_usual && refuses_newer) {
                    // The limit goes on under its other name.
                    without.retain(|field| !LIMIT_NAMES.contains(&field.as_str()));
                }
                // It was added, and not left out.
                without.retain(|field| field != CALL_SIGNATURE);
                Ok(UpstreamCall {
                    path: upstream_path(request).to_owned(),
                    body,
                    reader: Box::new(OpenAiReader::default()),
                    pieces: PieceKind::Event,
                    dropped: without,
                })
            }
        }
    }

    async fn vectors(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        let UpstreamModel { upstream, model, .. } = &*self.served;
        let (kind, hops) = (upstream.kind().await, request.trace.hops());
        let failed = |fault| self.served.failed(fault);
        let num_ctx = upstream.options.num_ctx;
        let (path, body) = match kind {
            UpstreamKind::Ollama => {
                let body = ollama_embed_request(&request, model, num_ctx);
                (
                    "/api/embed",
                    body.map_err(|UnsupportedField { field }| self.served.incapable(field))?,
                )
            }
            UpstreamKind::Anthropic => return Err(self.served.incapable("embeddings")),
            _ => ("embeddings", openai_embed_request(&request, model)),
        };
        let mut response = upstream.post(path, body, hops).await.map_err(failed)?;
        let answer = upstream.whole(&mut response, VECTORS_BYTES_MAX).await.map_err(failed)?;
        let made = match kind {
            UpstreamKind::Ollama => parse_ollama_vectors(answer.as_bytes(), &request),
            _ => parse_openai_vectors(answer.as_bytes(), &request),
        };
        made.map_err(failed)
    }
}

impl ChatModel for UpstreamChat {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn is_team(&self) -> bool {
        let UpstreamModel { upstream, model, .. } = &*self.served;
        upstream.with_listed(model, |said| said.is_team).unwrap_or_default()
    }

    fn state(&self) -> ModelState {
        self.served.upstream.state_of(&self.served.model)
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        self.ask(request).boxed()
    }

    fn continues(&self, request: &ChatRequest) -> bool {
        let UpstreamModel { upstream, model, .. } = &*self.served;
        let kind = upstream.known_kind();
        kind.continues()
            && match kind {
                UpstreamKind::Anthropic => anthropic_continues(request, model),
                UpstreamKind::OpenRouter => !model.starts_with("openai/"),
                _ => true,
            }
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        self.vectors(request).boxed()
    }
}

#[cfg(test)]
mod tests {
    use hob_core::JsonText;
    use hob_core::chat::{Conversation, Message, Prompt, Role};

    use super::*;
    use crate::client::Upstream;
    use crate::options::UpstreamOptions;

    fn chat(kind: UpstreamKind, model: &str) -> UpstreamChat {
        let upstream = Upstream::new(UpstreamOptions::plain("far", kind, "http://127.0.0.1:9"));
        let upstream = Arc::new(upstream.expect("an address"));
        UpstreamChat::new(Arc::new(UpstreamModel::new(upstream, model)))
    }

    fn broken() -> ChatRequest {
        let messages = vec![Message::new(Role::User, "Hi")];
        let conversation = Conversation { messages, ..Conversation::default() };
        let partial = Some("Hel".to_owned());
        ChatRequest { prompt: Prompt::Chat(conversation), partial, ..ChatRequest::default() }
    }

    #[test]
    fn kinds_that_take_unknown_parameters_get_them() {
        for kind in UpstreamKind::ALL {
            let extra = Some(JsonText::parsed(r#"{"new_field":1}"#));
            let request = ChatRequest { extra, partial: None, ..broken() };
            let body = chat(kind, "m").call(&request, kind).expect("a request").body;
            assert_eq!(body.contains("new_field"), kind.takes_unknown(), "{kind}");
        }
    }

    #[test]
    fn a_server_without_completions_lacks_an_ability_and_not_the_model() {
        let chat = chat(UpstreamKind::OpenAi, "gpt-x");
        let missing = |message: &str| Fault::NoSuchModel { message: message.to_owned() };
        for (path, message, kind) in [
            ("completions", "Not Found", "none_capable"),
            ("completions", "The model `gpt-x` does not exist.", "no_such_model"),
            ("chat/completions", "Not Found", "no_such_model"),
        ] {
            assert_eq!(chat.failed(path, missing(message)).kind(), kind, "{path}: {message}");
        }
    }

    #[test]
    fn the_limit_has_the_name_that_the_server_takes() {
        let (usual, newer) = (r#""max_tokens":7"#, r#""max_completion_tokens":7"#);
        let both = ["max_completion_tokens", "max_tokens"];
        for (url, kind, refused, expected) in [
            ("https://x.example", UpstreamKind::OpenAi, &["max_tokens"][..], newer),
            ("https://api.openai.com/v1", UpstreamKind::OpenAi, &[], newer),
            ("https://x.openai.azure.com/openai/v1", UpstreamKind::OpenAi, &[], newer),
            ("https://api.deepseek.com", UpstreamKind::OpenAi, &[], usual),
            ("https://myopenai.com", UpstreamKind::OpenAi, &[], usual),
            ("https://x.example", UpstreamKind::Vllm, &["max_tokens"], newer),
            ("https://api.openai.com", UpstreamKind::OpenAi, &["max_completion_tokens"], usual),
            ("https://x.example", UpstreamKind::OpenAi, &both, ""),
        ] {
            let options = UpstreamOptions::plain("far", kind, url);
            let upstream = Arc::new(Upstream::new(options).expect("an address"));
            let chat = UpstreamChat::new(Arc::new(UpstreamModel::new(upstream, "m")));
            for field in refused {
                chat.served.leave_out(field);
            }
            let request = ChatRequest { tokens_max: Some(7), partial: None, ..broken() };
            let call = chat.call(&request, kind).expect("a request");
            assert!(call.body.contains(expected), "{url}: {}", call.body);
            let is_lost = expected.is_empty();
            assert_eq!(call.body.matches(r#"tokens":7"#).count(), usize::from(!is_lost), "{url}");
            assert_eq!(call.dropped, if is_lost { refused } else { &[] }, "{url}");
        }
    }

    #[test]
    fn only_kinds_that_continue_answers_have_a_request_for_it() {
        for kind in UpstreamKind::ALL {
            let (chat, request) = (chat(kind, "m"), broken());
            let request = chat.with_allowed_thinking(request);
            assert_eq!(chat.call(&request, kind).is_ok(), kind.continues(), "{kind}");
            assert_eq!(chat.continues(&request), kind.continues(), "{kind}");
        }
        for (kind, model) in
            [(UpstreamKind::OpenRouter, "openai/gpt-5"), (UpstreamKind::Anthropic, "claude-opus-5")]
        {
            assert!(!chat(kind, model).continues(&broken()), "{model}");
        }
    }
}
