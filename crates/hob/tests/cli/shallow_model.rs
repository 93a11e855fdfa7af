//! A copy of the test's small chat model with its first layers only. It reads long prompts in a tenth of the time, and its
//! answers mean nothing.

use hob_models::Gguf;
use hob_models::gguf::GgufTensor;

use crate::User;
use crate::real_server::test_home;

/// Layers that are kept. The model has 30.
const LAYERS: u32 = 2;
/// Bytes to which the data of a tensor is padded.
const ALIGNMENT: usize = 32;

impl User {
    /// Writes the copy into the folder in which hob runs.
    pub(crate) fn shallow_model(&self, name: &str) {
        let versions = test_home().join("models/smollm2").read_dir().expect("a folder");
        let files = versions.flatten().flat_map(|version| version.path().read_dir()).flatten();
        let mut paths = files.flatten().map(|file| file.path());
        let gguf = paths.find(|file| file.extension().is_some_and(|end| end == "gguf"));
        let gguf = gguf.expect("a GGUF file");
        let header = Gguf::open(&gguf).expect("a model");
        let bytes = std::fs::read(gguf).expect("a model");
        std::fs::write(self.path("work").join(name), shallow(&header, &bytes)).expect("written");
    }
}

fn shallow(header: &Gguf, bytes: &[u8]) -> Vec<u8> {
    let (key_count, keys, data) = sections(header, bytes);
    let mut keys = keys.to_vec();
    // The number has the type u32 (4).
    let label = [&b".block_count"[..], &4_u32.to_le_bytes()].concat();
    let found = keys.windows(label.len()).position(|window| window == label);
    let at = found.expect("a number of layers") + label.len();
    keys[at..at + 4].copy_from_slice(&LAYERS.to_le_bytes());
    let is_kept = |tensor: &&GgufTensor| {
        let rest = tensor.name.strip_prefix("blk.");
        let layer = rest.and_then(|rest| rest.split('.').next()?.parse().ok());
        layer.is_none_or(|layer: u32| layer < LAYERS)
    };
    let kept: Vec<GgufTensor> = header.tensors().iter().filter(is_kept).cloned().collect();
    file((key_count, &keys), &kept, data)
}

/// The number of keys of a GGUF file, the keys, and the data of its tensors.
pub(crate) fn sections<'a>(header: &Gguf, bytes: &'a [u8]) -> (u64, &'a [u8], &'a [u8]) {
    let end = header.header_bytes() as usize;
    let listed = header.tensors().iter();
    let listed = listed.map(|one| 8 + one.name.len() + 4 + 8 * one.dims.len() + 4 + 8);
    let key_count = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
    let keys = &bytes[24..end - listed.sum::<usize>()];
    (key_count, keys, &bytes[end.next_multiple_of(ALIGNMENT)..])
}

/// A GGUF file of these keys and tensors.
pub(crate) fn file(keys: (u64, &[u8]), tensors: &[GgufTensor], data: &[u8]) -> Vec<u8> {
    let (mut list, mut content) = (Vec::new(), Vec::new());
    for GgufTensor { name, dims, kind, offset, bytes } in tensors {
        list.extend((name.len() as u64).to_le_bytes());
        list.extend(name.as_bytes());
        list.extend((dims.len() as u32).to_le_bytes());
        list.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        list.extend(kind.id.to_le_bytes());
        list.extend((content.len() as u64).to_le_bytes());
        content.extend(&data[*offset as usize..(offset + bytes) as usize]);
        content.resize(content.len().next_multiple_of(ALIGNMENT), 0);
    }
    let counts = [tensors.len() as u64, keys.0].map(u64::to_le_bytes).concat();
    let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes(), &counts, keys.1, &list].concat();
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    file.extend(content);
    file
}
