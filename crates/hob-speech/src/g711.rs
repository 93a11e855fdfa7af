//! G.711: 16-bit samples as bytes, on the µ-law or the A-law scale. Used in telephony.
//! The arithmetic is that of the recommendation, so each byte decodes to the middle of its step.

/// Added before the logarithm of µ-law.
const MULAW_BIAS: i32 = 0x84;
const MULAW_MAX: i32 = 32_635;

pub(crate) fn mulaw_byte(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let level = i32::from(sample).abs().min(MULAW_MAX) + MULAW_BIAS;
    let exponent = 24 - level.leading_zeros().min(24);
    let mantissa = (level >> (exponent + 3)) & 0x0F;
    !(sign | (exponent << 4) as u8 | mantissa as u8)
}

pub(crate) fn mulaw_sample(byte: u8) -> i16 {
    let byte = !byte;
    let exponent = u32::from(byte >> 4) & 7;
    let level = ((i32::from(byte & 0x0F) << 3) + MULAW_BIAS) << exponent;
    let level = level - MULAW_BIAS;
    (if byte & 0x80 != 0 { -level } else { level }) as i16
}

/// Every second bit is inverted on the line.
const ALAW_MASK: u8 = 0x55;

pub(crate) fn alaw_byte(sample: i16) -> u8 {
    let sign = if sample < 0 { 0 } else { 0x80 };
    // The scale has 12 bits of level; a negative sample counts from -1.
    let level = i32::from(if sample < 0 { !sample } else { sample }) >> 4;
    let exponent = 28 - level.leading_zeros().min(28);
    let mantissa = if exponent == 0 { level } else { level >> (exponent - 1) } & 0x0F;
    (sign | (exponent << 4) as u8 | mantissa as u8) ^ ALAW_MASK
}

pub(crate) fn alaw_sample(byte: u8) -> i16 {
    let byte = byte ^ ALAW_MASK;
    let exponent = u32::from(byte >> 4) & 7;
    let mantissa = i32::from(byte & 0x0F);
    let level = match exponent {
        0 => (mantissa << 4) + 8,
        _ => ((mantissa << 4) + 0x108) << (exponent - 1),
    };
    (if byte & 0x80 != 0 { level } else { -level }) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_those_of_the_recommendation() {
        for (sample, mulaw, alaw) in [
            (0, 0xFF, 0xD5),
            (-1, 0x7F, 0x55),
            (32_767, 0x80, 0xAA),
            (-32_768, 0x00, 0x2A),
            (1000, 0xCE, 0xFA),
        ] {
            assert_eq!((mulaw_byte(sample), alaw_byte(sample)), (mulaw, alaw), "{sample}");
        }
    }

    #[test]
    fn bytes_survive_a_round_trip() {
        for byte in 0..=255 {
            // µ-law has two zeros.
            if byte != 0x7F {
                assert_eq!(mulaw_byte(mulaw_sample(byte)), byte);
            }
            assert_eq!(alaw_byte(alaw_sample(byte)), byte);
        }
    }
}
