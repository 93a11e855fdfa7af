//! The tensors of a Whisper model: names, shapes and order in ggml files, and where CTranslate2 keeps each.
//! The order is that of OpenAI's checkpoints, so that a conversion has the bytes of the published file.

use super::WhisperDims;

/// Each convolution of the encoder looks at three frames.
const CONVOLUTION_FRAMES: u64 = 3;
/// The width of the hidden layer of an MLP, in widths of the model.
const MLP_WIDTHS: u64 = 4;

/// Type of a tensor's numbers in a ggml file that is not quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    F32,
    F16,
}

/// Rows of one tensor in CTranslate2's format, which joins the projections of an attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) name: String,
    /// The slice is the part with this index, of `parts` equal ones.
    pub(super) part: u64,
    pub(super) parts: u64,
}

/// Where one tensor is in each of the two formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorLayout {
    pub(super) name: String,
    /// The outermost dimension comes first.
    pub(super) shape: Vec<u64>,
    pub(super) numbers: Numbers,
    pub(super) from: Slice,
}

impl TensorLayout {
    pub(super) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// All tensors of a model.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) tensors: Vec<TensorLayout>,
    /// Biases of attention keys, with their lengths. Only CTranslate2 has them, and all are zero.
    pub(super) key_biases: Vec<(Slice, u64)>,
}

impl Layout {
    pub(super) fn of(dims: &WhisperDims) -> Layout {
        let mut layout = Layout { tensors: Vec::new(), key_biases: Vec::new() };
        let (audio, text) = (u64::from(dims.audio_width), u64::from(dims.text_width));
        let positions = [
            ("decoder", u64::from(dims.text_context), text),
            ("encoder", u64::from(dims.audio_context), audio),
        ];
        for (side, context, width) in positions {
            let name = format!("{side}.positional_embedding");
            let from = format!("{side}/position_encodings/encodings");
            layout.add(name, &[context, width], Numbers::F32, Slice::whole(from));
        }
        let tokens = [u64::from(dims.vocab), text];
        let from = Slice::whole("decoder/embeddings/weight".to_owned());
        layout.add("decoder.token_embedding.weight".to_owned(), &tokens, Numbers::F16, from);
        (0..dims.text_layers).for_each(|layer| layout.block("decoder", layer, text));
        layout.norm("decoder.ln", "decoder", text);
        layout.convolution(1, audio, u64::from(dims.mels));
        layout.convolution(2, audio, audio);
        (0..dims.audio_layers).for_each(|layer| layout.block("encoder", layer, audio));
        layout.norm("encoder.ln_post", "encoder", audio);
        layout
    }

    /// Numbers of the model. The token embedding is also the output layer, and counts once.
    pub(super) fn parameters(&self) -> u64 {
        self.tensors.iter().map(TensorLayout::elements).sum()
    }

    fn add(&mut self, name: String, shape: &[u64], numbers: Numbers, from: Slice) {
        self.tensors.push(TensorLayout { name, shape: shape.to_vec(), numbers, from });
    }

    fn norm(&mut self, name: &str, from: &str, width: u64) {
        for (end, in_ctranslate2) in [("weight", "gamma"), ("bias", "beta")] {
            let from = Slice::whole(format!("{from}/layer_norm/{in_ctranslate2}"));
            self.add(format!("{name}.{end}"), &[width], Numbers::F32, from);
        }
    }

    fn convolution(&mut self, number: u32, width: u64, inputs: u64) {
        let from = |end: &str| Slice::whole(format!("encoder/conv{number}/{end}"));
        let name = |end: &str| format!("encoder.conv{number}.{end}");
        let shape = [width, inputs, CONVOLUTION_FRAMES];
        self.add(name("weight"), &shape, Numbers::F16, from("weight"));
        self.add(name("bias"), &[width, 1], Numbers::F32, from("bias"));
    }

    fn block(&mut self, side: &str, layer: u32, width: u64) {
        let (block, from) = (format!("{side}.blocks.{layer}"), format!("{side}/layer_{layer}"));
        self.norm(&format!("{block}.mlp_ln"), &format!("{from}/ffn"), width);
        let hidden = MLP_WIDTHS * width;
        for (index, rows, row) in [(0, hidden, width), (1, width, hidden)] {
            let from = |end: &str| Slice::whole(format!("{from}/ffn/linear_{index}/{end}"));
            let name = |end: &str| format!("{block}.mlp.{}.{end}", 2 * index);
            self.add(name("weight"), &[rows, row], Numbers::F16, from("weight"));
            self.add(name("bias"), &[rows], Numbers::F32, from("bias"));
        }
        let own = Projections { joined: &[("linear_0", 3)], out: "linear_1" };
        self.attention(&format!("{block}.attn"), &format!("{from}/self_attention"), own, width);
        if side == "decoder" {
            let cross =
                Projections { joined: &[("linear_0", 1), ("linear_1", 2)], out: "linear_2" };
            self.attention(
                &format!("{block}.cross_attn"),
                &format!("{from}/attention"),
                cross,
                width,
            );
        }
    }

    fn attention(&mut self, name: &str, from: &str, projections: Projections<'_>, width: u64) {
        self.norm(&format!("{name}_ln"), from, width);
        let joined = projections.joined.iter();
        let slices =
            joined.flat_map(|(linear, parts)| (0..*parts).map(move |part| (linear, part, *parts)));
        let out = (&projections.out, 0, 1);
        for (role, (linear, part, parts)) in
            ["query", "key", "value", "out"].into_iter().zip(slices.chain([out]))
        {
            let from = |end: &str| Slice { name: format!("{from}/{linear}/{end}"), part, parts };
            self.add(
                format!("{name}.{role}.weight"),
                &[width, width],
                Numbers::F16,
                from("weight"),
            );
            match role {
                "key" => self.key_biases.push((from("bias"), width)),
                _ => self.add(format!("{name}.{role}.bias"), &[width], Numbers::F32, from("bias")),
            }
        }
    }
}

/// How CTranslate2 groups the query, key, value and output of an attention.
struct Projections<'p> {
    /// Query, key and value: names and numbers of joined matrices.
    joined: &'p [(&'static str, u64)],
    out: &'static str,
}

impl Slice {
    fn whole(name: String) -> Slice {
        Slice { name, part: 0, parts: 1 }
    }
}
