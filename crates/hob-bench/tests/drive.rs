//! The client against a server whose answers are known: what came is followed, and what goes wrong is named.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use hob_bench::drive::{
    Arrivals, CONNECTIONS_MAX, Drive, DriveError, DriveResult, Endpoint, RequestLimits,
};
use hob_bench::mock::{MockServer, Script};
use hob_bench::terms::Metric;
use hob_bench::timeline::{Flag, Protocol, RequestFault, RequestFigures, figures, timeline};

/// No server here is as slow, even on a machine that does much else.
const LONG: RequestLimits = RequestLimits {
    connect: Duration::from_secs(30),
    silence: Duration::from_secs(30),
    total: Duration::from_secs(120),
    bytes_max: usize::MAX,
};

fn mock(pairs: &str) -> MockServer {
    let quick = "ttft_ms=5,itl_ms=1,tokens=12";
    let script = Script::default()
        .with(quick)
        .and_then(|script| script.with(pairs))
        .expect("as it was made");
    MockServer::start_local(script).expect("a free port")
}

fn job(path: &str, number: usize) -> Bytes {
    let body = r#"{"model":"mock","stream":true,"messages":[{"role":"user","content":"a b c"}]}"#;
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: mock\r\nx-request-id: {number}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

fn drive(url: &str, path: &str, count: usize, arrivals: Arrivals) -> DriveResult {
    let jobs = (0..count).map(|number| job(path, number)).collect();
    drive_within(LONG, url, jobs, arrivals)
}

fn drive_within(
    limits: RequestLimits,
    url: &str,
    jobs: Vec<Bytes>,
    arrivals: Arrivals,
) -> DriveResult {
    let endpoint = Endpoint::parse(url).expect("as it was made");
    let drive = Drive { endpoint, jobs, arrivals, seed: 7, limits, answer_bytes: 1 << 16 };
    drive.run(&AtomicBool::new(false)).expect("as it was made")
}

fn one(pairs: &str) -> Result<RequestFigures, RequestFault> {
    one_within(LONG, pairs)
}

fn one_within(limits: RequestLimits, pairs: &str) -> Result<RequestFigures, RequestFault> {
    let mock = mock(pairs);
    let jobs = vec![job("/v1/chat/completions", 0)];
    let driven = drive_within(limits, &mock.url(), jobs, Arrivals::Closed { users: 1 });
    let timeline = timeline(&driven.exchanges[0], Protocol::OpenAi);
    figures(&timeline, None).ok_or_else(|| timeline.fault.expect("as it was made"))
}

#[test]
fn every_answer_of_many_users_is_followed_to_its_last_token() {
    let mock = mock("reasoning_tokens=4,comments=true,empty_chunks=2");
    for (path, protocol) in
        [("/v1/chat/completions", Protocol::OpenAi), ("/api/chat", Protocol::Ollama)]
    {
        let driven = drive(&mock.url(), path, 24, Arrivals::Closed { users: 8 });
        assert_eq!(driven.exchanges.len(), 24);
        for exchange in &driven.exchanges {
            let got = figures(&timeline(exchange, protocol), None).expect("figures");
            let tokens = got.tokens;
            assert_eq!((tokens.completion, tokens.reasoning, tokens.content), (12, 4, 8), "{path}");
            let [first, answer] = [Metric::TtftMs, Metric::TtfatMs].map(|time| got.get(time));
            assert!(first >= Some(4.9) && answer >= first);
        }
        let connected = driven.exchanges.iter().filter(|exchange| exchange.connect.is_some());
        assert!(connected.count() <= 8, "connections are used again");
    }
    let ids: BTreeSet<String> = mock.truths().into_iter().map(|truth| truth.id).collect();
    assert_eq!(ids.len(), 24, "each request has its own name");
}

#[test]
fn chunks_are_counted_whole_however_they_are_packed() {
    let rows = [
        ("tokens_per_chunk=4", Flag::FirstChunkAssumed),
        ("coalesce=4,itl_ms=40", Flag::Coalesced),
        ("usage=nothing", Flag::CountsMissing),
        ("reasoning_tokens=12", Flag::NoAnswer),
    ];
    for (pairs, flag) in rows {
        let got = one(pairs).expect(pairs);
        assert_eq!(got.tokens.completion, 12, "{pairs}");
        assert!(got.flags.contains(&flag), "{pairs}: {:?}", got.flags);
    }
    let plain = one("split_utf8=true").expect("figures");
    assert_eq!((plain.tokens.content, plain.gaps_ms.len()), (12, 11));
}

#[test]
fn thinking_in_the_text_counts_as_thinking_whoever_sends_it() {
    // A pause before the answer: without it, a late client could read the thinking and the answer at once.
    let mock = mock("stall_ms=1000,stall_at=4,reasoning_tokens=4,think_tags=true");
    for (path, protocol) in [
        ("/v1/chat/completions", Protocol::OpenAi),
        ("/v1/completions", Protocol::OpenAi),
        ("/api/chat", Protocol::Ollama),
        ("/api/generate", Protocol::Ollama),
    ] {
        let driven = drive(&mock.url(), path, 1, Arrivals::Closed { users: 1 });
        let got = figures(&timeline(&driven.exchanges[0], protocol), None).expect("figures");
        let tokens = got.tokens;
        assert_eq!((tokens.completion, tokens.reasoning, tokens.content), (12, 4, 8), "{path}");
        let thinking_ms = got.get(Metric::SilenceMs);
        assert!(thinking_ms >= Some(500.0), "{path}: the answer begins four tokens later");
    }
}

#[test]
fn a_pause_is_seen_as_one() {
    let got = one("stall_ms=1000,stall_at=6").expect("figures");
    assert!(got.stalls.count >= 1 && got.stalls.worst_ms >= 750.0, "{:?}", got.stalls);
}

#[test]
fn whatever_a_server_does_has_its_name_and_no_figure() {
    let refused =
        |status| RequestFault::Refused { status, message: "as the script says".to_owned() };
    let rows = [
        ("status=401", refused(401)),
        ("status=429", refused(429)),
        ("status=500", refused(500)),
        ("crash=true", RequestFault::CutOff { chunks: 0 }),
        ("drop_at=5", RequestFault::CutOff { chunks: 5 }),
        ("garbage=true", RequestFault::Garbage),
    ];
    for (pairs, expected) in rows {
        assert_eq!(one(pairs), Err(expected), "{pairs}");
    }
    let short = RequestLimits { silence: Duration::from_millis(2500), ..LONG };
    let silent = RequestFault::Silent { chunks: 0 };
    assert_eq!(one_within(short, "hang=true"), Err(silent), "hang=true");
    let few = RequestLimits { bytes_max: 4000, ..LONG };
    let long = one_within(few, "tokens=1000");
    let is_cut = matches!(long, Err(RequestFault::TooLong { chunks: 1.., bytes: 4001.. }));
    assert!(is_cut, "{long:?}");
}

#[test]
fn nobody_there_is_no_hang() {
    let url = {
        let gone = mock("");
        gone.url()
    };
    let driven = drive(&url, "/v1/chat/completions", 3, Arrivals::Closed { users: 2 });
    for exchange in &driven.exchanges {
        let fault = timeline(exchange, Protocol::OpenAi).fault;
        assert!(matches!(fault, Some(RequestFault::Unreachable { .. })), "{fault:?}");
    }
}

#[test]
fn open_arrivals_are_due_whatever_the_answers_do() {
    let mock = mock("slots=1,ttft_ms=30");
    let arrivals = Arrivals::Constant { per_second: 100.0, connections: 1 };
    let driven = drive(&mock.url(), "/v1/chat/completions", 4, arrivals);
    let due: Vec<u128> = driven.exchanges.iter().map(|one| one.sched.as_millis()).collect();
    assert_eq!(due, [0, 10, 20, 30]);
    let last = timeline(&driven.exchanges[3], Protocol::OpenAi);
    // One connection for all: the fourth waits for three answers of 41 ms each.
    assert!(last.dispatch >= Duration::from_millis(60), "{:?}", last.dispatch);
}

#[test]
fn too_many_connections_are_refused() {
    let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
    let arrivals = Arrivals::Closed { users: CONNECTIONS_MAX + 1 };
    let drive = Drive { endpoint, jobs: vec![], arrivals, seed: 1, limits: LONG, answer_bytes: 0 };
    let refused = drive.run(&AtomicBool::new(false)).err();
    assert_eq!(refused, Some(DriveError::Connections { asked: CONNECTIONS_MAX + 1 }));
}
