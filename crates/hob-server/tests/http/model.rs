//! A speech model whose every event the test chooses, while the request waits for it.
//! It rejects unknown voices like a real model, and stores the requests that it received.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream;
use hob_core::{
    Gender, InstructionSupport, Language, ModelError, ModelState, SpeechEvent, SpeechModel,
    SpeechPace, SpeechRequest, SpeechStream, SpeechText, Voice, locked, nearest,
};
use tokio::sync::mpsc;

pub(crate) const RATE_HZ: u32 = 24_000;

type Event = Result<SpeechEvent, ModelError>;

/// The test's end of one spoken answer. `closed()` resolves when the server has dropped its end.
pub(crate) type Mouth = mpsc::Sender<Event>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) voice: String,
    pub(crate) speed: f32,
    pub(crate) instructions: Option<String>,
    pub(crate) pace: SpeechPace,
}

pub(crate) struct StagedSpeech {
    voices: Vec<Voice>,
    support: InstructionSupport,
    rate_hz: u32,
    state: Mutex<ModelState>,
    staged: Mutex<VecDeque<Result<mpsc::Receiver<Event>, ModelError>>>,
    asked: Mutex<Vec<Asked>>,
}

fn voice(id: &str, language: Language, gender: Gender) -> Voice {
    Voice { id: id.to_owned(), name: id[3..].to_owned(), language, gender }
}

impl StagedSpeech {
    pub(crate) fn new() -> StagedSpeech {
        StagedSpeech {
            voices: vec![
                voice("af_heart", Language::AmericanEnglish, Gender::Female),
                voice("af_nova", Language::AmericanEnglish, Gender::Female),
                voice("bm_fable", Language::BritishEnglish, Gender::Male),
                voice("jf_alpha", Language::Japanese, Gender::Female),
            ],
            support: InstructionSupport::Ignored,
            rate_hz: RATE_HZ,
            state: Mutex::new(ModelState::Ready),
            staged: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    pub(crate) fn with_support(self, support: InstructionSupport) -> StagedSpeech {
        StagedSpeech { support, ..self }
    }

    pub(crate) fn with_rate(self, rate_hz: u32) -> StagedSpeech {
        StagedSpeech { rate_hz, ..self }
    }

    pub(crate) fn set_state(&self, state: ModelState) {
        *locked(&self.state) = state;
    }

    /// The next request gets what is sent into the returned end.
    pub(crate) fn stage(&self) -> Mouth {
        let (sender, receiver) = mpsc::channel(1);
        locked(&self.staged).push_back(Ok(receiver));
        sender
    }

    /// The next request is rejected with this error.
    pub(crate) fn stage_refusal(&self, error: ModelError) {
        locked(&self.staged).push_back(Err(error));
    }

    /// The next request gets these events, and then the end.
    pub(crate) fn stage_all(&self, events: impl IntoIterator<Item = Event>) {
        let events: Vec<Event> = events.into_iter().collect();
        let (sender, receiver) = mpsc::channel(events.len().max(1));
        for event in events {
            sender.try_send(event).expect("room for every event");
        }
        locked(&self.staged).push_back(Ok(receiver));
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        locked(&self.asked).clone()
    }

    fn refuse(&self, voice: &str) -> Result<(), ModelError> {
        let known = self.voices.iter().find(|known| known.id == voice);
        match known.map(|known| known.language) {
            Some(language @ Language::Japanese) => {
                let (voice, needs) = (voice.to_owned(), "a dictionary".to_owned());
                Err(ModelError::SpeechPartMissing { voice, language, needs })
            }
            Some(_) => Ok(()),
            None => {
                let known = self.voices.iter().map(|known| known.id.as_str());
                Err(ModelError::UnknownVoice {
                    voice: voice.to_owned(),
                    near: nearest(voice, known, 3),
                })
            }
        }
    }

    fn begin(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        self.refuse(&request.voice)?;
        let text = match request.text {
            SpeechText::Whole(text) => text,
            SpeechText::Arriving(_) => "(text that is still arriving)".to_owned(),
        };
        locked(&self.asked).push(Asked {
            text,
            voice: request.voice,
            speed: request.speed.rate(),
            instructions: request.instructions,
            pace: request.pace,
        });
        let mut receiver = locked(&self.staged).pop_front().expect("a staged answer")?;
        let events = stream::poll_fn(move |context| receiver.poll_recv(context));
        Ok(SpeechStream::new(self.rate_hz, events))
    }
}

impl SpeechModel for StagedSpeech {
    fn voices(&self) -> &[Voice] {
        &self.voices
    }

    fn state(&self) -> ModelState {
        locked(&self.state).clone()
    }

    fn instruction_support(&self) -> InstructionSupport {
        self.support
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        let begun = self.begin(request);
        async { begun }.boxed()
    }
}

/// `samples` samples with this value.
pub(crate) fn sound(value: f32, samples: usize) -> Event {
    Ok(SpeechEvent::Audio(vec![value; samples]))
}

/// The same samples as `pcm` holds them.
pub(crate) fn pcm(value: f32, samples: usize) -> Vec<u8> {
    let sample = (value * 32768.0).round() as i16;
    sample.to_le_bytes().repeat(samples)
}

pub(crate) fn worker_lost() -> ModelError {
    ModelError::WorkerLost { engine: "speech", detail: "killed by signal 9".to_owned() }
}

pub(crate) fn loading(seconds: u64) -> ModelState {
    ModelState::Loading { ready_in: Duration::from_secs(seconds) }
}

pub(crate) fn share(model: &Arc<StagedSpeech>) -> Arc<dyn SpeechModel> {
    Arc::clone(model) as Arc<dyn SpeechModel>
}
