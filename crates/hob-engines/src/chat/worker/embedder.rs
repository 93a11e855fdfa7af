//! The embedder computes vectors on its own thread and in its own context, so that a long text does not
//! stall running answers. The context is created for the first text.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

use hob_core::chat::EmbedInput;

use super::off_engine::OffEngineStreams;
use super::request_reader::{RequestReader, refused};
use super::{EmbedEnd, EmbedJob, Incoming};
use crate::chat::decoder::DecodeFailed;
use crate::chat::llama::Llama;
use crate::chat::protocol::{Refusal, Vector};
use crate::worker::{EngineEnded, InboxSender};

/// Returns when the engine has ended. Computes one input of each request in turn, so that a long list
/// delays other requests by one text at most.
pub(super) fn run(
    llama: &Llama,
    reader: &RequestReader,
    tokens_max: u32,
    jobs: &Receiver<EmbedJob>,
    (off_engine, to_engine): (&OffEngineStreams, &InboxSender<Incoming>),
) {
    let mut embedder = None;
    let make = || llama.embedder(tokens_max).map_err(|error| DecodeFailed(error.to_string()));
    let embed = |tokens: &[u32]| with_kept(&mut embedder, make, |embedder| embedder.embed(tokens));
    let inputs = |inputs: &[EmbedInput]| inputs_of(reader, inputs, tokens_max);
    let turns = Turns { off_engine, to_engine, open: VecDeque::new() };
    // The engine has ended.
    let _ended = turns.run(jobs, inputs, embed);
}

/// A request of which some inputs are still to be computed.
struct Open {
    stream: u32,
    dimensions: Option<u32>,
    inputs: VecDeque<Vec<u32>>,
}

/// The requests, each of which has its turn.
struct Turns<'a> {
    off_engine: &'a OffEngineStreams,
    to_engine: &'a InboxSender<Incoming>,
    open: VecDeque<Open>,
}

impl Turns<'_> {
    fn run(
        mut self,
        jobs: &Receiver<EmbedJob>,
        mut inputs: impl FnMut(&[EmbedInput]) -> Result<Vec<Vec<u32>>, Refusal>,
        mut embed: impl FnMut(&[u32]) -> Result<Vec<f32>, DecodeFailed>,
    ) -> Result<(), EngineEnded> {
        loop {
            let job = match self.open.is_empty() {
                true => Some(jobs.recv().map_err(|_| EngineEnded)?),
                false => jobs.try_recv().ok(),
            };
            if let Some(EmbedJob { stream, request }) = job {
                match inputs(&request.inputs) {
                    Ok(inputs) => {
                        let (dimensions, inputs) = (request.dimensions, inputs.into());
                        self.open.push_back(Open { stream, dimensions, inputs });
                    }
                    Err(refusal) => self.end(stream, Err(EmbedEnd::Refused(refusal)))?,
                }
            }
            if let Some(open) = self.open.pop_front() {
                self.turn(open, &mut embed)?;
            }
        }
    }

    /// Computes one input, unless the client has left.
    fn turn(
        &mut self,
        mut open: Open,
        embed: &mut impl FnMut(&[u32]) -> Result<Vec<f32>, DecodeFailed>,
    ) -> Result<(), EngineEnded> {
        let stream = open.stream;
        if !self.off_engine.contains(stream) {
            return Ok(());
        }
        let Some(tokens) = open.inputs.pop_front() else { return self.end(stream, Ok(())) };
        let values = embed(&tokens).map_err(EmbedEnd::Failed);
        let values =
            values.and_then(|values| shortened(values, open.dimensions).map_err(EmbedEnd::Refused));
        match values {
            Ok(values) => {
                let vector = Vector { values, tokens: tokens.len() as u32 };
                self.open.push_back(open);
                self.to_engine.send(Incoming::Embedded { stream, vector })
            }
            Err(end) => self.end(stream, Err(end)),
        }
    }

    fn end(&self, stream: u32, ended: Result<(), EmbedEnd>) -> Result<(), EngineEnded> {
        self.to_engine.send(Incoming::EmbeddedAll { stream, ended })
    }
}

/// Every input as tokens, or why not one of them is embedded.
fn inputs_of(
    reader: &RequestReader,
    inputs: &[EmbedInput],
    tokens_max: u32,
) -> Result<Vec<Vec<u32>>, Refusal> {
    let available = tokens_max.min(reader.context_tokens());
    let fits = |tokens: Vec<u32>| {
        let needed = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        if tokens.is_empty() {
            return Err(refused("input", "has an empty text".to_owned()));
        }
        if needed > available { Err(Refusal::TooLong { needed, available }) } else { Ok(tokens) }
    };
    let tokens = inputs.iter().map(|input| match input {
        EmbedInput::Text(text) => fits(reader.tokens_of_text(text)),
        EmbedInput::Tokens(tokens) => reader.known_tokens("input", tokens).and_then(fits),
    });
    tokens.collect()
}

/// Computes with the context that is kept, or a new one. It is not kept after a failure: on Metal, it then computes nothing more.
fn with_kept<C, T>(
    kept: &mut Option<C>,
    make: impl FnOnce() -> Result<C, DecodeFailed>,
    compute: impl FnOnce(&mut C) -> Result<T, DecodeFailed>,
) -> Result<T, DecodeFailed> {
    let mut context = kept.take().map_or_else(make, Ok)?;
    let computed = compute(&mut context)?;
    *kept = Some(context);
    Ok(computed)
}

/// The vector cut to `dimensions`, of length 1.
fn shortened(mut values: Vec<f32>, dimensions: Option<u32>) -> Result<Vec<f32>, Refusal> {
    if let Some(dimensions) = dimensions {
        let wanted = dimensions as usize;
        if wanted == 0 || wanted > values.len() {
            let reason = format!("must be from 1 to {}, and is {wanted}", values.len());
            return Err(refused("dimensions", reason));
        }
        values.truncate(wanted);
    }
    let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        values.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use hob_core::chat::EmbedRequest;

    use super::*;
    use crate::worker::WorkerConnection;

    fn job(stream: u32, texts: u32) -> EmbedJob {
        let inputs = (0..texts).map(|text| EmbedInput::Tokens(vec![stream, text])).collect();
        EmbedJob { stream, request: EmbedRequest { inputs, ..EmbedRequest::default() } }
    }

    /// What is computed for these jobs, where `left` leaves after so many computations.
    fn computed(jobs: Vec<EmbedJob>, left: (u32, usize)) -> Vec<Vec<u32>> {
        let (_server, worker) = UnixStream::pair().expect("a socket pair");
        let connection =
            WorkerConnection::start(&worker, super::super::decode, Duration::from_secs(60));
        let inbox = connection.expect("threads").inbox;
        let (sender, receiver) = sync_channel(jobs.len());
        let off_engine = OffEngineStreams::default();
        for job in jobs {
            off_engine.insert(job.stream);
            sender.send(job).expect("room");
        }
        drop(sender);
        let to_engine = inbox.sender();
        let turns = Turns { off_engine: &off_engine, to_engine: &to_engine, open: VecDeque::new() };
        let mut computed = Vec::new();
        let inputs = |inputs: &[EmbedInput]| {
            let tokens = inputs.iter().map(|input| match input {
                EmbedInput::Tokens(tokens) => tokens.clone(),
                EmbedInput::Text(_) => Vec::new(),
            });
            Ok(tokens.collect())
        };
        let embed = |tokens: &[u32]| {
            computed.push(tokens.to_vec());
            if computed.len() == left.1 {
                off_engine.remove(left.0);
            }
            Ok(vec![1.0])
        };
        assert_eq!(turns.run(&receiver, inputs, embed), Err(EngineEnded));
        computed
    }

    #[test]
    fn nothing_is_computed_for_a_client_that_has_left() {
        assert_eq!(computed(vec![job(1, 50)], (1, 3)), [[1, 0], [1, 1], [1, 2]]);
    }

    #[test]
    fn a_short_request_does_not_wait_for_a_long_one() {
        let order = computed(vec![job(1, 4), job(2, 1)], (9, 0));
        assert_eq!(order, [[1, 0], [1, 1], [2, 0], [1, 2], [1, 3]]);
    }

    #[test]
    fn a_context_that_failed_is_not_used_again() {
        let (mut kept, mut made) = (None, 0);
        let failed = || Err(DecodeFailed("lost".to_owned()));
        for (is_lost, expected) in [(false, 1), (false, 1), (true, 1), (false, 2)] {
            let make = || {
                made += 1;
                Ok(made)
            };
            let used = with_kept(&mut kept, make, |context| match is_lost {
                true => failed(),
                false => Ok(*context),
            });
            assert_eq!(used.ok(), (!is_lost).then_some(expected));
        }
    }

    #[test]
    fn vectors_are_cut_and_have_length_one() {
        assert_eq!(shortened(vec![3.0, 4.0], None), Ok(vec![0.6, 0.8]));
        assert_eq!(shortened(vec![3.0, 4.0], Some(1)), Ok(vec![1.0]));
        assert_eq!(shortened(vec![0.0, 0.0], None), Ok(vec![0.0, 0.0]));
        for dimensions in [0, 3] {
            let refused =
                shortened(vec![3.0, 4.0], Some(dimensions)).expect_err("too many or none");
            let expected = format!("'dimensions' must be from 1 to 2, and is {dimensions}");
            assert_eq!(refused.into_error().to_string(), expected);
        }
    }
}
