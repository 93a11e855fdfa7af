//! All servers and aliases of one configuration, and every name that leads to them.
//! Made anew when the configuration changes; what stayed the same keeps its connections and its memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hob_core::routing::{ListedModel, RouteView, Switchboard, TargetStanding, UpstreamView};
use hob_core::{Admission, ChatModel, ChatTarget, SpeechTarget, TranscriptTarget, nearest};

use crate::chat::UpstreamChat;
use crate::client::{Upstream, UpstreamError};
use crate::options::{AliasOptions, GatewayOptions, TargetOptions};
use crate::route::{Leg, Route};
use crate::target::{Source, Target};

pub use crate::target::Local;

/// Requests of one alias at once; its targets have limits of their own.
const REQUESTS_MAX: usize = 1024;
/// `upstream/model` names that were asked for and are remembered.
const DIRECT_MAX: usize = 1024;

/// Everything that lives elsewhere, and the aliases.
#[derive(Debug, Default)]
pub struct Gateway {
    upstreams: BTreeMap<String, Arc<Upstream>>,
    targets: BTreeMap<String, Arc<Target>>,
    routes: BTreeMap<String, Arc<Route>>,
    /// Models that were asked for by their server's name and their own.
    direct: Mutex<BTreeMap<String, Arc<ChatTarget>>>,
}

/// A configuration that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error("alias '{alias}' leads to '{target}', which nobody is called{}", meant(near))]
    UnknownTarget { alias: String, target: String, near: Vec<String> },
    #[error("alias '{}' leads back to itself: {}", names[0], names.join(" → "))]
    Cycle { names: Vec<String> },
    #[error("alias '{alias}' has no targets")]
    NoTargets { alias: String },
    #[error("'{name}' is the name of a model here, and cannot be an alias too")]
    NameTaken { name: String },
}

fn meant(near: &[String]) -> String {
    if near.is_empty() {
        "; a model of another server is called UPSTREAM/MODEL".to_owned()
    } else {
        format!("; did you mean {}?", near.join(", "))
    }
}

impl Gateway {
    /// What `previous` had of the same servers is kept: connections, health, lists.
    ///
    /// # Errors
    /// [`GatewayError`]; nothing of it is in force then.
    pub fn new(
        options: GatewayOptions,
        locals: Vec<Local>,
        previous: Option<&Gateway>,
    ) -> Result<Gateway, GatewayError> {
        let mut building = Building { previous, ..Building::default() };
        for upstream in options.upstreams {
            building.upstream(upstream)?;
        }
        for local in locals {
            building.locals.insert(local.name.clone(), local);
        }
        for alias in options.aliases {
            if building.locals.contains_key(&alias.name) {
                return Err(GatewayError::NameTaken { name: alias.name });
            }
            building.aliases.insert(alias.name.clone(), alias);
        }
        let names: Vec<String> = building.aliases.keys().cloned().collect();
        for name in names {
            building.route(&name, &mut Vec::new())?;
        }
        let Building { upstreams, targets, routes, .. } = building;
        Ok(Gateway { upstreams, targets, routes, direct: Mutex::default() })
    }

    /// A target for each alias, for the roster.
    pub fn aliases(&self) -> Vec<ChatTarget> {
        let target = |route: &Arc<Route>| chat_target(route.name(), Arc::clone(route) as _);
        self.routes.values().map(target).collect()
    }

    /// Keeps the servers' lists fresh, for as long as it is polled.
    pub async fn watch(&self) -> Infallible {
        let watched: FuturesUnordered<_> =
            self.upstreams.values().map(|upstream| upstream.watch()).collect();
        watched.for_each(|never| async move { match never {} }).await;
        std::future::pending().await
    }

    /// Looks at every server's list now, all at once.
    pub async fn look(&self) {
        let looks: FuturesUnordered<_> =
            self.upstreams.values().map(|upstream| upstream.look()).collect();
        looks.for_each(|()| async {}).await;
    }

    pub fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.get(name)
    }

    /// A model by its server's name and its own; made when it is first asked for.
    fn direct(&self, name: &str) -> Option<Arc<ChatTarget>> {
        let mut known = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = known.get(name) {
            return Some(Arc::clone(target));
        }
        let (upstream, model) = split(name, &self.upstreams)?;
        let target = self.targets.get(name).cloned();
        let target = target.unwrap_or_else(|| upstream_target(name, upstream, model));
        let leg = Leg::new(target, &TargetOptions::plain(name), upstream.clocks);
        let route = Route::new(AliasOptions::plain(name), vec![leg]);
        let target = Arc::new(chat_target(name, Arc::new(route)));
        // Names come from outside: they are not remembered without end.
        if known.len() >= DIRECT_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), Arc::clone(&target));
        Some(target)
    }
}

fn chat_target(name: &str, model: Arc<dyn ChatModel>) -> ChatTarget {
    let admission = Admission::new(REQUESTS_MAX, 0.0);
    ChatTarget { name: name.to_owned(), model, residence: None, admission }
}

fn upstream_target(name: &str, upstream: &Arc<Upstream>, model: &str) -> Arc<Target> {
    let chat = UpstreamChat::new(Arc::clone(upstream), model);
    Arc::new(Target::new(name.to_owned(), Source::Upstream(chat)))
}

/// The server and the model of `upstream/model`; models may have slashes of their own.
fn split<'a, 'n>(
    name: &'n str,
    upstreams: &'a BTreeMap<String, Arc<Upstream>>,
) -> Option<(&'a Arc<Upstream>, &'n str)> {
    let (upstream, model) = name.split_once('/')?;
    (!model.is_empty()).then_some((upstreams.get(upstream)?, model))
}

/// A gateway that is being put together.
#[derive(Default)]
struct Building<'a> {
    previous: Option<&'a Gateway>,
    upstreams: BTreeMap<String, Arc<Upstream>>,
    locals: BTreeMap<String, Local>,
    aliases: BTreeMap<String, AliasOptions>,
    targets: BTreeMap<String, Arc<Target>>,
    routes: BTreeMap<String, Arc<Route>>,
}

impl Building<'_> {
    fn upstream(&mut self, options: crate::UpstreamOptions) -> Result<(), GatewayError> {
        let known = self.previous.and_then(|previous| previous.upstreams.get(&options.name));
        let kept = known.filter(|upstream| upstream.options == options).map(Arc::clone);
        let upstream = match kept {
            Some(upstream) => upstream,
            None => Arc::new(Upstream::new(options)?),
        };
        self.upstreams.insert(upstream.name().to_owned(), upstream);
        Ok(())
    }

    /// `way` are the aliases that led here.
    fn route(&mut self, name: &str, way: &mut Vec<String>) -> Result<Arc<Route>, GatewayError> {
        if let Some(route) = self.routes.get(name) {
            return Ok(Arc::clone(route));
        }
        let is_cycle = way.iter().any(|known| known == name);
        way.push(name.to_owned());
        if is_cycle {
            return Err(GatewayError::Cycle { names: way.clone() });
        }
        let Some(options) = self.aliases.get(name).cloned() else {
            return Err(GatewayError::NoTargets { alias: name.to_owned() });
        };
        let mut legs = Vec::new();
        for target in &options.targets {
            legs.extend(self.legs(name, target, way)?);
        }
        if legs.is_empty() {
            return Err(GatewayError::NoTargets { alias: name.to_owned() });
        }
        way.pop();
        let route = Arc::new(Route::new(options, legs));
        self.routes.insert(name.to_owned(), Arc::clone(&route));
        Ok(route)
    }

    /// An alias' target that is an alias stands for all of its targets.
    fn legs(
        &mut self,
        alias: &str,
        options: &TargetOptions,
        way: &mut Vec<String>,
    ) -> Result<Vec<Leg>, GatewayError> {
        if self.aliases.contains_key(&options.name) {
            let route = self.route(&options.name, way)?;
            return Ok(route.legs().iter().map(|leg| leg.within(options)).collect());
        }
        let (target, clocks) = self.target(alias, &options.name)?;
        Ok(vec![Leg::new(target, options, clocks)])
    }

    fn target(
        &mut self,
        alias: &str,
        name: &str,
    ) -> Result<(Arc<Target>, crate::Clocks), GatewayError> {
        let near_clocks = crate::Clocks::defaults(true);
        if let Some(local) = self.locals.get(name).cloned() {
            let make = || Arc::new(Target::new(name.to_owned(), Source::Local(local)));
            return Ok((self.kept(name, make), near_clocks));
        }
        let Some((upstream, model)) = split(name, &self.upstreams) else {
            return Err(self.unknown(alias, name));
        };
        let (upstream, model) = (Arc::clone(upstream), model.to_owned());
        let clocks = upstream.clocks;
        Ok((self.kept(name, || upstream_target(name, &upstream, &model)), clocks))
    }

    /// One target for all aliases, with what was remembered of it before.
    fn kept(&mut self, name: &str, make: impl FnOnce() -> Arc<Target>) -> Arc<Target> {
        if let Some(target) = self.targets.get(name) {
            return Arc::clone(target);
        }
        let known = self.previous.and_then(|previous| previous.targets.get(name));
        let same = known.filter(|target| self.is_same(target)).map(Arc::clone);
        let target = same.unwrap_or_else(make);
        self.targets.insert(name.to_owned(), Arc::clone(&target));
        target
    }

    fn is_same(&self, target: &Target) -> bool {
        match &target.source {
            Source::Upstream(chat) => {
                let now = self.upstreams.get(chat.upstream.name());
                now.is_some_and(|now| Arc::ptr_eq(now, &chat.upstream))
            }
            Source::Local(local) => {
                let now = self.locals.get(&local.name);
                now.is_some_and(|now| Arc::ptr_eq(&now.model, &local.model))
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

impl Switchboard for Gateway {
    fn find_chat(&self, name: &str) -> Option<Arc<ChatTarget>> {
        self.direct(name)
    }

    fn find_speech(&self, _name: &str) -> Option<Arc<SpeechTarget>> {
        None
    }

    fn find_transcript(&self, _name: &str) -> Option<Arc<TranscriptTarget>> {
        None
    }

    fn listed(&self) -> Vec<ListedModel> {
        let listed = self.upstreams.values().filter(|upstream| upstream.options.is_listed);
        listed.flat_map(|upstream| upstream.listed()).collect()
    }

    fn route(&self, alias: &str) -> Option<RouteView> {
        self.routes.get(alias).map(|route| route.view())
    }

    fn upstreams(&self) -> Vec<UpstreamView> {
        let view = |upstream: &Arc<Upstream>| {
            let of_it = self.targets.values().filter(|target| match &target.source {
                Source::Upstream(chat) => Arc::ptr_eq(&chat.upstream, upstream),
                Source::Local(_) => false,
            });
            let views = of_it.map(|target| target.view());
            let troubled = views.filter(|view| {
                view.standing != TargetStanding::StandsBy
                    || view.last_failure.is_some()
                    || view.thinks_anyway
            });
            upstream.view(troubled.collect())
        };
        self.upstreams.values().map(view).collect()
    }
}
