//! Finds the first audible sample of an answer: the start of 50 ms of sound louder than −40 dB. A click is shorter. The
//! first samples of a voice may be quieter, and do not count.

use super::microphone::RATE_HZ;

/// Samples of a frame: 10 ms.
const FRAME: usize = RATE_HZ as usize / 100;
const LOUD_FRAMES: usize = 5;
/// −40 dB of 16 bits.
const LOUD_RMS: f64 = 327.68;

#[derive(Debug, Default)]
pub(super) struct Audible {
    frame: Vec<i16>,
    frames: usize,
    loud: usize,
}

impl Audible {
    /// Takes the next samples (16 bits, little-endian). Returns the position of the first audible sample when its 50 ms are
    /// complete.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Option<usize> {
        for pair in bytes.as_chunks::<2>().0 {
            self.frame.push(i16::from_le_bytes(*pair));
            if self.frame.len() < FRAME {
                continue;
            }
            let energy: f64 = self.frame.drain(..).map(|sample| f64::from(sample).powi(2)).sum();
            let is_loud = (energy / FRAME as f64).sqrt() > LOUD_RMS;
            self.loud = if is_loud { self.loud + 1 } else { 0 };
            self.frames += 1;
            if self.loud == LOUD_FRAMES {
                return Some((self.frames - LOUD_FRAMES) * FRAME);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_a_click_are_not_audible() {
        let mut sound = vec![0i16; 2_400];
        sound[100] = 30_000;
        sound.extend(vec![3_000; 2_400]);
        let bytes: Vec<u8> = sound.into_iter().flat_map(i16::to_le_bytes).collect();
        for size in [2, 480, 4_000, 9_600] {
            let mut audible = Audible::default();
            let found = bytes.chunks(size).find_map(|piece| audible.hear(piece));
            assert_eq!(found, Some(2_400), "pieces of {size}");
        }
    }
}
