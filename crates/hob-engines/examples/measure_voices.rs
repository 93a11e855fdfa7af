//! Measures the statistics of each voice and writes them to a file: `measure_voices MODEL FILE`. `MODEL` is the
//! folder of a stored Kokoro model.

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use hob_engines::speech::kokoro::{Kokoro, KokoroOptions, voice_list};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [model, out] = &arguments[..] else {
        return Err("usage: measure_voices MODEL FILE".into());
    };
    let mut kokoro = Kokoro::load(model, KokoroOptions { threads: 2 })?;
    let names: Vec<String> = voice_list(model)?.into_iter().map(|voice| voice.id).collect();
    let mut file = File::create(out)?;
    writeln!(file, "{}", names.join(" "))?;
    for name in &names {
        file.write_all(&kokoro.calibrate(name)?)?;
    }
    Ok(())
}
