//! All servers and aliases of one configuration, and every name that leads to them.
//! A changed configuration gets a new gateway; unchanged servers keep their connections and statistics.

mod builder;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hob_core::routing::{ListedModel, RouteView, TargetStatus, UpstreamView};
use hob_core::{
    Admission, Chat, Kind, RegisteredModel, Registry, Resolve, Speech, Timeouts, Transcription,
    UpstreamResolver, locked,
};

use crate::client::{Upstream, UpstreamError};
use crate::options::{AliasOptions, AttemptTimeouts, GatewayOptions, TargetOptions};
use crate::route::{Candidate, Route, RouteTask};
use crate::target::{Source, Target};
use builder::{Builder, split, upstream_target};

/// Concurrent requests of one alias; its targets have limits of their own.
const REQUESTS_MAX: usize = 1024;
/// `upstream/model` names of one kind that are remembered. They come from outside, so there is a limit.
const DIRECT_NAMES_MAX: usize = 1024;

/// All other servers, and the aliases.
#[derive(Debug, Default)]
pub struct Gateway {
    upstreams: BTreeMap<String, Arc<Upstream>>,
    /// By kind, because a server may chat well and fail at speech.
    targets: BTreeMap<(Kind, String), Arc<Target>>,
    chat: Routes<Chat>,
    speech: Routes<Speech>,
    transcription: Routes<Transcription>,
    /// The kinds of aliases with a local model.
    kinds: BTreeMap<String, Kind>,
}

/// The aliases of one kind, and the models made for their names.
struct Routes<T: RouteTask> {
    routes: BTreeMap<String, Arc<Route<T>>>,
    models: Mutex<BTreeMap<String, FoundRoute<T>>>,
}

/// A route, and the model of its name.
type FoundRoute<T> = (Arc<Route<T>>, Arc<RegisteredModel<T>>);

impl<T: RouteTask> Default for Routes<T> {
    fn default() -> Routes<T> {
        Routes { routes: BTreeMap::new(), models: Mutex::default() }
    }
}

impl<T: RouteTask> fmt::Debug for Routes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.routes.fmt(f)
    }
}

/// A kind of work whose aliases a gateway holds.
trait Routed: RouteTask {
    fn routes(gateway: &Gateway) -> &Routes<Self>;
}

impl Routed for Chat {
    fn routes(gateway: &Gateway) -> &Routes<Chat> {
        &gateway.chat
    }
}

impl Routed for Speech {
    fn routes(gateway: &Gateway) -> &Routes<Speech> {
        &gateway.speech
    }
}

impl Routed for Transcription {
    fn routes(gateway: &Gateway) -> &Routes<Transcription> {
        &gateway.transcription
    }
}

/// A configuration that has an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error("alias '{alias}' leads to '{target}', which does not exist{}", meant(near))]
    UnknownTarget { alias: String, target: String, near: Vec<String> },
    #[error("alias '{}' leads back to itself: {}", names[0], names.join(" → "))]
    Cycle { names: Vec<String> },
    #[error("alias '{alias}' leads through more than {depth_max} aliases")]
    TooDeep { alias: String, depth_max: usize },
    #[error(
        "alias '{alias}' leads to more than {targets_max} targets, those of the aliases within it included"
    )]
    TooManyTargets { alias: String, targets_max: usize },
    #[error("all aliases together lead to more than {targets_max} targets")]
    TooManyInAll { targets_max: usize },
    #[error("alias '{alias}' has no targets")]
    NoTargets { alias: String },
    #[error("'{name}' is the name of a local model, and cannot be an alias too")]
    NameTaken { name: String },
    #[error("alias '{alias}' leads to a {} model and to a {} model (expected one kind)", first.name(), second.name())]
    MixedKinds { alias: String, first: Kind, second: Kind },
}

fn meant(near: &[String]) -> String {
    if near.is_empty() {
        "; a model of another server is called UPSTREAM/MODEL".to_owned()
    } else {
        format!("; did you mean {}?", near.join(", "))
    }
}

impl Gateway {
    /// Builds a gateway. Servers that `previous` has with the same settings are kept, with their
    /// connections, circuit breakers and lists.
    ///
    /// # Errors
    /// [`GatewayError`]: the configuration has an error, and nothing of it is used.
    pub fn new(
        options: GatewayOptions,
        locals: &Registry,
        previous: Option<&Gateway>,
    ) -> Result<Gateway, GatewayError> {
        let mut builder = Builder::new(options, locals, previous)?;
        let mut gateway = Gateway::default();
        for name in builder.names() {
            let kind = builder.kind(&name)?;
            gateway.kinds.extend(kind.map(|kind| (name.clone(), kind)));
            // An alias of other servers' models only may be of any kind.
            let may_be = |this| kind.is_none_or(|kind| kind == this);
            if may_be(Kind::Chat) {
                gateway.chat.routes.insert(name.clone(), builder.route(&name)?);
            }
            if may_be(Kind::Speech) {
                gateway.speech.routes.insert(name.clone(), builder.route(&name)?);
            }
            if may_be(Kind::Transcription) {
                gateway.transcription.routes.insert(name.clone(), builder.route(&name)?);
            }
        }
        (gateway.upstreams, gateway.targets) = builder.finish();
        Ok(gateway)
    }

    /// Adds the aliases to a registry. An alias whose kind is unknown is listed as a chat model, and found
    /// as every kind.
    pub fn add_aliases(&self, registry: &mut Registry) {
        let is_known = |name: &str| self.kinds.contains_key(name);
        for (name, route) in &self.chat.routes {
            registry.add(registered(name, route));
        }
        for (name, route) in self.speech.routes.iter().filter(|(name, _)| is_known(name)) {
            registry.add(registered(name, route));
        }
        for (name, route) in self.transcription.routes.iter().filter(|(name, _)| is_known(name)) {
            registry.add(registered(name, route));
        }
    }

    /// Refreshes the servers' lists, for as long as it is polled.
    pub async fn watch(&self) -> Infallible {
        let watched: FuturesUnordered<_> =
            self.upstreams.values().map(|upstream| upstream.watch()).collect();
        watched.for_each(|never| async move { match never {} }).await;
        std::future::pending().await
    }

    /// Refreshes every server's list now, all in parallel.
    pub async fn refresh_lists(&self) {
        let refreshed: FuturesUnordered<_> =
            self.upstreams.values().map(|upstream| upstream.refresh_list()).collect();
        refreshed.for_each(|()| async {}).await;
    }

    /// An alias, or `upstream/model`.
    fn find<T: Routed>(&self, name: &str) -> Option<FoundRoute<T>> {
        let Routes { routes, models } = T::routes(self);
        let mut models = locked(models);
        if let Some((route, model)) = models.get(name) {
            return Some((Arc::clone(route), Arc::clone(model)));
        }
        let route = routes.get(name).cloned().or_else(|| self.direct_route(name))?;
        let model = registered(name, &route);
        if models.len() >= DIRECT_NAMES_MAX {
            models.clear();
        }
        models.insert(name.to_owned(), (Arc::clone(&route), Arc::clone(&model)));
        Some((route, model))
    }

    fn view<T: Routed>(&self, name: &str) -> Option<RouteView> {
        let alias = T::routes(self).routes.get(name).cloned();
        alias.or_else(|| Some(self.find::<T>(name)?.0)).map(|route| route.view(0))
    }

    /// The targets of `upstream/model` names that no alias leads to.
    fn direct_targets<T: Routed>(&self) -> Vec<Arc<Target>> {
        let Routes { routes, models } = T::routes(self);
        let is_direct = |name: &String| {
            !routes.contains_key(name) && !self.targets.contains_key(&(T::KIND, name.clone()))
        };
        let models = locked(models);
        let direct = models.iter().filter(|(name, _)| is_direct(name));
        direct.flat_map(|(_, (route, _))| route.targets()).collect()
    }

    /// `upstream/model` as an alias of one target.
    fn direct_route<T: RouteTask>(&self, name: &str) -> Option<Arc<Route<T>>> {
        let (upstream, model) = split(name, &self.upstreams)?;
        let target = self.targets.get(&(T::KIND, name.to_owned())).cloned();
        let target = target.unwrap_or_else(|| upstream_target(name, upstream, model));
        let options = TargetOptions::plain(name);
        let candidate = Candidate::new(target, &options, upstream.timeouts, &Registry::default())?;
        // The other time limits are the target's.
        let timeouts =
            AttemptTimeouts { total: upstream.timeouts.total, ..AttemptTimeouts::default() };
        Some(Route::new(AliasOptions { timeouts, ..AliasOptions::plain(name) }, vec![candidate]))
    }
}

fn registered<T: RouteTask>(name: &str, route: &Arc<Route<T>>) -> Arc<RegisteredModel<T>> {
    let (model, admission) = (T::alias_model(Arc::clone(route)), Admission::new(REQUESTS_MAX, 0.0));
    let timeouts = Timeouts::ByModel;
    Arc::new(RegisteredModel { timeouts, ..RegisteredModel::new(name, model, admission) })
}

impl<T: Routed> Resolve<T> for Gateway {
    fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<T>>> {
        self.find::<T>(name).map(|(_, model)| model)
    }
}

impl UpstreamResolver for Gateway {
    fn listed(&self) -> Vec<ListedModel> {
        let listed = self.upstreams.values().filter(|upstream| upstream.options.is_listed);
        listed.flat_map(|upstream| upstream.listed()).collect()
    }

    fn route(&self, name: &str) -> Option<RouteView> {
        let speech = || self.view::<Speech>(name);
        self.view::<Chat>(name).or_else(speech).or_else(|| self.view::<Transcription>(name))
    }

    fn upstreams(&self) -> Vec<UpstreamView> {
        let direct = [
            self.direct_targets::<Chat>(),
            self.direct_targets::<Speech>(),
            self.direct_targets::<Transcription>(),
        ]
        .concat();
        let view = |upstream: &Arc<Upstream>| {
            let of_it =
                self.targets.values().chain(&direct).filter(|target| match &target.source {
                    Source::Upstream(model) => Arc::ptr_eq(&model.upstream, upstream),
                    Source::Local(_) => false,
                });
            let views = of_it.map(|target| target.view());
            let troubled = views.filter(|view| {
                view.status != TargetStatus::Standby
                    || view.last_failure.is_some()
                    || view.thinks_anyway
            });
            upstream.view(troubled.collect())
        };
        self.upstreams.values().map(view).collect()
    }
}
