//! The client of a cold start. It repeats its request, for text or sound, while the server reports that it is loading.
//! Times count from the first attempt.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{ColdRequest, ColdSpeech};
use crate::question::Questions;
use crate::runs::{BenchError, Reply};
use crate::speech::{RequestParts, StreamField};
use crate::target::Target;
use crate::terms::Metric;
use crate::timeline::{PCM_RATE_HZ, RequestFault, SoundFault, SoundFormat, millis, sound};
use crate::voice::{FirstAnswer, RepeatedQuestion, VoiceFault};
use crate::workbench::Asker;

/// Enough tokens for a time per token.
const ANSWER_TOKENS: u32 = 16;
const SOUND_BYTES: usize = 4 << 20;
const ASK_EVERY: Duration = Duration::from_millis(20);

/// A client that repeats one request to one model.
#[derive(Debug)]
pub(super) struct ColdClient<'a> {
    request: ColdRequest,
    questions: Questions<'a>,
    /// The question of a conversation. Made when it is first needed, because the server may have to speak it.
    spoken: Option<RepeatedQuestion>,
}

impl<'a> ColdClient<'a> {
    pub(super) fn new(asker: Asker<'a>, request: &ColdRequest) -> ColdClient<'a> {
        ColdClient { request: request.clone(), questions: Questions::new(asker), spoken: None }
    }

    /// A client that sends the same request to another model.
    pub(super) fn for_model(
        asker: &Asker<'a>,
        model: &str,
        request: &ColdRequest,
    ) -> ColdClient<'a> {
        let mut asker = asker.clone();
        model.clone_into(&mut asker.target.model);
        let request = match request {
            ColdRequest::Speech(spoken) => {
                ColdRequest::Speech(ColdSpeech { model: Some(model.to_owned()), ..spoken.clone() })
            }
            ColdRequest::Chat | ColdRequest::Conversation(_) => request.clone(),
        };
        ColdClient { request, questions: Questions::new(asker), spoken: None }
    }

    /// Repeats the request until there is an answer, or until the timeout.
    pub(super) fn ask_until_ready(&mut self) -> Result<Reply, BenchError> {
        let begun = Instant::now();
        loop {
            let waited = begun.elapsed();
            let (reply, is_loading) = self.ask_once()?;
            let asker = self.questions.asker();
            let is_stopped = asker.stop.load(std::sync::atomic::Ordering::Relaxed);
            if !is_loading || is_stopped || waited > asker.limits.silence {
                return Ok(counted_from_first(reply, waited));
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// The answer, and whether the server reports that it is still loading.
    fn ask_once(&mut self) -> Result<(Reply, bool), BenchError> {
        let is_loading = |fault: Option<&RequestFault>| {
            matches!(fault, Some(RequestFault::Refused { status: 503, .. }))
        };
        match &self.request {
            ColdRequest::Chat => {
                let answered = self.questions.ask_short(ANSWER_TOKENS)?;
                let is_loading = is_loading(answered.fault());
                Ok((answered.reply(), is_loading))
            }
            ColdRequest::Conversation(workload) => {
                let asker = self.questions.asker();
                let question = match &mut self.spoken {
                    Some(question) => question,
                    none => none.insert(RepeatedQuestion::first_of(workload, &asker.target)?),
                };
                Ok(spoken_reply(question.ask(asker)))
            }
            ColdRequest::Speech(spoken) => {
                let asker = self.questions.asker();
                let request = request(&asker.target, spoken);
                let exchange = asker.send(request, SOUND_BYTES)?;
                let reply = Reply::from_exchange(&exchange);
                Ok(match sound(&exchange, SoundFormat::Wav, PCM_RATE_HZ) {
                    Ok(sound) => {
                        let figures = [
                            (Metric::TtfbMs, sound.ttfb_ms),
                            (Metric::TtfaMs, sound.ttfa_ms),
                            (Metric::WallMs, sound.last_ms),
                            (Metric::AudioS, sound.audio_s),
                        ];
                        (Reply { figures: figures.into(), ..reply }, false)
                    }
                    Err(fault) => {
                        let is_loading =
                            matches!(&fault, SoundFault::Answer(fault) if is_loading(Some(fault)));
                        (reply.failed(&fault, fault == SoundFault::STOPPED), is_loading)
                    }
                })
            }
        }
    }

    /// The figures of the whole answer, and of its first token or sound.
    pub(super) fn whole_and_first_content(&self) -> (Metric, Metric) {
        match self.request {
            ColdRequest::Chat => (Metric::E2eMs, Metric::TtftMs),
            ColdRequest::Speech(_) | ColdRequest::Conversation(_) => {
                (Metric::WallMs, Metric::TtfaMs)
            }
        }
    }
}

/// Requests WAV, because its header has the sample rate.
fn request(target: &Target, spoken: &ColdSpeech) -> Bytes {
    let model = spoken.model.clone().unwrap_or_else(|| target.model.clone());
    let target = Target { model, ..target.clone() };
    let (format, stream) = (SoundFormat::Wav, StreamField::Absent);
    RequestParts { target: &target, voice: &spoken.voice, format, stream }.bytes(&spoken.text, 0)
}

/// The reply to a spoken question, and whether the server reports that it is still loading. The time to speak the
/// question is not a waiting time.
fn spoken_reply(answered: Result<FirstAnswer, VoiceFault>) -> (Reply, bool) {
    let is_loading = matches!(answered, Err(VoiceFault::Refused { status: 503 }));
    let reply = match answered {
        Ok(FirstAnswer { ready, answer }) => {
            let figures =
                [(Metric::TtfaMs, millis(answer)), (Metric::WallMs, millis(ready + answer))];
            Reply { connect: Some(ready), figures: figures.into(), ..Reply::default() }
        }
        Err(fault) => Reply::default().failed(&fault, matches!(fault, VoiceFault::Stopped)),
    };
    (reply, is_loading)
}

/// Adds the time of the earlier attempts to every time of the answer.
fn counted_from_first(mut reply: Reply, waited: Duration) -> Reply {
    let from_sending = [
        Metric::TtfbMs,
        Metric::TtftMs,
        Metric::TtfatMs,
        Metric::E2eMs,
        Metric::TtfaMs,
        Metric::WallMs,
    ];
    for metric in from_sending {
        if let Some(ms) = reply.figures.get_mut(&metric) {
            *ms += millis(waited);
        }
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_attempts_count_and_a_time_per_token_stays() {
        let figures = [(Metric::TtftMs, 50.0), (Metric::TpotMs, 5.0)].into();
        let reply =
            counted_from_first(Reply { figures, ..Reply::default() }, Duration::from_millis(2000));
        assert_eq!(reply.figures, [(Metric::TtftMs, 2050.0), (Metric::TpotMs, 5.0)].into());
    }

    #[test]
    fn a_person_waits_for_the_session_and_for_the_answer() {
        let ms = Duration::from_millis;
        let (reply, is_loading) = spoken_reply(Ok(FirstAnswer { ready: ms(900), answer: ms(600) }));
        assert_eq!(reply.figures, [(Metric::TtfaMs, 600.0), (Metric::WallMs, 1_500.0)].into());
        assert!(!reply.has_failed() && !is_loading);
        let (reply, is_loading) = spoken_reply(Err(VoiceFault::Refused { status: 503 }));
        assert!(reply.has_failed() && is_loading);
    }
}
