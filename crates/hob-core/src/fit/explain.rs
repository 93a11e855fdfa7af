//! Explains each term of an answer: what it means and where its figure comes from.
//! The names are those of the answers.

/// A term and its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub term: &'static str,
    pub text: &'static str,
}

pub const EXPLANATIONS: [Explanation; 24] = [
    said(
        "weights",
        "Every tensor of the file in the type that it is stored in: elements / block × bytes of a block. Never the number of parameters times a factor.",
    ),
    said(
        "repacked weights",
        "A second copy of some weights, in the order that this processor's kernels like. It is anonymous memory beside the mapped file.",
    ),
    said(
        "KV cache",
        "What attention keeps of each token: kv heads × (key length × bytes + value length × bytes), in every layer that attends. Layers with a window keep no more than the window; recurrent layers, and those that use another layer's, keep nothing.",
    ),
    said(
        "recurrent state",
        "What recurrent layers carry on from token to token. It does not grow with the context.",
    ),
    said(
        "computation",
        "The most that one step has in memory at a time: scores of the words, a feed-forward, or a layer of the cache that is unpacked.",
    ),
    said(
        "process and vocabulary",
        "The program, its libraries, its table of words; on a card what the driver takes for each process.",
    ),
    said("margin", "Left free on purpose: 1 GiB of a card as llama.cpp leaves, 256 MiB of RAM."),
    said(
        "unified memory",
        "One memory for processor and graphics. It is counted once, and never added to itself.",
    ),
    said(
        "split",
        "Some layers on the card, the others computed by the processor where they lie. A weight is used once a token, so that bringing it over the bus would take longer still.",
    ),
    said(
        "experts offloaded",
        "Attention, router and cache stay on the card; the experts, of which a token passes through a few, are computed in RAM.",
    ),
    said(
        "active weights",
        "What one token reads: all but the embedding that is looked up, and of the experts the share that is used.",
    ),
    said(
        "bandwidth",
        "What memory delivers at best, GB/s. Decoding reads all active weights for each token, so that it bounds everything.",
    ),
    said(
        "bandwidth efficiency",
        "The share of the bandwidth at which weights are really read (η).",
    ),
    said(
        "layer cost",
        "Time that a layer takes whatever it reads (τ): launching its operations. Recurrent layers launch many more.",
    ),
    said(
        "prefill",
        "Reading the prompt, many tokens at a time: bound by arithmetic and no longer by memory.",
    ),
    said("quant", "How few bits a weight has. Below 4, answers are noticeably worse."),
    said(
        "KV type",
        "How the cache stores numbers: f16 exactly, q8_0 in half of that, q4_0 in a quarter. Values bear q4_0 better than keys.",
    ),
    said(
        "basis",
        "How a figure was learnt: measured here, calibrated here, published (of this very device), said by a person or a profile, prior (published of such devices), assumed.",
    ),
    said(
        "range",
        "What a speed may really be: ±10 % where it was calibrated, ±15 % where this device was published, what nine tenths of published runs lie in where such devices were (±25 % and more), ±50 % where nobody knows; and lower by what others took of this machine when it was calibrated.",
    ),
    said(
        "published",
        "Fitted to what others measured on the same device and published. `hob fit validate` lists those runs and their sources.",
    ),
    said(
        "prior",
        "What is usual of such devices, from published measurements: nobody timed this one. `hob fit calibrate` does.",
    ),
    said(
        "instead",
        "The same model in another quant or with another cache: faster by a tenth at least, with a longer context, or better, which is stored more exactly and still as fast as one reads.",
    ),
    said(
        "spill",
        "What a driver moves from a full card to RAM without a word: every token then waits for the bus.",
    ),
    said("ceiling", "The longest context that fits. `hob bench ceiling` tries it out."),
];

const fn said(term: &'static str, text: &'static str) -> Explanation {
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
