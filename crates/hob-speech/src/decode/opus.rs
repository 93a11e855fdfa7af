//! Opus packets → mono samples at 48 kHz; the codec itself mixes stereo. The codec can also decode to 16 kHz directly,
//! but that loses 7 dB in packets that use both of its coders (SILK and CELT).

use opus_pure::{MAX_PACKET_SAMPLES, OpusDecoder, OpusMSDecoder, packet};

/// The rate of the decoder, in which containers also count Opus samples.
pub(super) const OPUS_RATE_HZ: u32 = 48_000;

pub(super) struct OpusPackets {
    decoder: Streams,
    pub(super) pre_skip_s: f64,
    /// The length of the last packet. A lost packet is taken to be as long.
    last_len: usize,
    scratch: Vec<f32>,
}

enum Streams {
    /// Mono and stereo.
    One(Box<OpusDecoder>),
    Surround {
        decoder: OpusMSDecoder,
        channels: usize,
    },
}

impl OpusPackets {
    /// `head` is the identification header. Without one, the packets are taken for mono or stereo.
    pub(super) fn new(head: Option<&[u8]>) -> Result<Self, String> {
        let head = head.map_or(Ok(OpusHeader::default()), OpusHeader::read)?;
        let rate_hz = OPUS_RATE_HZ as i32;
        let decoder = if head.family == 0 || head.channels <= 2 {
            let mut decoder = OpusDecoder::new(rate_hz, 1).map_err(|e| e.to_string())?;
            decoder.gain_q8 = head.gain_q8.into();
            Streams::One(Box::new(decoder))
        } else {
            let channels = head.channels.into();
            let mut decoder =
                OpusMSDecoder::new(rate_hz, channels, head.family).map_err(|e| e.to_string())?;
            for stream in decoder.streams_mut() {
                stream.gain_q8 = head.gain_q8.into();
            }
            Streams::Surround { decoder, channels }
        };
        let pre_skip_s = f64::from(head.pre_skip) / f64::from(OPUS_RATE_HZ);
        let last_len = (OPUS_RATE_HZ / 50) as usize;
        Ok(Self { decoder, pre_skip_s, last_len, scratch: Vec::new() })
    }

    /// Replaces the content of `mono`. An empty packet is a lost one, which the codec conceals.
    pub(super) fn decode(&mut self, data: &[u8], mono: &mut Vec<f32>) -> Result<(), String> {
        let len = match data {
            [] => self.last_len,
            _ => packet::samples(data, OPUS_RATE_HZ as i32).map_err(|e| e.to_string())?,
        };
        if len == 0 || len > MAX_PACKET_SAMPLES {
            return Err(format!(
                "an Opus packet of {len} samples (expected 1 to {MAX_PACKET_SAMPLES})"
            ));
        }
        self.last_len = len;
        mono.clear();
        let decoded_len = match &mut self.decoder {
            Streams::One(decoder) => {
                mono.resize(len, 0.0);
                decoder.decode(data, len, mono)
            }
            Streams::Surround { decoder, channels } => {
                self.scratch.clear();
                self.scratch.resize(len * *channels, 0.0);
                let decoded_len = decoder.decode(data, len, &mut self.scratch);
                super::channels::append_mono(&self.scratch, *channels, mono);
                decoded_len
            }
        };
        mono.truncate(decoded_len.map_err(|e| e.to_string())?);
        Ok(())
    }
}

struct OpusHeader {
    channels: u8,
    pre_skip: u16,
    gain_q8: i16,
    family: u8,
}

impl Default for OpusHeader {
    fn default() -> Self {
        Self { channels: 2, pre_skip: 0, gain_q8: 0, family: 0 }
    }
}

impl OpusHeader {
    /// Version 0 is MP4's box, whose numbers are big-endian. Version 1 is the header of the other containers.
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let Some(([b'O', b'p', b'u', b's', b'H', b'e', b'a', b'd', version, channels], rest)) =
            bytes.split_first_chunk::<10>()
        else {
            return Err("the Opus header is malformed".to_owned());
        };
        let Some([s0, s1, _, _, _, _, g0, g1, family]) = rest.first_chunk::<9>() else {
            return Err(format!(
                "the Opus header has {} bytes (expected at least 19)",
                bytes.len()
            ));
        };
        let number = |pair: [u8; 2]| match version {
            0 => u16::from_be_bytes(pair),
            _ => u16::from_le_bytes(pair),
        };
        Ok(Self {
            channels: *channels,
            pre_skip: number([*s0, *s1]),
            gain_q8: number([*g0, *g1]) as i16,
            family: *family,
        })
    }
}
