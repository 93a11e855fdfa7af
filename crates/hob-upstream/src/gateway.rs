//! All servers and aliases of one configuration, and every name that leads to them.
//! Made anew when the configuration changes; what stayed the same keeps its connections and its memory.

mod building;
mod direct;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hob_core::routing::{ListedModel, RouteView, TargetStatus, UpstreamResolver, UpstreamView};
use hob_core::{
    Admission, ChatModel, ChatTarget, Clocked, SpeechModel, SpeechTarget, TranscriptModel,
    TranscriptTarget,
};

use crate::client::{Upstream, UpstreamError};
use crate::kind::{Kind, Locals, OfKind};
use crate::options::{AliasOptions, Clocks, GatewayOptions, TargetOptions};
use crate::route::{Alias, Leg, Route, SpeechRoute, TranscriptRoute};
use crate::target::{Source, Target};
use building::{Building, split, upstream_target};
use direct::Direct;

/// Requests of one alias at once; its targets have limits of their own.
const REQUESTS_MAX: usize = 1024;

/// Everything that lives elsewhere, and the aliases.
#[derive(Debug, Default)]
pub struct Gateway {
    upstreams: BTreeMap<String, Arc<Upstream>>,
    /// A server may do well at one thing and not at all at another: each kind has its own.
    targets: BTreeMap<(Kind, String), Arc<Target>>,
    chat: BTreeMap<String, Arc<Route>>,
    speech: BTreeMap<String, Arc<SpeechRoute>>,
    transcript: BTreeMap<String, Arc<TranscriptRoute>>,
    /// Aliases with a model of our own, which says what kind of name they are.
    known: BTreeMap<String, Kind>,
    direct: Direct,
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
    #[error("'{name}' is the name of a model here, and cannot be an alias too")]
    NameTaken { name: String },
    #[error("alias '{alias}' leads to a {} model and to a {} model, and can only be one", first.name(), second.name())]
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
    /// What `previous` had of the same servers is kept: connections, health, lists.
    ///
    /// # Errors
    /// [`GatewayError`]; nothing of it is in force then.
    pub fn new(
        options: GatewayOptions,
        locals: impl Into<Locals>,
        previous: Option<&Gateway>,
    ) -> Result<Gateway, GatewayError> {
        let mut building = Building::new(options, locals.into(), previous)?;
        let (mut known, mut chat) = (BTreeMap::new(), BTreeMap::new());
        let (mut speech, mut transcript) = (BTreeMap::new(), BTreeMap::new());
        for name in building.names() {
            let kind = building.kind(&name)?;
            known.extend(kind.map(|kind| (name.clone(), kind)));
            let may_be = |this: Kind| kind.is_none_or(|kind| kind == this);
            if may_be(Kind::Chat) {
                let (options, legs) = building.legs::<dyn ChatModel>(&name)?;
                chat.insert(name.clone(), Arc::new(Route::new(options, legs)));
            }
            if may_be(Kind::Speech) {
                let route = SpeechRoute::new(building.alias::<dyn SpeechModel>(&name)?);
                speech.insert(name.clone(), Arc::new(route));
            }
            if may_be(Kind::Transcript) {
                let route = TranscriptRoute::new(building.alias::<dyn TranscriptModel>(&name)?);
                transcript.insert(name.clone(), Arc::new(route));
            }
        }
        let (upstreams, targets) = building.built();
        let direct = Direct::default();
        Ok(Gateway { upstreams, targets, chat, speech, transcript, known, direct })
    }

    /// A target for each alias that may chat, for the registry. What an alias of other servers' models only
    /// is, nobody knows before it is asked: it stands here, and is found as the other kinds too.
    pub fn aliases(&self) -> Vec<ChatTarget> {
        self.chat.iter().map(|(name, route)| chat_target(name, Arc::clone(route) as _)).collect()
    }

    /// A target for each alias that surely speaks, for the registry.
    pub fn speech_aliases(&self) -> Vec<SpeechTarget> {
        let surely = self.speech.iter().filter(|(name, _)| self.known.contains_key(*name));
        surely.map(|(name, route)| speech_target(name, Arc::clone(route) as _)).collect()
    }

    /// A target for each alias that surely listens, for the registry.
    pub fn transcript_aliases(&self) -> Vec<TranscriptTarget> {
        let surely = self.transcript.iter().filter(|(name, _)| self.known.contains_key(*name));
        surely.map(|(name, route)| transcript_target(name, Arc::clone(route) as _)).collect()
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
}

impl Gateway {
    /// An alias of one target: `upstream/model`.
    fn direct_alias<M: OfKind + ?Sized>(&self, name: &str) -> Option<(AliasOptions, Vec<Leg<M>>)> {
        let (upstream, model) = split(name, &self.upstreams)?;
        let target = self.targets.get(&(M::KIND, name.to_owned())).cloned();
        let target = target.unwrap_or_else(|| upstream_target(name, upstream, model));
        let leg = Leg::new(target, &TargetOptions::plain(name), upstream.clocks)?;
        Some((
            AliasOptions { clocks: total_of(upstream.clocks), ..AliasOptions::plain(name) },
            vec![leg],
        ))
    }
}

/// The other clocks are the target's anyway.
fn total_of(clocks: Clocks) -> Clocks {
    Clocks { total: clocks.total, ..Clocks::default() }
}

fn chat_target(name: &str, model: Arc<dyn ChatModel>) -> ChatTarget {
    let admission = Admission::new(REQUESTS_MAX, 0.0);
    let clocks = Clocked::ByItself;
    ChatTarget { name: name.to_owned(), model, lifecycle: None, admission, clocks }
}

fn speech_target(name: &str, model: Arc<dyn SpeechModel>) -> SpeechTarget {
    let admission = Admission::new(REQUESTS_MAX, 0.0);
    SpeechTarget { name: name.to_owned(), model, lifecycle: None, admission }
}

fn transcript_target(name: &str, model: Arc<dyn TranscriptModel>) -> TranscriptTarget {
    let admission = Admission::new(REQUESTS_MAX, 0.0);
    TranscriptTarget { name: name.to_owned(), model, lifecycle: None, admission }
}

impl UpstreamResolver for Gateway {
    fn find_chat(&self, name: &str) -> Option<Arc<ChatTarget>> {
        let alias = || self.chat.get(name).map(|route| Arc::clone(route) as _);
        self.direct.chat(name, || {
            let made = || self.direct_alias(name).map(|(options, legs)| Route::new(options, legs));
            alias().or_else(|| Some(Arc::new(made()?) as _)).map(|model| chat_target(name, model))
        })
    }

    fn find_speech(&self, name: &str) -> Option<Arc<SpeechTarget>> {
        let alias = || self.speech.get(name).map(|route| Arc::clone(route) as _);
        self.direct.speech(name, || {
            let made = || {
                let (options, legs) = self.direct_alias(name)?;
                Some(SpeechRoute::new(Alias::new(options, legs)))
            };
            alias().or_else(|| Some(Arc::new(made()?) as _)).map(|model| speech_target(name, model))
        })
    }

    fn find_transcript(&self, name: &str) -> Option<Arc<TranscriptTarget>> {
        let alias = || self.transcript.get(name).map(|route| Arc::clone(route) as _);
        self.direct.transcript(name, || {
            let made = || {
                let (options, legs) = self.direct_alias(name)?;
                Some(TranscriptRoute::new(Alias::new(options, legs)))
            };
            let model = alias().or_else(|| Some(Arc::new(made()?) as _));
            model.map(|model| transcript_target(name, model))
        })
    }

    fn listed(&self) -> Vec<ListedModel> {
        let listed = self.upstreams.values().filter(|upstream| upstream.options.is_listed);
        listed.flat_map(|upstream| upstream.listed()).collect()
    }

    fn route(&self, alias: &str) -> Option<RouteView> {
        let speech = || self.speech.get(alias).map(|route| route.view());
        let transcript = || self.transcript.get(alias).map(|route| route.view());
        self.chat.get(alias).map(|route| route.view()).or_else(speech).or_else(transcript)
    }

    fn upstreams(&self) -> Vec<UpstreamView> {
        let view = |upstream: &Arc<Upstream>| {
            let of_it = self.targets.values().filter(|target| match &target.source {
                Source::Upstream(served) => Arc::ptr_eq(&served.upstream, upstream),
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
