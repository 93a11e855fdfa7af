//! Measures the embedded engine on this machine: its kernels by quantisation type, and whole models.
//! Runs in its own process, which reports each figure when it is measured, and can be ended at any time.

mod kernels;
mod paces;

use serde::{Deserialize, Serialize};

pub use kernels::{Threads, time_kernels};
pub use paces::{PaceError, time_model};

use crate::chat::cpu::chosen_units;

/// Update it together with `llama-cpp-sys-2`: the sources of that crate name no release.
const RELEASE: &str = "llama.cpp b11434";

/// Version of the engine in this program, with its vector units: each release and each set of units has its own kernels.
pub fn engine_version() -> String {
    if cfg!(feature = "dynamic") {
        return format!("{RELEASE} portable");
    }
    let units = chosen_units();
    if units.is_empty() { RELEASE.to_owned() } else { format!("{RELEASE} {}", units.join(" ")) }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "timed", rename_all = "snake_case")]
pub enum EngineTiming {
    /// A matrix that is too large for the caches, times a vector. Bytes of weights per second.
    Kernel { quant: String, threads: u32, bytes_s: f64, median_bytes_s: f64 },
    /// A matrix of the same size times the vectors of a prompt. Operations per second.
    Prompt { quant: String, threads: u32, flop_s: f64 },
    /// A model that generates one token at a time.
    Decode { context_tokens: u32, threads: u32, tok_s: f64, median_tok_s: f64 },
    /// A model that reads a prompt of this many tokens in one step.
    Prefill { prompt_tokens: u32, tok_s: f64 },
}

/// The shortest time, because noise only adds to a time, and the median, which shows how much noise there was.
fn best_and_median(seconds: &mut [f64]) -> Option<(f64, f64)> {
    seconds.sort_by(f64::total_cmp);
    Some((*seconds.first()?, seconds[seconds.len() / 2]))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    #[test]
    fn the_best_and_the_one_in_the_middle() {
        assert_eq!(best_and_median(&mut [3.0, 1.0, 2.0]), Some((1.0, 2.0)));
        assert_eq!(best_and_median(&mut []), None);
    }

    #[test]
    fn kernels_of_each_type_give_a_figure() {
        let mut heard = Vec::new();
        let small = kernels::Sizes { weight_bytes: 4 << 20, rows: 64, columns: 32 };
        let threads = Threads { decode: 2, prefill: 3 };
        kernels::time_all(&["Q4_K", "Q8_0", "IQ2_XXS"], threads, small, &mut |timed| {
            heard.push(timed);
            ControlFlow::Continue(())
        });
        let kernels = heard.iter().filter_map(|timed| match timed {
            EngineTiming::Kernel { quant, threads, bytes_s, .. } if *bytes_s > 0.0 => {
                Some((quant.as_str(), *threads))
            }
            _ => None,
        });
        let expected = ["Q4_K", "Q8_0", "IQ2_XXS"].map(|quant| [(quant, 2), (quant, 1)]).concat();
        assert_eq!(kernels.collect::<Vec<_>>(), expected);
        let prompts = heard.iter().filter_map(|timed| match timed {
            EngineTiming::Prompt { quant, threads: 3, flop_s } if *flop_s > 0.0 => {
                Some(quant.as_str())
            }
            _ => None,
        });
        assert_eq!(prompts.collect::<Vec<_>>(), ["Q4_K", "Q8_0", "IQ2_XXS"]);
    }

    #[test]
    fn the_caller_can_end_it() {
        let mut count = 0;
        let small = kernels::Sizes { weight_bytes: 1 << 20, rows: 64, columns: 32 };
        let threads = Threads { decode: 1, prefill: 1 };
        kernels::time_all(&["F16", "Q8_0"], threads, small, &mut |_| {
            count += 1;
            ControlFlow::Break(())
        });
        assert_eq!(count, 1);
    }
}
