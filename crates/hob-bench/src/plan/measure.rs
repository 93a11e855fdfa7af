//! What each kind makes of a cell: how it is measured, how it is typed, and what a record says of it in any case.
//! A kind that plans may name has a line in each of these.

use super::cells::Cell;
use super::written::{PlanCache, PlanKind, PlanThinking};
use crate::drive::Arrivals;
use crate::llm::{self, Prompts, SHAPES, Shape, ThinkingWish};
use crate::record::{Kind, Record, Workload};
use crate::runs::BenchError;
use crate::speech::{Choice, Formats, Text};
use crate::timeline::SoundFormat;
use crate::workbench::Workbench;
use crate::{batch, ceiling, cold, crowd, degrade, stream, sweep, tts};

const ROUNDS: usize = 2;
const SWEEP_ANSWER: u32 = 512;
/// Requests behind the first of each start.
const COLD_WARM: usize = 3;
const CEILING: ceiling::Wish = ceiling::Wish {
    span: ceiling::Span { lo: 4096, hi: 262_144, granule: 256 },
    what: ceiling::What::Usable,
    bytes_per_token: None,
};

impl Cell {
    /// Measures it; each record is kept by the workbench.
    ///
    /// # Errors
    /// See [`llm::measure`].
    pub fn measure(&self, bench: &mut Workbench<'_>) -> Result<Vec<Record>, BenchError> {
        match self.kind {
            PlanKind::Llm => llm::measure(bench, &self.llm()),
            PlanKind::Sweep => sweep::measure(bench, &self.sweep()),
            PlanKind::Concurrency => degrade::measure(bench, &self.crowd()),
            PlanKind::Batch => batch::measure(bench, &self.crowd()),
            PlanKind::MaxContext => ceiling::measure(bench, &CEILING),
            PlanKind::Tts => tts::measure(bench, &self.tts()),
            PlanKind::Stream => stream::measure(bench, &self.stream()),
            PlanKind::Cold => {
                let has_weights = bench.started.as_ref().is_some_and(|s| s.weights.is_some());
                cold::measure(bench, &cold_wish(has_weights))
            }
        }
    }

    fn tts(&self) -> tts::Wish {
        tts::Wish {
            texts: self.texts(["short", "medium", "long"]),
            choice: self.choice(&SoundFormat::ALL),
            users: vec![self.users()],
            rounds: 1,
        }
    }

    fn stream(&self) -> stream::Wish {
        let mut texts = self.texts(["medium", "two_sentences", "long"]);
        // A sentence is known before what is held against it.
        texts.sort_by_key(|text| text.chars());
        stream::Wish {
            texts,
            choice: self.choice(&[SoundFormat::Pcm, SoundFormat::Mp3]),
            asked: vec![stream::Asked::Streamed, stream::Asked::Whole],
            rounds: 1,
        }
    }

    fn texts(&self, usual: [&str; 3]) -> Vec<Text> {
        let said: Vec<Text> = self.text.iter().filter_map(|name| Text::named(name)).collect();
        if said.is_empty() { usual.into_iter().filter_map(Text::named).collect() } else { said }
    }

    /// What was named has to be there; of what is usual, what the server offers, in the first voice that it lists.
    fn choice(&self, usual: &[SoundFormat]) -> Choice {
        let named = self.format.as_deref().and_then(SoundFormat::named);
        let formats = named.map(|format| Formats::All(vec![format]));
        Choice {
            formats: formats.unwrap_or_else(|| Formats::Offered(usual.to_vec())),
            voices: self.voice.iter().cloned().collect(),
        }
    }

    fn crowd(&self) -> crowd::Wish {
        let shape = self.shape.as_deref().and_then(Shape::named).unwrap_or(SHAPES[0]);
        let (users, thinking) = (vec![self.users()], self.thinking());
        let question = crowd::Question::Words { shape, thinking };
        crowd::Wish { question, users, rounds: ROUNDS }
    }

    fn sweep(&self) -> sweep::Wish {
        sweep::Wish {
            lengths: self.context.into_iter().collect(),
            answer: SWEEP_ANSWER,
            cached: sweep::AGAIN_MIN,
            thinking: self.thinking(),
            room: sweep::Room::AsStarted,
        }
    }

    fn thinking(&self) -> ThinkingWish {
        match self.thinking {
            Some(PlanThinking::Off) => ThinkingWish::Off,
            Some(PlanThinking::AsIs) | None => ThinkingWish::On,
        }
    }

    /// The context that a server needs which is started for it; none where any will do.
    pub fn room(&self) -> Option<u64> {
        match self.kind {
            PlanKind::MaxContext => Some(CEILING.span.lo),
            _ => self.context.map(|tokens| llm::room(tokens, SWEEP_ANSWER).into()),
        }
    }

    fn llm(&self) -> llm::Wish {
        llm::Wish {
            shapes: self.shape.iter().filter_map(|name| Shape::named(name)).collect(),
            arrivals: vec![Arrivals::Closed { users: self.users() }],
            thinking: self.thinking(),
            prompts: match self.cache {
                Some(PlanCache::Cached) => Prompts::Cached,
                Some(PlanCache::Cold) | None => Prompts::Cold,
            },
            rounds: ROUNDS,
            span_s: 0.0,
        }
    }

    fn users(&self) -> usize {
        self.concurrency.map_or(1, |users| users as usize)
    }

    /// What a record of it is of, even where nothing could be measured.
    pub fn record_kind(&self) -> Kind {
        match self.kind {
            PlanKind::Llm => Kind::Llm,
            PlanKind::Sweep => Kind::CtxSweep,
            PlanKind::Concurrency => Kind::Concurrency,
            PlanKind::Batch => Kind::Batch,
            PlanKind::MaxContext => Kind::MaxContext,
            PlanKind::Tts => Kind::Tts,
            PlanKind::Stream => Kind::Stream,
            PlanKind::Cold => Kind::Cold,
        }
    }

    pub fn workload(&self) -> Workload {
        Workload { shape: self.shape.clone(), concurrency: self.concurrency, ..Workload::default() }
    }

    /// As the verb is typed that measures this cell alone, without the target.
    pub fn words(&self) -> Vec<String> {
        let thinking = self.thinking.map(|thinking| match thinking {
            PlanThinking::AsIs => "on".to_owned(),
            PlanThinking::Off => "off".to_owned(),
        });
        let rows = [
            ("--shape", self.shape.clone()),
            ("--context-tokens", self.context.map(|tokens| tokens.to_string())),
            ("--users", self.concurrency.map(|users| users.to_string())),
            ("--thinking", thinking),
            ("--text", Some(self.text.join(",")).filter(|texts| !texts.is_empty())),
            ("--format", self.format.clone()),
            ("--voice", self.voice.clone()),
        ];
        let said = rows.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let verb = [self.kind.name().to_owned()];
        let cached = (self.cache == Some(PlanCache::Cached)).then(|| "--cached".to_owned());
        verb.into_iter().chain(said.flatten()).chain(cached).collect()
    }
}

/// Only weights whose file is known can be forgotten.
fn cold_wish(has_weights: bool) -> cold::Wish {
    let both = vec![cold::State::PageCacheCold, cold::State::PageCacheWarm];
    let (states, weights) = match has_weights {
        true => (both, cold::Weights::OfTheServer),
        false => (vec![cold::State::PageCacheWarm], cold::Weights::Unknown),
    };
    cold::Wish { states, of: cold::Of::Words, warm: COLD_WARM, weights }
}
