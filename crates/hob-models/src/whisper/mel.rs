//! Filters from a spectrum to mel bands, on Slaney's scale: linear up to 1 kHz, logarithmic above.
//! Rounds as librosa 0.7 does, with which OpenAI computed the filters of the published models.

use super::FREQUENCIES;

/// Up to 1 kHz a mel has this many hertz.
const HERTZ_PER_MEL: f64 = 200.0 / 3.0;
const LOGARITHMIC_FROM_MEL: f64 = 15.0;
const LOGARITHMIC_FROM_HERTZ: f64 = 1_000.0;
/// From 1 kHz, 27 mels multiply the frequency by 6.4.
const FACTOR: f64 = 6.4;
const FACTOR_MELS: f64 = 27.0;
const HIGHEST_HERTZ: f64 = 8_000.0;

/// The filters of Whisper's spectrogram: `bands` rows of 201 weights each.
pub fn filters(bands: u32) -> Vec<f32> {
    let highest = mel(HIGHEST_HERTZ);
    let step = highest / f64::from(bands + 1);
    let edges: Vec<f64> = (0..=bands).map(|edge| hertz(f64::from(edge) * step)).collect();
    let edges = [edges, vec![hertz(highest)]].concat();
    edges.windows(3).flat_map(|edges| band([edges[0], edges[1], edges[2]])).collect()
}

/// A triangle of area 1 between the outer frequencies.
fn band([from, peak, to]: [f64; 3]) -> impl Iterator<Item = f32> {
    let area = 2.0 / (to - from);
    (0..FREQUENCIES).map(move |index| {
        let frequency = f64::from(index) * (HIGHEST_HERTZ / f64::from(FREQUENCIES - 1));
        let (rise, fall) = ((frequency - from) / (peak - from), (to - frequency) / (to - peak));
        // Adding zero turns -0 into 0.
        let weight = (rise.min(fall).max(0.0) + 0.0) as f32;
        (f64::from(weight) * area) as f32
    })
}

fn mel(hertz: f64) -> f64 {
    match hertz < LOGARITHMIC_FROM_HERTZ {
        true => hertz / HERTZ_PER_MEL,
        false => {
            LOGARITHMIC_FROM_MEL
                + (hertz / LOGARITHMIC_FROM_HERTZ).ln() / (FACTOR.ln() / FACTOR_MELS)
        }
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < LOGARITHMIC_FROM_MEL {
        true => mel * HERTZ_PER_MEL,
        false => {
            LOGARITHMIC_FROM_HERTZ
                * ((FACTOR.ln() / FACTOR_MELS) * (mel - LOGARITHMIC_FROM_MEL)).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sha256;

    fn digest(bands: u32) -> String {
        let bytes: Vec<u8> = filters(bands).into_iter().flat_map(f32::to_le_bytes).collect();
        Sha256::of(&bytes).to_string()
    }

    /// The 80 filters were taken from a published file, the 128 ones from OpenAI's `mel_filters.npz`.
    #[test]
    fn the_filters_are_those_of_the_published_models() {
        assert_eq!(digest(80), "85818f156f7e189453901a515e4726d270d307f976e161cf9403e8caab405498");
        assert_eq!(digest(128), "e399c2d72d2f7375e503c296d8453cefcc0c1e47a9c1a0a09e0d70f59c820f20");
    }
}
