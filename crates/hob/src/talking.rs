//! A spoken conversation with a server: microphone, session, loudspeaker and captions.
//! One task does all of it. Every wait can be dropped, so the task handles whichever event comes first.

mod captions;
mod event;
mod loudspeaker;
mod microphone;

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use hob_upstream::TextSocket;
use hob_wire::TurnStagesMs;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, timeout};

use captions::{Captions, Speaker};
use event::{ResponseState, TalkEvent, stages_text};
use loudspeaker::{Loudspeaker, RATE_HZ};
use microphone::Microphone;

use crate::failure::{CliResult, Exit, Failure};
use crate::playback::Player;
use crate::printer::Printer;
use crate::remote::Remote;
use crate::signals::{Stop, StopSignals};
use crate::sink::{PipeState, Sink, is_same_file};

const SYSTEM: &str =
    "You are a friendly voice assistant. Answer in one to three short sentences of plain text.";
/// A session loads its models before it is ready.
const READY_TIME_MAX: Duration = Duration::from_secs(300);
/// How often the player gets sound.
const TICK: Duration = Duration::from_millis(20);
/// After the end of a file: how long to wait for a turn to begin, and for an answer to it.
const TURN_TIME_MAX: Duration = Duration::from_secs(3);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// The error code of a server without a turn model.
const NO_TURN_MODEL: &str = "turn_model_missing";
/// The error code of a server whose answer had just ended when it was stopped.
const ALREADY_ENDED: &str = "response_cancel_not_active";
/// Sound of the room that follows an answer.
const ECHO_TIME: Duration = Duration::from_millis(200);

/// Instructions, voice and language of a conversation.
#[derive(Clone, Debug, Args)]
pub(crate) struct TalkOptions {
    /// The voice of the answers [default: the server's]
    #[arg(short, long, value_name = "NAME")]
    voice: Option<String>,
    /// The spoken language, such as en or de; without it the model detects it
    #[arg(short, long)]
    language: Option<String>,
    /// The system message
    #[arg(long, value_name = "TEXT", default_value = SYSTEM)]
    system: String,
    /// Interrupt answers by speaking; needs headphones, because the microphone stays on while an answer plays
    #[arg(long)]
    headphones: bool,
}

/// Where sound comes from and goes to.
pub(crate) struct SoundDevices {
    microphone: Microphone,
    loudspeaker: Loudspeaker,
    names: String,
}

pub(crate) struct Conversation<'a> {
    socket: TextSocket,
    remote: &'a Remote,
    options: TalkOptions,
    microphone: Microphone,
    loudspeaker: Loudspeaker,
    captions: Captions<'a>,
    printer: &'a Printer,
    /// The file has been said, and silence follows. Microphones do not end.
    has_said_all: bool,
    turn: Turn,
    stages: Option<TurnStagesMs>,
    /// The response whose sound and text are no longer wanted.
    stopped: Option<String>,
    last_event: Instant,
    answers: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Turn {
    Nobody,
    Person,
    /// The person has spoken, and the answer has not begun.
    Awaited {
        item_id: String,
    },
    Answer {
        response_id: String,
        /// The server has sent all of it.
        is_done: bool,
    },
}

impl SoundDevices {
    /// `input` and `output` are files. Without them: the microphone, and a player.
    ///
    /// # Errors
    /// A file cannot be read or written, the output is stdout, or no program that records or plays sound is installed.
    pub(crate) fn open(
        input: Option<&Path>,
        output: Option<&Path>,
        path: &OsStr,
    ) -> CliResult<SoundDevices> {
        if let (Some(input), Some(output)) = (input, output)
            && is_same_file(input, output)
        {
            let sentence = format!("the answers would take the place of {}", input.display());
            return Err(Failure::usage(sentence).hint("write another file with -o"));
        }
        if output == Some(Path::new("-")) {
            let sentence = "the answers cannot be written to stdout, which has the text";
            return Err(Failure::usage(sentence).hint("give a file name, such as -o answer.wav"));
        }
        let (loudspeaker, speaks_with) = match output {
            Some(file) => {
                let sink = Sink::open(file)?;
                (Loudspeaker::of_file(sink, Instant::now()), file.display().to_string())
            }
            None => {
                let player = Player::first_live(path)?;
                let name = player.name().to_owned();
                (Loudspeaker::of_player(player, Instant::now())?, name)
            }
        };
        let microphone = match input {
            Some(file) => Microphone::of_file(file)?,
            None => Microphone::open(path)?,
        };
        let names = format!("listening to {}, speaking with {speaks_with}", microphone.name);
        Ok(SoundDevices { microphone, loudspeaker, names })
    }
}

impl<'a> Conversation<'a> {
    /// Sets the session up. Resolves when its models are loaded.
    ///
    /// # Errors
    /// The server refuses the settings, or closes the session.
    pub(crate) async fn begin(
        socket: TextSocket,
        remote: &'a Remote,
        mut options: TalkOptions,
        devices: SoundDevices,
        printer: &'a Printer,
    ) -> CliResult<Conversation<'a>> {
        let SoundDevices { microphone, loudspeaker, names } = devices;
        // A file does not hear the loudspeaker.
        options.headphones |= microphone.is_file;
        let mut conversation = Conversation {
            socket,
            remote,
            options,
            microphone,
            loudspeaker,
            captions: Captions::new(printer),
            printer,
            has_said_all: false,
            turn: Turn::Nobody,
            stages: None,
            stopped: None,
            last_event: Instant::now(),
            answers: 0,
        };
        conversation.send(&session(&conversation.options, "semantic_vad")).await?;
        let ready = timeout(READY_TIME_MAX, conversation.until_ready()).await;
        ready.unwrap_or_else(|_elapsed| {
            Err(Failure::server("the server did not load its models within 5 minutes")
                .hint("`hob ps` lists the loaded models; the messages of `hob serve` say more"))
        })?;
        conversation.loudspeaker.start(Instant::now());
        printer.note(names);
        Ok(conversation)
    }

    async fn until_ready(&mut self) -> CliResult<()> {
        loop {
            match next_event(&mut self.socket, self.remote).await? {
                TalkEvent::SessionUpdated => return Ok(()),
                TalkEvent::SessionCreated { session } if session.is_recorded => {
                    self.printer.note("the server records this conversation");
                }
                TalkEvent::Failed { error } if error.code.as_deref() == Some(NO_TURN_MODEL) => {
                    self.printer.note("the server has no turn model, so a silence of half a second ends your turn");
                    self.send(&session(&self.options, "server_vad")).await?;
                }
                TalkEvent::Failed { error } => return Err(Failure::usage(error.message)),
                _ => {}
            }
        }
    }

    /// Talks until Ctrl-C, or until everything in the input file has been answered.
    ///
    /// # Errors
    /// The session, the microphone or the player fails.
    pub(crate) async fn run(mut self, signals: &mut StopSignals) -> CliResult<Exit> {
        let ended = self.talk(signals).await;
        self.captions.end()?;
        self.socket.close().await;
        ended?;
        let is_full = self.loudspeaker.is_full();
        signals.or(self.loudspeaker.finish()).await?;
        if is_full {
            self.printer.note("the file has the first ten minutes, and nothing of what followed");
        }
        Ok(Exit::Done)
    }

    async fn talk(&mut self, signals: &mut StopSignals) -> CliResult<()> {
        let mut clock = tokio::time::interval(TICK);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let pipe = tokio::select! {
                event = next_event(&mut self.socket, self.remote) => self.receive(event?).await?,
                sound = self.microphone.next(), if !self.has_said_all => {
                    self.hear(sound?).await?;
                    PipeState::Open
                }
                _ = clock.tick() => tokio::select! {
                    biased;
                    pipe = self.tick() => pipe?,
                    // The player takes no sound.
                    () = signals.next() => return Ok(()),
                },
                stop = signals.which() => match self.stops_answer(stop) {
                    true => self.stop_answer().await?,
                    false => return Ok(()),
                },
            };
            if pipe == PipeState::Closed || self.has_said_all && self.is_over()? {
                return Ok(());
            }
        }
    }

    /// Sends the recorded sound, or silence while the microphone is off.
    async fn hear(&mut self, sound: Option<Vec<u8>>) -> CliResult<()> {
        let Some(mut sound) = sound else {
            if !self.microphone.is_file {
                let sentence = format!("{} stopped recording", self.microphone.name);
                return Err(Failure::engine(sentence).hint("check the microphone"));
            }
            self.has_said_all = true;
            self.last_event = Instant::now();
            return Ok(());
        };
        let now = Instant::now();
        let echoes = self.loudspeaker.plays(now.checked_sub(ECHO_TIME).unwrap_or(now));
        if !self.options.headphones && echoes {
            sound.fill(0);
        }
        self.append(&sound).await
    }

    async fn append(&mut self, sound: &[u8]) -> CliResult<()> {
        let audio = STANDARD.encode(sound);
        self.send(&json!({"type": "input_audio_buffer.append", "audio": audio})).await
    }

    async fn tick(&mut self) -> CliResult<PipeState> {
        let now = Instant::now();
        self.loudspeaker.advance(now).await?;
        if self.has_said_all {
            let silence = vec![0; 2 * RATE_HZ as usize * TICK.as_millis() as usize / 1_000];
            self.append(&silence).await?;
        }
        match &self.turn {
            Turn::Answer { is_done: true, .. } if !self.loudspeaker.plays(now) => self.end_answer(),
            _ => Ok(PipeState::Open),
        }
    }

    async fn receive(&mut self, event: TalkEvent) -> CliResult<PipeState> {
        if event != TalkEvent::Other {
            self.last_event = Instant::now();
        }
        match event {
            TalkEvent::SpeechStarted => {
                let pipe = self.fall_silent().await?;
                self.turn = Turn::Person;
                return Ok(pipe);
            }
            TalkEvent::Committed { item_id } => self.turn = Turn::Awaited { item_id },
            TalkEvent::HeardDelta { delta } => return self.captions.add(Speaker::Person, &delta),
            TalkEvent::HeardDone { item_id, transcript } => {
                // A noise gets no answer.
                if transcript.is_empty() && self.turn == (Turn::Awaited { item_id }) {
                    self.turn = Turn::Nobody;
                }
                return self.captions.end();
            }
            TalkEvent::Failed { error } if error.code.as_deref() == Some(ALREADY_ENDED) => {}
            TalkEvent::HearingFailed { error } if self.microphone.is_file => {
                return Err(Failure::server(format!("the transcript failed: {}", error.message)));
            }
            TalkEvent::HearingFailed { error } | TalkEvent::Failed { error } => {
                self.captions.end()?;
                self.printer.note(format_args!("the server reports: {}", error.message));
            }
            TalkEvent::ResponseCreated { response } => {
                self.turn = Turn::Answer { response_id: response.id, is_done: false };
            }
            TalkEvent::SpokenDelta { response_id, delta } if self.wants(&response_id) => {
                return self.captions.add(Speaker::Hob, &delta);
            }
            TalkEvent::Sound { response_id, item_id, delta } if self.wants(&response_id) => {
                let sound = STANDARD.decode(delta);
                let sound = sound.map_err(Failure::server)?;
                self.loudspeaker.add(&item_id, &sound)?;
            }
            TalkEvent::ResponseDone { response } => return self.end_response(&response),
            TalkEvent::TurnStages { stages_ms } => self.stages = Some(stages_ms),
            TalkEvent::SpokenDelta { .. }
            | TalkEvent::Sound { .. }
            | TalkEvent::SessionCreated { .. }
            | TalkEvent::SessionUpdated
            | TalkEvent::Other => {}
        }
        Ok(PipeState::Open)
    }

    fn wants(&self, response_id: &str) -> bool {
        self.stopped.as_deref() != Some(response_id)
    }

    fn end_response(&mut self, response: &ResponseState) -> CliResult<PipeState> {
        let details = response.status_details.as_ref();
        if let Some(error) = details.and_then(|details| details.error.as_ref()) {
            let failure = Failure::server(format!("the answer failed: {}", error.message));
            if self.microphone.is_file {
                return Err(failure);
            }
            self.captions.end()?;
            self.printer.failure(&failure);
        }
        if let Turn::Answer { response_id, is_done } = &mut self.turn
            && *response_id == response.id
        {
            *is_done = true;
        }
        Ok(PipeState::Open)
    }

    /// The answer has been heard to its end.
    fn end_answer(&mut self) -> CliResult<PipeState> {
        self.turn = Turn::Nobody;
        self.answers += 1;
        let pipe = self.captions.end()?;
        self.show_stages();
        Ok(pipe)
    }

    fn show_stages(&mut self) {
        if let Some(stages) = self.stages.take() {
            self.printer.faint(stages_text(&stages));
        }
    }

    fn stops_answer(&self, stop: Stop) -> bool {
        stop == Stop::Interrupt && matches!(self.turn, Turn::Answer { .. })
    }

    /// Ends the answer because the person asked for it.
    async fn stop_answer(&mut self) -> CliResult<PipeState> {
        if let Turn::Answer { is_done: false, .. } = self.turn {
            self.send(&json!({"type": "response.cancel"})).await?;
        }
        let pipe = self.fall_silent().await?;
        self.turn = Turn::Nobody;
        Ok(pipe)
    }

    /// Stops the loudspeaker, and tells the server how much was heard.
    async fn fall_silent(&mut self) -> CliResult<PipeState> {
        if let Turn::Answer { response_id, .. } = &self.turn {
            self.stopped = Some(response_id.clone());
        }
        let Some(stopped) = self.loudspeaker.stop(Instant::now()) else {
            return Ok(PipeState::Open);
        };
        self.send(&json!({
            "type": "conversation.item.truncate",
            "item_id": stopped.item_id,
            "content_index": 0,
            "audio_end_ms": stopped.heard_ms,
        }))
        .await?;
        self.answers += 1;
        let pipe = self.captions.interrupted()?;
        self.show_stages();
        Ok(pipe)
    }

    /// Whether everything in the file has been answered.
    fn is_over(&self) -> CliResult<bool> {
        let quiet = self.last_event.elapsed();
        match self.turn {
            Turn::Nobody if quiet > TURN_TIME_MAX && self.answers == 0 => {
                let sentence = format!("no speech was heard in {}", self.microphone.name);
                Err(Failure::new(Exit::Usage, sentence))
            }
            Turn::Nobody => Ok(quiet > TURN_TIME_MAX),
            Turn::Answer { .. } if self.loudspeaker.plays(Instant::now()) => Ok(false),
            _ if quiet > ANSWER_TIME_MAX => {
                let sentence = "the server did not answer within 60 s".to_owned();
                Err(Failure::server(sentence))
            }
            _ => Ok(false),
        }
    }

    async fn send(&mut self, event: &Value) -> CliResult<()> {
        let sent = self.socket.send(event.to_string()).await;
        sent.map_err(|error| self.remote.lost(&error))
    }
}

async fn next_event(socket: &mut TextSocket, remote: &Remote) -> CliResult<TalkEvent> {
    let text = socket.next().await.map_err(|error| remote.lost(&error))?;
    let ended = || Failure::server("the server ended the conversation");
    let text = text.ok_or_else(ended)?;
    let unread = |error| Failure::server(format!("the server sent no event: {error}"));
    serde_json::from_str(&text).map_err(unread)
}

fn session(options: &TalkOptions, turn_detection: &str) -> Value {
    let format = json!({"type": "audio/pcm", "rate": RATE_HZ});
    let mut output = json!({"format": format});
    if let Some(voice) = &options.voice {
        output["voice"] = json!(voice);
    }
    let mut transcription = json!({});
    if let Some(language) = &options.language {
        transcription["language"] = json!(language);
    }
    json!({"type": "session.update", "session": {
        "type": "realtime",
        "instructions": options.system,
        "audio": {
            "input": {
                "format": format,
                "transcription": transcription,
                "turn_detection": {"type": turn_detection},
            },
            "output": output,
        },
        "include": ["hob.turn_stages"],
    }})
}
