//! Explains each term of an answer: what it means and where its figure comes from.
//! The names are those of the answers.

/// A term and its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub term: &'static str,
    pub text: &'static str,
}

pub const EXPLANATIONS: [Explanation; 24] = [
    explanation(
        "weights",
        "All tensors of the file in their stored type: elements / block size × bytes per block. hob does not multiply the number of parameters by a factor.",
    ),
    explanation(
        "repacked weights",
        "A second copy of some weights, in the order that this CPU's kernels need. It is anonymous memory in addition to the mapped file.",
    ),
    explanation(
        "KV cache",
        "What attention stores for each token: kv heads × (key length × bytes + value length × bytes), in every layer with attention. Layers with a sliding window store at most the window. Recurrent layers, and layers that use another layer's cache, store nothing.",
    ),
    explanation(
        "recurrent state",
        "What recurrent layers pass on from token to token. It does not grow with the context.",
    ),
    explanation(
        "computation",
        "The most memory that one step needs at a time: the logits, a feed-forward, or an unpacked layer of the cache.",
    ),
    explanation(
        "process and vocabulary",
        "The program, its libraries and its vocabulary; on a card, what the driver takes for each process.",
    ),
    explanation(
        "margin",
        "Memory that hob leaves free: 1 GiB of a card, like llama.cpp, and 256 MiB of RAM.",
    ),
    explanation("unified memory", "One memory that CPU and GPU share. hob counts it once."),
    explanation(
        "split",
        "Some layers are on the card; the CPU computes the others in RAM. Each weight is used once per token, so moving it over the bus would take even longer.",
    ),
    explanation(
        "experts offloaded",
        "Attention, router and cache are on the card. The experts are computed in RAM; each token uses only a few of them.",
    ),
    explanation(
        "active weights",
        "What is read for one token: everything except the embedding table, and only the experts that the token uses.",
    ),
    explanation(
        "bandwidth",
        "The highest transfer rate of a memory, GB/s. Decoding reads all active weights for each token, so the bandwidth limits its speed.",
    ),
    explanation(
        "bandwidth efficiency",
        "The part of the bandwidth that reading weights reaches (η).",
    ),
    explanation(
        "layer cost",
        "Time per layer that does not depend on its size (τ): starting its operations. Recurrent layers start many more.",
    ),
    explanation(
        "prefill",
        "Reading the prompt, many tokens at a time. Arithmetic limits its speed, not memory.",
    ),
    explanation(
        "quant",
        "The number format of the weights. Below 4 bits per weight, answers are noticeably worse.",
    ),
    explanation(
        "KV type",
        "The number format of the KV cache: f16 is exact, q8_0 takes half the memory, q4_0 a quarter. Values tolerate q4_0 better than keys.",
    ),
    explanation(
        "basis",
        "The source of a figure: measured here, calibrated here, published (for this very device), stated by the user or a profile, prior (published for similar devices), or assumed.",
    ),
    explanation(
        "range",
        "The range in which the real speed probably lies: ±10 % if calibrated, ±15 % if this device was published, the range of nine tenths of published runs on similar devices (±25 % and more), ±50 % if assumed. The lower end is lower if other programs used this machine during calibration.",
    ),
    explanation(
        "published",
        "Fitted to published measurements of the same device. `hob fit validate` lists those runs and their sources.",
    ),
    explanation(
        "prior",
        "Usual for similar devices, from published measurements. This device was not measured; `hob fit calibrate` measures it.",
    ),
    explanation(
        "instead",
        "The same model in another quant or with another KV type: at least a tenth faster, with a longer context, or better (more exact, and still as fast as people read).",
    ),
    explanation(
        "spill",
        "Data that a driver silently moves from a full card to RAM. Every token then waits for the bus.",
    ),
    explanation("ceiling", "The longest context that fits. `hob bench max-context` measures it."),
];

const fn explanation(term: &'static str, text: &'static str) -> Explanation {
    Explanation { term, text }
}

/// Other names of terms.
const ALSO: [(&str, &str); 9] = [
    ("kv", "KV cache"),
    ("state", "recurrent state"),
    ("process", "process and vocabulary"),
    ("faster", "instead"),
    ("longer", "instead"),
    ("better", "instead"),
    ("longest context", "ceiling"),
    ("prompt", "prefill"),
    ("experts", "experts offloaded"),
];

/// Finds an explanation by name, in any case.
pub fn explain(term: &str) -> Option<Explanation> {
    let is = |name: &str| name.eq_ignore_ascii_case(term.trim());
    let also = ALSO.into_iter().find(|(name, _)| is(name)).map(|(_, term)| term);
    EXPLANATIONS.into_iter().find(|known| is(known.term) || also == Some(known.term))
}
