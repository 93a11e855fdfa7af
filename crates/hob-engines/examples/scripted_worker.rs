//! A worker process with a scripted engine, for the tests of the supervisor: real processes, real
//! sockets, known sound. Its arguments select how loading behaves, and the voice how speaking behaves.

use std::path::Path;
use std::time::Duration;

use hob_core::Language;
use hob_engines::speech::scripted::{Act, ScriptedSynthesiser, ScriptedUnits};
use hob_engines::speech::{ServeError, ServeOptions, WarmUp, serve_speech};
use hob_engines::worker::become_worker;
use hob_speech::SpokenUnit;

fn main() -> Result<(), ServeError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // How long an engine may take to end after its server.
    let is_short = arguments.pop_if(|last| *last == "ends-soon").is_some();
    let orphan_limit = Duration::from_secs(if is_short { 3 } else { 60 });
    let warm_up = WarmUp {
        language: Language::AmericanEnglish,
        voice: "af_plain".to_owned(),
        unit: SpokenUnit { phonemes: "ɹ".to_owned(), words: Vec::new(), pause_after_ms: 0 },
    };
    let options = ServeOptions { warm_up: Some(warm_up), orphan_limit };
    serve_speech(become_worker()?, ScriptedUnits, || load(&arguments), options)
}

fn load(arguments: &[&str]) -> Result<ScriptedSynthesiser, String> {
    match arguments {
        [] => {}
        ["load-fails"] => return Err("the file is not there".to_owned()),
        ["load-fails-unless", path] if Path::new(path).exists() => {}
        ["load-fails-unless", path] => return Err(format!("{path} is not there")),
        ["load-hangs"] => std::thread::sleep(Duration::from_secs(3600)),
        ["load-aborts"] => std::process::abort(),
        other => return Err(format!("no script for {other:?}")),
    }
    Ok(ScriptedSynthesiser::default()
        .always("af_slow", Act::Take(Duration::from_millis(5)))
        .at("af_fails", 3, Act::Fail)
        .at("af_panics", 3, Act::Panic)
        .at("af_quotes", 3, Act::PanicQuoting)
        .at("af_aborts", 3, Act::Abort)
        .at("af_hangs", 3, Act::Hang))
}
