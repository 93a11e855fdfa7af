//! A target as one alias asks it: with the alias' parameters, limits and clocks.
//! The same target may be another leg elsewhere; what it did is remembered in the target.

use std::fmt;
use std::sync::Arc;

use hob_core::routing::Standing;
use hob_core::{ChatRequest, ModelState};
use hob_wire::Parameters;

use crate::kind::OfKind;
use crate::options::{AliasOptions, Clocks, TargetOptions};
use crate::target::{Source, Target};

pub(crate) struct Leg<M: ?Sized> {
    pub(crate) target: Arc<Target>,
    pub(crate) model: Arc<M>,
    /// The alias' first, its own last.
    pub(crate) parameters: Vec<Parameters>,
    pub(crate) context_tokens: Option<u32>,
    pub(crate) capabilities: Option<Vec<String>>,
    pub(crate) weight: f64,
    pub(crate) clocks: Clocks,
}

impl<M: ?Sized> Clone for Leg<M> {
    fn clone(&self) -> Leg<M> {
        Leg {
            target: Arc::clone(&self.target),
            model: Arc::clone(&self.model),
            parameters: self.parameters.clone(),
            context_tokens: self.context_tokens,
            capabilities: self.capabilities.clone(),
            weight: self.weight,
            clocks: self.clocks,
        }
    }
}

impl<M: ?Sized> fmt::Debug for Leg<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leg").field("target", &self.target.name).finish_non_exhaustive()
    }
}

impl<M: OfKind + ?Sized> Leg<M> {
    /// None: the target is of another kind.
    pub(crate) fn new(
        target: Arc<Target>,
        options: &TargetOptions,
        clocks: Clocks,
    ) -> Option<Leg<M>> {
        let model = match &target.source {
            Source::Upstream(served) => M::of_upstream(served),
            Source::Local(local) => M::of_local(local)?,
        };
        let parameters = Some(options.parameters.clone()).filter(|own| !own.is_empty());
        Some(Leg {
            target,
            model,
            parameters: parameters.into_iter().collect(),
            context_tokens: options.context_tokens,
            capabilities: options.capabilities.clone(),
            weight: options.weight,
            clocks,
        })
    }
}

impl<M: ?Sized> Leg<M> {
    /// The same target, as this alias asks it.
    #[must_use]
    pub(crate) fn under(mut self, alias: &AliasOptions) -> Leg<M> {
        if !alias.parameters.is_empty() {
            self.parameters.insert(0, alias.parameters.clone());
        }
        self.clocks = alias.clocks.or(self.clocks);
        self
    }

    /// The same target for an alias that leads to this one's alias.
    #[must_use]
    pub(crate) fn within(mut self, options: &TargetOptions) -> Leg<M> {
        self.parameters.insert(0, options.parameters.clone());
        self.context_tokens = options.context_tokens.or(self.context_tokens);
        self.capabilities = options.capabilities.clone().or(self.capabilities);
        self
    }

    pub(crate) fn context_tokens(&self) -> Option<u32> {
        self.context_tokens.or_else(|| self.target.context_tokens())
    }

    pub(super) fn change(&self, request: &mut ChatRequest) {
        Parameters::apply(&self.parameters, request);
    }

    /// It is in memory, and may be asked.
    pub(super) fn is_warm(&self) -> bool {
        self.target.state() == ModelState::Ready && self.target.rests_for().is_none()
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            is_warm: self.target.state() == ModelState::Ready,
            load: self.target.load(),
            failed_lately: self.target.failed_lately(),
            weight: self.weight,
        }
    }
}
