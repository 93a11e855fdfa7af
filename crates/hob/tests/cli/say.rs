//! `hob say` through a server with a scripted model, into files, pipes and a fake player.
//! Other tests run it without a model or a player.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;

use hob_core::scripted::{ScriptedCall, ScriptedSpeech};
use hob_core::{Admission, ModelError, RegisteredModel, SpeechEvent, task};
use tokio::runtime::Runtime;

use crate::chat::serve_model;
use crate::executable::write_executable;
use crate::{Has, User, kill, names, stderr, until_begun};

const SAMPLES: usize = 24_000;

fn sound() -> Result<SpeechEvent, ModelError> {
    Ok(SpeechEvent::Audio(vec![0.25; SAMPLES / 2]))
}

/// A server whose model plays these scripts. It stops with the runtime.
fn server(scripts: Vec<ScriptedCall<SpeechEvent>>, key: Option<&str>) -> (Runtime, SocketAddr) {
    let (model, admission) = (Arc::new(ScriptedSpeech::new(scripts)), Admission::new(4, 0.5));
    serve_model(RegisteredModel::<task::Speech>::new("scripted", model, admission), key)
}

fn spoken() -> ScriptedCall<SpeechEvent> {
    Ok(vec![sound(), sound()])
}

#[test]
fn a_file_gets_every_sample_in_the_format_of_its_name() {
    let user = User::new();
    let (_server, address) = server(vec![spoken(), spoken(), spoken()], None);
    let url = address.to_string();
    for (name, begins) in [("a.pcm", &[0, 32][..]), ("a.wav", b"RIFF"), ("a.flac", b"fLaC")] {
        let said = user.notes(format!("say --server {url} -o {name} Hello there."));
        assert!(said.starts_with("1.0 s of sound, the first after "), "{said}");
        let bytes = user.read(name);
        assert!(bytes.starts_with(begins), "{name}");
    }
    let pcm = std::fs::metadata(user.path("work/a.pcm")).expect("a file");
    assert_eq!(pcm.len(), 2 * SAMPLES as u64);
    assert_eq!(names(&user.path("work")), ["a.flac", "a.pcm", "a.wav"]);
}

#[test]
fn a_pipe_gets_the_sound_of_what_stdin_says() {
    let user = User::new();
    let (_server, address) = server(vec![spoken(), spoken()], None);
    let url = format!("http://{address}/v1");
    for text in ["-", ""] {
        let line = format!("say --quiet --server {url} -f pcm {text}");
        let said = user.hob(line).write_stdin("Hello there.").assert().success();
        assert_eq!(said.get_output().stdout.len(), 2 * SAMPLES);
        assert_eq!(stderr(&said), "");
    }
}

#[test]
fn the_first_installed_player_hears_it_all() {
    let user = User::new();
    let (_server, address) = server(vec![spoken()], None);
    let player = user.path("programs").join("aplay");
    let heard = user.path("heard");
    write_executable(&player, &format!("#!/bin/sh\n/bin/cat > {}\n", heard.display()));
    let said = user.notes(format!("say --play --server {address} Hello."));
    assert!(!said.contains("RTF"), "a player set the pace: {said}");
    assert_eq!(std::fs::metadata(heard).expect("sound").len(), 2 * SAMPLES as u64);
}

#[test]
fn a_failure_on_the_way_leaves_no_file() {
    let user = User::new();
    let lost = ModelError::WorkerLost { engine: "speech", detail: "killed".to_owned() };
    let (_server, address) = server(vec![Ok(vec![sound(), Err(lost)])], None);
    // The connection is reset. The kernel decides whether this happens before or after the first samples.
    let said = user.refusal(format!("say --server {address} -o a.wav Hello."), 5);
    assert!(said.contains(&address.to_string()) || said.contains("ended early"), "{said}");
    assert_eq!(names(&user.path("work")), Vec::<String>::new());
}

#[test]
fn a_server_s_refusal_is_shown_in_its_words() {
    let unknown = ModelError::UnknownVoice { voice: "x".to_owned(), near: Vec::new() };
    let (_server, address) = server(vec![Err(unknown)], Some("abracadabra"));
    let url = address.to_string();
    let user = User::new();
    let args = format!("say --server {url} -o a.wav -v x Hello.");
    user.fails(&args, 2, "HOB_API_KEY");
    let said = user.hob(&args).env("HOB_API_KEY", "abracadabra").assert().code(2);
    stderr(&said).has(&["no voice is called 'x'"]);
    let said = user.refusal(format!("say --server {url} -o a.wav ' '"), 2);
    assert!(!said.is_empty());
    user.prints(format!("say --server {url} --voices")).has(&["af_heart"]);
}

#[test]
fn an_audiobook_has_a_part_for_each_chapter() {
    let user = User::new();
    std::fs::write(user.path("work/book.txt"), "# One\n\nHello.\n\n# Two\n\nBye.")
        .expect("written");
    let (_server, address) = server(vec![spoken(), spoken()], None);
    let said = user.notes(format!("say --server {address} book.txt -o book.mp3"));
    assert!(
        said.starts_with("2 chapters, ") && said.ends_with(" s of sound in book.mp3\n"),
        "{said}"
    );
    let book = user.read("book.mp3");
    let marks = book.windows(4).filter(|at| at == b"CHAP").count();
    assert_eq!((&book[..3], marks), (&b"ID3"[..], 2));
    assert_eq!(names(&user.path("work")), ["book.mp3", "book.txt"]);
}

#[test]
fn options_of_the_own_engine_are_refused_with_a_server() {
    for option in ["--threads", "--model"] {
        let line = format!("say --server nas:8484 {option} 4 Hello.");
        User::new().fails(line, 2, "cannot be used with");
    }
}

#[test]
fn an_unreachable_server_is_reported_with_its_address() {
    let said = User::new().refusal("say --server 127.0.0.1:1 -o a.wav Hello.", 5);
    assert!(said.contains("http://127.0.0.1:1 does not answer"), "{said}");
    assert!(said.contains("check that `hob serve` runs there"), "{said}");
}

#[test]
fn invalid_options_are_rejected_before_anything_runs() {
    let rows = [
        ("say -o a.wav hi", 3, "hob pull"),
        ("say --voices", 3, "hob pull"),
        ("say -o a.doc hi", 2, "'doc' is not an audio format"),
        ("say -o . hi", 2, "is a folder"),
        ("say -o a.m4b hi", 2, "hob say book.txt -o book.m4b"),
        ("say -o a.m4b --play a.txt", 2, "an audiobook cannot have --play"),
        ("say --play hi", 6, "no program that plays sound is installed"),
    ];
    let user = User::new();
    for (args, code, expected) in rows {
        user.fails(args, code, expected);
    }
    assert_eq!(names(&user.path("work")), Vec::<String>::new());
}

#[test]
fn the_name_of_a_text_file_is_not_spoken() {
    let user = User::new();
    std::fs::write(user.path("work/notes.txt"), "Hello.").expect("written");
    for args in ["say notes.txt", "say -o a.wav notes.txt"] {
        user.fails(args, 2, "notes.txt is a file, and hob would speak its name, not its text");
        user.fails(args, 2, "hob say < notes.txt");
    }
    assert_eq!(names(&user.path("work")), ["notes.txt"]);
}

#[test]
fn a_text_that_is_not_utf8_or_has_no_words_is_refused() {
    let user = User::new();
    let (_server, address) = server(vec![spoken()], None);
    let args = format!("say --server {address} -o a.wav");
    let said = user.hob(&args).write_stdin(&b"caf\xe9 noir"[..]).assert().code(2);
    stderr(&said).has(&["not UTF-8 at byte 3"]);
    let said = user.hob(&args).write_stdin("…\n").assert().code(2);
    stderr(&said).has(&["there is nothing to speak"]);
    assert_eq!(names(&user.path("work")), Vec::<String>::new());
}

#[test]
fn an_interrupted_file_is_gone() {
    let user = User::new();
    let (_server, address) = server(vec![spoken()], None);
    // The text never ends, so the file is open and nothing has been spoken yet.
    let mut child = user
        .process(format!("say --server {address} -o a.wav"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("hob");
    let mut text = child.stdin.take().expect("a pipe");
    text.write_all(b"Hello").expect("written");
    let work = user.path("work");
    until_begun(&mut child, || !names(&work).is_empty());
    kill("-INT", child.id());
    let status = child.wait().expect("an end");
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert_eq!(names(&work), Vec::<String>::new());
    drop(text);
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let user = User::new();
    user.write("a.wav", "sound");
    for (args, expected) in [
        ("hear a.wav -o ./a.wav", "would take the place of a.wav"),
        ("talk -i a.wav -o a.wav", "would take the place of a.wav"),
        ("say -o b.mp3 --srt b.mp3 hi", "b.mp3 is the file of two outputs"),
        ("say --srt b.srt --vtt ./b.srt hi", "b.srt is the file of two outputs"),
        ("talk -i a.wav -o -", "cannot be written to stdout, which has the text"),
    ] {
        user.fails(args, 2, expected);
    }
    let kept = std::fs::read_to_string(user.path("work/a.wav")).expect("a file");
    assert_eq!(kept, "sound");
}
