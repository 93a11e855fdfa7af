//! Checks each chat model: its file's header, its memory need, and a short answer.
//! The model runs in a worker of this command. A running server is not used.

use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::chat::{ChatCard, Completion, Conversation, Message, Prompt, Role, Sampling};
use hob_core::fit::{Pool, SetupEstimate, Use};
use hob_core::{ChatEvent, ChatModel, ChatRequest, ModelLifecycle};
use tokio::time::timeout;

use super::check::{Check, too_slow};
use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::settings::ChatSettings;
use crate::wire_up::{Chat, ChatFile};

const QUESTION: &str = "Say hello.";
const TOKENS_MAX: u32 = 16;
/// Longer than a large model needs on a slow disk and processor.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(180);
const MB: u64 = 1_000_000;

/// One model after the other, because the memory may not hold all of them.
pub(super) async fn checks(app: &App<'_>) -> Vec<Check> {
    let mut checks = model("chat", &app.settings.chat, app).await;
    for (name, settings) in &app.settings.models {
        checks.extend(model(&format!("model.{name}"), settings, app).await);
    }
    checks
}

/// The checks of the model that a table of `hob.toml` describes.
async fn model(table: &str, settings: &ChatSettings, app: &App<'_>) -> Vec<Check> {
    let part = if table == "chat" { "chat model" } else { table };
    let file = match ChatFile::find(settings, app) {
        Ok(file) => file,
        Err(failure) => return vec![Check::failed(part, failure)],
    };
    let memory = memory(&format!("{table} memory"), file.expected());
    let header = header(part, &file.name, &file.card);
    vec![header, memory, engine(&format!("{table} engine"), settings, app).await]
}

async fn engine(part: &str, settings: &ChatSettings, app: &App<'_>) -> Check {
    let chat = match Chat::start(settings, app) {
        Ok(chat) => chat,
        Err(failure) => return Check::failed(part, failure),
    };
    let looking = app.printer.spinner(format_args!("loading {}", chat.name));
    let answered = timeout(ANSWER_TIME_MAX, answer(&*chat.worker, &*chat.worker)).await;
    chat.worker.unload().await;
    looking.finish_and_clear();
    match answered.unwrap_or_else(|_| Err(too_slow("answer", ANSWER_TIME_MAX))) {
        Ok(answered) => answered.check(part),
        Err(failure) => Check::failed(part, failure),
    }
}

fn header(part: &str, name: &str, card: &ChatCard) -> Check {
    let ChatCard { architecture, quantization, parameters, .. } = card;
    let (size, megabytes) = (parameters.div_ceil(1_000_000), card.file_bytes.div_ceil(MB));
    let context = format!(
        "{} of the {} tokens it was trained with",
        card.context_tokens, card.trained_context_tokens
    );
    let found = format!(
        "{name}: {architecture}, {size} M parameters in {quantization}, {megabytes} MB, context {context}"
    );
    match card.template {
        Some(_) => Check::ok(part, found),
        None => Check::warn(
            part,
            format!("{found}; it has no chat template"),
            "it can only continue text; choose another model with chat.model",
        ),
    }
}

/// The memory that the model needs according to the file's header.
fn memory(part: &str, expected: &SetupEstimate) -> Check {
    let uses: Vec<String> = expected.uses.iter().map(|used| in_pool(used, expected)).collect();
    let found = uses.join("; ");
    if expected.fits() {
        Check::ok(part, found)
    } else {
        let to_do = "a shorter context, a smaller KV type or a smaller model needs less: \
            chat.context_tokens, chat.kv_type, chat.model";
        Check::fail(part, found, to_do)
    }
}

fn in_pool(used: &Use, expected: &SetupEstimate) -> String {
    let here = expected.memory.iter().filter(|term| term.pool == used.pool);
    let terms: Vec<String> =
        here.map(|term| format!("{} {}", term.name, term.bytes.div_ceil(MB))).collect();
    let place = match used.pool {
        Pool::Ram => String::new(),
        card @ Pool::Vram(_) => {
            format!(" on {card}, of which {} stay so", used.margin_bytes.div_ceil(MB))
        }
    };
    let (needed, free) = (used.kept_bytes().div_ceil(MB), used.free_bytes / MB);
    format!("{needed} MB of {free} MB free{place} ({})", terms.join(", "))
}

/// The times of a short answer.
struct Answered {
    load: Duration,
    first_token: Duration,
    completion: Completion,
    resident_bytes: Option<u64>,
}

async fn answer(model: &dyn ChatModel, lifecycle: &dyn ModelLifecycle) -> CliResult<Answered> {
    let started = Instant::now();
    lifecycle.load().await?;
    let load = started.elapsed();
    let asked = Instant::now();
    let mut stream = model.chat(request(model.card())).await?;
    let mut first_token = None;
    while let Some(event) = stream.next().await {
        let event = event?;
        first_token.get_or_insert_with(|| asked.elapsed());
        if let ChatEvent::Done(completion) = event {
            let first_token = first_token.unwrap_or_default();
            let resident_bytes = lifecycle.memory_use().resident_bytes;
            return Ok(Answered { load, first_token, completion, resident_bytes });
        }
    }
    Err(Failure::engine("the answer ended early"))
}

fn request(card: &ChatCard) -> ChatRequest {
    let prompt = match card.template {
        Some(_) => Prompt::Chat(Conversation {
            messages: vec![Message::new(Role::User, QUESTION)],
            ..Conversation::default()
        }),
        None => Prompt::Text(QUESTION.to_owned()),
    };
    let sampling = Sampling { temperature: Some(0.0), ..Sampling::default() };
    ChatRequest { prompt, sampling, tokens_max: Some(TOKENS_MAX), ..ChatRequest::default() }
}

impl Answered {
    fn check(&self, part: &str) -> Check {
        let tokens = self.completion.usage.completion_tokens;
        if tokens == 0 {
            let to_do = "choose another model with chat.model, or download this one again";
            return Check::fail(part, "the answer was empty", to_do);
        }
        let memory = self.resident_bytes.map(|bytes| format!(", {} MB", bytes.div_ceil(MB)));
        let predicted_s = self.completion.timings.predicted_ms / 1000.0;
        let rate = f64::from(tokens - 1) / predicted_s;
        let rate = if rate.is_finite() { format!(", {rate:.0} tokens/s") } else { String::new() };
        let (load_ms, first_ms) = (self.load.as_millis(), self.first_token.as_millis());
        let memory = memory.unwrap_or_default();
        let found =
            format!("loaded in {load_ms} ms{memory}, first token after {first_ms} ms{rate}");
        Check::ok(part, found)
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ModelError;
    use hob_core::chat::{FinishReason, Timings, Usage};
    use hob_core::fit::{ComputeSite, MemoryTerm};
    use hob_core::machine::Basis;
    use hob_core::scripted::{ScriptedChat, ScriptedLifecycle};

    use super::super::check::Verdict;
    use super::*;
    use crate::failure::Exit;

    fn done(completion_tokens: u32) -> Result<ChatEvent, ModelError> {
        Ok(ChatEvent::Done(Completion {
            finish: FinishReason::Length,
            usage: Usage { completion_tokens, ..Usage::default() },
            timings: Timings { predicted_ms: 100.0, ..Timings::default() },
        }))
    }

    #[tokio::test]
    async fn a_model_that_answers_is_well_and_one_that_does_not_is_not() {
        let hello = Ok(ChatEvent::Text("Hello!".to_owned()));
        let rows = [
            (vec![hello.clone(), done(11)], Some((Verdict::Ok, "100 tokens/s"))),
            (vec![hello.clone(), done(1)], Some((Verdict::Ok, "loaded in "))),
            (vec![done(0)], Some((Verdict::Fail, "was empty"))),
            (vec![hello], None),
        ];
        for (events, expected) in rows {
            let model = ScriptedChat::new([Ok(events.clone())]);
            let answered = answer(&model, &ScriptedLifecycle::default()).await;
            let check = answered.map(|answered| answered.check("chat engine"));
            let found = check.as_ref().ok().map(|check| check.verdict);
            assert_eq!(found, expected.map(|(verdict, _)| verdict), "{events:?}");
            if let (Ok(check), Some((_, part))) = (check, expected) {
                assert!(check.found.contains(part), "{check}");
            }
            assert_eq!(model.requests()[0].tokens_max, Some(TOKENS_MAX));
        }
        let full = ModelError::OutOfMemory { needed_bytes: 2, available_bytes: 1, what_fits: None };
        let failure =
            answer(&ScriptedChat::new([]), &ScriptedLifecycle::failing(full)).await.map(drop);
        assert_eq!(failure.expect_err("no memory").exit, Exit::Engine);
    }

    #[test]
    fn memory_is_said_term_by_term() {
        let term = |name, site, pool, megabytes: u64| MemoryTerm {
            name,
            site,
            pool,
            bytes: megabytes * MB,
            formula: "",
            basis: Basis::Measured,
        };
        let memory_of = |pool, needed: u64, free: u64| Use {
            pool,
            needed_bytes: needed * MB,
            reclaimable_bytes: 0,
            free_bytes: free * MB,
            margin_bytes: 0,
        };
        let expected = |free| SetupEstimate {
            memory: vec![
                term("weights", ComputeSite::Cpu, Pool::Ram, 100),
                term("KV cache", ComputeSite::Cpu, Pool::Ram, 20),
                term("weights", ComputeSite::Gpu(0), Pool::Vram(0), 50),
            ],
            uses: vec![memory_of(Pool::Ram, 120, free), memory_of(Pool::Vram(0), 50, 90)],
            decode: None,
        };
        let check = memory("chat memory", &expected(300));
        let found = "120 MB of 300 MB free (weights 100, KV cache 20); \
            50 MB of 90 MB free on GPU 0, of which 0 stay so (weights 50)";
        assert_eq!((check.verdict, check.found.as_str()), (Verdict::Ok, found));
        assert_eq!(memory("chat memory", &expected(119)).verdict, Verdict::Fail);
    }

    #[test]
    fn a_model_without_a_template_is_doubtful() {
        let card = ChatCard {
            context_tokens: 8192,
            trained_context_tokens: 40_960,
            architecture: "qwen3".to_owned(),
            parameters: 595_776_512,
            quantization: "Q8_0".to_owned(),
            file_bytes: 639_446_688,
            template: Some("{{ messages }}".to_owned()),
            ..ChatCard::default()
        };
        let check = header("model.big", "mine", &card);
        let found = "mine: qwen3, 596 M parameters in Q8_0, 640 MB, \
            context 8192 of the 40960 tokens it was trained with";
        assert_eq!((check.verdict, check.found.as_str()), (Verdict::Ok, found));
        let bare = ChatCard { template: None, ..card };
        assert_eq!(header("model.big", "mine", &bare).verdict, Verdict::Warn);
        assert_eq!(request(&bare).prompt, Prompt::Text(QUESTION.to_owned()));
    }
}
