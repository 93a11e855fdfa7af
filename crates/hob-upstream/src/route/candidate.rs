//! A target as one alias uses it: with the alias' parameters, limits and time limits.
//! Several aliases may use the same target. Its failures are stored in the target.

use std::fmt;
use std::sync::Arc;

use hob_core::routing::TargetFacts;
use hob_core::{Admission, ChatRequest, ModelError, ModelState, Permit, Task};
use hob_wire::Parameters;

use crate::options::{AliasOptions, AttemptTimeouts, TargetOptions};
use crate::target::Target;

pub(crate) struct Candidate<T: Task> {
    pub(crate) target: Arc<Target>,
    pub(crate) model: Arc<T::Model>,
    /// For models of this hob; other servers have slots.
    admission: Option<Admission<T::Work>>,
    /// The alias' first, the target's own last.
    parameters: Vec<Parameters>,
    context_tokens: Option<u32>,
    capabilities: Option<Vec<String>>,
    pub(crate) weight: f64,
    pub(crate) timeouts: AttemptTimeouts,
}

impl<T: Task> fmt::Debug for Candidate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("target", &self.target.name).finish_non_exhaustive()
    }
}

impl<T: Task> Candidate<T> {
    /// A target with its model, and the admission of a model of this hob.
    pub(super) fn with_model(
        target: Arc<Target>,
        (model, admission): (Arc<T::Model>, Option<Admission<T::Work>>),
        options: &TargetOptions,
        timeouts: AttemptTimeouts,
    ) -> Candidate<T> {
        let own = Some(options.parameters.clone()).filter(|own| !own.is_empty());
        Candidate {
            target,
            model,
            admission,
            parameters: own.into_iter().collect(),
            context_tokens: options.context_tokens,
            capabilities: options.capabilities.clone(),
            weight: options.weight,
            timeouts,
        }
    }

    /// The same target, with the settings of this alias.
    #[must_use]
    pub(crate) fn under(mut self, alias: &AliasOptions) -> Candidate<T> {
        if !alias.parameters.is_empty() {
            self.parameters.insert(0, alias.parameters.clone());
        }
        self.timeouts = alias.timeouts.or(self.timeouts);
        self
    }

    /// The same target, for an alias that leads to this one's alias.
    #[must_use]
    pub(crate) fn within(mut self, options: &TargetOptions) -> Candidate<T> {
        self.parameters.insert(0, options.parameters.clone());
        self.context_tokens = options.context_tokens.or(self.context_tokens);
        self.capabilities = options.capabilities.clone().or(self.capabilities);
        self
    }

    pub(crate) fn context_tokens(&self) -> Option<u32> {
        self.context_tokens.or_else(|| self.target.context_tokens())
    }

    /// Whether the configuration says that it can do this.
    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.capabilities.as_ref().is_none_or(|can| can.iter().any(|one| one == name))
    }

    pub(super) fn apply_parameters(&self, request: &mut ChatRequest) {
        Parameters::apply(&self.parameters, request);
    }

    /// Admits a request with this much work to a local model.
    ///
    /// # Errors
    /// [`ModelError::Busy`]
    pub(super) fn admit(&self, work: T::Work) -> Result<Option<Permit<T::Work>>, ModelError> {
        let permit = self.admission.as_ref().map(|admission| admission.admit(work)).transpose();
        permit.map_err(|busy| ModelError::Busy { retry_after: busy.retry_after })
    }

    /// Whether other requests are ahead of one that was just admitted, in a model that computes its requests in turn.
    pub(super) fn has_line(&self) -> bool {
        let is_busy = self.admission.as_ref().is_some_and(|admission| admission.in_flight() > 1);
        T::STARTS_IN_TURN && is_busy
    }

    /// Whether the model is in memory, and the circuit of its target is closed.
    pub(super) fn is_warm(&self) -> bool {
        self.target.state() == ModelState::Ready && self.target.open_for().is_none()
    }

    pub(super) fn facts(&self) -> TargetFacts {
        TargetFacts {
            is_warm: self.target.state() == ModelState::Ready,
            load: self.target.load(),
            failed_recently: self.target.failed_recently(),
            weight: self.weight,
        }
    }
}
