//! Shutdown: running answers are finished, new ones are rejected, and no client can delay it.

use std::time::Duration;

use hob_server::ServerOptions;
use tokio::net::TcpStream;

use crate::chat_model::{begun, serve_staged, text};
use crate::chatting::{HI, STREAM, chat, datas, parsed};
use crate::client::{get, no_hang};
use crate::model::{pcm, sound};
use crate::server::Server;

const PCM: &str = r#"{"input":"Hello.","response_format":"pcm"}"#;

#[tokio::test]
async fn a_running_answer_is_finished_and_no_new_one_is_begun() {
    let mut server = Server::start().await;
    let sender = server.model.stage();
    let mut idle = server.send(get("/health")).await;
    assert_eq!(idle.answer().await.status(), 200);
    let mut client = server.speak(PCM).await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    client.head().await;
    server.ask_to_stop();
    assert_eq!(idle.rest().await.expect("a clean end"), b"", "idle connections are closed");
    let refused = TcpStream::connect(server.address).await;
    assert!(refused.is_err(), "the port is closed");
    sender.send(sound(0.2, 100)).await.expect("a listener");
    drop(sender);
    assert_eq!(client.chunks().await, [pcm(0.1, 100), pcm(0.2, 100)].concat());
    server.stopped().await;
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_cut_off_where_its_client_sees_it() {
    let drain_time_max = Duration::from_millis(50);
    let options = ServerOptions { drain_time_max, ..ServerOptions::default() };
    let mut server = Server::start_with(options).await;
    let sender = server.model.stage();
    let mut client = server.speak(PCM).await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    client.head().await;
    client.chunk().await.expect("a chunk");
    server.ask_to_stop();
    server.stopped().await;
    no_hang(sender.closed()).await;
    let end = client.chunk().await;
    assert!(end.is_err(), "{end:?}");
}

#[tokio::test]
async fn a_conversation_that_is_cut_off_hears_why() {
    let drain_time_max = Duration::from_millis(50);
    let options = ServerOptions { drain_time_max, ..ServerOptions::default() };
    let (mut server, model) = serve_staged(options).await;
    let (streamed, mut stream) = begun(&server, &model, chat(STREAM)).await;
    let collected = model.stage();
    let mut whole = server.send(chat(HI)).await;
    model.asked(2).await;
    collected.send(text("Hel")).await.expect("a reader");
    server.ask_to_stop();
    let events = String::from_utf8(stream.chunks().await).expect("text");
    let last = parsed(datas(&events).last().expect("an event"));
    assert_eq!(last["error"]["code"], "server_stopping", "{events}");
    let refused = whole.answer().await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.json()["error"]["code"], "server_stopping");
    server.stopped().await;
    no_hang(async { tokio::join!(streamed.closed(), collected.closed()) }).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let options = ServerOptions { connections_max: 1, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let sender = server.model.stage();
    let mut first = server.speak(PCM).await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    first.head().await;
    let mut second = server.send(get("/health")).await;
    // Only the end of the first answer lets the second one in.
    let mut answer = Box::pin(second.answer());
    assert!(futures::poll!(&mut answer).is_pending());
    drop((first, sender));
    assert_eq!(answer.await.status(), 200);
}
