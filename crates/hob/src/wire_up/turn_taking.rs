//! The two models of turn taking, loaded into this process at the start or when the first session needs them.
//! They have no worker process: see docs/decisions/0018-turns-are-judged-in-the-server.md.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join};
use hob_core::{ModelError, TurnModel, TurnTaking, VoiceDetector};
use hob_engines::transcription::vad::SileroVad;
use hob_engines::turn_taking::{SmartTurn, TurnJudge};
use hob_models::TURN_TAKING_NAME;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::model_store::ModelStore;

/// A judgement is short, and other threads compute answers meanwhile.
const THREADS: usize = 1;

/// The stored models. A failed load is tried again by the next session.
#[derive(Debug)]
pub(crate) struct StoredTurnTaking {
    store: ModelStore,
    vad: OnceCell<SileroVad>,
    judge: OnceCell<Arc<TurnJudge>>,
}

impl StoredTurnTaking {
    pub(crate) fn new(app: &App<'_>) -> StoredTurnTaking {
        StoredTurnTaking::of(ModelStore::open(app))
    }

    fn of(store: ModelStore) -> StoredTurnTaking {
        StoredTurnTaking { store, vad: OnceCell::new(), judge: OnceCell::new() }
    }

    /// Loads both models before the first session. A failed load is tried again by that session, which reports it.
    pub(crate) async fn preload(&self) {
        let (voice, turn) = join(self.voice_detector(), self.turn_model()).await;
        for error in voice.err().into_iter().chain(turn.err()) {
            tracing::debug!(error = error.summary().as_str(), "a model of turns did not load");
        }
    }

    async fn load<T: Send + 'static>(
        &self,
        engine: &'static str,
        load: impl FnOnce(&ModelStore) -> CliResult<T> + Send + 'static,
    ) -> Result<T, ModelError> {
        let store = self.store.clone();
        let loaded = spawn_blocking(move || load(&store).map_err(Failure::into_text)).await;
        let loaded = loaded.unwrap_or_else(|panic| Err(panic.to_string()));
        loaded.map_err(|detail| ModelError::EngineFailed { engine, detail })
    }
}

impl TurnTaking for StoredTurnTaking {
    fn voice_detector(&self) -> BoxFuture<'_, Result<Box<dyn VoiceDetector>, ModelError>> {
        async move {
            let load = |store: &ModelStore| {
                let hint = format!("run `hob pull {TURN_TAKING_NAME}`");
                let vad = SileroVad::load(&store.vad()?);
                vad.map_err(|error| Failure::engine(error).hint(hint))
            };
            let vad = self.vad.get_or_try_init(|| self.load("speech detection", load)).await?;
            Ok(Box::new(vad.clone()) as Box<dyn VoiceDetector>)
        }
        .boxed()
    }

    fn turn_model(&self) -> BoxFuture<'_, Result<Arc<dyn TurnModel>, ModelError>> {
        async move {
            let load = |store: &ModelStore| {
                let model = SmartTurn::load(&store.turn_taking()?.turn, THREADS);
                let judge = TurnJudge::start(model.map_err(Failure::engine)?);
                judge.map(Arc::new).map_err(Failure::engine)
            };
            let judge = self.judge.get_or_try_init(|| self.load("turn detection", load)).await?;
            Ok(Arc::clone(judge) as Arc<dyn TurnModel>)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_model_is_named_with_the_command_that_fetches_it() {
        let home = tempfile::tempdir().expect("a folder");
        let models = StoredTurnTaking::of(ModelStore::in_home(home.path()));
        models.preload().await;
        let turn = models.turn_model().await.map(drop).expect_err("nothing is stored");
        assert!(turn.to_string().contains("`hob pull smart-turn`"), "{turn}");
        let voice = models.voice_detector().await.map(drop).expect_err("nothing is stored");
        assert!(voice.to_string().contains("`hob pull smart-turn`"), "{voice}");
    }

    #[tokio::test]
    async fn an_error_of_a_load_keeps_its_hint() {
        let home = tempfile::tempdir().expect("a folder");
        let models = StoredTurnTaking::of(ModelStore::in_home(home.path()));
        let load = |_: &ModelStore| Err::<(), _>(Failure::engine("it is damaged").hint("pull it"));
        let error = models.load("speech detection", load).await.expect_err("damaged");
        assert!(error.to_string().ends_with("it is damaged; pull it"), "{error}");
    }
}
