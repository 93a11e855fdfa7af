//! Turns a cell of a plan into an experiment, a command line, and the workload of its record.
//! Values that a plan does not name have the defaults of the verb.

use std::sync::Arc;

use super::cells::PlanCell;
use super::file::{PlanCache, PlanKind, PlanThinking};
use crate::chat::{self, ChatWorkload, Prompts, SHAPES, Shape, ThinkingChoice};
use crate::cold::{ColdRequest, StartOptions, StartState, WeightsFile};
use crate::drive::Arrivals;
use crate::eval::{EVAL_ITEMS, EVAL_SEED, EvalWorkload, ItemSet, TaskName};
use crate::experiment::{Axis, Experiment, RunSize, Workload};
use crate::max_context::{ContextCriterion, ContextRange, MaxContextOptions};
use crate::record::{RecordKind, RecordedWorkload};
use crate::speech::{Formats, SpeechWorkload, Streaming, Text};
use crate::sweep::{AGAIN_MIN, ContextOptions, ServerContext};
use crate::timeline::SoundFormat;
use crate::transcription::{ClipSource, SpokenClips, TranscriptionWorkload};
use crate::voice::VoiceWorkload;

const ROUNDS: usize = 2;
const SWEEP_ANSWER: u32 = 512;
/// Requests after the first one of each start.
const COLD_WARM: usize = 3;
const MAX_CONTEXT: MaxContextOptions = MaxContextOptions {
    range: ContextRange { lo: 4096, hi: 262_144, granule: 256 },
    criterion: ContextCriterion::Usable,
    bytes_per_token: None,
};

impl PlanCell {
    /// The experiment of this cell. Only weights with a known file can be dropped from memory.
    pub fn experiment(&self, has_weights: bool) -> Experiment {
        let users = self.users();
        let axis = match self.kind {
            PlanKind::Llm | PlanKind::Tts | PlanKind::Stt | PlanKind::Voice | PlanKind::Eval => {
                Axis::Load(vec![Arrivals::Closed { users }])
            }
            PlanKind::Stream => Axis::Delivery,
            PlanKind::Concurrency => Axis::Concurrency(vec![users]),
            PlanKind::Batch => Axis::Batch(vec![users]),
            PlanKind::Sweep => Axis::Context(ContextOptions {
                lengths: self.context.into_iter().collect(),
                answer: SWEEP_ANSWER,
                cached: AGAIN_MIN,
                context: ServerContext::AsStarted,
            }),
            PlanKind::MaxContext => Axis::MaxContext(MAX_CONTEXT),
            PlanKind::Cold => Axis::Start(start(has_weights)),
        };
        let (workload, rounds) = match self.kind {
            PlanKind::Tts | PlanKind::Stream => (Workload::Speech(self.speech()), 1),
            PlanKind::Stt => {
                let clips = ClipSource::Spoken(SpokenClips::default());
                (Workload::Transcription(TranscriptionWorkload::new(clips)), 1)
            }
            PlanKind::Voice => {
                let questions = ClipSource::Spoken(SpokenClips::default());
                (Workload::Voice(VoiceWorkload::new(questions)), 1)
            }
            PlanKind::Eval => (Workload::Eval(self.eval()), 1),
            _ => (Workload::Chat(self.chat()), ROUNDS),
        };
        Experiment { workload, axis, run_size: RunSize { rounds, span_s: 0.0 } }
    }

    /// The items of the named tasks; a plan's file was checked for names that do not exist.
    fn eval(&self) -> EvalWorkload {
        let named: Vec<TaskName> =
            self.task.iter().filter_map(|name| TaskName::parse(name).ok()).collect();
        let tasks = match named.is_empty() && self.items_file.is_empty() {
            true => TaskName::usual(),
            false => named,
        };
        let per_task = self.items.map_or(EVAL_ITEMS, |items| items as usize);
        let items = Arc::new(ItemSet::new(tasks, per_task, EVAL_SEED, Vec::new()));
        let usual = EvalWorkload::new(items);
        let named = self.temperature.map(|value| vec![value]);
        EvalWorkload {
            thinking: self.chat().thinking,
            budgets: vec![self.budget_tokens],
            temperatures: named.unwrap_or_else(|| usual.temperatures.clone()),
            ..usual
        }
    }

    fn chat(&self) -> ChatWorkload {
        let shape = self.shape.as_deref().and_then(Shape::by_name).unwrap_or(SHAPES[0]);
        ChatWorkload {
            shapes: vec![shape],
            thinking: match self.thinking {
                Some(PlanThinking::Off) => ThinkingChoice::Off,
                Some(PlanThinking::AsIs) | None => ThinkingChoice::On,
            },
            prompts: match self.cache {
                Some(PlanCache::Cached) => Prompts::Cached,
                Some(PlanCache::Cold) | None => Prompts::Cold,
            },
        }
    }

    /// A named format is required; otherwise those of the default formats that the server offers.
    fn speech(&self) -> SpeechWorkload {
        let is_stream = self.kind == PlanKind::Stream;
        let (usual, formats, streaming) = match is_stream {
            true => (
                ["medium", "two_sentences", "long"],
                vec![SoundFormat::Pcm, SoundFormat::Mp3],
                vec![Streaming::Requested, Streaming::Declined],
            ),
            false => {
                (["short", "medium", "long"], SoundFormat::ALL.to_vec(), vec![Streaming::Requested])
            }
        };
        let mut texts: Vec<Text> =
            self.text.iter().filter_map(|name| Text::by_name(name)).collect();
        if texts.is_empty() {
            texts = usual.into_iter().filter_map(Text::by_name).collect();
        }
        if is_stream {
            // A sentence is measured before the texts that are compared with it.
            texts.sort_by_key(|text| text.chars());
        }
        let named = self.format.as_deref().and_then(SoundFormat::by_name);
        let formats = named.map_or(Formats::Offered(formats), |format| Formats::All(vec![format]));
        SpeechWorkload { texts, formats, voices: self.voice.iter().cloned().collect(), streaming }
    }

    /// The context length to start a server with; None if any will do.
    pub fn room(&self) -> Option<u64> {
        match self.kind {
            PlanKind::MaxContext => Some(MAX_CONTEXT.range.lo),
            PlanKind::Eval => self.context.map(u64::from),
            _ => self.context.map(|tokens| chat::context_needed(tokens, SWEEP_ANSWER).into()),
        }
    }

    fn users(&self) -> usize {
        self.concurrency.map_or(1, |users| users as usize)
    }

    /// The kind of its records, also of a failure.
    pub fn record_kind(&self) -> RecordKind {
        self.experiment(false).kind()
    }

    pub fn workload(&self) -> RecordedWorkload {
        RecordedWorkload {
            shape: self.shape.clone(),
            concurrency: self.concurrency,
            ..RecordedWorkload::default()
        }
    }

    /// The command line that measures this cell alone, without the target.
    pub fn words(&self) -> Vec<String> {
        let thinking = self.thinking.map(|thinking| match thinking {
            PlanThinking::AsIs => "on".to_owned(),
            PlanThinking::Off => "off".to_owned(),
        });
        // An evaluation's context is an option of the server.
        let context = self.context.filter(|_| self.kind != PlanKind::Eval);
        // The number of items is for tasks. Without names these are the usual ones, unless there is a file.
        let has_tasks = !self.task.is_empty() || self.items_file.is_empty();
        let items = self.items.filter(|_| has_tasks);
        let rows = [
            ("--shape", self.shape.clone()),
            ("--context-tokens", context.map(|tokens| tokens.to_string())),
            ("--users", self.concurrency.map(|users| users.to_string())),
            ("--thinking", thinking),
            ("--text", Some(self.text.join(",")).filter(|texts| !texts.is_empty())),
            ("--format", self.format.clone()),
            ("--voice", self.voice.clone()),
            ("--tasks", Some(self.task.join(",")).filter(|tasks| !tasks.is_empty())),
            ("--items", items.map(|items| items.to_string())),
            ("--file", Some(self.items_file.join(",")).filter(|files| !files.is_empty())),
            ("--budget-tokens", self.budget_tokens.map(|tokens| tokens.to_string())),
            ("--temperature", self.temperature.map(|value| value.to_string())),
        ];
        let said = rows.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let verb = [self.kind.name().to_owned()];
        let cached = (self.cache == Some(PlanCache::Cached)).then(|| "--cached".to_owned());
        verb.into_iter().chain(said.flatten()).chain(cached).collect()
    }
}

fn start(has_weights: bool) -> StartOptions {
    let (states, weights) = match has_weights {
        true => {
            (vec![StartState::PageCacheCold, StartState::PageCacheWarm], WeightsFile::OfTheServer)
        }
        false => (vec![StartState::PageCacheWarm], WeightsFile::Unknown),
    };
    StartOptions { states, request: ColdRequest::Chat, warm: COLD_WARM, weights }
}
