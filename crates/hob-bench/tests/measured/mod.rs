//! A mock that is measured as any server: what both tests of kept figures begin with.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hob_bench::drive::{Arrivals, Patience};
use hob_bench::llm::{Prompts, SHAPES, Shape, ThinkingWish, Wish, measure};
use hob_bench::mock::scripted::{Script, Scripted};
use hob_bench::record::{RawSample, Record};
use hob_bench::runs::{BenchError, Care, Context};
use hob_bench::target::{Api, Target};
use hob_bench::workbench::Workbench;

pub(crate) fn mock(pairs: &str) -> Scripted {
    let quick = "ttft_ms=5,itl_ms=1,cache=true";
    let script =
        Script::default().with(quick).and_then(|script| script.with(pairs)).expect("a script");
    Scripted::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script).expect("a script")
}

pub(crate) fn wish(prompts: Prompts) -> Wish {
    Wish {
        shapes: vec![Shape { max_tokens: 16, ..SHAPES[0] }],
        arrivals: vec![Arrivals::Closed { users: 2 }],
        thinking: ThinkingWish::Auto,
        prompts,
        rounds: 2,
        span_s: 0.5,
    }
}

pub(crate) fn target(mock: &Scripted, api: Option<Api>) -> Target {
    Target::find(&mock.url(), api, None, None).expect("a server")
}

pub(crate) type Kept = (Record, Vec<RawSample>);

/// All cells of a mock, in order, each with so many runs.
pub(crate) fn measured(
    mock: &Scripted,
    api: Option<Api>,
    wish: &Wish,
    runs: usize,
) -> Result<Vec<Kept>, BenchError> {
    let (stop, mut kept) = (AtomicBool::new(false), Vec::new());
    let care = Care { runs_min: runs, runs_max: runs, ..Care::default() };
    let mut bench = Workbench {
        target: target(mock, api),
        started: None,
        context: Context { seed: 7, ..Context::default() },
        care,
        patience: Patience { silence: Duration::from_secs(2), ..Patience::default() },
        stop: &stop,
        tell: &mut |_, _| (),
        keep: &mut |record, samples| {
            kept.push((record.clone(), samples.to_vec()));
            Ok(())
        },
    };
    measure(&mut bench, wish)?;
    Ok(kept)
}
