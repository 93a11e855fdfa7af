//! An alias as a model: its targets are asked in turn until one really answers, and nobody outside hears
//! of the others. What follows a failure is decided in `hob_core::routing`; here it is done.

mod attempt;
mod candidates;
mod guarded;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use hob_core::chat::Reading;
use hob_core::routing::{Admits, Again, Consequence, Next, RouteView};
use hob_core::{
    ChatCard, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, ModelError, ModelState,
};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::options::{AliasOptions, Clocks, TargetOptions};
use crate::target::{Source, Target};
use attempt::{Begun, attempt, out_of_time};
use hob_wire::Parameters;

const TOTAL: Duration = Duration::from_secs(600);

/// A name that several targets answer to.
#[derive(Debug)]
pub struct Route {
    options: AliasOptions,
    legs: Vec<Leg>,
    card: ChatCard,
}

/// A target, as this alias asks it.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) target: Arc<Target>,
    /// The alias' first, its own last.
    pub(crate) parameters: Vec<Parameters>,
    pub(crate) context_tokens: Option<u32>,
    pub(crate) capabilities: Option<Vec<String>>,
    pub(crate) weight: f64,
    pub(crate) clocks: Clocks,
}

/// What is asked, and until when.
#[derive(Clone, Copy)]
struct Asking<'a> {
    request: &'a ChatRequest,
    ends: Instant,
}

/// What came of the attempts so far.
#[derive(Default)]
struct Tried {
    attempts: u32,
    last: Option<ModelError>,
    /// Only targets that hold more than this are worth asking.
    larger_than: Option<u32>,
}

impl Leg {
    pub(crate) fn new(target: Arc<Target>, options: &TargetOptions, clocks: Clocks) -> Leg {
        let parameters = Some(options.parameters.clone()).filter(|own| !own.is_empty());
        Leg {
            target,
            parameters: parameters.into_iter().collect(),
            context_tokens: options.context_tokens,
            capabilities: options.capabilities.clone(),
            weight: options.weight,
            clocks,
        }
    }

    /// The same target for an alias that leads to this one's alias.
    pub(crate) fn within(&self, options: &TargetOptions) -> Leg {
        let mut leg = self.clone();
        leg.parameters.insert(0, options.parameters.clone());
        leg.context_tokens = options.context_tokens.or(leg.context_tokens);
        leg.capabilities = options.capabilities.clone().or(leg.capabilities);
        leg
    }

    fn context_tokens(&self) -> Option<u32> {
        self.context_tokens.or_else(|| self.target.context_tokens())
    }

    fn change(&self, request: &mut ChatRequest) {
        Parameters::apply(&self.parameters, request);
    }
}

impl Route {
    pub(crate) fn new(options: AliasOptions, mut legs: Vec<Leg>) -> Route {
        if !options.parameters.is_empty() {
            legs.iter_mut().for_each(|leg| leg.parameters.insert(0, options.parameters.clone()));
        }
        for leg in &mut legs {
            leg.clocks = options.clocks.or(leg.clocks);
        }
        let card = card(&legs);
        Route { options, legs, card }
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    pub(crate) fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// Who would answer now, in the order in which they would be asked.
    pub fn view(&self) -> RouteView {
        let request = ChatRequest::default();
        let legs = self.ordered(&request, self.legs.iter().collect());
        let targets = candidates::views(&legs);
        RouteView { alias: self.options.name.clone(), pick: self.options.pick.name(), targets }
    }

    fn total(&self) -> Duration {
        self.options.clocks.total.unwrap_or(TOTAL)
    }

    async fn answer(&self, request: ChatRequest) -> Result<ChatStream, ModelError> {
        let ends = Instant::now() + self.total();
        let legs = self.candidates(&request)?;
        let legs = self.awake(self.ordered(&request, legs), ends).await?;
        let asking = Asking { request: &request, ends };
        let begun = match self.options.hedge_after {
            Some(after) if legs.len() > 1 => self.hedged(&legs, asking, after).await?,
            _ => self.in_turn(&legs, asking, &mut Tried::default()).await?,
        };
        Ok(begun.into_stream())
    }

    /// Asks one after the other.
    async fn in_turn(
        &self,
        legs: &[&Leg],
        asking: Asking<'_>,
        tried: &mut Tried,
    ) -> Result<Begun, ModelError> {
        for (place, leg) in legs.iter().enumerate() {
            let is_last = place + 1 == legs.len();
            if !is_worth(leg, tried) || matches!(leg.target.admits(), Admits::RestsUntil(_)) {
                continue;
            }
            match self.patiently(leg, asking, is_last, tried).await {
                Ok(begun) => return Ok(begun),
                Err(Next::None) => break,
                Err(Next::Any) => {}
                Err(Next::LargerContext) => {
                    let context = leg.context_tokens().unwrap_or(0);
                    tried.larger_than = tried.larger_than.max(Some(context));
                }
            }
            if tried.attempts >= self.options.attempts_max || Instant::now() >= asking.ends {
                break;
            }
        }
        Err(self.unanswered(asking.request, tried))
    }

    /// Asks one target, and once more where that may help.
    async fn patiently(
        &self,
        leg: &Leg,
        Asking { request, ends }: Asking<'_>,
        is_last: bool,
        tried: &mut Tried,
    ) -> Result<Begun, Next> {
        let mut has_repeated = false;
        loop {
            tried.attempts += 1;
            let error = match attempt(self, leg, request.clone(), ends).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            let Consequence { again, next, .. } = Consequence::of(&error);
            tried.last = Some(error);
            let is_learnt = matches!(again, Again::Without { .. });
            let wait = match again {
                Again::No => return Err(next),
                Again::Once { after } => after,
                Again::IfLast { after } if is_last => after,
                Again::IfLast { .. } => return Err(next),
                Again::Without { field } => {
                    let Source::Upstream(chat) = &leg.target.source else { return Err(next) };
                    chat.leave_out(&field);
                    Duration::ZERO
                }
            };
            // Who learnt what the server does not take asks something else, and not the same again.
            let may_repeat = !has_repeated
                && tried.attempts < self.options.attempts_max
                && Instant::now() + wait < ends
                && (is_learnt || candidates::retry(leg));
            if !may_repeat {
                return Err(next);
            }
            has_repeated = true;
            sleep(wait.mul_f64(1.0 + 0.2 * fastrand::f64())).await;
        }
    }

    /// Asks the first, and the next too when it has been silent for a while: whoever really answers first
    /// is heard, and the other is let go.
    async fn hedged(
        &self,
        legs: &[&Leg],
        asking: Asking<'_>,
        after: Duration,
    ) -> Result<Begun, ModelError> {
        let mut waiting = legs.iter();
        let mut asked = FuturesUnordered::new();
        let mut tried = Tried::default();
        let ask = |leg: &Leg| {
            let leg = leg.clone();
            async move {
                let mut tried = Tried::default();
                let answered = self.in_turn(&[&leg], asking, &mut tried).await;
                (answered, tried)
            }
        };
        asked.extend(waiting.next().map(|leg| ask(leg)));
        let mut hedge_at = Instant::now() + after;
        loop {
            let answered = tokio::select! {
                answered = asked.next() => answered,
                () = sleep_until(hedge_at), if waiting.len() > 0 => {
                    asked.extend(waiting.next().map(|leg| ask(leg)));
                    hedge_at += after;
                    continue;
                }
            };
            match answered {
                Some((Ok(begun), _)) => return Ok(begun),
                Some((Err(_), of_one)) => {
                    let next = of_one.last.as_ref().map(|error| Consequence::of(error).next);
                    tried.attempts += of_one.attempts;
                    tried.last = of_one.last.or(tried.last);
                    if next == Some(Next::None) {
                        return Err(self.unanswered(asking.request, &mut tried));
                    }
                    asked.extend(waiting.next().map(|leg| ask(leg)));
                }
                None => return Err(self.unanswered(asking.request, &mut tried)),
            }
        }
    }

    /// All have failed. What was the request's own fault is handed on as it is.
    fn unanswered(&self, request: &ChatRequest, tried: &mut Tried) -> ModelError {
        let alias = self.options.name.clone();
        let Some(last) = tried.last.take() else {
            return ModelError::Resting { alias, retry_after: self.rest().unwrap_or_default() };
        };
        let is_clients = Consequence::of(&last).next == Next::None;
        let is_later = matches!(
            last,
            ModelError::Loading { .. } | ModelError::NoRoom { .. } | ModelError::Busy { .. }
        );
        if is_clients || is_later {
            return last;
        }
        let attempts = request.trace.now().failed;
        ModelError::Unanswered { alias, attempts, last: Box::new(last), retry_after: self.rest() }
    }

    /// Until the first of the targets may be asked again; none: one may be asked now.
    fn rest(&self) -> Option<Duration> {
        self.legs.iter().map(|leg| leg.target.rests_for()).min().flatten()
    }

    /// The same, when at least one target does not rest, or will not for long.
    async fn awake<'a>(
        &self,
        legs: Vec<&'a Leg>,
        ends: Instant,
    ) -> Result<Vec<&'a Leg>, ModelError> {
        let rests = legs.iter().map(|leg| leg.target.rests_for()).min().flatten();
        match rests {
            None => Ok(legs),
            Some(left) if left <= self.options.patience && Instant::now() + left < ends => {
                sleep(left).await;
                Ok(legs)
            }
            Some(retry_after) => {
                Err(ModelError::Resting { alias: self.options.name.clone(), retry_after })
            }
        }
    }

    async fn vectors(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        let ends = Instant::now() + self.total();
        let legs = self.ordered(&ChatRequest::default(), self.embedders()?);
        let legs = self.awake(legs, ends).await?;
        let mut last = None;
        for leg in legs {
            let model = leg.target.model();
            if matches!(leg.target.admits(), Admits::RestsUntil(_)) {
                continue;
            }
            let asked = Instant::now();
            request.trace.asking(&leg.target.name);
            let made = timeout_at(ends, model.embed(request.clone())).await;
            match made.unwrap_or_else(|_| Err(out_of_time(&leg.target.name, self.total()))) {
                Ok(made) => {
                    leg.target.answered();
                    request.trace.answers(&leg.target.name, asked.elapsed());
                    return Ok(made);
                }
                Err(error) => {
                    leg.target.failed(&error, self.options.rest);
                    request.trace.failed(&leg.target.name, &error, asked.elapsed());
                    let next = Consequence::of(&error).next;
                    last = Some(error);
                    if next == Next::None {
                        break;
                    }
                }
            }
        }
        let asked = ChatRequest { trace: request.trace, ..ChatRequest::default() };
        Err(self.unanswered(&asked, &mut Tried { last, ..Tried::default() }))
    }
}

fn is_worth(leg: &Leg, tried: &Tried) -> bool {
    match (tried.larger_than, leg.context_tokens()) {
        (Some(least), Some(context)) => context > least,
        (Some(_), None) | (None, _) => true,
    }
}

/// What an alias can do is what any of its targets can.
fn card(legs: &[Leg]) -> ChatCard {
    let mut card = ChatCard::default();
    for leg in legs {
        let model = leg.target.model();
        let its = model.card();
        let can =
            |name: &str| leg.capabilities.as_ref().is_none_or(|can| can.iter().any(|c| c == name));
        card.context_tokens = card.context_tokens.max(leg.context_tokens().unwrap_or(0));
        card.trained_context_tokens = card.context_tokens;
        card.calls_tools |= its.calls_tools && can("tools");
        card.sees |= its.sees && can("images");
        card.thinks |= its.thinks;
        card.fills_in |= its.fills_in;
        card.takes_unknown |= its.takes_unknown;
        card.template =
            card.template.take().or_else(|| its.template.as_ref().map(|_| String::new()));
        if card.architecture.is_empty() {
            card.architecture.clone_from(&its.architecture);
        }
    }
    card
}

impl ChatModel for Route {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    /// As the best of its targets is.
    fn state(&self) -> ModelState {
        let states = || self.legs.iter().map(|leg| leg.target.state());
        let rank = |state: &ModelState| match state {
            ModelState::Ready => 0,
            ModelState::Loading { .. } => 1,
            ModelState::Cold => 2,
            ModelState::Down { .. } => 3,
        };
        let down = || ModelState::Down { reason: "it has no targets".to_owned() };
        states().min_by_key(rank).unwrap_or_else(down)
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        debug_assert!(matches!(request.reading, Reading::Streamed | Reading::Whole));
        self.answer(request).boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        self.vectors(request).boxed()
    }
}
