//! What an alias must know about a kind of work: how answers begin and end, and how long they may be silent.
//! The other files of this folder are generic over this trait.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Registered, Registry};

use super::Route;
use super::candidate::Candidate;
use crate::options::{AttemptTimeouts, TargetOptions};
use crate::target::{Source, Target};
use crate::upstream_model::UpstreamModel;

/// What an event means for the beginning and the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventRole {
    /// Neither begins nor ends the answer.
    Other,
    Thinking,
    Content,
    Last,
}

/// Looks at each event of an answer on its way.
pub(crate) type Observer<E> = Box<dyn FnMut(&E) + Send>;

pub(crate) trait RouteTask: Registered {
    /// What an alias says about itself, from its candidates. Computed once.
    type Card: Send + Sync + 'static;

    /// What the route needs of a request after it was sent. A copy of the whole request would cost as much as its prompt
    /// is long.
    type Outline: Send + 'static;

    fn card(candidates: &[Arc<Candidate<Self>>]) -> Self::Card;

    /// The model of another server.
    fn upstream_model(model: &Arc<UpstreamModel>) -> Arc<Self::Model>;

    /// The alias as a model.
    fn alias_model(route: Arc<Route<Self>>) -> Arc<Self::Model>;

    /// How much work an answer will probably take.
    fn expected_work(request: &Self::Request) -> Self::Work;

    /// Time in which the server works before its first content, such as reading a long prompt. The time limit for the
    /// first token does not count it.
    fn silent_work(request: &Self::Request, target: &Target) -> Duration;

    fn outline(request: &Self::Request) -> Self::Outline;

    /// Whether the client reads the answer as it comes. An answer that it reads whole can be made again.
    fn is_streamed(_outline: &Self::Outline) -> bool {
        true
    }

    /// What the event means for the beginning and the end of the answer.
    fn role(event: &Self::Event) -> EventRole;

    /// Whether an answer without content that ended with `last` is a valid answer.
    fn may_be_empty(_outline: &Self::Outline, _target: &Target, _last: &Self::Event) -> bool {
        true
    }

    /// Learns from the answer to this request, which is sent now.
    fn observer(_outline: &Self::Outline, _target: &Arc<Target>) -> Option<Observer<Self::Event>> {
        None
    }
}

impl<T: RouteTask> Candidate<T> {
    /// `None`: the target is of another kind.
    pub(crate) fn new(
        target: Arc<Target>,
        options: &TargetOptions,
        timeouts: AttemptTimeouts,
        locals: &Registry,
    ) -> Option<Candidate<T>> {
        let model = match &target.source {
            Source::Upstream(model) => (T::upstream_model(model), None),
            Source::Local(local) => {
                let local = T::models(locals).get(local.name())?;
                (Arc::clone(&local.model), Some(local.admission.clone()))
            }
        };
        Some(Candidate::with_model(target, model, options, timeouts))
    }
}
