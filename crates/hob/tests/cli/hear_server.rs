//! `hob hear --server`: text and subtitles are made of the events that the server sends, and JSON comes whole.
//! The server is a mock, which hears the same words in every recording, or has a scripted model.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;

use hob_bench::mock::{MockServer, Script};
use hob_core::scripted::ScriptedTranscript;
use hob_core::{Admission, RegisteredModel, TranscriptEvent, TranscriptSummary, Transcription};

use crate::chat::serve_model;
use crate::hear_real_model::wav;
use crate::terminal::Terminal;
use crate::{Has, User, exit_code, kill, stderr, stdout};

#[test]
fn a_server_transcribes_into_every_format() {
    let user = User::new();
    std::fs::write(user.path("work/a.wav"), wav(16_000, &[1_000; 8_000])).expect("written");
    let script = Script::default().with("ttft_ms=5,itl_ms=5").expect("a script");
    let mock = MockServer::start_local(script).expect("a mock");
    let url = mock.url();
    for (format, expected) in [
        ("text", "hello world\n"),
        ("srt", "1\n00:00:00,000 --> 00:00:00,000\nhello world\n\n"),
        ("vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:00.000\nhello world\n\n"),
        // As the server sent it.
        ("json", r#"{"text":"hello world"}"#),
    ] {
        let heard = user.hob(format!("hear --server {url} -f {format} a.wav")).assert().success();
        assert_eq!(stdout(&heard), expected, "{format}");
        // Only events say how much was heard.
        assert_eq!(stderr(&heard).contains(" s of sound in "), format != "json", "{format}");
    }
}

#[test]
fn a_terminal_shows_the_text_or_how_much_of_it_there_is() {
    let user = User::new();
    std::fs::write(user.path("work/a.wav"), wav(16_000, &[1_000; 8_000])).expect("written");
    let script = Script::default().with("ttft_ms=400,itl_ms=800").expect("a script");
    let mock = MockServer::start_local(script).expect("a mock");
    let url = mock.url();
    let hear = |more: &str| {
        let hear = user.process(format!("hear --server {url} a.wav {more}"));
        let mut terminal = Terminal::start(hear);
        terminal.wait_for("transcribing");
        terminal
    };
    let mut shown = hear("");
    // No spinner comes between the words.
    shown.wait_for("hello world\r\n");
    shown.end(0).has(&[" s of sound in "]);
    let mut written = hear("-o a.txt");
    written.wait_for("1 word transcribed");
    written.end(0);
    let text = std::fs::read_to_string(user.path("work/a.txt"));
    assert_eq!(text.expect("a file"), "hello world\n");
}

#[test]
fn a_terminal_gets_no_control_sequences_from_a_server() {
    let user = User::new();
    std::fs::write(user.path("work/a.wav"), wav(16_000, &[1_000; 8_000])).expect("written");
    let heard = vec![
        Ok(TranscriptEvent::Delta("\u{1b}[2Jhello".to_owned())),
        Ok(TranscriptEvent::Done(TranscriptSummary::default())),
    ];
    let model = Arc::new(ScriptedTranscript::new([Ok(heard)]));
    let admission = Admission::new(4, 0.5);
    let model = RegisteredModel::<Transcription>::new("scripted", model, admission);
    let (_server, address) = serve_model(model, None);
    let args = ["hear", "--server", &format!("http://{address}"), "--model", "scripted", "a.wav"];
    Terminal::start(user.process(&args)).end(0).has(&["\u{fffd}[2Jhello"]);
}

#[test]
fn ctrl_c_ends_hob_while_it_waits_for_sound() {
    let user = User::new();
    let mut hob = user.process("hear -");
    let mut hob = hob.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("hob starts");
    let mut sound = hob.stdin.take().expect("a pipe");
    // A pipe does not hold this much, so hob reads it.
    sound.write_all(&[0; 1 << 20]).expect("hob reads");
    kill("-INT", hob.id());
    assert_eq!(exit_code(&mut hob), Some(130));
}
