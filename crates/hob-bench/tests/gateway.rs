//! The measured chain in small, on loopback: load, floor, mock.

#[path = "../examples/gateway/floor.rs"]
mod floor;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hob_bench::load::{self, Block, Load, LoadError, Mode, Target};
use hob_bench::mock::serve_quick;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What is asked: the mock itself, or the floor before it.
struct Chain {
    mock: SocketAddr,
    floor: SocketAddr,
    /// Ends both when it is dropped.
    _serving: JoinSet<io::Result<()>>,
}

async fn chain() -> io::Result<Chain> {
    let (mock_listener, floor_listener) = (listener().await?, listener().await?);
    let (mock, floor) = (mock_listener.local_addr()?, floor_listener.local_addr()?);
    let mut serving = JoinSet::new();
    serving.spawn(serve_quick(mock_listener));
    serving.spawn(floor::serve(floor_listener, mock));
    Ok(Chain { mock, floor, _serving: serving })
}

async fn listener() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

async fn block(asked: SocketAddr, model: &str, mode: Mode) -> Result<Block, LoadError> {
    let target = Target { address: asked.to_string(), model: model.to_owned(), key: None, mode };
    let lasting = Duration::from_millis(100);
    load::run(&Load { target, concurrency: 4, lasting, pid: Some(std::process::id()) }).await
}

#[tokio::test]
async fn whole_answers_come_through() {
    let chain = chain().await.unwrap();
    for (asked, model) in [(chain.mock, "fast"), (chain.floor, "bench-fast")] {
        let block = block(asked, model, Mode::Whole).await.unwrap();
        assert!(block.requests > 0, "{block:?}");
        assert_eq!((block.errors, block.events, block.ttft_us), (0, 0, None), "{block:?}");
        assert_eq!(block.latency_us.unwrap().n, block.requests);
    }
}

#[tokio::test]
async fn every_event_comes_through() {
    let chain = chain().await.unwrap();
    for (asked, model) in [(chain.mock, "fast"), (chain.floor, "bench-fast")] {
        let block = block(asked, model, Mode::Stream).await.unwrap();
        assert!(block.requests > 0 && block.errors == 0, "{block:?}");
        assert_eq!(block.events, 68 * block.requests, "{block:?}");
        assert_eq!(block.ttfts_us.len(), block.requests);
    }
}

#[tokio::test]
async fn a_refusal_is_no_figure() {
    let chain = chain().await.unwrap();
    let refused = block(chain.floor, "bench-unheard-of", Mode::Whole).await.unwrap_err();
    assert!(refused.to_string().contains("status 404"), "{refused}");
}
