//! What finding a model costs: `find PATH|URL|NAME` prints it with the time, the requests and the memory that it took.
//! For measurements; what people use is `hob fit`.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::Instant;

use hob_models::{FetchLimits, Fetcher, Finder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = std::env::args().nth(1).ok_or("name a model")?;
    let limits = FetchLimits::default();
    let hub = Fetcher::default().hub;
    let finder = Finder { hub, token: None, registry: None, ollama: None, store: None, limits };
    let since = Instant::now();
    let found = finder.find(&asked, None)?;
    let took_ms = since.elapsed().as_secs_f64() * 1e3;
    let hob_models::FoundModel { model, source, notes, requests, fetched_bytes, .. } = found;
    let weights_bytes = model.shape.weights.bytes();
    println!("{} {} {}: {weights_bytes} bytes of weights", model.name, model.format, model.quant);
    println!("{source}; {requests} requests, {fetched_bytes} bytes fetched");
    notes.iter().for_each(|note| println!("note: {note}"));
    println!("{took_ms:.1} ms, peak memory {}", peak_memory().as_deref().unwrap_or("unknown"));
    Ok(())
}

/// As Linux says it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
