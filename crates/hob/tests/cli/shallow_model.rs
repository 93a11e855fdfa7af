//! A copy of the test's small chat model with its first layers only. It reads long prompts in a tenth of the time, and its
//! answers mean nothing.

use crate::User;
use crate::real_server::test_home;

/// Layers that are kept. The model has 30.
const LAYERS: u32 = 2;
const ALIGNMENT: usize = 32;
/// Types of values in GGUF.
const U32: u32 = 4;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Reads a GGUF file from its beginning.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let from = self.at;
        self.at += count;
        &self.bytes[from..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    fn text(&mut self) -> &'a str {
        let length = self.u64() as usize;
        std::str::from_utf8(self.take(length)).expect("UTF-8")
    }

    fn skip_value(&mut self, kind: u32) {
        match kind {
            STRING => drop(self.text()),
            ARRAY => {
                let (kind, count) = (self.u32(), self.u64());
                (0..count).for_each(|_| self.skip_value(kind));
            }
            _ => drop(self.take([1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8][kind as usize])),
        }
    }
}

impl User {
    /// Writes the copy into the folder in which hob runs.
    pub(crate) fn shallow_model(&self, name: &str) {
        let versions = test_home().join("models/smollm2").read_dir().expect("a folder");
        let files = versions.flatten().flat_map(|version| version.path().read_dir()).flatten();
        let gguf = files.flatten().map(|file| file.path());
        let gguf = gguf.into_iter().find(|file| file.extension().is_some_and(|end| end == "gguf"));
        let bytes = std::fs::read(gguf.expect("a GGUF file")).expect("a model");
        std::fs::write(self.path("work").join(name), shallow(&bytes)).expect("written");
    }
}

fn shallow(bytes: &[u8]) -> Vec<u8> {
    let mut reader = Reader { bytes, at: 8 };
    let (tensors, values) = (reader.u64(), reader.u64());
    let values_start = reader.at;
    let mut layers_at = 0;
    for _ in 0..values {
        let (key, kind) = (reader.text(), reader.u32());
        if key.ends_with(".block_count") {
            assert_eq!(kind, U32);
            layers_at = reader.at - values_start;
        }
        reader.skip_value(kind);
    }
    let mut head = bytes[values_start..reader.at].to_vec();
    head[layers_at..layers_at + 4].copy_from_slice(&LAYERS.to_le_bytes());
    // The name, the description up to the offset, and the offset of each tensor.
    let mut all: Vec<(&str, &[u8], usize)> = Vec::new();
    for _ in 0..tensors {
        let from = reader.at;
        let name = reader.text();
        let dimensions = reader.u32() as usize;
        reader.take(dimensions * 8 + 4);
        let description = &bytes[from..reader.at];
        all.push((name, description, reader.u64() as usize));
    }
    let data = &bytes[reader.at.next_multiple_of(ALIGNMENT)..];
    let mut ends: Vec<usize> = all.iter().map(|(_, _, offset)| *offset).collect();
    ends.push(data.len());
    ends.sort_unstable();
    all.retain(|(name, ..)| {
        let layer = name.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
        layer.is_none_or(|layer: u32| layer < LAYERS)
    });
    let mut kept = Vec::new();
    for (_, description, offset) in &all {
        head.extend_from_slice(description);
        head.extend((kept.len() as u64).to_le_bytes());
        let end = ends[ends.partition_point(|end| end <= offset)];
        kept.extend_from_slice(&data[*offset..end]);
        kept.resize(kept.len().next_multiple_of(ALIGNMENT), 0);
    }
    let counts = [(all.len() as u64).to_le_bytes(), values.to_le_bytes()].concat();
    let mut file = [&bytes[..8], &counts, &head].concat();
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    file.extend(kept);
    file
}
