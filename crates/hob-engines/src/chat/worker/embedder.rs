//! The embedder: texts to vectors, on a thread and in a context of its own, so that a long text is
//! no silence in the answers that run. The context is made when the first text comes.

use std::sync::mpsc::Receiver;

use hob_core::chat::EmbedInput;

use super::reading::Reading;
use super::{EmbedEnd, EmbedJob, Heard};
use crate::chat::decoder::DecodeFailed;
use crate::chat::llama::{Llama, LlamaEmbedder};
use crate::chat::protocol::{Refusal, Vector};
use crate::worker::{EngineEnded, InboxSender};

/// Returns when the engine has ended.
pub(super) fn run(
    llama: &Llama,
    reading: &Reading,
    tokens_max: u32,
    jobs: &Receiver<EmbedJob>,
    to_engine: &InboxSender<Heard>,
) {
    let mut embedder = None;
    while let Ok(EmbedJob { stream, request }) = jobs.recv() {
        let made = inputs(reading, &request.inputs, tokens_max)
            .map_err(EmbedEnd::Refused)
            .and_then(|inputs| {
                let embedder = made_once(llama, tokens_max, &mut embedder)?;
                embed_all(embedder, &inputs, request.dimensions, stream, to_engine)
            });
        let ended = match made {
            Ok(Ok(())) => Ok(()),
            Ok(Err(EngineEnded)) => return,
            Err(end) => Err(end),
        };
        if to_engine.send(Heard::EmbeddedAll { stream, ended }).is_err() {
            return;
        }
    }
}

/// Every input as tokens, or why not one of them is embedded.
fn inputs(
    reading: &Reading,
    inputs: &[EmbedInput],
    tokens_max: u32,
) -> Result<Vec<Vec<u32>>, Refusal> {
    let available = tokens_max.min(reading.context_tokens());
    let fits = |tokens: Vec<u32>| {
        let needed = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        if tokens.is_empty() {
            let field = "input".to_owned();
            return Err(Refusal::Field { field, reason: "has an empty text".to_owned() });
        }
        if needed > available { Err(Refusal::TooLong { needed, available }) } else { Ok(tokens) }
    };
    let tokens = inputs.iter().map(|input| match input {
        EmbedInput::Text(text) => fits(reading.tokens_of_text(text)),
        EmbedInput::Tokens(tokens) => reading.known_tokens("input", tokens).and_then(fits),
    });
    tokens.collect()
}

fn made_once<'e, 'llama>(
    llama: &'llama Llama,
    tokens_max: u32,
    embedder: &'e mut Option<LlamaEmbedder<'llama>>,
) -> Result<&'e mut LlamaEmbedder<'llama>, EmbedEnd> {
    if embedder.is_none() {
        let made = llama.embedder(tokens_max);
        *embedder = Some(made.map_err(|error| EmbedEnd::Failed(DecodeFailed(error.to_string())))?);
    }
    embedder.as_mut().ok_or_else(|| EmbedEnd::Failed(DecodeFailed("it was not made".to_owned())))
}

fn embed_all(
    embedder: &mut LlamaEmbedder<'_>,
    inputs: &[Vec<u32>],
    dimensions: Option<u32>,
    stream: u32,
    to_engine: &InboxSender<Heard>,
) -> Result<Result<(), EngineEnded>, EmbedEnd> {
    for tokens in inputs {
        let values = embedder.embed(tokens).map_err(EmbedEnd::Failed)?;
        let values = shortened(values, dimensions).map_err(EmbedEnd::Refused)?;
        let vector = Vector { values, tokens: tokens.len() as u32 };
        if to_engine.send(Heard::Embedded { stream, vector }).is_err() {
            return Ok(Err(EngineEnded));
        }
    }
    Ok(Ok(()))
}

/// The vector cut to `dimensions`, of length 1.
fn shortened(mut values: Vec<f32>, dimensions: Option<u32>) -> Result<Vec<f32>, Refusal> {
    if let Some(dimensions) = dimensions {
        let wanted = dimensions as usize;
        if wanted == 0 || wanted > values.len() {
            let reason =
                format!("cannot have {wanted} dimensions: this model's have {}", values.len());
            return Err(Refusal::Field { field: "input".to_owned(), reason });
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
    use super::*;

    #[test]
    fn vectors_are_cut_and_have_length_one() {
        assert_eq!(shortened(vec![3.0, 4.0], None), Ok(vec![0.6, 0.8]));
        assert_eq!(shortened(vec![3.0, 4.0], Some(1)), Ok(vec![1.0]));
        assert_eq!(shortened(vec![0.0, 0.0], None), Ok(vec![0.0, 0.0]));
        for dimensions in [0, 3] {
            let refused =
                shortened(vec![3.0, 4.0], Some(dimensions)).expect_err("too many or none");
            assert!(matches!(refused, Refusal::Field { .. }));
        }
    }
}
