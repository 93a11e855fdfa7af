//! `hob talk` with a server that follows a script: what it does when the person speaks while an answer plays, and after a
//! noise or a failed transcript.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::executable::write_executable;
use crate::talk_real_model::silence;
use crate::{Has, User, kill, stderr, stdout, until};

/// Bytes of a second of sound.
const SECOND_BYTES: usize = 48_000;

/// A user with a silent recording, and a port with its address.
fn stage() -> (User, TcpListener, String) {
    let user = User::new();
    fs_err::write(user.path("work/silence.wav"), silence()).expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (user, listener, url)
}

struct Server(WebSocket<TcpStream>);

impl Server {
    fn send(&mut self, event: &Value) {
        self.0.send(Message::text(event.to_string())).expect("an open socket");
    }

    /// The next event of this type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let Message::Text(text) = self.0.read().expect("an open socket") else { continue };
            let event: Value = serde_json::from_str(&text).expect("JSON");
            if event["type"] == kind {
                return event;
            }
        }
    }
}

/// Opens a session, and answers with ten seconds of sound.
fn answer(listener: &TcpListener) -> Server {
    let (stream, _) = listener.accept().expect("a client");
    let mut server = Server(tungstenite::accept(stream).expect("a WebSocket"));
    server.send(&json!({"type": "session.created", "session": {}}));
    server.until("session.update");
    server.send(&json!({"type": "session.updated"}));
    server.until("input_audio_buffer.append");
    server.send(&json!({"type": "response.created", "response": {"id": "resp_1"}}));
    let said = "response.output_audio_transcript.delta";
    server.send(&json!({"type": said, "response_id": "resp_1", "delta": "A long story."}));
    let (kind, delta) =
        ("response.output_audio.delta", STANDARD.encode(vec![1u8; 10 * SECOND_BYTES]));
    let sound = json!({"type": kind, "response_id": "resp_1", "item_id": "item_2", "delta": delta});
    server.send(&sound);
    server
}

/// A server that hears the person again while it answers. Returns the event with which hob says how much was heard.
fn interrupt(listener: &TcpListener) -> Value {
    let mut server = answer(listener);
    // Each event has 20 or 40 ms of the microphone's sound.
    for _ in 0..25 {
        server.until("input_audio_buffer.append");
    }
    server.send(&json!({"type": "input_audio_buffer.speech_started"}));
    let truncated = server.until("conversation.item.truncate");
    server.0.close(None).expect("an open socket");
    while server.0.read().is_ok() {}
    truncated
}

#[test]
fn speech_stops_an_answer_and_the_server_learns_how_much_was_heard() {
    let (user, listener, url) = stage();
    let served = thread::spawn(move || interrupt(&listener));
    let talked = user.hob(format!("talk --server {url} -i silence.wav -o a.wav")).assert().code(5);
    let truncated = served.join().expect("the script");
    assert_eq!((&truncated["item_id"], &truncated["content_index"]), (&json!("item_2"), &json!(0)));
    let heard_ms = truncated["audio_end_ms"].as_u64().expect("a time");
    assert!((1..10_000).contains(&heard_ms), "{heard_ms}");
    stdout(&talked).has(&["A long story."]);
    stderr(&talked).has(&["the server ended the conversation"]);
}

/// Ctrl-C in a terminal does not reach the player, so hob itself must not wait for one that hangs.
#[test]
fn ctrl_c_ends_a_conversation_with_a_player_that_hangs() {
    let (user, listener, url) = stage();
    write_executable(&user.path("programs/paplay"), "#!/bin/sh\nexec /bin/sleep 1000\n");
    let mut talk = user.process(format!("talk --server {url} -i silence.wav"));
    let mut talk = talk.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hob");
    let mut server = answer(&listener);
    let reading = thread::spawn(move || while server.0.read().is_ok() {});
    let mut ended = None;
    until(60, "hob waits for its player", || {
        kill("-INT", talk.id());
        ended = talk.try_wait().expect("a process");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
    reading.join().expect("the script");
}

/// A server that hears something while it answers: a noise, or speech that cannot be transcribed.
fn hear_again(listener: &TcpListener, heard: &Value) {
    let mut server = answer(listener);
    server.send(&json!({"type": "response.done", "response": {"id": "resp_1"}}));
    server.send(&json!({"type": "input_audio_buffer.speech_started"}));
    server.send(&json!({"type": "input_audio_buffer.committed", "item_id": "item_3"}));
    // A person who stops an answer just as it ends causes this error.
    let error = json!({"code": "response_cancel_not_active", "message": "none is running"});
    server.send(&json!({"type": "error", "error": error}));
    server.send(heard);
    while server.0.read().is_ok() {}
}

#[test]
fn a_noise_in_a_file_is_not_waited_for_and_a_failed_transcript_is_an_error() {
    let transcription = "conversation.item.input_audio_transcription";
    let (noise, failed) = (format!("{transcription}.completed"), format!("{transcription}.failed"));
    let lost = json!({"message": "the worker died"});
    for (heard, code, says) in [
        (json!({"type": noise, "item_id": "item_3", "transcript": ""}), 0, ""),
        (json!({"type": failed, "item_id": "item_3", "error": lost}), 5, "the worker died"),
    ] {
        let (user, listener, url) = stage();
        let served = thread::spawn(move || hear_again(&listener, &heard));
        let line = format!("talk --server {url} -i silence.wav -o a.wav");
        let talked = user.hob(line).assert().code(code);
        served.join().expect("the script");
        let said = stderr(&talked);
        assert!(said.contains(says) && !said.contains("none is running"), "{said}");
        assert_eq!(user.path("work/a.wav").exists(), code == 0);
    }
}
