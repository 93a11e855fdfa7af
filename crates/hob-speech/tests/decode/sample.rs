//! The chirp, how alike two sounds are, and wav files of every kind.
//! A chirp never repeats, so a wrong time, a gap or a wrong level is always visible.

use std::f64::consts::TAU;

pub(crate) const RATE_HZ: u32 = 16_000;

/// From 200 Hz, 800 Hz higher each second.
pub(crate) fn chirp(rate_hz: u32, seconds: f64) -> Vec<f32> {
    (0..(seconds * f64::from(rate_hz)).round() as usize)
        .map(|n| {
            let t = n as f64 / f64::from(rate_hz);
            (0.5 * (TAU * (200.0 * t + 400.0 * t * t)).sin()) as f32
        })
        .collect()
}

/// The samples by which `heard` is late, from −800 to 800.
pub(crate) fn lag(expected: &[f32], heard: &[f32]) -> i32 {
    let score = |lag: i32| -> f64 {
        let pairs = (800..expected.len().saturating_sub(800))
            .step_by(7)
            .filter_map(|n| Some((expected[n], heard.get(n.checked_add_signed(lag as isize)?)?)));
        pairs.map(|(a, b)| f64::from(a * b)).sum()
    };
    (-800..=800).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap()
}

/// Decibels, without correction of level or time. The first and last 10 ms may fade.
pub(crate) fn snr_db(expected: &[f32], heard: &[f32]) -> f64 {
    let middle = 160..expected.len().min(heard.len()) - 160;
    let power =
        |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    let signal = power(&mut expected[middle.clone()].iter().copied());
    let error = power(&mut middle.map(|n| expected[n] - heard[n]));
    10.0 * (signal / error.max(1e-12)).log10()
}

/// How one sample is written. The formats of `fmt ` are 1 for integers and 3 for floats.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WavKind {
    U8,
    S16,
    S24,
    S32,
    F32,
    F64,
}

impl WavKind {
    pub(crate) const ALL: [WavKind; 6] =
        [Self::U8, Self::S16, Self::S24, Self::S32, Self::F32, Self::F64];

    fn format_and_bits(self) -> (u16, u16) {
        match self {
            Self::U8 => (1, 8),
            Self::S16 => (1, 16),
            Self::S24 => (1, 24),
            Self::S32 => (1, 32),
            Self::F32 => (3, 32),
            Self::F64 => (3, 64),
        }
    }

    fn write(self, sample: f32, out: &mut Vec<u8>) {
        let level = |scale: f64| (f64::from(sample) * scale).round() as i32;
        match self {
            Self::U8 => out.push((level(127.0) + 128) as u8),
            Self::S16 => out.extend((level(32_767.0) as i16).to_le_bytes()),
            Self::S24 => out.extend(&level(8_388_607.0).to_le_bytes()[..3]),
            Self::S32 => out.extend(level(2_147_483_647.0).to_le_bytes()),
            Self::F32 => out.extend(sample.to_le_bytes()),
            Self::F64 => out.extend(f64::from(sample).to_le_bytes()),
        }
    }
}

/// The samples alternate between the channels.
pub(crate) fn wav(kind: WavKind, rate_hz: u32, channels: u16, samples: &[f32]) -> Vec<u8> {
    let (format, bits) = kind.format_and_bits();
    let mut data = Vec::new();
    samples.iter().for_each(|&sample| kind.write(sample, &mut data));
    let frame = u32::from(bits / 8) * u32::from(channels);
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0");
    file.extend(format.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate_hz.to_le_bytes());
    file.extend(frame.wrapping_mul(rate_hz).to_le_bytes());
    file.extend((frame as u16).to_le_bytes());
    file.extend(bits.to_le_bytes());
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}
