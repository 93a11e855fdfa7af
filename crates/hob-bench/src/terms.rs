//! Every figure's name, unit, direction and definition: one name, one formula.
//! The page, the reference and the terminal take all their explanations from this table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Less,
    More,
    /// Neither direction is better: it describes what was done.
    #[serde(rename = "")]
    Neither,
}

/// The definition of a metric or of another term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MetricDefinition {
    pub name: &'static str,
    /// The heading of a column.
    pub title: &'static str,
    /// The unit as it is written after the number; empty for shares and ratios.
    pub unit: &'static str,
    pub better: Better,
    /// One sentence.
    pub meaning: &'static str,
    /// A formula with the symbols in `SYMBOLS`; empty if there is nothing to compute.
    pub formula: &'static str,
}

/// Creates a table of terms, one row each in the order of `MetricDefinition`.
macro_rules! terms {
    ($($name:literal, $title:literal, $unit:literal, $better:ident, $meaning:literal, $formula:literal;)+) => {
        &[$(MetricDefinition {
            name: $name, title: $title, unit: $unit, better: Better::$better, meaning: $meaning, formula: $formula,
        },)+]
    };
}

/// Creates the enum and its table from one list, so both have the same metrics.
macro_rules! metrics {
    ($($metric:ident $name:literal, $title:literal, $unit:literal, $better:ident, $meaning:literal, $formula:literal;)+) => {
        /// A figure that is measured many times in a run. Records keep its distribution.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Metric {
            $(#[serde(rename = $name)] $metric,)+
        }

        /// The definitions of all metrics, in the order of `Metric`.
        const METRICS: &[MetricDefinition] =
            terms! { $($name, $title, $unit, $better, $meaning, $formula;)+ };

        impl Metric {
            pub const ALL: &[Metric] = &[$(Metric::$metric,)+];
        }
    };
}

metrics! {
    TtfbMs "ttfb_ms", "first byte", "ms", Less, "Until the head of the answer arrives.", "t_hdr − t_send";
    TtftMs "ttft_ms", "first token", "ms", Less, "Until the first token of thinking or of the answer arrives.", "a_first − t_send";
    TtfatMs "ttfat_ms", "first answer token", "ms", Less, "Until the first token that is not thinking arrives. This is how long a reader waits.", "a_first(content, tool) − t_send";
    SilenceMs "silence_ms", "silence", "ms", Less, "Thinking before the answer: from the first token to the first token of the answer.", "ttfat − ttft";
    TtfbSchedMs "ttfb_sched_ms", "first byte, from due", "ms", Less, "From when the request was due to the first byte of the answer.", "t_hdr − t_sched";
    TtftSchedMs "ttft_sched_ms", "first token, from due", "ms", Less, "From when the request was due to the first token.", "a_first − t_sched";
    TtfatSchedMs "ttfat_sched_ms", "first answer token, from due", "ms", Less, "From when the request was due to the first token of the answer.", "a_first(content, tool) − t_sched";
    DispatchMs "dispatch_ms", "dispatch", "ms", Less, "How late the client sent the request. The client causes this delay, not the server.", "t_send − t_sched";
    ConnectMs "connect_ms", "connect", "ms", Less, "Until a new connection is open. A reused connection has no such time.", "";
    E2eMs "e2e_ms", "whole answer", "ms", Less, "From sending to the last token.", "a_last − t_send";
    E2eSchedMs "e2e_sched_ms", "whole answer, from due", "ms", Less, "From when the request was due to the last token.", "a_last − t_sched";
    TpotMs "tpot_ms", "time per token", "ms", Less, "Time for each token after the first chunk.", "(a_last − a_first) / (N − n_first)";
    DecodeTokS "decode_tok_s", "gen tok/s", "tok/s", More, "Tokens per second after the first chunk, without the wait for it.", "(N − n_first) / (a_last − a_first)";
    ReasoningTokS "reasoning_tok_s", "reasoning tok/s", "tok/s", More, "Tokens per second while the model thinks.", "over the reasoning chunks alone";
    ContentTokS "content_tok_s", "answer tok/s", "tok/s", More, "Tokens per second of the answer, without thinking.", "over the content chunks alone";
    PrefillTokS "prefill_tok_s", "prefill tok/s", "tok/s", More, "Computed prompt tokens per second, without cached tokens.", "(prompt − cached) / prefill time";
    PromptTtftTokS "prompt_ttft_tok_s", "prompt / first token", "tok/s", Neither, "Tokens of the prompt, divided by the time to the first token. On a cache hit it includes tokens that were not computed, so it is not the prefill speed.", "prompt / ttft";
    GenTokS "gen_tok_s", "gen tok/s (as published)", "tok/s", More, "Tokens per second as published, without a definition of how they were counted.", "";
    IcgMs "icg_ms", "chunk gap", "ms", Less, "Time between two chunks, over all requests together.", "a_i − a_(i−1)";
    ItlMs "itl_ms", "token gap", "ms", Less, "Time between two tokens, if the number of tokens in each chunk is known.", "(a_i − a_(i−1)) / n_i, n_i times";
    ThroughputTokS "throughput_tok_s", "throughput", "tok/s", More, "Tokens per second of all users together, while each of them has a request running; at a rate, in the whole run.", "tokens / time with a request of every user";
    RequestsS "requests_s", "requests/s", "1/s", More, "Answers per second of all users together.", "requests / window";
    PromptTokens "prompt_tokens", "prompt tokens", "tok", Neither, "Tokens of the prompt, including its template.", "";
    CachedTokens "cached_tokens", "cached tokens", "tok", Neither, "Tokens of the prompt that the server had in its cache.", "";
    CompletionTokens "completion_tokens", "tokens", "tok", Neither, "Generated tokens, including thinking.", "N";
    ReasoningTokens "reasoning_tokens", "thinking tokens", "tok", Less, "Tokens of thinking.", "";
    ContentTokens "content_tokens", "answer tokens", "tok", Neither, "Tokens of the answer.", "N − reasoning";
    EnergyJ "energy_j", "energy", "J", Less, "Energy of the CPU packages and NVIDIA cards of the machine from sending to the last token, other programs included.", "";
    QueueMs "queue_ms", "queue", "ms", Less, "Waiting time inside the server, as the server reports it.", "";
    TtfaMs "ttfa_ms", "first sound", "ms", Less, "Until the first audible sample (above −50 dBFS). In a voice run it counts from the last sample of the question above −40 dB, and the answer is audible where it is louder than that for 50 ms.", "t(sample > −50 dBFS) − t_send";
    EndpointMs "endpoint_ms", "end of turn", "ms", Less, "From the last sound of a question until the server says that it is over. If hob's own server reports the other stages, this figure is the time to the first sound without them. It then includes unexplained time.", "speech_stopped − t(last voiced sample)";
    TranscriptMs "transcript_ms", "transcript", "ms", Less, "From the end of a turn until its transcript arrives; 0 if it was there before.", "transcription.completed − speech_stopped";
    FirstTextMs "first_text_ms", "first text", "ms", Less, "From the transcript until the model writes the first text of its answer; 0 if it was written before.", "output_item.added − transcription.completed";
    FirstClauseMs "first_clause_ms", "first clause", "ms", Less, "From the first text of an answer to its first clause, as hob's own server reports it.", "clause − first text";
    FirstVoiceMs "first_voice_ms", "first voice", "ms", Less, "From the first clause of an answer, or from its first text if the server does not report the clause, to its first audible sample.", "t(audible) − clause";
    TransportMs "transport_ms", "transport", "ms", Less, "Until the first audible sample was handed to the network, as hob's own server reports it.", "";
    UnexplainedMs "unexplained_ms", "unexplained", "ms", Less, "Time between the end of a turn and its first sound, as the client sees it, that is in none of the server's own parts.", "max(0, t(audible) − speech_stopped − parts)";
    BargeInMs "barge_in_ms", "interruption", "ms", Less, "From the first sound of a person who interrupts until the client stops the voice.", "speech_started − t(first voiced sample)";
    CutInPct "cut_in_pct", "cut in", "%", Less, "Questions with a pause in the middle that the server took for finished in the pause.", "speech_stopped < t(last voiced sample)";
    WallMs "wall_ms", "time to speak", "ms", Less, "From sending a text to the last byte of its sound. In a conversation after a start: until its session is ready, and from the end of the question to the first sound of the answer.", "a_last − t_send";
    AudioS "audio_s", "sound", "s", Neither, "Length of the sound.", "samples / rate";
    Rtf "rtf", "real-time factor", "", Less, "Time to speak or to transcribe, divided by the length of the sound.", "wall / audio";
    RealTimeX "real_time_x", "× real time", "×", More, "Length of the sound, divided by the time to speak or to transcribe it.", "audio / wall";
    CharsS "chars_s", "characters/s", "char/s", More, "Characters of the text per second of the time to speak.", "characters / wall";
    Spread "spread", "spread", "", More, "Share of the total time that is left after the first audible sound. Near 0, all sound arrives at the end.", "(a_last − ttfa) / (a_last − t_send)";
    UnderrunMs "underrun_ms", "underrun", "ms", Less, "Greatest shortage of sound for a player that starts with the first sound.", "";
    FinalTextMs "final_text_ms", "final text", "ms", Less, "From the last sample of the sound until its whole transcript has arrived.", "a_last − t_send";
    Wer "wer", "word errors", "", Less, "Share of words that were transcribed wrongly.", "(wrong + missing + added) / words";
    Cer "cer", "character errors", "", Less, "Share of characters that were transcribed wrongly.", "(wrong + missing + added) / characters";
    WordsWrong "words_wrong", "wrong words", "", Less, "Words of the reference that were transcribed as other words.", "";
    WordsMissing "words_missing", "missing words", "", Less, "Words of the reference that the transcript lacks.", "";
    WordsAdded "words_added", "added words", "", Less, "Words of the transcript that the reference lacks.", "";
    FirstPartialMs "first_partial_ms", "first words", "ms", Less, "From the last sample of the sound until the first words of its transcript have arrived.", "a_first − t_send";
    LoadMs "load_ms", "load", "ms", Less, "From the start of a process until its model is ready.", "";
    ColdFirstMs "cold_first_ms", "first request", "ms", Less, "The complete first request of a new process.", "";
    WarmMs "warm_ms", "warm request", "ms", Less, "The same complete request when the process is warm.", "median of the requests after the first";
    ColdX "cold_x", "cold / warm", "×", Less, "Time of the first request of a new process, divided by its time when the process is warm.", "cold_first / warm";
    SwapMs "swap_ms", "model swap", "ms", Less, "Until another model answers instead of this one.", "";
}

/// Terms that are not metrics, and words that only the page uses.
const OTHERS: &[MetricDefinition] = terms! {
    "stall", "stalls", "", Less, "Gaps that a reader notices: their number, and the longest.", "gap > max(250 ms, 5 × median gap)";
    "goodput", "goodput", "", More, "Share of requests that met every limit.", "Wilson 95 %";
    "errors", "errors", "", Less, "Requests that ended in an error.", "";
    "no_answer", "no answer", "", Less, "Requests whose tokens were all thinking.", "finish = length, content = 0";
    "memory", "memory", "GB", Less, "Peak memory of the cards if the server uses them, otherwise of the machine.", "VRAM peak, else RSS peak";
    "scaling", "scaling", "", More, "Throughput of n users, divided by n times the throughput of one user. Below 0.6, users wait for each other.", "throughput(n) / (n · throughput(1))";
    "max_context", "longest context", "tok", More, "The longest context that can be filled and still answers. If only the start was tested: the longest with which the server starts.", "";
    "tier", "tier", "", Less, "Mean of the medians of three texts: 1 under 3 s, 2 under 7 s, 3 slower.", "mean(wall of 12, 49, 210 characters)";
    "verdict", "streams", "", Neither, "Whether sound is sent while it is computed. With a spread below 0.10 it is sent only at the end.", "spread < 0.10: fake";
    "gap", "production gap", "×", Less, "Waiting time of real requests, divided by the warm figure of the benchmark.", "production p50 / warm p50";
    "production", "production", "", Less, "Waiting time of real requests in the last 30 days, from the ledger of this server. It needs at least 20 requests.", "";
    "verified", "verified", "", Neither, "At least six runs on two server starts, an interval of at most 5 % to each side, a quiet machine, and program, start command, weights and client known.", "";
    "unverified", "unverified", "", Neither, "A condition of a verified figure is not met. The reasons are listed next to it.", "";
    "published", "published", "", Neither, "Published by others, and not measured again with hob.", "";
    "shape", "shape", "", Neither, "Length of prompt and answer. If no shape is chosen, a range over all shapes is shown.", "";
    "concurrency", "conc.", "", Neither, "Users at the same time. Each waits for the answer before the next request.", "";
    "quant", "quant", "", Neither, "How the weights are packed. Fewer bits need less memory and lose more quality.", "";
    "backend", "backend", "", Neither, "What the engine computes with.", "";
    "cold", "cold", "", Neither, "Nothing of the prompt but its template was in the server's cache, according to the server's own count.", "cached_tokens ≤ tokens of the template";
    "cached", "cached", "", Neither, "At least nine tenths of the prompt were in the server's cache.", "cached_tokens ≥ 0.9 · prompt";
    "mixed", "mixed", "", Neither, "Partly cached or unknown, so not comparable with other runs.", "";
    "ci95", "95 % interval", "", Neither, "The range that contains the true median, 19 times out of 20. Charts show it as a whisker.", "order statistics, from 6 runs on";
    "range", "range", "", Neither, "The smallest and the greatest median of all shapes.", "";
};

/// The symbols in formulas.
pub const SYMBOLS: [(&str, &str); 7] = [
    ("t_sched", "when the request was due"),
    ("t_send", "right before the last bytes of the request were written"),
    ("t_hdr", "when the head of the answer was read"),
    ("a_i", "when chunk i was read; a_first and a_last are the first and last with tokens in them"),
    ("n_i", "tokens in chunk i; n_first: tokens in the first chunk"),
    (
        "N",
        "all tokens: counted by the server, else by the engine, else by a tokenizer, else chunks",
    ),
    ("finish", "why the answer ended"),
];

/// All definitions, metrics first.
pub fn definitions() -> impl Iterator<Item = &'static MetricDefinition> {
    METRICS.iter().chain(OTHERS)
}

/// Finds a definition by its name.
pub fn look_up(name: &str) -> Option<&'static MetricDefinition> {
    definitions().find(|definition| definition.name == name)
}

/// The figures that are known.
pub(crate) fn known<T>(rows: impl IntoIterator<Item = (Metric, Option<T>)>) -> BTreeMap<Metric, T> {
    rows.into_iter().filter_map(|(metric, figure)| Some((metric, figure?))).collect()
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
    fn a_metric_has_the_same_name_in_files_and_in_the_table() {
        for metric in Metric::ALL {
            let written = serde_json::to_value(metric).expect("a name");
            assert_eq!(written, metric.name());
            assert_eq!(Metric::from_name(metric.name()), Some(*metric));
        }
        assert_eq!(Metric::from_name("ttft"), None);
    }

    #[test]
    fn a_name_ends_with_its_unit() {
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
