//! Sessions whose connection breaks after any byte that the client sends. Each must free its slot and its memory.

use hob_core::statistics::SeededRandom;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const SESSIONS: usize = 1_000;
/// Sessions after which buffers and pools have their usual size.
const WARM_UP: usize = 200;
/// Less than 40 KiB for each session after them. Each sends up to 77 KB.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

const HANDSHAKE: &str = "GET /v1/realtime?model=gpt-realtime HTTP/1.1\r\nHost: 127.0.0.1\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A text frame of a client, whose mask of zeros changes nothing.
fn frame(event: &Value) -> Vec<u8> {
    let text = event.to_string().into_bytes();
    let length = u16::try_from(text.len()).expect("a short event");
    [&[0x81, 0x80 | 126], &length.to_be_bytes()[..], &[0; 4], &text].concat()
}

/// A spoken question with the silence after it, then a written one, and the answer is cancelled.
fn frames() -> Vec<u8> {
    let sound = |level: i16, count: usize| {
        let wave = (0..count).map(|n| if n % 40 < 20 { level } else { -level });
        let audio = STANDARD.encode(wave.flat_map(i16::to_le_bytes).collect::<Vec<u8>>());
        frame(&json!({"type": "input_audio_buffer.append", "audio": audio}))
    };
    let content = json!([{"type": "input_text", "text": "Is it on?"}]);
    let item = json!({"type": "message", "role": "user", "content": content});
    [
        sound(12_000, 9_600),
        sound(0, 9_600),
        sound(0, 9_600),
        frame(&json!({"type": "conversation.item.create", "item": item})),
        frame(&json!({"type": "response.create"})),
        frame(&json!({"type": "response.cancel"})),
    ]
    .concat()
}

/// Opens a session, sends these bytes after the handshake, and breaks the connection. `None`: the server is full,
/// because it has not noticed yet that connections broke. No event tells a client when it does.
async fn kill_after(address: std::net::SocketAddr, bytes: &[u8], is_reset: bool) -> Option<()> {
    let mut socket = TcpStream::connect(address).await.expect("a server");
    socket.write_all(HANDSHAKE.as_bytes()).await.expect("an open socket");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.expect("an answer"));
    }
    if !answer.starts_with(b"HTTP/1.1 101") {
        assert!(answer.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
        return None;
    }
    socket.write_all(bytes).await.expect("an open socket");
    if is_reset {
        socket.set_zero_linger().expect("an option of TCP");
    }
    Some(())
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("of this process");
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    let kib = size.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a number") << 10
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> u64 {
    0
}

#[tokio::test]
async fn a_thousand_sessions_killed_at_any_byte_leave_nothing_behind() {
    let stage = stage_with(options()).await;
    let frames = frames();
    let mut random = SeededRandom::new(1);
    let mut warm_bytes = 0;
    for number in 0..SESSIONS {
        if number == WARM_UP {
            warm_bytes = resident_bytes();
        }
        let sent = &frames[..random.below(frames.len() + 1)];
        let kill = async || kill_after(stage.server.address, sent, number % 2 == 0).await;
        Box::pin(until(kill)).await;
    }
    stage.server.until_in_flight(0).await;
    // Every slot can be taken again.
    let mut talkers = Vec::new();
    while talkers.len() < options().sessions_max {
        let open = async || Box::pin(stage.try_open("/v1/realtime", &[])).await.ok();
        let mut talker = until(open).await;
        talker.until("session.created").await;
        talkers.push(talker);
    }
    let growth = resident_bytes().saturating_sub(warm_bytes);
    assert!(growth < GROWTH_BYTES_MAX, "{} KiB", growth >> 10);
}
