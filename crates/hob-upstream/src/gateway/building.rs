//! A gateway that is being put together: what each name leads to, and of which kind it is.
//! Whatever cannot be followed is said before anything of it is in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_core::nearest;
use hob_core::routing::Pick;

use super::{Gateway, GatewayError};
use crate::client::Upstream;
use crate::kind::{AnyLocal, Kind, Locals, OfKind};
use crate::options::{AliasOptions, Clocks, GatewayOptions, UpstreamOptions};
use crate::route::{Alias, Leg};
use crate::served::Served;
use crate::target::{Source, Target};

type Upstreams = BTreeMap<String, Arc<Upstream>>;
type Targets = BTreeMap<(Kind, String), Arc<Target>>;

pub(super) struct Building<'a> {
    previous: Option<&'a Gateway>,
    upstreams: Upstreams,
    locals: BTreeMap<String, AnyLocal>,
    aliases: BTreeMap<String, AliasOptions>,
    targets: Targets,
    /// Of models of our own.
    clocks: Clocks,
    /// Targets of the aliases that were looked at.
    seen: usize,
}

/// Aliases that one alias leads through.
const DEPTH_MAX: usize = 16;
/// Targets of one alias, and of all of them, those of the aliases within them included.
const TARGETS_MAX: usize = 256;
const TARGETS_IN_ALL_MAX: usize = 16_384;

/// The way to an alias, and the targets that were met on it.
#[derive(Default)]
struct Way {
    aliases: Vec<String>,
    targets: usize,
}

impl<'a> Building<'a> {
    pub(super) fn new(
        options: GatewayOptions,
        locals: Locals,
        previous: Option<&'a Gateway>,
    ) -> Result<Building<'a>, GatewayError> {
        let Locals { chat, speech, transcript } = locals;
        let locals = chat.into_iter().map(AnyLocal::Chat);
        let locals = locals.chain(speech.into_iter().map(AnyLocal::Speech));
        let locals = locals.chain(transcript.into_iter().map(AnyLocal::Transcript));
        let mut building = Building {
            previous,
            upstreams: BTreeMap::new(),
            locals: locals.map(|local| (local.name().to_owned(), local)).collect(),
            aliases: BTreeMap::new(),
            targets: BTreeMap::new(),
            clocks: options.clocks.or(Clocks::defaults(true)),
            seen: 0,
        };
        for upstream in options.upstreams {
            building.upstream(upstream)?;
        }
        for alias in options.aliases {
            if building.locals.contains_key(&alias.name) {
                return Err(GatewayError::NameTaken { name: alias.name });
            }
            building.aliases.insert(alias.name.clone(), alias);
        }
        Ok(building)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.aliases.keys().cloned().collect()
    }

    pub(super) fn built(self) -> (Upstreams, Targets) {
        (self.upstreams, self.targets)
    }

    /// Of which kind an alias is, as its models of our own say it; none: only others' servers do.
    pub(super) fn kind(&mut self, alias: &str) -> Result<Option<Kind>, GatewayError> {
        let mut kind = None;
        let mut way = Way::default();
        self.look_at(alias, &mut way, &mut |local| match kind {
            Some(first) if first != local => {
                let (alias, second) = (alias.to_owned(), local);
                Err(GatewayError::MixedKinds { alias, first, second })
            }
            _ => {
                kind = Some(local);
                Ok(())
            }
        })?;
        self.seen += way.targets;
        if self.seen > TARGETS_IN_ALL_MAX {
            return Err(GatewayError::TooManyInAll { targets_max: TARGETS_IN_ALL_MAX });
        }
        Ok(kind)
    }

    /// Follows an alias to its targets, of which each must be somebody. `way` are the aliases that led
    /// here.
    fn look_at(
        &self,
        name: &str,
        way: &mut Way,
        local: &mut impl FnMut(Kind) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let is_cycle = way.aliases.iter().any(|known| known == name);
        way.aliases.push(name.to_owned());
        if is_cycle {
            return Err(GatewayError::Cycle { names: way.aliases.clone() });
        }
        let alias = || way.aliases[0].clone();
        if way.aliases.len() > DEPTH_MAX {
            return Err(GatewayError::TooDeep { alias: alias(), depth_max: DEPTH_MAX });
        }
        let targets = self.aliases.get(name).map(|alias| &alias.targets[..]).unwrap_or_default();
        if targets.is_empty() {
            return Err(GatewayError::NoTargets { alias: name.to_owned() });
        }
        for target in targets {
            way.targets += 1;
            if way.targets > TARGETS_MAX {
                let alias = way.aliases[0].clone();
                return Err(GatewayError::TooManyTargets { alias, targets_max: TARGETS_MAX });
            }
            if self.aliases.contains_key(&target.name) {
                self.look_at(&target.name, way, local)?;
            } else if let Some(known) = self.locals.get(&target.name) {
                local(known.kind())?;
            } else if split(&target.name, &self.upstreams).is_none() {
                return Err(self.unknown(name, &target.name));
            }
        }
        way.aliases.pop();
        Ok(())
    }

    /// An alias as models of one kind.
    pub(super) fn alias<M: OfKind + ?Sized>(
        &mut self,
        name: &str,
    ) -> Result<Alias<M>, GatewayError> {
        let (options, legs) = self.legs(name)?;
        Ok(Alias::new(options, legs))
    }

    /// An alias' target that is an alias stands for all of its targets. [`Building::kind`] has seen that
    /// there is no way in a circle.
    pub(super) fn legs<M: OfKind + ?Sized>(
        &mut self,
        name: &str,
    ) -> Result<(AliasOptions, Vec<Leg<M>>), GatewayError> {
        let no_targets = || GatewayError::NoTargets { alias: name.to_owned() };
        let alias = self.aliases.get(name).cloned().ok_or_else(no_targets)?;
        let mut legs = Vec::new();
        for options in &alias.targets {
            if self.aliases.contains_key(&options.name) {
                let (alias, mut inner) = self.legs::<M>(&options.name)?;
                weigh(&mut inner, alias.pick, options.weight);
                legs.extend(inner.into_iter().map(|leg| leg.within(options)));
            } else {
                let (target, clocks) = self.target(name, &options.name, M::KIND)?;
                legs.extend(Leg::new(target, options, clocks));
            }
        }
        let legs: Vec<_> = legs.into_iter().map(|leg| leg.under(&alias)).collect();
        if legs.is_empty() { Err(no_targets()) } else { Ok((alias, legs)) }
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
    ) -> Result<(Arc<Target>, Clocks), GatewayError> {
        if let Some(local) = self.locals.get(name).cloned() {
            let make = || Arc::new(Target::new(name.to_owned(), Source::Local(local)));
            return Ok((self.kept(name, kind, make), self.clocks));
        }
        let Some((upstream, model)) = split(name, &self.upstreams) else {
            return Err(self.unknown(alias, name));
        };
        let upstream = Arc::clone(upstream);
        let target = self.kept(name, kind, || upstream_target(name, &upstream, model));
        Ok((target, upstream.clocks))
    }

    /// One target for all aliases, with what was remembered of it before.
    fn kept(&mut self, name: &str, kind: Kind, make: impl FnOnce() -> Arc<Target>) -> Arc<Target> {
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
            Source::Upstream(served) => {
                let now = self.upstreams.get(served.upstream.name());
                now.is_some_and(|now| Arc::ptr_eq(now, &served.upstream))
            }
            Source::Local(local) => {
                self.locals.get(local.name()).is_some_and(|now| now.is_same(local))
            }
        }
    }

    fn unknown(&self, alias: &str, target: &str) -> GatewayError {
        let known = self.aliases.keys().chain(self.locals.keys()).map(String::as_str);
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

/// The targets of an alias within another one weigh together what that one says. Where it draws among
/// them, each has its share; else whoever would be asked first has it all.
fn weigh<M: ?Sized>(legs: &mut [Leg<M>], pick: Pick, weight: f64) {
    let all: f64 = legs.iter().map(|leg| leg.weight).sum();
    for (place, leg) in legs.iter_mut().enumerate() {
        let share = match pick {
            Pick::Weighted if all > 0.0 => leg.weight / all,
            Pick::Weighted | Pick::Order | Pick::Warm | Pick::LeastWait => {
                f64::from(u8::from(place == 0))
            }
        };
        leg.weight = weight * share;
    }
}

pub(super) fn upstream_target(name: &str, upstream: &Arc<Upstream>, model: &str) -> Arc<Target> {
    let served = Served::new(Arc::clone(upstream), model);
    Arc::new(Target::new(name.to_owned(), Source::Upstream(Arc::new(served))))
}

/// The server and the model of `upstream/model`; models may have slashes of their own.
pub(super) fn split<'a, 'n>(
    name: &'n str,
    upstreams: &'a Upstreams,
) -> Option<(&'a Arc<Upstream>, &'n str)> {
    let (upstream, model) = name.split_once('/')?;
    (!model.is_empty()).then_some((upstreams.get(upstream)?, model))
}
