//! The Vulkan backend on Mesa's software driver, which is a Vulkan device without a card: `make test-vulkan`.
//! A build without this backend has no such tests. What the processor computes without a driver is the reference.

use std::ffi::OsString;
use std::process::Command;
use std::thread;
use std::time::Duration;

use assert_cmd::assert::Assert;
use serde_json::{Value, json};

use crate::chat_real_model::last_line;
use crate::real_server::Served;
use crate::{Has, User, stderr, stdout, until, until_ok};

/// Layers of the test's chat model, the output counted as one.
const LAYERS: u32 = 31;
const PROMPTS: [&str; 3] = [
    "Say hello to Anna.",
    "What is the capital of France? Answer in one sentence.",
    "Write three words that rhyme with cat.",
];
/// Where the texts part, the processor's choice is at most this much likelier than the card's (natural logarithm). Both
/// round: the processor multiplies 8-bit numbers, and the card 16-bit ones.
const LOGPROB_GAP_MAX: f64 = 0.5;

/// Makes the software driver the only device. ggml leaves devices of the kind "processor" out, unless they are named.
fn on_card(command: &mut Command) -> &mut Command {
    #[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
    let driver: Option<OsString> = std::env::var_os("HOB_TEST_VULKAN_DRIVER");
    let driver = driver.expect("HOB_TEST_VULKAN_DRIVER is not set: `make test-vulkan` sets it");
    command.env("VK_DRIVER_FILES", driver).env("GGML_VK_VISIBLE_DEVICES", "0")
}

/// A machine without a driver, as after a card has vanished.
fn without_driver(command: &mut Command) -> &mut Command {
    command.env("VK_DRIVER_FILES", "/nowhere.json")
}

/// The driver refuses larger buffers.
fn small_card(buffer_bytes_max: u64) -> impl FnOnce(&mut Command) -> &mut Command {
    move |command| {
        on_card(command).env("GGML_VK_FORCE_MAX_BUFFER_SIZE", buffer_bytes_max.to_string())
    }
}

/// Runs hob with this driver.
fn run(user: &User, words: &str, drive: impl FnOnce(&mut Command) -> &mut Command) -> Assert {
    let mut command = user.process(words);
    drive(&mut command);
    assert_cmd::Command::from(command).timeout(Duration::from_secs(300)).assert()
}

fn serve(user: &User, drive: impl FnOnce(&mut Command) -> &mut Command) -> Served {
    let mut command = user.process("serve --listen 127.0.0.1:0");
    drive(&mut command);
    Served::run(command).until_ready("smollm2")
}

fn configured(lines: &str) -> User {
    User::with_only(&["smollm2"]).configured(&format!("[chat]\nspeculation = \"off\"\n{lines}\n"))
}

/// A token of an answer, and the likeliest tokens in its place with their logarithms.
struct Chosen {
    token: String,
    likeliest: Vec<(String, f64)>,
}

fn answers(served: &Served) -> Vec<Vec<Chosen>> {
    let answer = |prompt: &&str| {
        let answer = served.chat(&json!({
            "model": "smollm2", "temperature": 0, "max_tokens": 24, "logprobs": true, "top_logprobs": 5,
            "messages": [{"role": "user", "content": prompt}],
        }));
        let answer = answer.expect("an answer");
        let tokens = answer["choices"][0]["logprobs"]["content"].as_array().expect("tokens");
        tokens.iter().map(chosen).collect()
    };
    PROMPTS.iter().map(answer).collect()
}

fn chosen(token: &Value) -> Chosen {
    let text = |token: &Value| token["token"].as_str().expect("a text").to_owned();
    let logprob = |token: &Value| token["logprob"].as_f64().expect("a number");
    let likeliest = token["top_logprobs"].as_array().expect("a list").iter();
    let likeliest = likeliest.map(|token| (text(token), logprob(token))).collect();
    Chosen { token: text(token), likeliest }
}

/// Two greedy answers are the same up to a place where two tokens are about equally likely.
fn agree(cpu: &[Chosen], card: &[Chosen]) {
    let text = |tokens: &[Chosen]| tokens.iter().map(|c| c.token.as_str()).collect::<String>();
    let both = format!("processor: {}\ncard: {}", text(cpu), text(card));
    let mut pairs = cpu.iter().zip(card);
    let Some((here, there)) = pairs.find(|(here, there)| here.token != there.token) else {
        assert_eq!(cpu.len(), card.len(), "{both}");
        return;
    };
    let other = here.likeliest.iter().find(|(token, _)| *token == there.token);
    let gap = here.likeliest[0].1 - other.map_or(f64::NEG_INFINITY, |(_, logprob)| *logprob);
    assert!(gap <= LOGPROB_GAP_MAX, "at '{}': {gap}\n{both}", there.token);
}

#[test]
fn the_card_says_what_the_processor_says_with_all_layers_a_part_and_every_kv_type() {
    for lines in [
        "gpu_layers = 31",
        "gpu_layers = 12",
        "gpu_layers = 31\ncpu_moe_layers = 3",
        "gpu_layers = 31\nkv_type = \"q8_0\"",
        "gpu_layers = 12\nkv_type = \"q4_0\"",
    ] {
        let user = configured(&format!("parallel = 1\ncontext_tokens = 1024\n{lines}"));
        let cpu = answers(&serve(&user, without_driver));
        let card = answers(&serve(&user, on_card));
        for (cpu, card) in cpu.iter().zip(&card) {
            agree(cpu, card);
        }
    }
}

/// Megabytes that the card could not give, and those that it has free.
fn refused_mb(user: &User, buffer_bytes_max: u64) -> [u64; 2] {
    let said = stderr(&run(user, "chat Hello!", small_card(buffer_bytes_max)).failure());
    let (_, rest) = said.split_once("Vulkan0 (").ok_or(&said).expect("a card");
    rest.has(&["chat.gpu_layers", "hob fit"]);
    let number = |before: &str, after: &str| -> Option<u64> {
        let (_, rest) = rest.split_once(before)?;
        rest.split_once(after)?.0.parse().ok()
    };
    let numbers = [number("no room for ", " MB"), number(" MB: ", " of its ")];
    numbers.map(|number| number.ok_or(&said).expect("two numbers"))
}

/// The driver has as much memory as the machine, so ggml is asked to refuse larger buffers. Smaller ones hold each tensor
/// of a layer.
#[test]
fn a_card_without_room_for_the_weights_is_an_error_with_both_numbers() {
    let needed = |layers: u32| {
        let user = configured(&format!("gpu_layers = {layers}\nparallel = 1"));
        let [needed_mb, free_mb] = refused_mb(&user, 4 << 20);
        assert!(free_mb > 0);
        needed_mb
    };
    let [some, all] = [10, LAYERS].map(needed);
    assert!(some > 4 && all > 2 * some, "{some} MB for 9 layers, {all} MB for 30");
}

#[test]
fn a_card_without_room_for_a_long_context_is_an_error_with_both_numbers() {
    let user = configured("gpu_layers = 31\nparallel = 4\ncontext_tokens = 8192");
    // There is room for the 145 MB of weights, but not for the cache: 23 kB for each of 8,192 tokens.
    let [needed_mb, free_mb] = refused_mb(&user, 160 << 20);
    assert!(needed_mb > 160 && free_mb > 0, "{needed_mb} MB, {free_mb} MB free");
}

#[test]
fn a_card_that_does_not_exist_is_an_error_that_names_those_that_do() {
    let user = configured("device = \"Vulkan9\"\nparallel = 1");
    let said = stderr(&run(&user, "chat Hello!", on_card).failure());
    assert!(said.contains("there is no device Vulkan9: set `device` to Vulkan0 ("), "{said}");
}

#[test]
fn a_card_that_has_vanished_is_not_missed_in_silence() {
    let user = configured("gpu_layers = 12\nparallel = 1\ncontext_tokens = 1024");
    let said = stderr(&run(&user, "chat Hello!", without_driver).success());
    let note = "gpu_layers = 12 has no effect, because the engine finds no graphics card";
    assert!(said.contains(note), "{said}");
}

#[test]
fn a_model_without_a_place_in_the_settings_leaves_a_card_without_room() {
    let user = configured("parallel = 1\ncontext_tokens = 1024");
    let said = stderr(&run(&user, "chat Hello!", small_card(4 << 20)).success());
    let (_, note) = said.split_once("Vulkan0 (").ok_or(&said).expect("a card");
    note.has(&[" had no room for ", ": the model runs on the processor"]);
}

/// The driver gives hardly any memory, and the model wants none.
#[test]
fn a_model_without_layers_on_the_card_takes_nothing_of_it() {
    let user = configured("gpu_layers = 0\nparallel = 1\ncontext_tokens = 1024");
    let said = stderr(&run(&user, "chat Hello!", small_card(64 << 10)).success());
    assert!(!said.contains("Vulkan0"), "{said}");
}

#[test]
fn a_model_on_the_card_is_unloaded_and_comes_back() {
    let user = configured("gpu_layers = 31\nparallel = 1\ncontext_tokens = 1024");
    let served = serve(&user, on_card);
    let body = json!({
        "model": "smollm2", "max_tokens": 4, "messages": [{"role": "user", "content": "Hello!"}],
    });
    served.chat(&body).expect("an answer");
    let url = served.url.trim_end_matches('/');
    user.hob(format!("unload smollm2 --server {url}")).assert().success();
    // All memory of this driver is the worker's, and ends with it.
    assert_eq!(served.worker("chat"), None);
    let list = served.get("api/hob/ps").body;
    let models = list["models"].as_array().expect("a list").iter();
    let taken = models.filter_map(|model| model["vram_bytes"].as_u64()).sum::<u64>();
    assert_eq!(taken, 0, "{list}");
    served.chat(&body).expect("an answer after the reload");
}

#[test]
fn an_answer_on_the_card_ends_with_an_error_when_its_worker_is_killed_and_the_next_one_works() {
    let user = configured("gpu_layers = 12\nparallel = 1");
    let served = serve(&user, on_card);
    thread::scope(|scope| {
        let stream = scope.spawn(|| last_line(&served, "Tell me a very long story."));
        let is_in_flight = || served.metric("hob_chat_in_flight{") == Some(1.0);
        until(300, "it is not in flight", is_in_flight);
        served.kill_worker("chat");
        let last = stream.join().expect("a stream");
        assert!(last.contains(r#""error""#) && last.contains("worker"), "{last}");
    });
    let next = json!({
        "model": "smollm2", "max_tokens": 4, "messages": [{"role": "user", "content": "Hello!"}],
    });
    until_ok(300, || served.chat(&next));
}

#[test]
fn the_card_hears_what_the_processor_hears() {
    let user = User::with_only(&["kokoro", "whisper-base"]);
    run(&user, "say -o hello.wav 'The weather is fine today.'", without_driver).success();
    let cpu = stdout(&run(&user, "hear hello.wav", without_driver).success());
    let card = stdout(&run(&user, "hear hello.wav", on_card).success());
    assert!(cpu.to_lowercase().contains("weather"), "{cpu}");
    assert_eq!(card, cpu);
}

/// As for chat: the largest matrix of the model has 28 MB.
#[test]
fn a_card_without_room_for_the_transcription_model_is_left() {
    let user = User::with_only(&["kokoro", "whisper-base"]);
    run(&user, "say -o hello.wav 'The weather is fine today.'", without_driver).success();
    let heard = run(&user, "hear hello.wav", small_card(4 << 20)).success();
    assert!(stdout(&heard).to_lowercase().contains("weather"), "{}", stdout(&heard));
    let said = stderr(&heard);
    let (_, note) = said.split_once("Vulkan0 (").ok_or(&said).expect("a card");
    note.has(&[" had no room for ", ": the model runs on the processor"]);
}

#[test]
fn the_doctor_tries_the_card_and_the_processor() {
    let user = User::with_models().configured("[server]\nlisten = \"0\"\n");
    let mut command = user.process("doctor");
    on_card(&mut command);
    let mut command = assert_cmd::Command::from(command);
    let found = stdout(&command.timeout(Duration::from_secs(600)).assert().success());
    for (device, part) in
        [("device Vulkan0 ", " MB free, a token in "), ("device CPU ", ", a token in ")]
    {
        let line = found.lines().find(|line| line.contains(device)).expect(device);
        assert!(line.contains(part), "{found}");
    }
}
