//! Makes a tiny Whisper model in CTranslate2's format, for tests.
//! Its numbers count up, so that a tensor in the wrong place is noticed.

use super::WhisperDims;
use super::layout::Layout;

/// One encoder layer, one decoder layer, English.
pub(crate) const DIMS: WhisperDims = WhisperDims {
    vocab: 5,
    audio_context: 6,
    audio_width: 32,
    audio_heads: 2,
    audio_layers: 1,
    text_context: 4,
    text_width: 32,
    text_heads: 4,
    text_layers: 1,
    mels: 3,
};

pub(crate) const VOCABULARY: &str = "a\nĠb\nc\n<|endoftext|>\n<|en|>\n";

/// `model.bin` of a model with these dimensions.
pub(crate) fn ctranslate2(dims: &WhisperDims) -> Vec<u8> {
    let layout = Layout::of(dims);
    let mut tensors: Vec<(String, Vec<u64>, u8, Vec<u8>)> = Vec::new();
    let heads = [("decoder", dims.text_heads), ("encoder", dims.audio_heads)];
    for (side, heads) in heads {
        let value = (heads as u16).to_le_bytes().to_vec();
        tensors.push((format!("{side}/num_heads"), Vec::new(), 2, value));
    }
    let mut count = 0_u16;
    for tensor in &layout.tensors {
        let from = &tensor.from;
        let mut shape: Vec<u64> = tensor.shape.iter().copied().filter(|n| *n != 1).collect();
        shape[0] *= from.parts;
        if tensors.iter().any(|(name, ..)| *name == from.name) {
            continue;
        }
        let numbers = (0..shape.iter().product::<u64>()).flat_map(|_| {
            count = (count + 1) % 0x7c00;
            count.to_le_bytes()
        });
        let numbers = numbers.collect();
        tensors.push((from.name.clone(), shape, 4, numbers));
    }
    for (bias, width) in &layout.key_biases {
        let tensor = tensors.iter_mut().find(|(name, ..)| *name == bias.name).expect("a bias");
        let (from, bytes) = ((2 * bias.part * width) as usize, 2 * *width as usize);
        tensor.3[from..from + bytes].fill(0);
    }
    let mut file = [&6_u32.to_le_bytes()[..], &12_u16.to_le_bytes(), b"WhisperSpec\0"].concat();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u32).to_le_bytes());
    for (name, shape, kind, numbers) in tensors {
        file.extend((name.len() as u16 + 1).to_le_bytes());
        file.extend(name.bytes().chain([0, shape.len() as u8]));
        file.extend(shape.iter().flat_map(|n| (*n as u32).to_le_bytes()));
        file.push(kind);
        file.extend((numbers.len() as u32).to_le_bytes());
        file.extend(numbers);
    }
    file.extend(0_u32.to_le_bytes());
    file
}
