//! Opus in Ogg (RFC 7845): 20 ms packets, small pages, and a last page that ends at the exact sample.
//! No resampling: Opus encodes speech rates itself. Only the container counts at 48 kHz.

use ogg::{PacketWriteEndInfo, PacketWriter};
use opus_pure::{Application, MAX_PACKET_BYTES, OpusEncoder};

use super::frames::Frames;
use super::{AudioFormat, Codec, EncodeError};

const GRANULES_PER_SECOND: u32 = 48_000;
const PACKETS_PER_SECOND: u32 = 50;
/// CELT at this rate is transparent for one voice. A lower rate would save little and take more time, because speech
/// would use the hybrid coder.
const BITRATE_BPS: i32 = 64_000;
/// One page per packet until the listener has 200 ms of sound …
const SINGLE_PACKET_PAGES: u64 = 10;
/// … then 60 ms per page, so that Ogg takes about six percent of the bytes.
const PACKETS_PER_PAGE: u64 = 3;
/// Each response has one logical stream, so its serial number does not have to be random.
const SERIAL: u32 = 0x686f_6221;

pub(super) struct OggOpus {
    frames: Frames,
    pages: Pages,
    sample_rate_hz: u32,
    samples_taken: u64,
}

impl OggOpus {
    pub(super) fn new(sample_rate_hz: u32) -> Result<Self, EncodeError> {
        let mut encoder =
            OpusEncoder::new(sample_rate_hz as i32, 1, Application::Audio).map_err(failed)?;
        encoder.bitrate_bps = BITRATE_BPS;
        let frames = Frames::of((sample_rate_hz / PACKETS_PER_SECOND) as usize);
        Ok(Self { frames, pages: Pages::new(encoder), sample_rate_hz, samples_taken: 0 })
    }

    fn granules_per_sample(&self) -> u64 {
        u64::from(GRANULES_PER_SECOND / self.sample_rate_hz)
    }
}

impl Codec for OggOpus {
    fn header(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let pre_skip = self.pages.pre_skip() * self.granules_per_sample();
        self.pages.write_header(&head(pre_skip as u16, self.sample_rate_hz))?;
        self.pages.write_header(&tags())?;
        self.pages.drain(out);
        Ok(())
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.samples_taken += samples.len() as u64;
        self.frames.push(samples, |frame| self.pages.write(frame))?;
        self.pages.drain(out);
        Ok(())
    }

    /// Silence pushes the last samples through the encoder's delay, so one more packet always carries the end. The
    /// granule of the last page says where the sound stops.
    fn finish(mut self: Box<Self>, out: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        let end = (self.pages.pre_skip() + self.samples_taken) * self.granules_per_sample();
        let mut tail = self.frames.take_rest();
        tail.resize(tail.len() + self.pages.pre_skip() as usize, 0.0);
        let frame_len = (self.sample_rate_hz / PACKETS_PER_SECOND) as usize;
        tail.resize(tail.len().next_multiple_of(frame_len), 0.0);
        let mut frames = tail.chunks_exact(frame_len).peekable();
        while let Some(frame) = frames.next() {
            match frames.peek() {
                Some(_) => self.pages.write(frame)?,
                None => self.pages.write_last(frame, end)?,
            }
        }
        self.pages.drain(out);
        Ok(Vec::new())
    }
}

/// Packets and their pages.
struct Pages {
    encoder: OpusEncoder,
    ogg: PacketWriter<'static, Vec<u8>>,
    packets: u64,
}

impl Pages {
    fn new(encoder: OpusEncoder) -> Self {
        Self { encoder, ogg: PacketWriter::new(Vec::new()), packets: 0 }
    }

    /// The encoder's delay, in samples at the encoder's own rate.
    fn pre_skip(&self) -> u64 {
        self.encoder.lookahead() as u64
    }

    /// Each of the two header packets has its own page.
    fn write_header(&mut self, packet: &[u8]) -> Result<(), EncodeError> {
        self.put(packet.to_vec(), PacketWriteEndInfo::EndPage, 0)
    }

    fn write(&mut self, frame: &[f32]) -> Result<(), EncodeError> {
        let packet = self.packet(frame)?;
        let granule = self.packets * u64::from(GRANULES_PER_SECOND) / u64::from(PACKETS_PER_SECOND);
        let page_full = self.packets <= SINGLE_PACKET_PAGES
            || (self.packets - SINGLE_PACKET_PAGES).is_multiple_of(PACKETS_PER_PAGE);
        let end =
            if page_full { PacketWriteEndInfo::EndPage } else { PacketWriteEndInfo::NormalPacket };
        self.put(packet, end, granule)
    }

    fn write_last(&mut self, frame: &[f32], end_granule: u64) -> Result<(), EncodeError> {
        let packet = self.packet(frame)?;
        self.put(packet, PacketWriteEndInfo::EndStream, end_granule)
    }

    fn packet(&mut self, frame: &[f32]) -> Result<Vec<u8>, EncodeError> {
        let mut packet = vec![0; MAX_PACKET_BYTES];
        let bytes = self.encoder.encode(frame, frame.len(), &mut packet).map_err(failed)?;
        packet.truncate(bytes);
        self.packets += 1;
        Ok(packet)
    }

    fn put(
        &mut self,
        packet: Vec<u8>,
        end: PacketWriteEndInfo,
        granule: u64,
    ) -> Result<(), EncodeError> {
        self.ogg.write_packet(packet, SERIAL, end, granule).map_err(failed)
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(self.ogg.inner_mut());
    }
}

/// RFC 7845 §5.1. The rate is the source's, for information; players decode at 48 kHz.
fn head(pre_skip: u16, sample_rate_hz: u32) -> Vec<u8> {
    let mut packet = b"OpusHead".to_vec();
    packet.extend([1, 1]); // version, channels
    packet.extend(pre_skip.to_le_bytes());
    packet.extend(sample_rate_hz.to_le_bytes());
    packet.extend([0, 0, 0]); // output gain, mapping family
    packet
}

/// RFC 7845 §5.2: a vendor and no comments.
fn tags() -> Vec<u8> {
    let mut packet = b"OpusTags".to_vec();
    packet.extend(3_u32.to_le_bytes());
    packet.extend(b"hob");
    packet.extend(0_u32.to_le_bytes());
    packet
}

fn failed(error: impl std::fmt::Display) -> EncodeError {
    EncodeError::Codec { format: AudioFormat::Opus, detail: error.to_string() }
}
