//! How long a model may be silent. A model that waits for a slot or is being loaded does not hang, and a long prompt
//! takes time to read.

use std::time::Duration;

use hob_core::Trace;
use hob_core::chat::ChatRequest;
use hob_core::routing::prompt_bytes;

/// How often the driver checks whether a silent model waits, loads or hangs.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a prompt that the slowest useful model reads in a second: 25 tokens of 4 bytes.
const READ_BYTES_PER_S: usize = 100;
const READ_MAX: Duration = Duration::from_mins(10);

/// Limits of waiting for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// From the request to the first content of a model of another machine.
    pub first_token: Duration,
    /// From the request to the first content of a loaded model of this machine. The time to read the prompt is added.
    pub first_token_local: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For a free slot, and for loading a model.
    pub load: Duration,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        Watchdog {
            first_token: Duration::from_mins(1),
            first_token_local: Duration::from_secs(45),
            idle: Duration::from_secs(30),
            load: Duration::from_mins(5),
        }
    }
}

/// Waiting for the first content of an answer.
pub(super) struct FirstWait {
    name: String,
    trace: Trace,
    /// The time to read the prompt. `None`: the model is on another machine.
    reading: Option<Duration>,
    /// Targets that were asked so far.
    asked: u32,
    /// How long the current target has been silent.
    silent: Duration,
    /// How long models were loading, or a slot was waited for.
    loading: Duration,
    /// The model that was noted last as loading.
    noted: Option<String>,
}

impl FirstWait {
    pub(super) fn new(name: &str, request: &ChatRequest, is_remote: bool) -> FirstWait {
        let read_s = prompt_bytes(&request.prompt) / READ_BYTES_PER_S;
        FirstWait {
            name: name.to_owned(),
            trace: request.trace.clone(),
            reading: (!is_remote).then(|| Duration::from_secs(read_s as u64).min(READ_MAX)),
            asked: 0,
            silent: Duration::ZERO,
            loading: Duration::ZERO,
            noted: None,
        }
    }

    /// Counts [`LOOK_EVERY`] more of silence. Returns the model that is being loaded, once for each model.
    ///
    /// # Errors
    /// A limit is reached.
    pub(super) fn look(&mut self, limits: &Watchdog) -> Result<Option<String>, String> {
        let seen = self.trace.snapshot();
        if seen.asked != self.asked {
            // An alias asks its next target.
            (self.asked, self.silent) = (seen.asked, Duration::ZERO);
        }
        let is_cold = seen.is_warm == Some(false);
        if seen.asked > 0 && !is_cold {
            self.silent += LOOK_EVERY;
            let local = self.reading.map(|reading| limits.first_token_local + reading);
            let is_late = self.silent >= local.unwrap_or(limits.first_token);
            return if is_late {
                Err(self.late(self.silent, "has sent nothing"))
            } else {
                Ok(None)
            };
        }
        self.loading += LOOK_EVERY;
        if self.loading >= limits.load {
            return Err(self.late(self.loading, "was not ready"));
        }
        let begun = seen.target.filter(|target| is_cold && self.noted.as_ref() != Some(target));
        self.noted = begun.clone().or(self.noted.take());
        Ok(begun)
    }

    fn late(&self, after: Duration, what: &str) -> String {
        format!("'{}' {what} for {} s", self.name, after.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::Prompt;

    use super::*;

    fn waits(wait: &mut FirstWait, limits: &Watchdog) -> (u32, String) {
        for seconds in 1.. {
            if let Err(error) = wait.look(limits) {
                return (seconds, error);
            }
        }
        unreachable!("the loop has no end");
    }

    #[test]
    fn loading_has_a_limit_of_its_own_and_is_told_once() {
        let (limits, request) = (Watchdog::default(), ChatRequest::default());
        let mut wait = FirstWait::new("m", &request, false);
        request.trace.asking("gpu/m", false);
        assert_eq!(wait.look(&limits), Ok(Some("gpu/m".to_owned())));
        assert_eq!(wait.look(&limits), Ok(None));
        assert_eq!(waits(&mut wait, &limits), (298, "'m' was not ready for 300 s".to_owned()));
    }

    #[test]
    fn each_target_of_an_alias_and_a_long_prompt_have_their_time() {
        let limits = Watchdog::default();
        let prompt = Prompt::Text("x".repeat(500));
        let request = ChatRequest { prompt, ..ChatRequest::default() };
        let mut wait = FirstWait::new("m", &request, false);
        request.trace.asking("a", true);
        for _ in 0..49 {
            assert_eq!(wait.look(&limits), Ok(None));
        }
        request.trace.asking("b", true);
        assert_eq!(waits(&mut wait, &limits), (50, "'m' has sent nothing for 50 s".to_owned()));
        let mut wait = FirstWait::new("m", &request, true);
        assert_eq!(waits(&mut wait, &limits), (60, "'m' has sent nothing for 60 s".to_owned()));
    }
}
