//! Malicious chat templates. Each test copies the real SmolLM2 of the test home and replaces only its template.

#[path = "support/test_home.rs"]
mod test_home;

use std::path::{Path, PathBuf};

use hob_core::chat::{Conversation, Message, Prompt, Role};
use hob_core::{ChatCard, ChatModel, ChatRequest, ModelError};
use hob_engines::chat::ChatWorker;
use hob_engines::supervisor::WorkerCommand;

/// The first bytes of the file's own template.
const BEGIN: &str = "{% for message in messages %}";
/// Its last bytes.
const END: &str = "{% endif %}";

fn chat_worker_program() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let built = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    // A program of an earlier build would hide that its source is missing.
    const _SOURCE: &str = include_str!("../examples/chat_worker.rs");
    let worker = built.join("examples/chat_worker");
    assert!(worker.exists(), "{} is missing: run `cargo test -p hob-engines`", worker.display());
    worker
}

/// Copies the model with this template, padded with spaces to the old length.
fn with_template(folder: &Path, template: &str) -> PathBuf {
    let mut bytes = std::fs::read(test_home::smollm2()).expect("readable");
    let find = |bytes: &[u8], text: &str| {
        bytes
            .windows(text.len())
            .position(|window| window == text.as_bytes())
            .expect("the file contains the text")
    };
    let begin = find(&bytes, BEGIN);
    let length = u64::from_le_bytes(bytes[begin - 8..begin].try_into().expect("8 bytes")) as usize;
    let place = &mut bytes[begin..begin + length];
    assert!(place.ends_with(END.as_bytes()), "these bytes are not the template");
    assert!(template.len() <= length, "the file has room for {length} bytes");
    place.fill(b' ');
    place[..template.len()].copy_from_slice(template.as_bytes());
    let path = folder.join("model.gguf");
    std::fs::write(&path, bytes).expect("written");
    path
}

/// A worker with this template; the model lies in the folder.
fn worker(folder: &Path, template: &str) -> ChatWorker {
    let command = WorkerCommand::new(chat_worker_program()).arg(with_template(folder, template));
    ChatWorker::start(ChatCard::default(), command, ChatWorker::options())
}

#[tokio::test]
async fn a_template_that_needs_too_much_memory_is_rejected() {
    // 2 to the power of 50 bytes, in 50 steps.
    let doubles = "{% set n = namespace(t='a') %}{% for i in range(50) %}{% set n.t = n.t ~ n.t %}{% endfor %}";
    let folder = tempfile::tempdir().expect("a folder");
    let worker = worker(folder.path(), doubles);
    let error = worker.load().await.expect_err("it needs too much memory").to_string();
    assert!(
        error.contains("the model's chat template needs more than 1024 MiB of memory"),
        "{error}"
    );
    worker.shutdown().await;
}

/// Its worker survives, although it was asked more often than it may leave renderings behind.
#[tokio::test]
async fn a_conversation_that_needs_too_much_memory_ends_no_worker() {
    let doubles = "{% if messages[0].content == 'double' %}{% set n = namespace(t='a') %}{% for i in range(50) %}\
                   {% set n.t = n.t ~ n.t %}{% endfor %}{% endif %}{{ messages[0].content }}";
    let folder = tempfile::tempdir().expect("a folder");
    let worker = worker(folder.path(), doubles);
    let said = |text: &str| {
        let messages = vec![Message::new(Role::User, text)];
        let prompt = Prompt::Chat(Conversation { messages, ..Conversation::default() });
        ChatRequest { prompt, tokens_max: Some(1), ..ChatRequest::default() }
    };
    worker.load().await.expect("it loads");
    let pid = worker.pid();
    for _ in 0..4 {
        let error = worker.chat(said("double")).await.err().expect("too much memory");
        assert!(matches!(error, ModelError::InvalidField { field: "messages", .. }), "{error}");
        assert!(error.to_string().contains("needs more than 512 MiB of memory"), "{error}");
    }
    drop(worker.chat(said("Hello")).await.expect("an answer"));
    assert_eq!(worker.pid(), pid);
    worker.shutdown().await;
}
