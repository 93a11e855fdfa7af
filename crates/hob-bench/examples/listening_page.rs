//! Writes a listening page with short synthetic sounds, for the tests in a browser: `listening_page FILE`.
//! The sounds of the second model have 1.5 times the frequency, so that a person hears the difference.

use std::f32::consts::TAU;
use std::path::Path;

use anyhow::{Context as _, Result};
use hob_bench::listening::{HeardSentence, ListeningPage};
use hob_core::wav_header;

const SENTENCES: [(&str, f32); 3] =
    [("The first sentence.", 220.0), ("The second one.", 330.0), ("And the last.", 440.0)];
const RATE_HZ: u32 = 24_000;
const SAMPLES: u32 = RATE_HZ / 10;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).context("FILE is missing: `listening_page FILE`")?;
    let sentence = |(text, hz): (&str, f32)| {
        let [source, target] = [hz, 1.5 * hz].map(tone);
        HeardSentence::new(text, [&source, &target], "audio/wav")
    };
    let sentences = SENTENCES.into_iter().map(sentence).collect();
    let page = ListeningPage { source: "model-one", target: "model-two", voice: "tone", sentences };
    if let Some(folder) = Path::new(&file).parent() {
        fs_err::create_dir_all(folder)?;
    }
    Ok(fs_err::write(&file, page.html())?)
}

/// A tone as a WAV file with 16 bits for each sample.
fn tone(hz: f32) -> Vec<u8> {
    let mut file = wav_header(RATE_HZ, 2 * SAMPLES);
    for at in 0..SAMPLES {
        let sample = 0.3 * (TAU * hz * at as f32 / RATE_HZ as f32).sin();
        file.extend(((sample * f32::from(i16::MAX)) as i16).to_le_bytes());
    }
    file
}
