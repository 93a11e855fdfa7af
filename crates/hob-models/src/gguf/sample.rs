//! Makes small GGUF files in memory for tests.
//! Can also make invalid files, which most tests need.

/// A file being made. Each call adds to its end; a key of the same name replaces the first.
#[derive(Clone, Debug)]
pub struct SampleGguf {
    version: u32,
    metadata: Vec<(String, Vec<u8>)>,
    tensors: Vec<(String, Vec<u64>, u32, u64)>,
    data_bytes: u64,
}

const ALIGNMENT_BYTES: u64 = 32;

impl SampleGguf {
    /// Version 3 without keys and tensors.
    pub fn empty() -> SampleGguf {
        SampleGguf { version: 3, metadata: Vec::new(), tensors: Vec::new(), data_bytes: 0 }
    }

    /// A llama with one layer and 259 tokens. All weights are 0, so all tokens are equally likely.
    pub fn llama() -> SampleGguf {
        let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
        let tokens: Vec<String> =
            ["<unk>", "<s>", "</s>"].map(str::to_owned).into_iter().chain(bytes).collect();
        let kinds: Vec<i32> = [2, 3, 3].into_iter().chain([6; 256]).collect();
        SampleGguf::empty()
            .text("general.architecture", "llama")
            .u32("general.file_type", 0)
            .u32("llama.block_count", 1)
            .u32("llama.context_length", 512)
            .u32("llama.embedding_length", 32)
            .u32("llama.feed_forward_length", 64)
            .u32("llama.attention.head_count", 2)
            .u32("llama.attention.head_count_kv", 1)
            .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
            .text("tokenizer.ggml.model", "llama")
            .texts("tokenizer.ggml.tokens", &tokens)
            .f32s("tokenizer.ggml.scores", &[0.0; 259])
            .i32s("tokenizer.ggml.token_type", &kinds)
            .u32("tokenizer.ggml.bos_token_id", 1)
            .u32("tokenizer.ggml.eos_token_id", 2)
            .llama_tensors()
    }

    /// The same in two files, with an output of its own.
    pub fn llama_in_two() -> [SampleGguf; 2] {
        let first = SampleGguf::llama().u32("split.count", 2).u32("split.tensors.count", 12);
        [first, SampleGguf::empty().u32("split.count", 2).tensor("output.weight", &[32, 259])]
    }

    fn llama_tensors(self) -> SampleGguf {
        self.tensor("token_embd.weight", &[32, 259])
            .tensor("output_norm.weight", &[32])
            .tensor("blk.0.attn_norm.weight", &[32])
            .tensor("blk.0.attn_q.weight", &[32, 32])
            .tensor("blk.0.attn_k.weight", &[32, 16])
            .tensor("blk.0.attn_v.weight", &[32, 16])
            .tensor("blk.0.attn_output.weight", &[32, 32])
            .tensor("blk.0.ffn_norm.weight", &[32])
            .tensor("blk.0.ffn_gate.weight", &[32, 64])
            .tensor("blk.0.ffn_up.weight", &[32, 64])
            .tensor("blk.0.ffn_down.weight", &[64, 32])
    }

    #[must_use]
    pub fn version(mut self, version: u32) -> SampleGguf {
        self.version = version;
        self
    }

    #[must_use]
    pub fn u32(self, key: &str, value: u32) -> SampleGguf {
        self.raw(key, 4, &value.to_le_bytes())
    }

    #[must_use]
    pub fn f32(self, key: &str, value: f32) -> SampleGguf {
        self.raw(key, 6, &value.to_le_bytes())
    }

    #[must_use]
    pub fn flag(self, key: &str, value: bool) -> SampleGguf {
        self.raw(key, 7, &[value.into()])
    }

    #[must_use]
    pub fn text(self, key: &str, value: &str) -> SampleGguf {
        let bytes = with_length(value);
        self.raw(key, 8, &bytes)
    }

    #[must_use]
    pub fn texts(self, key: &str, values: &[String]) -> SampleGguf {
        let elements = values.iter().flat_map(|value| with_length(value)).collect();
        self.array(key, 8, values.len(), elements)
    }

    #[must_use]
    pub fn i32s(self, key: &str, values: &[i32]) -> SampleGguf {
        let elements = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 5, values.len(), elements)
    }

    #[must_use]
    pub fn f32s(self, key: &str, values: &[f32]) -> SampleGguf {
        let elements = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 6, values.len(), elements)
    }

    #[must_use]
    pub fn flags(self, key: &str, values: &[bool]) -> SampleGguf {
        let elements = values.iter().map(|value| u8::from(*value)).collect();
        self.array(key, 7, values.len(), elements)
    }

    /// Any value: the number of its type, and its bytes in the file.
    #[must_use]
    pub fn raw(mut self, key: &str, kind: u32, bytes: &[u8]) -> SampleGguf {
        let value = [&kind.to_le_bytes(), bytes].concat();
        match self.metadata.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
        self
    }

    #[must_use]
    pub fn without(mut self, key: &str) -> SampleGguf {
        self.metadata.retain(|(known, _)| known != key);
        self
    }

    #[must_use]
    pub fn without_tensors(mut self) -> SampleGguf {
        self.tensors.clear();
        self.data_bytes = 0;
        self
    }

    /// An F32 tensor, placed after the previous one.
    #[must_use]
    pub fn tensor(self, name: &str, dims: &[u64]) -> SampleGguf {
        let bytes = 4 * dims.iter().product::<u64>();
        let offset = self.data_bytes.next_multiple_of(ALIGNMENT_BYTES);
        self.raw_tensor(name, dims, 0, (offset, bytes))
    }

    /// Any tensor: the number of its type, its offset in the header, and the length of its data.
    #[must_use]
    pub fn raw_tensor(
        mut self,
        name: &str,
        dims: &[u64],
        kind: u32,
        (offset, bytes): (u64, u64),
    ) -> SampleGguf {
        self.tensors.push((name.to_owned(), dims.to_vec(), kind, offset));
        self.data_bytes = self.data_bytes.next_multiple_of(ALIGNMENT_BYTES) + bytes;
        self
    }

    /// The bytes of the file. Its data is all zeros.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            file.extend(with_length(key));
            file.extend(value);
        }
        for (name, dims, kind, offset) in &self.tensors {
            file.extend(with_length(name));
            file.extend((dims.len() as u32).to_le_bytes());
            file.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend(offset.to_le_bytes());
        }
        if !self.tensors.is_empty() {
            let data_start = file.len().next_multiple_of(ALIGNMENT_BYTES as usize);
            file.resize(data_start + self.data_bytes as usize, 0);
        }
        file
    }

    fn array(self, key: &str, kind: u32, length: usize, elements: Vec<u8>) -> SampleGguf {
        let head = [&kind.to_le_bytes()[..], &(length as u64).to_le_bytes()].concat();
        self.raw(key, 9, &[head, elements].concat())
    }
}

fn with_length(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}
