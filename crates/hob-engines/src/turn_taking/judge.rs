//! A thread that judges the turns of all sessions, one after the other, so that no async thread computes.
//! The thread ends when the last judge is dropped.

use std::thread;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::{ModelError, TurnModel};
use tokio::sync::{mpsc, oneshot};

use super::{SmartTurn, SmartTurnError};

const ENGINE: &str = "turn detection";
/// Sessions that wait for a judgement.
const WAITING_MAX: usize = 32;

/// Smart Turn on a thread of its own.
#[derive(Clone, Debug)]
pub struct TurnJudge {
    orders: mpsc::Sender<Order>,
}

/// A turn to judge. Its session has gone when nothing can receive the answer.
#[derive(Debug)]
struct Order {
    samples: Vec<f32>,
    answer: oneshot::Sender<Result<f32, SmartTurnError>>,
}

impl TurnJudge {
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(model: SmartTurn) -> std::io::Result<TurnJudge> {
        TurnJudge::judging(move |samples| model.probability(samples))
    }

    fn judging(
        judge: impl Fn(&[f32]) -> Result<f32, SmartTurnError> + Send + 'static,
    ) -> std::io::Result<TurnJudge> {
        let (orders, mut arriving) = mpsc::channel::<Order>(WAITING_MAX);
        let work = move || {
            while let Some(Order { samples, answer }) = arriving.blocking_recv() {
                if answer.is_closed() {
                    continue;
                }
                // A session that left meanwhile needs no answer.
                answer.send(judge(&samples)).ok();
            }
        };
        thread::Builder::new().name("turns".to_owned()).spawn(work)?;
        Ok(TurnJudge { orders })
    }
}

impl TurnModel for TurnJudge {
    fn probability(&self, samples: Vec<f32>) -> BoxFuture<'_, Result<f32, ModelError>> {
        async move {
            let (answer, answered) = oneshot::channel();
            // A queue that is full holds seconds of work: the session decides by its clock instead.
            self.orders.try_send(Order { samples, answer }).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => failed("too many turns wait"),
                mpsc::error::TrySendError::Closed(_) => failed("its thread has ended"),
            })?;
            let judged = answered.await.map_err(|_| failed("its thread has ended"))?;
            judged.map_err(failed)
        }
        .boxed()
    }
}

fn failed(detail: impl ToString) -> ModelError {
    ModelError::EngineFailed { engine: ENGINE, detail: detail.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use super::*;

    /// Judges the first sample, when the test lets it.
    struct Held {
        judge: TurnJudge,
        go_on: std_mpsc::SyncSender<()>,
        begun: std_mpsc::Receiver<f32>,
    }

    fn held() -> Held {
        let (go_on, may_go_on) = std_mpsc::sync_channel(1);
        let (tell, begun) = std_mpsc::sync_channel(1);
        let judge = TurnJudge::judging(move |samples| {
            tell.send(samples[0]).expect("the test listens");
            may_go_on.recv().expect("the test goes on");
            Ok(samples[0])
        });
        Held { judge: judge.expect("a thread"), go_on, begun }
    }

    /// Asks, and lets the question reach the queue.
    async fn asked(judge: &TurnJudge, sample: f32) -> BoxFuture<'_, Result<f32, ModelError>> {
        let mut asked = judge.probability(vec![sample]);
        assert!(futures::poll!(&mut asked).is_pending());
        asked
    }

    #[tokio::test]
    async fn turns_are_judged_in_order_and_a_dropped_one_is_skipped() {
        let Held { judge, go_on, begun } = held();
        let first = asked(&judge, 0.1).await;
        assert_eq!(begun.recv(), Ok(0.1));
        let dropped = asked(&judge, 0.2).await;
        let third = asked(&judge, 0.3).await;
        drop(dropped);
        [(), ()].into_iter().for_each(|()| go_on.send(()).expect("the thread waits"));
        assert_eq!((first.await, third.await), (Ok(0.1), Ok(0.3)));
        assert_eq!(begun.try_iter().collect::<Vec<_>>(), [0.3], "0.2 was not computed");
    }

    #[tokio::test]
    async fn more_turns_than_the_queue_holds_are_refused() {
        let Held { judge, go_on, begun } = held();
        let judged = asked(&judge, 0.0).await;
        assert_eq!(begun.recv(), Ok(0.0));
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(asked(&judge, 0.5).await);
        }
        let error = judge.probability(vec![0.5]).await.expect_err("refused").to_string();
        assert_eq!(error, "the turn detection engine failed: too many turns wait");
        drop(waiting);
        go_on.send(()).expect("the thread waits");
        assert_eq!(judged.await, Ok(0.0));
    }

    #[tokio::test]
    async fn a_failed_graph_is_an_error_of_the_engine() {
        let judge = TurnJudge::judging(|_| Err(SmartTurnError::Graph("no memory".to_owned())));
        let error = judge.expect("a thread").probability(vec![]).await.expect_err("fails");
        let says = "the turn detection engine failed: the graph of Smart Turn failed: no memory";
        assert_eq!(error.to_string(), says);
    }
}
