//! Every figure's name, unit, direction and definition: one name, one formula.
//! The page, the reference and the terminal all read this table; none of them explains a figure of its own accord.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Less,
    More,
    /// It says what was done and not how well.
    Neither,
}

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDefinition {
    pub name: &'static str,
    /// For the head of a column.
    pub title: &'static str,
    /// As it is written behind the number; empty of shares and ratios.
    pub unit: &'static str,
    pub better: Better,
    /// One sentence.
    pub meaning: &'static str,
    /// A formula with the symbols in `SYMBOLS`; empty if there is nothing to compute.
    pub formula: &'static str,
}

/// Makes the metrics and their table from one list, so that neither can lack what the other has.
macro_rules! metrics {
    ($($metric:ident $name:literal, $title:literal, $unit:literal, $better:ident, $meaning:literal, $formula:literal;)+) => {
        /// What is measured many times in a run and kept as a spread.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Metric {
            $(#[serde(rename = $name)] $metric,)+
        }

        /// The terms of all metrics, in the order of `Metric`.
        const METRICS: &[MetricDefinition] = &[$(MetricDefinition {
            name: $name, title: $title, unit: $unit, better: Better::$better, meaning: $meaning, formula: $formula,
        },)+];

        impl Metric {
            pub const ALL: &[Metric] = &[$(Metric::$metric,)+];
        }
    };
}

metrics! {
    TtfbMs "ttfb_ms", "first byte", "ms", Less, "Until the head of the answer arrives.", "t_hdr − t_send";
    TtftMs "ttft_ms", "first token", "ms", Less, "Until the first token arrives, be it thinking or answer.", "a_first − t_send";
    TtfatMs "ttfat_ms", "first answer token", "ms", Less, "Until the first token arrives that is not thinking: what a reader waits for.", "a_first(content, tool) − t_send";
    SilenceMs "silence_ms", "silence", "ms", Less, "Hidden thinking: from the first token to the first of the answer.", "ttfat − ttft";
    TtfbSchedMs "ttfb_sched_ms", "first byte, from due", "ms", Less, "The first byte, counted from when the request was due and not from when it was sent.", "t_hdr − t_sched";
    TtftSchedMs "ttft_sched_ms", "first token, from due", "ms", Less, "The first token, counted from when the request was due.", "a_first − t_sched";
    TtfatSchedMs "ttfat_sched_ms", "first answer token, from due", "ms", Less, "The first answer token, counted from when the request was due.", "a_first(content, tool) − t_sched";
    DispatchMs "dispatch_ms", "dispatch", "ms", Less, "How late the client sent: its own fault, and not the server's.", "t_send − t_sched";
    ConnectMs "connect_ms", "connect", "ms", Less, "Until a new connection stood; none of a reused one.", "";
    E2eMs "e2e_ms", "whole answer", "ms", Less, "From sending to the last token.", "a_last − t_send";
    E2eSchedMs "e2e_sched_ms", "whole answer, from due", "ms", Less, "From when the request was due to the last token.", "a_last − t_sched";
    TpotMs "tpot_ms", "time per token", "ms", Less, "Time for each token behind the first chunk.", "(a_last − a_first) / (N − n_first)";
    DecodeTokS "decode_tok_s", "gen tok/s", "tok/s", More, "Tokens per second while the answer is written, the wait before the first one left out.", "(N − n_first) / (a_last − a_first)";
    ReasoningTokS "reasoning_tok_s", "reasoning tok/s", "tok/s", More, "Tokens per second while the model thinks.", "over the reasoning chunks alone";
    ContentTokS "content_tok_s", "answer tok/s", "tok/s", More, "Tokens per second of the answer alone.", "over the content chunks alone";
    PrefillTokS "prefill_tok_s", "prefill tok/s", "tok/s", More, "Tokens of the prompt per second that had to be computed, those from the cache left out.", "(prompt − cached) / prefill time";
    PromptTtftTokS "prompt_ttft_tok_s", "prompt / first token", "tok/s", Neither, "Tokens of the prompt by the wait for the first token. On a cache hit it includes tokens that were not computed, so it is not the prefill speed.", "prompt / ttft";
    GenTokS "gen_tok_s", "gen tok/s (as published)", "tok/s", More, "Tokens per second as published, without a definition of how they were counted.", "";
    IcgMs "icg_ms", "chunk gap", "ms", Less, "Time between two chunks, over all requests together.", "a_i − a_(i−1)";
    ItlMs "itl_ms", "token gap", "ms", Less, "Time between two tokens, where it is known how many each chunk holds.", "(a_i − a_(i−1)) / n_i, n_i times";
    ThroughputTokS "throughput_tok_s", "throughput", "tok/s", More, "Tokens per second of all users together, while all of them were served.", "tokens / window with all slots full";
    RequestsS "requests_s", "requests/s", "1/s", More, "Answers per second of all users together.", "requests / window";
    PromptTokens "prompt_tokens", "prompt tokens", "tok", Neither, "Tokens of the prompt, the template's included.", "";
    CachedTokens "cached_tokens", "cached tokens", "tok", Neither, "Tokens of the prompt that the server already had.", "";
    CompletionTokens "completion_tokens", "tokens", "tok", Neither, "Tokens that were written, thinking included.", "N";
    ReasoningTokens "reasoning_tokens", "thinking tokens", "tok", Less, "Tokens of thinking.", "";
    ContentTokens "content_tokens", "answer tokens", "tok", Neither, "Tokens of the answer.", "N − reasoning";
    QueueMs "queue_ms", "queue", "ms", Less, "The wait inside the server, as the server reports it.", "";
    TtfaMs "ttfa_ms", "first sound", "ms", Less, "Until the first sample that can be heard, above −50 dBFS; of voice from the last sample of the question.", "t(sample > −50 dBFS) − t_send";
    WallMs "wall_ms", "time to speak", "ms", Less, "From sending a text to the last byte of its sound.", "a_last − t_send";
    AudioS "audio_s", "sound", "s", Neither, "Length of the sound.", "samples / rate";
    Rtf "rtf", "real-time factor", "", Less, "Seconds of work for one second of sound.", "wall / audio";
    RealTimeX "real_time_x", "× real time", "×", More, "Seconds of sound for one second of work.", "audio / wall";
    CharsS "chars_s", "characters/s", "char/s", More, "Characters spoken per second of work.", "characters / wall";
    Spread "spread", "spread", "", More, "How much of the waiting was already listening: near 0 all sound came at once, at the end.", "(a_last − ttfa) / (a_last − t_send)";
    UnderrunMs "underrun_ms", "underrun", "ms", Less, "The worst starvation of a player that starts with the first sound.", "";
    Wer "wer", "word errors", "", Less, "Share of words that were heard wrongly.", "(wrong + missing + added) / words";
    Cer "cer", "character errors", "", Less, "Share of characters that were heard wrongly.", "(wrong + missing + added) / characters";
    FirstPartialMs "first_partial_ms", "first words", "ms", Less, "Until the first words of a transcript.", "";
    LoadMs "load_ms", "load", "ms", Less, "Until a model is ready after its process was started.", "";
    ColdFirstMs "cold_first_ms", "first request", "ms", Less, "The first request of a new process, whole.", "";
    WarmMs "warm_ms", "warm request", "ms", Less, "The same request once the process is warm, whole.", "median of the requests behind the first";
    ColdX "cold_x", "cold / warm", "×", Less, "How many times longer the first request of a new process takes than the same once it is warm.", "cold_first / warm";
    SwapMs "swap_ms", "model swap", "ms", Less, "Until another model answers in place of this one.", "";
}

/// What is not a spread, and the page's own words.
const OTHERS: &[MetricDefinition] = &[
    definition(
        "stall",
        "stalls",
        "",
        Better::Less,
        "Gaps that a reader notices: how many, and the worst.",
        "gap > max(250 ms, 5 × median gap)",
    ),
    definition(
        "goodput",
        "goodput",
        "",
        Better::More,
        "Share of requests that met every limit.",
        "Wilson 95 %",
    ),
    definition("errors", "errors", "", Better::Less, "Requests that ended in an error.", ""),
    definition(
        "no_answer",
        "no answer",
        "",
        Better::Less,
        "Requests whose tokens all went into thinking.",
        "finish = length, content = 0",
    ),
    definition(
        "memory",
        "memory",
        "GB",
        Better::Less,
        "The most that it took: of the card where there is one, else of the machine.",
        "VRAM peak, else RSS peak",
    ),
    definition(
        "scaling",
        "scaling",
        "",
        Better::More,
        "Throughput of n users against n times that of one. Under 0.6 it is a queue.",
        "throughput(n) / (n · throughput(1))",
    ),
    definition(
        "max_context",
        "longest context",
        "tok",
        Better::More,
        "The longest context that can be filled and still answers; only started, where that is all that was tried.",
        "",
    ),
    definition(
        "tier",
        "tier",
        "",
        Better::Less,
        "Mean of the medians of three texts: 1 under 3 s, 2 under 7 s, 3 slower.",
        "mean(wall of 12, 49, 210 characters)",
    ),
    definition(
        "verdict",
        "streams",
        "",
        Better::Neither,
        "Whether sound comes while it is made. Under a tenth of spread it is only cut into pieces at the end.",
        "spread < 0.10: fake",
    ),
    definition(
        "gap",
        "production gap",
        "×",
        Better::Less,
        "What real requests wait, against the warm figure of the bench.",
        "production p50 / warm p50",
    ),
    definition(
        "production",
        "production",
        "",
        Better::Less,
        "What real requests of the last 30 days waited, out of the ledger of this server; from 20 of them on.",
        "",
    ),
    definition(
        "verified",
        "verified",
        "",
        Better::Neither,
        "Six runs or more on two server starts, an interval of 5 % at most to each side, a quiet machine, everything known that ran.",
        "",
    ),
    definition(
        "unverified",
        "unverified",
        "",
        Better::Neither,
        "A condition of a verified figure is not met. The reasons are listed next to it.",
        "",
    ),
    definition(
        "published",
        "published",
        "",
        Better::Neither,
        "Published by others, and not measured again with hob.",
        "",
    ),
    definition(
        "shape",
        "shape",
        "",
        Better::Neither,
        "How long prompt and answer are. Without one chosen, a range over shapes is shown.",
        "",
    ),
    definition(
        "concurrency",
        "conc.",
        "",
        Better::Neither,
        "Users at once, each of whom waits for an answer before asking again.",
        "",
    ),
    definition(
        "quant",
        "quant",
        "",
        Better::Neither,
        "How the weights are packed: fewer bits, less memory and more loss.",
        "",
    ),
    definition("backend", "backend", "", Better::Neither, "What the engine computes with.", ""),
    definition(
        "cold",
        "cold",
        "",
        Better::Neither,
        "The server knew nothing of the prompt, and its own count says so.",
        "cached_tokens = 0",
    ),
    definition(
        "cached",
        "cached",
        "",
        Better::Neither,
        "The server already had nine tenths of the prompt or more.",
        "cached_tokens ≥ 0.9 · prompt",
    ),
    definition(
        "mixed",
        "mixed",
        "",
        Better::Neither,
        "Partly cached or unknown, so not comparable with other runs.",
        "",
    ),
    definition(
        "ci95",
        "95 % interval",
        "",
        Better::Neither,
        "Where the median of more runs would lie, 19 times of 20. The whisker of a chart.",
        "order statistics, from 6 runs on",
    ),
    definition(
        "range",
        "range",
        "",
        Better::Neither,
        "The least and the greatest median, over shapes.",
        "",
    ),
];

#[expect(clippy::too_many_arguments, reason = "a row of the table above")]
const fn definition(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
    meaning: &'static str,
    formula: &'static str,
) -> MetricDefinition {
    MetricDefinition { name, title, unit, better, meaning, formula }
}

/// What stands in formulas.
pub const SYMBOLS: [(&str, &str); 7] = [
    ("t_sched", "when the request was due"),
    ("t_send", "right before its last bytes were written"),
    ("t_hdr", "when the head of the answer was read"),
    ("a_i", "when chunk i was read; a_first and a_last are the first and last with tokens in them"),
    ("n_i", "tokens in chunk i; n_first those in the first"),
    (
        "N",
        "all tokens: counted by the server, else by the engine, else by a tokenizer, else chunks",
    ),
    ("finish", "why the answer ended"),
];

/// All of them, metrics first.
pub fn definitions() -> impl Iterator<Item = &'static MetricDefinition> {
    METRICS.iter().chain(OTHERS)
}

/// By its name.
pub fn look_up(name: &str) -> Option<&'static MetricDefinition> {
    definitions().find(|definition| definition.name == name)
}

impl Metric {
    pub fn definition(self) -> &'static MetricDefinition {
        &METRICS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.definition().name
    }

    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|metric| metric.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_has_one_meaning() {
        let names: BTreeSet<_> = definitions().map(|definition| definition.name).collect();
        assert_eq!(names.len(), definitions().count());
        for definition in definitions() {
            assert!(definition.meaning.ends_with('.'), "{}", definition.name);
            assert!(!definition.title.is_empty(), "{}", definition.name);
            assert_eq!(look_up(definition.name), Some(definition));
        }
    }

    #[test]
    fn a_metric_is_called_in_files_as_it_is_in_the_table() {
        for metric in Metric::ALL {
            let written = serde_json::to_value(metric).expect("a name");
            assert_eq!(written, metric.name());
            assert_eq!(Metric::from_name(metric.name()), Some(*metric));
        }
        assert_eq!(Metric::from_name("ttft"), None);
    }

    #[test]
    fn a_unit_stands_last_in_a_name() {
        let endings =
            [("ms", "_ms"), ("s", "_s"), ("tok/s", "_tok_s"), ("char/s", "chars_s"), ("1/s", "_s")];
        for metric in Metric::ALL {
            let definition = metric.definition();
            for (unit, ending) in endings.into_iter().filter(|(unit, _)| *unit == definition.unit) {
                assert!(definition.name.ends_with(ending), "{} is in {unit}", definition.name);
            }
        }
    }
}
