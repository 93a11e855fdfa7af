//! Builds a gateway: follows each alias to its targets, and finds its kind.
//! Every error of a configuration is reported before any of it is used.

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_core::routing::Strategy;
use hob_core::{AnyModel, Kind, Registry, nearest};

use super::{Gateway, GatewayError};
use crate::client::Upstream;
use crate::options::{AliasOptions, AttemptTimeouts, GatewayOptions, UpstreamOptions};
use crate::route::{Candidate, Route, RouteTask};
use crate::target::{Source, Target};
use crate::upstream_model::UpstreamModel;

type Upstreams = BTreeMap<String, Arc<Upstream>>;
type Targets = BTreeMap<(Kind, String), Arc<Target>>;

pub(super) struct Builder<'a> {
    previous: Option<&'a Gateway>,
    upstreams: Upstreams,
    locals: &'a Registry,
    /// The local models by name.
    local: BTreeMap<String, Arc<dyn AnyModel>>,
    aliases: BTreeMap<String, AliasOptions>,
    targets: Targets,
    /// For local models.
    timeouts: AttemptTimeouts,
    /// Targets of the aliases that were followed.
    seen: usize,
}

/// Aliases that one alias leads through.
const DEPTH_MAX: usize = 16;
/// Targets of one alias, and of all of them, those of the aliases within them included.
const TARGETS_MAX: usize = 256;
const TARGETS_IN_ALL_MAX: usize = 16_384;

/// The aliases that lead to the current one, and the targets that were met.
#[derive(Default)]
struct Path {
    aliases: Vec<String>,
    targets: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        options: GatewayOptions,
        locals: &'a Registry,
        previous: Option<&'a Gateway>,
    ) -> Result<Builder<'a>, GatewayError> {
        let local = locals.all_shared().map(|model| (model.name().to_owned(), model));
        let mut builder = Builder {
            previous,
            upstreams: BTreeMap::new(),
            locals,
            local: local.collect(),
            aliases: BTreeMap::new(),
            targets: BTreeMap::new(),
            timeouts: options.timeouts.or(AttemptTimeouts::defaults(true)),
            seen: 0,
        };
        for upstream in options.upstreams {
            builder.upstream(upstream)?;
        }
        for alias in options.aliases {
            if builder.local.contains_key(&alias.name) {
                return Err(GatewayError::NameTaken { name: alias.name });
            }
            builder.aliases.insert(alias.name.clone(), alias);
        }
        Ok(builder)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.aliases.keys().cloned().collect()
    }

    pub(super) fn finish(self) -> (Upstreams, Targets) {
        (self.upstreams, self.targets)
    }

    /// The kind of an alias, from its local models; `None` if it has none.
    pub(super) fn kind(&mut self, alias: &str) -> Result<Option<Kind>, GatewayError> {
        let mut kind = None;
        let mut path = Path::default();
        self.follow(alias, &mut path, &mut |local| match kind {
            Some(first) if first != local => {
                let (alias, second) = (alias.to_owned(), local);
                Err(GatewayError::MixedKinds { alias, first, second })
            }
            _ => {
                kind = Some(local);
                Ok(())
            }
        })?;
        self.seen += path.targets;
        if self.seen > TARGETS_IN_ALL_MAX {
            return Err(GatewayError::TooManyInAll { targets_max: TARGETS_IN_ALL_MAX });
        }
        Ok(kind)
    }

    /// Follows an alias to its targets, each of which must exist.
    fn follow(
        &self,
        name: &str,
        path: &mut Path,
        local: &mut impl FnMut(Kind) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let is_cycle = path.aliases.iter().any(|known| known == name);
        path.aliases.push(name.to_owned());
        if is_cycle {
            return Err(GatewayError::Cycle { names: path.aliases.clone() });
        }
        let alias = || path.aliases[0].clone();
        if path.aliases.len() > DEPTH_MAX {
            return Err(GatewayError::TooDeep { alias: alias(), depth_max: DEPTH_MAX });
        }
        let targets = self.aliases.get(name).map(|alias| &alias.targets[..]).unwrap_or_default();
        if targets.is_empty() {
            return Err(GatewayError::NoTargets { alias: name.to_owned() });
        }
        for target in targets {
            path.targets += 1;
            if path.targets > TARGETS_MAX {
                let alias = path.aliases[0].clone();
                return Err(GatewayError::TooManyTargets { alias, targets_max: TARGETS_MAX });
            }
            if self.aliases.contains_key(&target.name) {
                self.follow(&target.name, path, local)?;
            } else if let Some(known) = self.local_model(&target.name) {
                local(known.kind())?;
            } else if split(&target.name, &self.upstreams).is_none() {
                return Err(self.unknown(name, &target.name));
            }
        }
        path.aliases.pop();
        Ok(())
    }

    /// An alias as a route of one kind.
    pub(super) fn route<T: RouteTask>(
        &mut self,
        name: &str,
    ) -> Result<Arc<Route<T>>, GatewayError> {
        let (options, candidates) = self.candidates(name)?;
        Ok(Route::new(options, candidates))
    }

    /// A target that is an alias stands for all of its own targets. [`Builder::kind`] has checked that no
    /// alias leads back to itself.
    fn candidates<T: RouteTask>(
        &mut self,
        name: &str,
    ) -> Result<(AliasOptions, Vec<Candidate<T>>), GatewayError> {
        let no_targets = || GatewayError::NoTargets { alias: name.to_owned() };
        let alias = self.aliases.get(name).cloned().ok_or_else(no_targets)?;
        let mut candidates = Vec::new();
        for options in &alias.targets {
            if self.aliases.contains_key(&options.name) {
                let (alias, mut inner) = self.candidates::<T>(&options.name)?;
                weigh(&mut inner, alias.strategy, options.weight);
                candidates.extend(inner.into_iter().map(|candidate| candidate.within(options)));
            } else {
                let (target, timeouts) = self.target(name, &options.name, T::KIND)?;
                candidates.extend(Candidate::new(target, options, timeouts, self.locals));
            }
        }
        let candidates: Vec<_> =
            candidates.into_iter().map(|candidate| candidate.under(&alias)).collect();
        if candidates.is_empty() { Err(no_targets()) } else { Ok((alias, candidates)) }
    }

    fn upstream(&mut self, options: UpstreamOptions) -> Result<(), GatewayError> {
        let known = self.previous.and_then(|previous| previous.upstreams.get(&options.name));
        let kept = known.filter(|upstream| upstream.options == options).map(Arc::clone);
        let upstream = match kept {
            Some(upstream) => upstream,
            None => Arc::new(Upstream::new(options)?),
        };
        self.upstreams.insert(upstream.name().to_owned(), upstream);
        Ok(())
    }

    fn target(
        &mut self,
        alias: &str,
        name: &str,
        kind: Kind,
    ) -> Result<(Arc<Target>, AttemptTimeouts), GatewayError> {
        if let Some(local) = self.local_model(name).cloned() {
            let name = local.name().to_owned();
            let make = || Arc::new(Target::new(&name, Source::Local(local)));
            return Ok((self.shared_target(&name, kind, make), self.timeouts));
        }
        let Some((upstream, model)) = split(name, &self.upstreams) else {
            return Err(self.unknown(alias, name));
        };
        let upstream = Arc::clone(upstream);
        let target = self.shared_target(name, kind, || upstream_target(name, &upstream, model));
        Ok((target, upstream.timeouts))
    }

    /// The local model that has this name, listed or not.
    fn local_model(&self, name: &str) -> Option<&Arc<dyn AnyModel>> {
        self.local.get(name).or_else(|| self.local.get(self.locals.listed_name(name)))
    }

    /// One target for all aliases, with its statistics from the previous gateway.
    fn shared_target(
        &mut self,
        name: &str,
        kind: Kind,
        make: impl FnOnce() -> Arc<Target>,
    ) -> Arc<Target> {
        let key = (kind, name.to_owned());
        if let Some(target) = self.targets.get(&key) {
            return Arc::clone(target);
        }
        let known = self.previous.and_then(|previous| previous.targets.get(&key));
        let same = known.filter(|target| self.is_same(target)).map(Arc::clone);
        let target = same.unwrap_or_else(make);
        self.targets.insert(key, Arc::clone(&target));
        target
    }

    fn is_same(&self, target: &Target) -> bool {
        match &target.source {
            Source::Upstream(model) => {
                let now = self.upstreams.get(model.upstream.name());
                now.is_some_and(|now| Arc::ptr_eq(now, &model.upstream))
            }
            Source::Local(model) => self
                .local
                .get(model.name())
                .is_some_and(|now| (now.kind(), now.address()) == (model.kind(), model.address())),
        }
    }

    fn unknown(&self, alias: &str, target: &str) -> GatewayError {
        let known = self.aliases.keys().chain(self.local.keys()).map(String::as_str);
        let near = match target.split_once('/') {
            // The server's name is wrong, the model's may be anything.
            Some((upstream, model)) => {
                let near = nearest(upstream, self.upstreams.keys().map(String::as_str), 1);
                near.into_iter().map(|near| format!("{near}/{model}")).collect()
            }
            None => nearest(target, known, 3),
        };
        let (alias, target) = (alias.to_owned(), target.to_owned());
        GatewayError::UnknownTarget { alias, target, near }
    }
}

/// Divides the weight of an inner alias among its targets: by their shares where it draws among them,
/// otherwise all of it to the first.
fn weigh<T: RouteTask>(candidates: &mut [Candidate<T>], strategy: Strategy, weight: f64) {
    let all: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let share = match strategy {
            Strategy::Weighted if all > 0.0 => candidate.weight / all,
            Strategy::Weighted | Strategy::Order | Strategy::Warm | Strategy::LeastWait => {
                f64::from(u8::from(place == 0))
            }
        };
        candidate.weight = weight * share;
    }
}

pub(super) fn upstream_target(name: &str, upstream: &Arc<Upstream>, model: &str) -> Arc<Target> {
    let model = UpstreamModel::new(Arc::clone(upstream), model);
    Arc::new(Target::new(name, Source::Upstream(Arc::new(model))))
}

/// The server and the model of `upstream/model`; models may have slashes of their own.
pub(super) fn split<'a, 'n>(
    name: &'n str,
    upstreams: &'a Upstreams,
) -> Option<(&'a Arc<Upstream>, &'n str)> {
    let (upstream, model) = name.split_once('/')?;
    (!model.is_empty()).then_some((upstreams.get(upstream)?, model))
}
