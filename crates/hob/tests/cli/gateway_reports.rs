//! What the gateway reports: in the log, in headers, in the ledger, and about the state of servers.
//! The other servers are stubs whose answers the test chooses.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

use serde_json::json;

use crate::gateway::{alias, upstream};
use crate::ledger::rows;
use crate::loopback::Loopback;
use crate::real_server::{Answer, Served, agent};
use crate::{Has, User, stderr, stdout, until, until_ok};

/// No server listens there.
const NOBODY: &str = "http://127.0.0.1:1";

fn answer(stream: &mut TcpStream, status: &str, content_type: &str, body: &str) {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    // An error means that the client has disconnected.
    let _left = stream.write_all((head + body).as_bytes());
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

fn chunk(text: &str, finish: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn whole(stream: &mut TcpStream, text: &str) {
    answer(stream, "200 OK", EVENTS, &(chunk(text, "\"stop\"") + "data: [DONE]\n\n"));
}

fn openai(name: &str, url: &str) -> String {
    upstream(name, "openai", url)
}

/// A hob with this configuration that logs every request.
fn serve(config: &str) -> (User, Served) {
    let user = User::new().configured(config);
    let served = Served::run(user.process("serve --listen 127.0.0.1:0 --log info"));
    (user, served)
}

fn ask(url: &str, model: &str, stream: bool) -> Answer {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let body = json!({"model": model, "messages": messages, "stream": stream});
    let asked = agent().post(format!("{url}v1/chat/completions"));
    Answer::of(asked.send_json(body).expect("an answer"))
}

#[test]
fn a_request_has_one_line_that_says_who_answered_and_who_did_not() {
    let good = Loopback::start(|_, stream| whole(stream, "Hello."));
    let servers = openai("dead", NOBODY) + &openai("good", &good.url);
    let (_user, mut here) = serve(&(servers + &alias("fast", &["dead/x", "good/y"])));
    assert_eq!(ask(&here.url, "fast", true).status, 200);
    let line = here.wait_for_note("alias=\"fast\"");
    line.has(&[
        " INFO ",
        "target=\"good/y\"",
        "attempts=\"dead/x=unreachable ",
        "outcome=\"complete\"",
        " first_ms=",
        " total_ms=",
    ]);
    let refused = ask(&here.url, "nobody", false);
    assert_eq!(refused.status, 404);
    let next = here.wait_for_note("");
    assert!(next.contains("status=404"), "the line after it is the next request's: {next}");
}

#[test]
fn a_server_s_words_reach_only_the_request_that_failed() {
    let bad = Loopback::start(|request, stream| {
        if request.path.ends_with("/models") {
            return answer(stream, "200 OK", JSON, "{\"object\":\"list\",\"data\":[]}");
        }
        let body = json!({"error": {"message": "you asked: my secret\n\u{1b}[31mWARN forged"}});
        answer(stream, "500 Oh", JSON, &body.to_string());
    });
    let (user, mut here) = serve(&(openai("bad", &bad.url) + &alias("fast", &["bad/x"])));
    let own = ask(&here.url, "fast", false);
    let message = own.body["error"]["message"].as_str().expect("words").to_owned();
    assert_eq!(own.status, 502);
    assert!(message.contains("you asked: my secret  [31mWARN forged"), "its own client: {message}");
    for path in ["api/hob/upstreams", "api/hob/now", "api/hob/routes/fast"] {
        let shown = here.get(path).body.to_string();
        assert!(!shown.contains("secret") && shown.contains("bad/x"), "{path}: {shown}");
    }
    for args in ["upstreams", "route fast"] {
        let shown = user.prints(format!("{args} --server {}", here.url));
        assert!(!shown.contains("secret") && shown.contains("bad/x: failed"), "{shown}");
    }
    let mut log = String::new();
    here.signal("-TERM");
    while let Some(line) = here.next_note() {
        log += &(line + "\n");
    }
    assert!(log.contains("error=\"no target of 'fast' answered: bad/x=failed"), "{log}");
    assert!(!log.contains("secret") && !log.contains('\u{1b}'), "{log}");
}

#[test]
fn the_first_token_of_an_answer_that_is_read_whole_is_when_it_came() {
    let (release, held) = sync_channel(1);
    let held = Mutex::new(held);
    let slow = Loopback::start(move |request, stream| {
        if !request.path.ends_with("/chat/completions") {
            return answer(stream, "200 OK", JSON, "{\"object\":\"list\",\"data\":[]}");
        }
        answer(stream, "200 OK", EVENTS, &chunk("Hel", "null"));
        held.lock().expect("one request").recv().expect("it is released");
        let rest = chunk("lo.", "\"stop\"") + "data: [DONE]\n\n";
        stream.write_all(rest.as_bytes()).expect("it is read");
    });
    let (user, here) = serve(&openai("slow", &slow.url));
    let url = here.url.clone();
    let asking = thread::spawn(move || ask(&url, "slow/x", false));
    // The rest of the answer is awaited.
    let now = until_ok(60, || {
        let now = here.get("api/hob/now").body;
        if now["requests"][0]["ttft_ms"].is_number() { Ok(now) } else { Err(now) }
    });
    assert_eq!(now["requests"][0]["stage"], "answering");
    let seen_ms = now["requests"][0]["ttft_ms"].as_f64().expect("a time");
    release.send(()).expect("it waits");
    let heard = asking.join().expect("an answer");
    assert_eq!(heard.body["choices"][0]["message"]["content"], "Hello.");
    assert!(heard.body.get("timings").is_none(), "the server did not say any: {}", heard.body);
    let header_ms: f64 =
        heard.headers["x-hob-ttft-ms"].to_str().expect("text").parse().expect("a number");
    assert!((header_ms - seen_ms).abs() <= 1.0, "{header_ms} ms in the header, {seen_ms} seen");
    let row_ms = rows(&user, 1)[0]["first_ms"].as_f64().expect("a time");
    assert!((row_ms - seen_ms).abs() <= 1.0, "{row_ms} ms in the ledger, {seen_ms} seen");
}

#[test]
fn a_server_that_requests_find_dead_is_called_dead_at_once() {
    let dies = Loopback::start(|request, stream| {
        if request.path.ends_with("/models") {
            return answer(
                stream,
                "200 OK",
                JSON,
                "{\"object\":\"list\",\"data\":[{\"id\":\"x\"}]}",
            );
        }
        whole(stream, "I live.");
    });
    let good = Loopback::start(|_, stream| whole(stream, "Hello."));
    let servers = openai("dies", &dies.url) + &openai("good", &good.url);
    let (user, here) = serve(&(servers + &alias("fast", &["dies/x", "good/y"])));
    assert_eq!(ask(&here.url, "fast", false).headers["x-hob-target"], "dies/x");
    let route = || user.json(format!("route fast --json --server {}", here.url));
    assert_eq!(route()["targets"][0]["status"], "active");
    dies.stop();
    assert_eq!(ask(&here.url, "fast", false).headers["x-hob-target"], "good/y");
    let upstreams = user.json(format!("upstreams --json --server {}", here.url));
    assert_eq!((&upstreams[0]["name"], &upstreams[0]["state"]), (&json!("dies"), &json!("down")));
    // The cooldown ends after two seconds, and the server is still dead.
    until(60, "it rests for ever", || route()["targets"][0]["status"] != "open");
    let after = route();
    assert_eq!(after["targets"][0]["status"], "half_open", "{after}");
    assert_eq!(after["targets"][1]["status"], "active", "{after}");
    let shown = user.prints(format!("route fast --server {}", here.url));
    assert!(
        shown.starts_with("fast would be answered by good/y; dies/x is tried first"),
        "{shown}"
    );
}

#[test]
fn a_server_whose_list_cannot_be_read_is_up_when_it_answers() {
    let ollama = Loopback::start(|request, stream| match request.path.as_str() {
        "/api/tags" => answer(stream, "200 OK", JSON, "{\"models\":[{\"name\":\"x:latest\"}]}"),
        "/api/chat" => {
            let line = "{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n";
            answer(stream, "200 OK", "application/x-ndjson", line);
        }
        _ => answer(stream, "404 Not Found", JSON, "{\"error\":\"no such path\"}"),
    });
    let unlisted = Loopback::start(|request, stream| match request.path.as_str() {
        "/v1/chat/completions" => whole(stream, "Hello."),
        _ => answer(stream, "500 Oh", JSON, "{\"error\":\"no list\"}"),
    });
    let (user, here) = serve(&(upstream("a", "ollama", &ollama.url) + &openai("b", &unlisted.url)));
    for model in ["a/x", "b/y"] {
        assert_eq!(ask(&here.url, model, false).status, 200, "{model}");
    }
    let upstreams = until_ok(60, || {
        let list = user.json(format!("upstreams --json --server {}", here.url));
        let is_read = !list[1]["reason"].is_null() && list[0]["models"] == json!(["x:latest"]);
        if is_read { Ok(list) } else { Err(format!("the lists were not looked at: {list}")) }
    });
    assert_eq!(upstreams[0]["state"], "up", "{upstreams}");
    assert_eq!(upstreams[1]["state"], "up", "{upstreams}");
    let reason = upstreams[1]["reason"].as_str().expect("words");
    assert!(reason.starts_with("its list cannot be read: "), "{reason}");
}

#[test]
fn odd_answers_of_a_server_are_its_own_fault_and_not_the_client_s() {
    let good = Loopback::start(|_, stream| whole(stream, "Hello."));
    for head in [
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 503 Busy\r\nretry-after: 99999999999999\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    ] {
        let odd = Loopback::start(move |request, stream| match request.path.as_str() {
            "/v1/chat/completions" => stream.write_all(head.as_bytes()).expect("it is read"),
            _ => answer(stream, "200 OK", JSON, "{\"object\":\"list\",\"data\":[]}"),
        });
        let servers = openai("odd", &odd.url) + &openai("good", &good.url);
        let (user, here) = serve(&(servers + &alias("fast", &["odd/x", "good/y"])));
        let heard = ask(&here.url, "fast", false);
        assert_eq!(
            (heard.status, heard.headers["x-hob-target"].to_str().ok()),
            (200, Some("good/y"))
        );
        let route = user.json(format!("route fast --json --server {}", here.url));
        let rests_s = route["targets"][0]["open_for_s"].as_f64().unwrap_or_default();
        assert!(rests_s <= 120.0, "one failure is no reason to rest for {rests_s} s");
    }
}

#[test]
fn events_may_end_their_lines_with_a_carriage_return_alone() {
    let old = Loopback::start(|_, stream| {
        let events = chunk("Hello.", "\"stop\"") + "data: [DONE]\n\n";
        answer(stream, "200 OK", EVENTS, &events.replace('\n', "\r"));
    });
    let (_user, here) = serve(&openai("old", &old.url));
    let heard = ask(&here.url, "old/x", false);
    assert_eq!(heard.body["choices"][0]["message"]["content"], "Hello.", "{}", heard.body);
}

#[test]
fn a_server_that_fails_is_not_taken_for_one_that_does_not_run() {
    let busy = Loopback::start(|_, stream| {
        let body = json!({"error": {"message": "all places are taken", "type": "t"}});
        answer(stream, "503 Service Unavailable", JSON, &body.to_string());
    });
    for args in ["upstreams", "route fast"] {
        let user = User::new();
        let config = |url: &str| {
            let listen = url.trim_start_matches("http://");
            let gateway = openai("gpu", NOBODY) + &alias("fast", &["gpu/x"]);
            user.configure(&format!("[server]\nlisten = \"{listen}\"\n{gateway}"));
        };
        config(&busy.url);
        let failed = user.refusal(args, 5);
        assert!(failed.contains("all places are taken"), "{failed}");
        assert!(!failed.contains("no hob is running"), "{failed}");
        config(NOBODY);
        let shown = user.hob(args).assert().success();
        stderr(&shown).has(&["no hob is running on this machine"]);
        stdout(&shown).has(&["gpu"]);
    }
}
