//! The path of every answer of any kind: admission, time limits, cut-off, the first content before
//! the status, and the size limit of a collected answer. [`AnswerTask`] has the differences.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use futures::stream::{self, BoxStream, SelectAll};
use futures::{FutureExt, StreamExt, TryFutureExt};
use hob_core::{ModelError, Registered, RegisteredModel, Started, Timeouts};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::headers::{OVERHEAD_MS, insert_text, whole_ms};
use crate::ledger::{Outcome, RequestRecord};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::tracker::{RequestStart, RequestTracker};

/// Maximum bytes of text in an answer that is not streamed.
const WHOLE_BYTES_MAX: usize = 32 << 20;

/// How the answers of the kinds differ.
pub(crate) trait AnswerTask: Registered {
    /// The name of the kind in errors about an answer that ended too early.
    const NAME: &'static str;
    /// The header with the time to the first content.
    const FIRST_MS: HeaderName;

    /// Sums over an answer.
    type Totals: Default + Send;

    /// Time limit for the model to begin, including loading and waiting in the queue.
    fn start_time_max(options: &ServerOptions) -> Duration {
        options.token_time_max
    }

    /// Time limit for the model's next event.
    fn event_time_max(options: &ServerOptions) -> Duration {
        options.token_time_max
    }

    fn timed_out(time_max: Duration) -> ApiError {
        ApiError::NoToken { time_max }
    }

    /// Whether the first content has begun with this event.
    fn begins(_event: &Self::Event) -> bool {
        true
    }

    /// Adds an event to the sums and to the record. Returns the work that it stands for.
    fn add(
        totals: &mut Self::Totals,
        record: &mut RequestRecord,
        head: Self::Head,
        event: &Self::Event,
    ) -> Self::Work;

    /// The first content came after this time.
    fn count_first(metrics: &Metrics, model: &str, first: Duration);

    /// Completes the record.
    fn complete_record(totals: &Self::Totals, record: &mut RequestRecord, has_begun: bool);

    /// Counts an answer that began, or that its client gave up.
    fn count(metrics: &Metrics, model: &str, outcome: Outcome, totals: &Self::Totals);
}

type Choice<T> = (u32, Result<<T as hob_core::Task>::Event, ModelError>);
/// The next event and its choice; `None` at the end.
type Next<T> = Result<Option<(u32, <T as hob_core::Task>::Event)>, ApiError>;
type Events<T> = BoxStream<'static, Result<<T as hob_core::Task>::Event, ModelError>>;

/// The choices that have not ended. Most answers have one, which needs no choosing between streams.
enum Choices<T: AnswerTask> {
    None,
    One(u32, Events<T>),
    Several(SelectAll<BoxStream<'static, Choice<T>>>),
}

impl<T: AnswerTask> Choices<T> {
    fn push(&mut self, choice: u32, events: Events<T>) {
        let numbered =
            |choice: u32, events: Events<T>| events.map(move |event| (choice, event)).boxed();
        *self = match std::mem::replace(self, Choices::None) {
            Choices::None => Choices::One(choice, events),
            Choices::One(first, its) => Choices::Several(stream::select_all([
                numbered(first, its),
                numbered(choice, events),
            ])),
            Choices::Several(mut all) => {
                all.push(numbered(choice, events));
                Choices::Several(all)
            }
        };
    }

    /// The next event; `None` at the end. This future may be dropped and called again.
    async fn next(&mut self) -> Option<Choice<T>> {
        match self {
            Choices::None => None,
            Choices::One(choice, events) => {
                let next = events.next().await.map(|event| (*choice, event));
                if next.is_none() {
                    *self = Choices::None;
                }
                next
            }
            Choices::Several(all) => all.next().await,
        }
    }
}

/// An answer whose first event is here. Dropping it stops the work.
pub(crate) struct Answer<T: AnswerTask> {
    pub(crate) head: T::Head,
    pub(crate) tracker: RequestTracker<T>,
    pub(crate) totals: T::Totals,
    events: Choices<T>,
    first: Option<(u32, T::Event)>,
    /// The time to the first content, until it is counted.
    uncounted_first: Option<Duration>,
    /// Choices that have not ended.
    open: u32,
    /// Start of the wait for the next event; `None` as long as events are there without a wait. Stored here, so that a
    /// wait that is dropped and repeated does not start again.
    waiting_since: Option<Instant>,
    /// Admission knows how long this answer took its model.
    is_timed: bool,
    event_time_max: Option<Duration>,
    input: Input,
}

/// The text or sound of a request.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Complete,
    /// It arrives while the model works. The token is cancelled when it is complete. Until then a pause is the
    /// client's: no time limit of the model counts. Waits of such a request do not tell how fast the model is.
    Arriving(CancellationToken),
}

impl<T: AnswerTask> Answer<T> {
    /// Admits a request and starts its answer. `requests` has one request for each choice. The others start after the
    /// first event of the first choice: by then its prompt is computed, and the model can reuse it.
    ///
    /// # Errors
    /// The request is rejected, or fails before its first event. Nothing was sent to the client by then.
    pub(crate) async fn start(
        start: RequestStart,
        model: &Arc<RegisteredModel<T>>,
        work: T::Work,
        requests: Vec<T::Request>,
    ) -> Result<Answer<T>, ApiError> {
        Answer::start_with(start, model, work, requests, Input::Complete).await
    }

    /// Starts an answer whose input may still be arriving.
    ///
    /// # Errors
    /// See [`Answer::start`].
    pub(crate) async fn start_with(
        start: RequestStart,
        model: &Arc<RegisteredModel<T>>,
        work: T::Work,
        mut requests: Vec<T::Request>,
        input: Input,
    ) -> Result<Answer<T>, ApiError> {
        let mut tracker = RequestTracker::new(start, model);
        for request in &mut requests {
            let (trace, caller) = (&tracker.context.trace, &tracker.context.caller);
            trace.note(|data| {
                data.key = caller.key().map(str::to_owned);
                data.late_tokens = caller.late_tokens();
            });
            *T::trace_mut(request) = trace.clone();
        }
        tracker.admit(model, work)?;
        let open = requests.len() as u32;
        let mut requests = requests.into_iter();
        let Some(first) = requests.next() else { return Err(cut_off::<T>().into()) };
        let started = start_one(&tracker.context, model, first).await;
        if T::STARTS_IN_TURN {
            tracker.started();
        }
        let Started { head, events } = started.inspect_err(|error| tracker.failed(error))?;
        let event_time_max = time_max(model, T::event_time_max(tracker.context.options()));
        let mut answer = Answer {
            head,
            tracker,
            totals: T::Totals::default(),
            events: Choices::None,
            first: None,
            uncounted_first: None,
            open,
            waiting_since: None,
            is_timed: false,
            event_time_max,
            input,
        };
        answer.events.push(0, events);
        let begun = answer.begin(model, requests).await;
        begun.inspect_err(|error| answer.tracker.failed(error))?;
        Ok(answer)
    }

    async fn begin(
        &mut self,
        model: &Arc<RegisteredModel<T>>,
        others: impl Iterator<Item = T::Request>,
    ) -> Result<(), ApiError> {
        self.first = self.receive().await?;
        for (choice, request) in (1..).zip(others) {
            if model.timeouts == Timeouts::ByModel {
                // Started while the first one is read: a server with few slots may have none free before it ends.
                let model = Arc::clone(model);
                let started = async move { T::start(&model.model, request).await };
                let events = started.map_ok(|started| started.events).try_flatten_stream();
                self.events.push(choice, events.boxed());
            } else {
                let started = start_one(&self.tracker.context, model, request).await?;
                self.events.push(choice, started.events);
            }
        }
        Ok(())
    }

    /// This future may be dropped and called again.
    pub(crate) async fn next(&mut self) -> Next<T> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let next = self.receive().await;
        next.inspect_err(|error| self.tracker.failed(error))
    }

    /// The next event, if it is there already. `None` begins no wait: only [`Answer::next`] registers the task.
    pub(crate) fn next_now(&mut self) -> Option<Next<T>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(Some(first)));
        }
        if self.open == 0 {
            return Some(Ok(None));
        }
        // The error of a server that stops comes from the next wait.
        if self.tracker.context.services.cut_off.is_cancelled() {
            return None;
        }
        let next = self.events.next().now_or_never()?;
        self.count_wait();
        let event = self.accept(next);
        Some(event.inspect_err(|error| self.tracker.failed(error)))
    }

    /// Reads to the end, for an answer that is not streamed.
    pub(crate) async fn collect(
        &mut self,
        mut take: impl FnMut(u32, T::Event),
    ) -> Result<(), ApiError> {
        let mut bytes = 0usize;
        loop {
            let next = match self.next_now() {
                Some(next) => next?,
                None => self.next().await?,
            };
            let Some((choice, event)) = next else { return Ok(()) };
            bytes = bytes.saturating_add(T::bytes(&event));
            if bytes > WHOLE_BYTES_MAX {
                let error = ApiError::AnswerTooLarge { bytes_max: WHOLE_BYTES_MAX };
                self.tracker.failed(&error);
                return Err(error);
            }
            take(choice, event);
        }
    }

    /// The first content is about to be sent.
    pub(crate) fn content_started(&mut self) {
        if let Some(first) = self.tracker.content_started() {
            self.uncounted_first = Some(first);
            self.count_first();
        }
    }

    /// Counts the time to the first content, unless the answer does not count, or not yet.
    fn count_first(&mut self) {
        if !self.tracker.is_uncounted()
            && let Some(first) = self.uncounted_first.take()
        {
            let metrics = &self.tracker.context.services.metrics;
            T::count_first(metrics, &self.tracker.label, first);
        }
    }

    /// The headers of an answer that begins with its first content.
    pub(crate) fn headers(&self, content_type: &'static str) -> HeaderMap {
        let tracker = &self.tracker;
        let mut headers = tracker.headers(content_type);
        headers.insert(T::FIRST_MS, whole_ms(tracker.first().unwrap_or_default()));
        if let Some(overhead) = tracker.context.trace.read(|trace| tracker.overhead(trace)) {
            let overhead_ms = format!("{:.3}", overhead.as_secs_f64() * 1e3);
            insert_text(&mut headers, OVERHEAD_MS, &overhead_ms);
        }
        headers
    }

    /// Time spent waiting for a slot of another server.
    pub(crate) fn queued(&self) -> Duration {
        self.tracker.context.trace.read(|trace| trace.queued)
    }

    /// The next event, unless the input is complete before it.
    async fn while_input_arrives(&mut self) -> Option<Result<Option<Choice<T>>, ApiError>> {
        let Input::Arriving(complete) = &self.input else { return None };
        let next = complete.run_until_cancelled(self.events.next());
        bounded::<T, _>(&self.tracker.context, None, next).await.transpose()
    }

    async fn next_in_time(&mut self) -> Result<Option<Choice<T>>, ApiError> {
        // A model with time limits of its own needs no clock here before a wait, and most of its events come several at a
        // time: reading the clocks would cost more than such an event.
        let since = &mut self.waiting_since;
        let limit = self.event_time_max.map(|most| (*since.get_or_insert_with(Instant::now), most));
        let events = &mut self.events;
        let next = async {
            let mut next = pin!(events.next());
            let next = poll_fn(|cx| {
                let next = next.as_mut().poll(cx);
                if next.is_pending() {
                    since.get_or_insert_with(Instant::now);
                }
                next
            });
            next.await
        };
        let next = bounded::<T, _>(&self.tracker.context, limit, next).await;
        self.count_wait();
        next
    }

    /// Tells admission how long the model took for an event that is here.
    fn count_wait(&mut self) {
        let waited = self.waiting_since.take();
        if let Input::Complete = self.input
            && (waited.is_some() || !self.is_timed)
        {
            self.is_timed = true;
            self.tracker.waited(waited.map_or(Duration::ZERO, |since| since.elapsed()));
        }
    }

    async fn receive(&mut self) -> Next<T> {
        if self.open == 0 {
            return Ok(None);
        }
        let next = match self.while_input_arrives().await {
            Some(next) => next,
            None => self.next_in_time().await,
        };
        self.accept(next?)
    }

    /// Counts the event. `None`: the events have ended.
    fn accept(&mut self, next: Option<Choice<T>>) -> Next<T> {
        let (choice, event) = match next {
            None if T::HAS_LAST => return Err(cut_off::<T>().into()),
            None => {
                self.open = 0;
                return Ok(None);
            }
            Some((choice, event)) => (choice, event?),
        };
        let work = T::add(&mut self.totals, &mut self.tracker.record, self.head, &event);
        self.tracker.produced(work);
        // Speech begins with its first encoded bytes.
        if T::HAS_LAST && T::begins(&event) {
            self.content_started();
        }
        if T::is_last(&event) {
            self.open -= 1;
            if self.open == 0 {
                self.tracker.complete();
            }
        }
        Ok(Some((choice, event)))
    }
}

impl<T: AnswerTask> Drop for Answer<T> {
    fn drop(&mut self) {
        self.count_first();
        let tracker = &mut self.tracker;
        let has_begun = tracker.first().is_some();
        T::complete_record(&self.totals, &mut tracker.record, has_begun);
        // An answer that failed before it began counts as a request, with its status.
        let outcome = tracker.record.outcome;
        if !tracker.is_uncounted() && (has_begun || outcome != Outcome::Failed) {
            let metrics = &tracker.context.services.metrics;
            T::count(metrics, &tracker.label, outcome, &self.totals);
        }
    }
}

async fn start_one<T: AnswerTask>(
    context: &RequestContext,
    model: &RegisteredModel<T>,
    request: T::Request,
) -> Result<Started<T>, ApiError> {
    let time_max = time_max(model, T::start_time_max(context.options()));
    let start = T::start(&model.model, request);
    let limit = time_max.map(|most| (Instant::now(), most));
    Ok(bounded::<T, _>(context, limit, start).await??)
}

/// The server's limit, unless the model has limits of its own.
pub(crate) fn time_max<T: Registered>(
    model: &RegisteredModel<T>,
    time_max: Duration,
) -> Option<Duration> {
    (model.timeouts == Timeouts::ByServer).then_some(time_max)
}

/// Waits for the model, and only as long as the server runs. `limit` is the start of the wait and its time limit. Every
/// request waits for its answer here.
///
/// # Errors
/// The time limit is exceeded, or the server stops.
pub(crate) async fn bounded<T: AnswerTask, R>(
    context: &RequestContext,
    limit: Option<(Instant, Duration)>,
    wait: impl Future<Output = R>,
) -> Result<R, ApiError> {
    let wait = async {
        match limit {
            None => Ok(wait.await),
            Some((since, time_max)) => {
                let timed = timeout_at(since + time_max, wait).await;
                timed.map_err(|_| T::timed_out(time_max))
            }
        }
    };
    unless_cancelled(&context.services.cut_off, wait).await.ok_or(ApiError::Stopping)?
}

/// Like [`CancellationToken::run_until_cancelled`], which registers with the token even if the result is there already.
async fn unless_cancelled<R>(
    token: &CancellationToken,
    wait: impl Future<Output = R>,
) -> Option<R> {
    let mut wait = pin!(wait);
    let mut cancelled = pin!(token.cancelled());
    poll_fn(|cx| {
        if token.is_cancelled() {
            return Poll::Ready(None);
        }
        match wait.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => cancelled.as_mut().poll(cx).map(|()| None),
        }
    })
    .await
}

/// The error of an answer without its last event.
fn cut_off<T: AnswerTask>() -> ModelError {
    let detail = "the answer ended before it was complete".to_owned();
    ModelError::EngineFailed { engine: T::NAME, detail }
}
