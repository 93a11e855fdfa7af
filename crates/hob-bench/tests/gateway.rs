//! The chain that `make bench-gateway` measures, on loopback: load, minimal gateway, mock server. The parameters of
//! each scripted answer stand in the model's name, after `mock~`.

#[path = "../examples/gateway/floor.rs"]
mod floor;
#[path = "../examples/gateway/load.rs"]
mod load;

use hob_bench::mock::{MockServer, Script};
use load::{Block, Load, Mode};
use tokio::net::TcpListener;

const FAST: &str = "mock~ttft_ms=0,itl_ms=0,coalesce=16";

/// A block of load through the gateway; an error if its first request fails.
async fn block(model: &str, mode: Mode) -> anyhow::Result<Block> {
    let mock = MockServer::start_local(Script::default())?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?.to_string();
    let model = format!("bench-{model}");
    let pid = Some(std::process::id());
    let load = Load { address, mode, model, key: None, concurrency: 4, seconds: 0.5, pid };
    tokio::select! {
        ended = floor::serve(listener, mock.address) => Err(anyhow::anyhow!("the gateway ended: {ended:?}")),
        block = tokio::task::spawn_blocking(move || load::run(&load)) => block?,
    }
}

#[tokio::test]
async fn whole_answers_are_counted() {
    let block = block(FAST, Mode::Whole).await.unwrap();
    assert!(block.requests > 0, "{block:?}");
    assert_eq!((block.errors, block.events, block.ttft_us), (0, 0, None));
    assert_eq!(block.latency_us.unwrap().n, block.requests);
}

#[tokio::test]
async fn every_event_of_a_stream_is_counted() {
    let block = block(FAST, Mode::Stream).await.unwrap();
    assert!(block.requests > 0 && block.errors == 0, "{block:?}");
    // 64 tokens, and four events without a token.
    assert_eq!((block.events, block.ttfts_us.len()), (68 * block.requests, block.requests));
}

#[tokio::test]
async fn a_rejected_request_gives_no_figures() {
    let rejected = block("mock~status=404", Mode::Whole).await.unwrap_err();
    assert!(rejected.to_string().contains("status 404"), "{rejected}");
}

#[tokio::test]
async fn an_incomplete_stream_gives_no_figures() {
    let short = block("mock~ttft_ms=0,itl_ms=0,tokens=63", Mode::Stream).await.unwrap_err();
    assert!(short.to_string().contains("63 chunks instead of 64"), "{short}");
}
