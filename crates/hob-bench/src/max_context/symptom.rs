//! Classifies a failure: whether a server shows signs of too little memory, and in which stage.
//! Other failures are separate, so a missing file is not taken for full memory.

use crate::launch::{LaunchError, speaks_of_memory};
use crate::record::{AttemptResult, ContextProof};
use crate::runs::Reply;
use crate::timeline::RequestFault;

/// The stage that a request reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Load,
    Prefill,
    Decode,
}

/// The result of an attempt, with what explains or proves it.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub(super) result: AttemptResult,
    /// What the server or its log said about a failure.
    pub(super) said: Option<String>,
    /// The longest context that the server reported, in tokens.
    pub(super) ctx_max: Option<u64>,
    /// The answer to the last request.
    pub(super) reply: Option<Reply>,
    pub(super) proof: Option<ContextProof>,
}

impl Conclusion {
    pub(super) fn worked(reply: Reply, proof: Option<ContextProof>) -> Conclusion {
        let (result, reply) = (AttemptResult::Ok, Some(reply));
        Conclusion { result, said: None, ctx_max: None, reply, proof }
    }

    pub(super) fn failed(result: AttemptResult, said: String) -> Conclusion {
        Conclusion { result, said: Some(said), ctx_max: None, reply: None, proof: None }
    }
}

/// Classifies a failed start. `is_taken`: another server answers at its address.
pub(super) fn of_launch(error: &LaunchError, is_taken: bool) -> AttemptResult {
    match error {
        // The new server cannot get its port, so its own message is about the port.
        _ if is_taken => AttemptResult::Stale,
        LaunchError::Taken { .. } | LaunchError::Lingers { .. } => AttemptResult::Stale,
        LaunchError::Ended { is_out_of_memory: true, .. } => AttemptResult::OomLoad,
        LaunchError::NotReady { said, .. } if speaks_of_memory(said) => AttemptResult::OomLoad,
        LaunchError::NotReady { .. } => AttemptResult::Timeout,
        LaunchError::Ended { said, .. } if speaks_of_length(said) => AttemptResult::Unsupported,
        LaunchError::Ended { .. }
        | LaunchError::Start(_)
        | LaunchError::Unfilled { .. }
        | LaunchError::Stopped => AttemptResult::Failed,
    }
}

/// Classifies a failed request. `ended` is how the server's process ended, if it did.
pub(super) fn of_fault(
    fault: &RequestFault,
    stage: Stage,
    ended: Option<&LaunchError>,
    speaks: bool,
) -> AttemptResult {
    let is_lost = matches!(fault, RequestFault::CutOff { .. } | RequestFault::Unreachable { .. });
    let ended_of_memory = matches!(ended, Some(LaunchError::Ended { is_out_of_memory: true, .. }));
    // A server that dies under a longer prompt than any before has met its limit, even if it says nothing.
    let died_of_it = is_lost && ended.is_some() && stage != Stage::Load;
    match fault {
        _ if ended_of_memory || died_of_it => out_of_memory(stage),
        RequestFault::Refused { message, .. } | RequestFault::Failed { message } => {
            if speaks_of_memory(message) {
                out_of_memory(stage)
            } else if speaks_of_length(message) {
                AttemptResult::Unsupported
            } else {
                AttemptResult::Failed
            }
        }
        RequestFault::Silent { .. } | RequestFault::TooSlow { .. } => AttemptResult::Timeout,
        _ if is_lost && speaks => out_of_memory(stage),
        _ => AttemptResult::Failed,
    }
}

fn out_of_memory(stage: Stage) -> AttemptResult {
    match stage {
        Stage::Load => AttemptResult::OomLoad,
        Stage::Prefill => AttemptResult::OomPrefill,
        Stage::Decode => AttemptResult::OomDecode,
    }
}

/// Whether a message means that the context is too long for the model, in the words of the known engines.
fn speaks_of_length(message: &str) -> bool {
    const WORDS: [&str; 9] = [
        "context_length_exceeded",
        "exceed_context_size",
        "exceeds the available context",
        "maximum context length",
        "context length exceeded",
        "and the context holds",
        "do not fit into",
        "is greater than the derived max_model_len",
        "prompt is too long",
    ];
    let message = message.to_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use AttemptResult::*;

    use super::*;

    fn ended(said: &str, is_out_of_memory: bool) -> LaunchError {
        LaunchError::Ended {
            how: "with code 1".to_owned(),
            said: said.to_owned(),
            is_out_of_memory,
        }
    }

    #[test]
    fn a_start_that_fails() {
        let not_ready = |said: &str| LaunchError::NotReady {
            waited: Duration::from_secs(1),
            said: said.to_owned(),
        };
        let address = || "box:1".to_owned();
        let rows = [
            (ended("", true), false, OomLoad),
            (ended("no such file", false), false, Failed),
            (ended("bind: address already in use", false), true, Stale),
            (ended("", true), true, Stale),
            (
                ended("max_model_len (9) is greater than the derived max_model_len", false),
                false,
                Unsupported,
            ),
            (not_ready(""), false, Timeout),
            (not_ready("ggml: failed to allocate buffer"), false, OomLoad),
            (LaunchError::Taken { address: address() }, true, Stale),
            (LaunchError::Lingers { address: address() }, false, Stale),
        ];
        for (error, is_taken, expected) in rows {
            assert_eq!(of_launch(&error, is_taken), expected, "{error}");
        }
    }

    #[test]
    fn a_question_that_fails() {
        let refused =
            |message: &str| RequestFault::Refused { status: 503, message: message.to_owned() };
        let failed = |message: &str| RequestFault::Failed { message: message.to_owned() };
        let cut = |chunks| RequestFault::CutOff { chunks };
        let of_hob = "loading the model needs about 900 MB and 300 MB are free; a shorter context";
        let died = || Some(ended("assertion failed", false));
        let rows = [
            (refused(of_hob), Stage::Load, None, false, OomLoad),
            (
                refused("model requires more system memory (9 GiB)"),
                Stage::Load,
                None,
                false,
                OomLoad,
            ),
            (failed("CUDA error: out of memory"), Stage::Prefill, None, false, OomPrefill),
            (
                refused("the request exceeds the available context size"),
                Stage::Prefill,
                None,
                false,
                Unsupported,
            ),
            (refused("no such model"), Stage::Load, None, false, Failed),
            (cut(0), Stage::Prefill, died(), false, OomPrefill),
            (cut(9), Stage::Decode, died(), false, OomDecode),
            (cut(0), Stage::Load, died(), false, Failed),
            (cut(9), Stage::Decode, None, false, Failed),
            (cut(9), Stage::Decode, None, true, OomDecode),
            (cut(0), Stage::Load, Some(ended("", true)), false, OomLoad),
            (RequestFault::Silent { chunks: 0 }, Stage::Prefill, None, false, Timeout),
            (RequestFault::TooSlow { chunks: 7 }, Stage::Decode, None, false, Timeout),
            (RequestFault::Garbage, Stage::Prefill, None, false, Failed),
        ];
        for (fault, stage, ended, speaks, expected) in rows {
            assert_eq!(
                of_fault(&fault, stage, ended.as_ref(), speaks),
                expected,
                "{fault} {stage:?}"
            );
        }
    }
}
