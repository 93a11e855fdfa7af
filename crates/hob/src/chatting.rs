//! Prints an answer from a stream of events, and measures it.
//! The events may come from an engine of this process or from another hob.

mod figures;
mod history;
mod show;
mod source;

use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::ChatEvent;
use hob_core::chat::Completion;

pub(crate) use figures::{figures, record, warning};
pub(crate) use history::ChatHistory;
pub(crate) use show::{Show, TextShown, ThinkingShown};
pub(crate) use source::{Source, SourceOptions};

use crate::failure::{CliResult, Failure};
use crate::remote::ChatAnswer;
use crate::sink::PipeState;

/// The result of a request, as far as it arrived.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// From the request to the first piece of thinking or text.
    pub(crate) first_token: Option<Duration>,
    /// `None`: the answer was interrupted or broke off.
    pub(crate) completion: Option<Completion>,
}

impl Reply {
    /// Reads an answer to its end and shows it meanwhile. The reply keeps what has arrived, even if this
    /// fails or is dropped. `asked` is when the request was sent.
    pub(crate) async fn take(
        &mut self,
        mut answer: ChatAnswer,
        show: &mut Show<'_>,
        asked: Instant,
    ) -> CliResult<()> {
        while let Some(event) = answer.next().await {
            match event? {
                ChatEvent::Reasoning(piece) => {
                    self.begin(asked);
                    self.reasoning.push_str(&piece);
                    show.thinking(&piece);
                }
                ChatEvent::Text(piece) => {
                    self.begin(asked);
                    self.text.push_str(&piece);
                    if show.text(&piece)? == PipeState::Closed {
                        return Ok(());
                    }
                }
                ChatEvent::Done(completion) => self.completion = Some(completion),
                // This command offers no tools and requests no log probabilities.
                ChatEvent::Status { .. }
                | ChatEvent::Extra(_)
                | ChatEvent::TurnEnd { .. }
                | ChatEvent::Logprobs(_)
                | ChatEvent::ToolCall { .. }
                | ChatEvent::ToolArguments { .. } => {}
            }
        }
        match self.completion {
            Some(_) => Ok(()),
            None => Err(Failure::engine("the answer ended early")
                .hint("try again; `hob doctor` checks the model")),
        }
    }

    fn begin(&mut self, asked: Instant) {
        self.first_token.get_or_insert_with(|| asked.elapsed());
    }
}

// Keeps the text out of logs.
hob_core::debug_fields!(Reply: text.len(), reasoning.len(), first_token, completion);

#[cfg(test)]
mod tests {
    use futures::stream;
    use hob_core::chat::{FinishReason, Timings, Usage};

    use super::*;
    use crate::printer::{Printer, Volume};

    async fn take(events: Vec<CliResult<ChatEvent>>) -> (Reply, CliResult<()>) {
        let printer = Printer::new(Volume::ErrorsOnly);
        let mut show = Show::new(&printer, TextShown::AtTheEnd, ThinkingShown::Never);
        let mut reply = Reply::default();
        let taken = reply.take(stream::iter(events).boxed(), &mut show, Instant::now()).await;
        (reply, taken)
    }

    #[tokio::test]
    async fn pieces_are_joined_and_thinking_stays_apart() {
        let done = Completion {
            finish: FinishReason::Stop,
            usage: Usage::default(),
            timings: Timings::default(),
        };
        let (reply, taken) = take(vec![
            Ok(ChatEvent::Reasoning("h".to_owned())),
            Ok(ChatEvent::Reasoning("m".to_owned())),
            Ok(ChatEvent::Text("H".to_owned())),
            Ok(ChatEvent::Text("i".to_owned())),
            Ok(ChatEvent::Done(done)),
        ])
        .await;
        assert_eq!(taken, Ok(()));
        assert_eq!((reply.reasoning.as_str(), reply.text.as_str()), ("hm", "Hi"));
        assert_eq!(reply.completion, Some(done));
        assert!(!format!("{reply:?}").contains("hm"), "{reply:?}");
    }

    #[tokio::test]
    async fn text_before_a_failure_is_kept() {
        let said = || Ok(ChatEvent::Text("Hi".to_owned()));
        let lost = Failure::engine("lost");
        for (end, sentence) in [(Some(Err(lost)), "lost"), (None, "the answer ended early")] {
            let (reply, taken) = take(std::iter::once(said()).chain(end).collect()).await;
            assert_eq!(taken.expect_err("a failure").sentence, sentence);
            assert_eq!((reply.text.as_str(), reply.completion), ("Hi", None));
        }
    }
}
