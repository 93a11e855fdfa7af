//! With the real model that `make test` fetches: from a command to sound, and the end of the processes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::executable::write_executable;
use crate::real_server::{Served, agent};
use crate::{Has, User, names, stderr, stdout, until_begun};

/// Samples per second of sound.
const RATE_HZ: usize = 24_000;

fn seconds(pcm: &[u8]) -> f64 {
    (pcm.len() / 2) as f64 / RATE_HZ as f64
}

fn loudest(pcm: &[u8]) -> u16 {
    let (pairs, _) = pcm.as_chunks::<2>();
    pairs.iter().map(|pair| i16::from_le_bytes(*pair).unsigned_abs()).max().unwrap_or_default()
}

#[test]
fn a_file_has_the_same_bytes_whatever_the_load() {
    let user = User::with_models();
    // With the threads that users have.
    user.configure("[speech]\nthreads = 0\n");
    // Longer than 3.2 s, so that there are two windows.
    let text = "The birch canoe slid on the smooth planks, and rice is served.";
    let command = |name: &str| {
        let mut command = user.process(&["say", "-o", name, text]);
        command.stderr(Stdio::null());
        command
    };
    assert!(command("alone.mp3").status().expect("hob").success());
    let at_once = ["a.mp3", "b.mp3"].map(|name| command(name).spawn().expect("hob"));
    for mut child in at_once {
        assert!(child.wait().expect("an end").success());
    }
    for name in ["a.mp3", "b.mp3"] {
        assert!(user.read(name) == user.read("alone.mp3"), "{name}");
    }
}

#[test]
fn a_sentence_becomes_sound_and_a_word_of_the_lexicon_its_respelling_between_pauses() {
    let user = User::with_models();
    let say = |name: &str, text: &str| user.hob(&["say", "-o", name, text]).assert();
    stderr(&say("a.pcm", "Use sequel now.").success()).has(&[" s of sound, the first after "]);
    assert_eq!(names(&user.path("work")), ["a.pcm"]);
    let pcm = user.read("a.pcm");
    assert!((0.4..3.0).contains(&seconds(&pcm)), "{} s", seconds(&pcm));
    assert!(loudest(&pcm) > 1000, "{}", loudest(&pcm));
    user.configure("[speech]\nthreads = 1\n[speech.lexicon]\nSQL = \"sequel\"\n");
    // With pauses, because another test hears those of a server only.
    say("b.pcm", "[pause:1s] Use SQL now. [pause:500ms]").success();
    let silence = |seconds: f64| vec![0; (2.0 * seconds * RATE_HZ as f64) as usize];
    assert!(user.read("b.pcm") == [silence(1.0), pcm, silence(0.5)].concat());
    user.configure("[speech.lexicon]\na = \"b\"\nb = \"a\"\n");
    stderr(&say("c.pcm", "Use SQL now.").code(2)).has(&["leads back to it: a → b → a"]);
}

#[test]
fn a_server_speaks_pauses_and_uses_a_changed_lexicon_without_a_restart() {
    let user = User::with_only(&["kokoro"]).configured("[speech]\nthreads = 1\n");
    let mut served = Served::start(&user).until_ready("kokoro");
    let plain = served.clip("Good evening.", "af_heart");
    let paused = served.clip("[pause:1s] Good evening. [pause:500ms]", "af_heart");
    let silence = |seconds: f64| vec![0; (seconds * RATE_HZ as f64) as usize];
    assert!(paused == [silence(1.0), plain, silence(0.5)].concat());

    let length = |served: &Served, text: &str| served.samples(text, "af_heart").len();
    let spelled = length(&served, "Use SQL now.");
    user.configure("[speech]\nthreads = 1\nlexicon = { SQL = \"sequel\" }\n");
    served.wait_for_note("hob applied the new");
    let said = length(&served, "Use SQL now.");
    assert_eq!(said, length(&served, "Use sequel now."));
    assert_ne!(said, spelled);

    // Nothing of a file that is refused takes effect.
    user.write("key", "laptop-key");
    let key = "[keys.laptop]\nsecret = \"file:key\"\n";
    let config = |lexicon: &str| format!("[speech]\nthreads = 1\nlexicon = {{ {lexicon} }}\n");
    user.configure(&(config("SQL = \"sequel\"") + key));
    served.wait_for_note("hob applied the new");
    user.configure(&config("SQL = \"structured query language\""));
    served.wait_for_note("hob keeps using the previous configuration");
    let body = json!({
        "model": "kokoro", "input": "Use SQL now.", "voice": "af_heart", "response_format": "pcm",
    });
    let asked = agent().post(format!("{}v1/audio/speech", served.url));
    let asked = asked.header("authorization", "Bearer laptop-key").send_json(body);
    let bytes = asked.expect("an answer").body_mut().read_to_vec().expect("a whole answer");
    assert_eq!(bytes.len(), 2 * said);
    served.end("-TERM");
}

#[test]
fn a_default_voice_that_the_model_lacks_is_found_before_serving() {
    let user = User::with_only(&["kokoro"]).configured("[speech]\ndefault_voice = \"af_hart\"\n");
    user.refusal("config check", 2).has(&[": speech: ", "af_hart"]);
}

#[test]
fn a_kept_voice_is_listed_and_speaks_as_its_blend() {
    let user = User::with_only(&["kokoro"]);
    let blend = "af_heart(2)+af_bella(1)";
    std::fs::write(user.path("hob/kept_voices.txt"), format!("warm={blend}\n")).expect("written");
    user.prints("say --voices").has(&["warm"]);
    for (voice, name) in [("warm", "a.pcm"), (blend, "b.pcm")] {
        user.hob(format!("say -v {voice} -o {name} 'Good evening.'")).assert().success();
    }
    assert!(user.read("a.pcm") == user.read("b.pcm"));
}

#[test]
fn subtitles_have_the_user_s_words() {
    let user = User::with_models();
    let text = "Pay $1,204.50 now. Then go home, please.";
    user.prints(format!("say -o a.pcm --srt a.srt --vtt a.vtt '{text}'"));
    let read = |name: &str| std::fs::read_to_string(user.path("work").join(name)).expect("a file");
    let (srt, vtt) = (read("a.srt"), read("a.vtt"));
    assert!(srt.starts_with("1\n00:00:00,"), "{srt}");
    assert!(srt.contains("Pay $1,204.50 now.") && srt.contains("home, please.\n"), "{srt}");
    assert!(vtt.starts_with("WEBVTT\n\n00:00:00."), "{vtt}");
    assert_eq!(names(&user.path("work")), ["a.pcm", "a.srt", "a.vtt"]);
}

#[test]
fn a_killed_audiobook_goes_on_where_it_was() {
    let user = User::with_models();
    let text = "Chapter 1\n\nIt began.\n\nChapter 2\n\nIt went on.\n\nChapter 3\n\nIt ended.\n";
    std::fs::write(user.path("work/book.txt"), text).expect("written");
    let args = "say book.txt -o book.m4b";
    let mut killed = user.process(args);
    let mut child = killed.stderr(Stdio::null()).spawn().expect("hob");
    let parts = user.path("work/book.m4b.parts");
    let first = parts.join("00000.aac");
    until_begun(&mut child, || first.exists());
    child.kill().expect("killed");
    child.wait().expect("an end");
    user.notes(args).has(&["are already spoken", "3 chapters, ", " s of sound in book.m4b"]);
    let book = user.read("book.m4b");
    assert_eq!(book.get(4..12), Some(&b"ftypM4B "[..]));
    assert_eq!(names(&user.path("work")), ["book.m4b", "book.txt"]);
}

#[test]
fn a_text_is_spoken_while_it_is_still_being_written() {
    let user = User::with_models();
    let mut child = user
        .process("say -f pcm -o -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("hob");
    let mut text = child.stdin.take().expect("a pipe");
    let mut sound = child.stdout.take().expect("a pipe");
    // hob says a line without waiting for the next one, and a sentence without waiting for the rest of its line.
    for piece in ["The first line is here.\n", "And this is a sentence. Then "] {
        text.write_all(piece.as_bytes()).expect("sent");
        let mut first = [0; 4800];
        sound.read_exact(&mut first).expect("sound before the text has ended");
    }
    text.write_all(b"comes the end.").expect("sent");
    drop(text);
    let mut rest = Vec::new();
    sound.read_to_end(&mut rest).expect("the rest");
    assert!(child.wait().expect("an end").success());
    assert!(seconds(&rest) > 3.0, "{} s", seconds(&rest));
}

#[test]
fn a_rejected_text_leaves_no_file() {
    let user = User::with_only(&["kokoro"]);
    let rows = [
        ("-v af_haert Hello.", "the nearest are af_heart"),
        (
            "-v jf_alpha 'こんにちは'",
            "Japanese, which needs a dictionary: get it with `hob pull japanese`",
        ),
        ("-v ff_siwis Bonjour.", "install it with `apt install espeak-ng`"),
        ("'🦀'", "there is nothing to speak"),
    ];
    for (args, expected) in rows {
        user.fails(format!("say -o a.wav {args}"), 2, expected);
    }
    assert_eq!(names(&user.path("work")), Vec::<String>::new());
    let listed = user.hob("say --voices").assert().success();
    assert_eq!(stdout(&listed).lines().count(), 1 + 28, "those that can be asked for");
    let note = "Spanish is not listed: it needs espeak-ng, which is not installed";
    stderr(&listed).has(&[note]);
}

/// espeak-ng is one of the programs that hob's own tests need.
#[test]
fn a_voice_of_another_language_speaks_with_espeak() {
    #[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
    let path = std::env::var_os("PATH").expect("a PATH");
    let user = User::with_models();
    let listed = user.hob("say --voices").env("PATH", &path).assert();
    assert!(stdout(&listed.success()).contains("pf_dora"));
    for (voice, text) in [("ef_dora", "Son las 14:30."), ("hf_alpha", "नमस्ते, 25 रुपये।")]
    {
        let mut said = user.hob(&["say", "-v", voice, "-o", "a.pcm", text]);
        said.env("PATH", &path).assert().success();
        let pcm = user.read("a.pcm");
        assert!((0.6..5.0).contains(&seconds(&pcm)), "{voice}: {} s", seconds(&pcm));
        assert!(loudest(&pcm) > 1000, "{voice}: {}", loudest(&pcm));
    }
}

#[test]
fn japanese_and_mandarin_voices_speak_with_their_dictionaries() {
    let user = User::with_models();
    for (voice, text) in
        [("jf_alpha", "今日は2時に東京へ行きます。"), ("zf_xiaobei", "我们今天2点去北京。")]
    {
        user.prints(format!("say -v {voice} -o a.pcm '{text}'"));
        let pcm = user.read("a.pcm");
        assert!((1.0..6.0).contains(&seconds(&pcm)), "{voice}: {} s", seconds(&pcm));
        assert!(loudest(&pcm) > 1000, "{voice}: {}", loudest(&pcm));
    }
}

#[test]
fn the_doctor_loads_every_engine() {
    let user = User::with_models();
    let config = "[server]\nlisten = \"0\"\n[model.second]\nmodel = \"smollm2\"\n";
    user.configure(config);
    let found = user.prints("doctor");
    assert!(found.contains("all checksums match"), "{found}");
    for engine in ["engine ", "chat engine", "model.second engine", "transcription "] {
        let line = found.lines().find(|line| line.contains(engine)).expect(engine);
        assert!(line.contains("loaded in "), "{found}");
    }
    let processor = found.lines().find(|line| line.contains("device CPU ")).expect("a device");
    assert!(processor.contains(", a token in "), "{found}");
}

#[test]
fn the_doctor_lists_the_voices_of_espeak_once() {
    let user = User::with_only(&["kokoro"]);
    let calls = user.path("calls");
    let program = format!("#!/bin/sh\necho \"$*\" >> '{}'\necho espeak\n", calls.display());
    write_executable(&user.path("programs/espeak-ng"), &program);
    user.configure("[server]\nlisten = \"0\"\n");
    stdout(&user.hob("doctor").assert()).has(&["has no data for Spanish"]);
    let calls = std::fs::read_to_string(calls).expect("calls");
    assert_eq!(calls.lines().filter(|call| *call == "--voices").count(), 1, "{calls}");
}

#[test]
fn a_server_gets_ready_speaks_and_takes_its_workers_with_it() {
    let user = User::with_models();
    let mut served = Served::start(&user).until_ready("kokoro");
    let url = served.url.clone();
    user.hob(format!("say --server {url} -o a.wav --srt a.srt 'Good evening.'")).assert().success();
    let srt = std::fs::read_to_string(user.path("work/a.srt")).expect("a file");
    assert!(srt.starts_with("1\n00:00:00,") && srt.contains("Good evening.\n"), "{srt}");
    served.wait_for_note("smollm2 is ready");
    let workers = ["speech", "chat"].map(|engine| served.worker(engine).expect("it runs"));
    served.signal("-INT");
    served.wait_for_note("stopping");
    assert_eq!(served.child.wait().expect("an end").code(), Some(0));
    let left = Command::new("ps").args(["-o", "pid=", "-p", &workers.join(",")]).output();
    assert!(left.expect("ps").stdout.is_empty(), "a worker lives on");
}

#[test]
fn a_second_hob_reports_that_the_first_is_running() {
    let user = User::with_only(&["kokoro"]);
    let mut served = Served::start(&user);
    served.wait_for_note("loading kokoro");
    let address = served.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let said = user.refusal(format!("serve --listen {address}"), 5);
    assert!(said.contains(&format!("{address} is in use by another hob")), "{said}");
    served.end("-TERM");
}

/// Admission reserves the memory that was predicted before the load. A prediction that is too low would cause a
/// crash.
#[test]
fn a_model_takes_no_more_memory_than_was_predicted() {
    let (context_tokens, kv, parallel) = (1_024, "q8_0", 2);
    let user = User::with_only(&["smollm2"]);
    let chat = format!(
        "[chat]\nmodel = \"smollm2\"\ncontext_tokens = {context_tokens}\nkv_type = \"{kv}\"\n\
         parallel = {parallel}\n"
    );
    user.configure(&chat);
    let served = Served::start(&user).until_ready("smollm2");
    let words = "cat ".repeat(context_tokens / 2);
    let messages = json!([{ "role": "user", "content": words }]);
    let body = json!({ "model": "smollm2", "max_tokens": 8, "messages": messages });
    served.chat(&body).expect("an answer");
    let all = user.json(format!("ps --server {} --json", served.url));
    let models = all.as_array().expect("models");
    let model = models.iter().find(|model| model["kind"] == "chat").expect("it is there");
    let bytes = |name: &str| model[name].as_u64().expect("known");
    let (taken, predicted) = (bytes("resident_bytes"), bytes("predicted_bytes"));
    let what = format!("{context_tokens} {kv} × {parallel}: {taken} taken, {predicted} predicted");
    assert!(taken <= predicted, "{what}");
    assert!(predicted as f64 <= taken as f64 * 1.35, "{what}");
    served.end("-TERM");
}

#[test]
fn an_empty_answer_through_an_alias_is_an_answer() {
    let user = User::with_only(&["smollm2"])
        .configured("[chat]\nthreads = 1\n[alias.a]\nto = [\"smollm2\"]\n");
    let served = Served::start(&user).until_ready("smollm2");
    let ask = |stop: &str| {
        let messages = json!([{ "role": "user", "content": "Say hello." }]);
        let stop = (!stop.is_empty()).then_some(stop);
        let body = json!({
            "model": "a", "max_tokens": 8, "temperature": 0, "messages": messages, "stop": stop,
        });
        let answer = served.chat(&body).expect("status 200");
        let choice = &answer["choices"][0];
        (
            choice["message"]["content"].as_str().expect("text").to_owned(),
            choice["finish_reason"].clone(),
        )
    };
    let (said, _) = ask("");
    let first: String = said.chars().take(1).collect();
    for _ in 0..4 {
        assert_eq!(ask(&first), (String::new(), "stop".into()));
    }
    assert_eq!(ask("").0, said, "empty answers are no failures, so the model is still used");
    served.end("-TERM");
}

#[test]
fn an_alias_of_a_local_model_passes_the_selftest() {
    let user = User::with_only(&["kokoro"]);
    user.shallow_model("smollm2.gguf");
    let own = "[chat]\nmodel = \"smollm2.gguf\"\nthreads = 1\n[speech]\nthreads = 1\n";
    let dead = "[upstream.dead]\nkind = \"openai\"\nurl = \"http://127.0.0.1:1\"\n";
    user.configure(&format!("{own}{dead}[alias.fast]\nto = [\"dead/x\", \"smollm2\"]\n"));
    let mut command = user.hob("selftest gateway --alias fast");
    let passed = command.assert().success();
    assert!(stderr(&passed).contains(" cases passed"), "{}", stdout(&passed));
    user.configure("[alias.voice]\nto = [\"kokoro\"]\n");
    let mut command = user.hob("selftest gateway --alias voice");
    stderr(&command.assert().code(2)).has(&["alias 'voice' does not lead to chat models"]);
}
