//! One conversation over `/v1/realtime`. Each event of the server gets its time of arrival before it is parsed.
//! One thread sends and reads: it reads until the next piece of sound is due.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_wire::percent_encoded;
use serde::Deserialize;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::{Error, Message, WebSocket};

use super::audible::Audible;
use super::microphone::{Microphone, Question, RATE_HZ, SaidAt};
use super::{TurnEnd, VoiceFault};
use crate::drive::BenchConnection;
use crate::socket::is_pause;
use crate::target::Target;

/// A session loads its models before its first event.
const OPEN_WITHIN: Duration = Duration::from_secs(120);
/// Between two checks for a stop while a session opens.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Silence before the first question.
const LEAD: Duration = Duration::from_millis(300);
/// How long to listen for events of an interrupted answer after its end. There must be none.
const AFTERMATH: Duration = Duration::from_millis(500);
/// How long to wait for the stages of a turn, which hob sends with its first sound.
const STAGES_WITHIN: Duration = Duration::from_millis(50);
/// A read that waits less is not worth a system call.
const WAIT_MIN: Duration = Duration::from_micros(200);
const INSTRUCTIONS: &str = "You are a voice assistant. Answer in one or two short sentences.";

pub(super) struct Conversation<'a> {
    socket: WebSocket<BenchConnection>,
    microphone: Microphone,
    stop: &'a AtomicBool,
    /// When the server was ready to listen.
    pub(super) ready_at: Instant,
    /// The response that answers the question, and the response that ended last.
    answer: Option<String>,
    ended: Option<String>,
}

/// The times of the events of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TurnMarks {
    pub(super) said: SaidAt,
    /// The server said that the person stopped.
    pub(super) turn_end: Instant,
    pub(super) transcript: Instant,
    pub(super) first_text: Instant,
    /// When the first audible sample can be played.
    pub(super) audible: Instant,
    /// The stages by the server's own clock, if it sends them.
    pub(super) reported: Option<ReportedStages>,
}

/// What hob says about a turn in `hob.turn_stages`, from the end of the turn on, in milliseconds. The stage before it begins
/// where hob's voice detector heard the end of speech, which the client knows better.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct ReportedStages {
    pub(super) stt: f64,
    pub(super) llm_ttfat: f64,
    pub(super) sentence: f64,
    pub(super) tts_ttfa: f64,
    pub(super) transport: f64,
}

impl ReportedStages {
    pub(super) fn sum(&self) -> f64 {
        self.stt + self.llm_ttfat + self.sentence + self.tts_ttfa + self.transport
    }
}

/// An event, and when it arrived.
struct Event {
    at: Instant,
    kind: String,
    body: Value,
}

impl<'a> Conversation<'a> {
    /// Opens a session, and waits until it is ready.
    ///
    /// # Errors
    /// The server refuses it.
    pub(super) fn open(
        target: &Target,
        turn_end: TurnEnd,
        voice: Option<&str>,
        stop: &'a AtomicBool,
    ) -> Result<Conversation<'a>, VoiceFault> {
        let connection = target.endpoint.connect(OPEN_WITHIN).map_err(VoiceFault::Connect)?;
        connection.set_read_timeout(OPEN_WITHIN).map_err(VoiceFault::Connect)?;
        let socket = handshake(target, connection)?;
        let ready_at = Instant::now();
        let microphone = Microphone::new(ready_at);
        let (answer, ended) = (None, None);
        let mut opened = Conversation { socket, microphone, stop, ready_at, answer, ended };
        opened.read_until("session.created")?;
        opened.send(&settings(turn_end, voice))?;
        opened.read_until("session.updated")?;
        opened.ask_for_stages()?;
        opened.ready_at = Instant::now();
        opened.microphone = Microphone::new(opened.ready_at);
        opened.listen(Instant::now() + LEAD, |_| None::<()>)?;
        Ok(opened)
    }

    /// Only hob knows these events; another server may reject the wish.
    fn ask_for_stages(&mut self) -> Result<(), VoiceFault> {
        let session = json!({"type": "realtime", "include": ["hob.turn_stages"]});
        self.send(&json!({"type": "session.update", "session": session}))?;
        match self.read_until("session.updated") {
            Err(VoiceFault::Server(_)) => Ok(()),
            other => other,
        }
    }

    /// Asks, and returns when the answer can be heard.
    ///
    /// # Errors
    /// The server does not answer with sound, or took the question for finished before its last word.
    pub(super) fn ask(&mut self, question: &Question) -> Result<TurnMarks, VoiceFault> {
        let said = self.microphone.say(question);
        let mut answer = AnswerMarks::default();
        let deadline = said.end + ANSWER_WITHIN;
        let heard = self.listen(deadline, |event| answer.take(event, said).transpose())?;
        let audible = heard.ok_or(VoiceFault::NoAnswer)??;
        self.answer = answer.response_id.take();
        let reported = |event: &Event| {
            let is_report = event.kind == "hob.turn_stages";
            is_report.then(|| ReportedStages::deserialize(&event.body["stages_ms"]).ok())
        };
        let reported = self.listen(Instant::now() + STAGES_WITHIN, reported)?.flatten();
        Ok(TurnMarks { reported, ..answer.marks(said, audible) })
    }

    /// Speaks while the answer plays, and returns the time from the first sound of this speech to the moment at which the
    /// client falls silent.
    ///
    /// # Errors
    /// The server does not stop, or sends more of the old answer afterwards.
    pub(super) fn interrupt(
        &mut self,
        after: Duration,
        question: &Question,
    ) -> Result<Duration, VoiceFault> {
        self.listen(Instant::now() + after, |_| None::<()>)?;
        let said = self.microphone.say(question);
        let deadline = said.end + ANSWER_WITHIN;
        // A client stops its loudspeaker when it learns that the person speaks.
        let is_heard =
            |event: &Event| (event.kind == "input_audio_buffer.speech_started").then_some(event.at);
        let silent = self.listen(deadline, is_heard)?.ok_or(VoiceFault::NotInterrupted)?;
        self.expect_the_end_of_the_answer(deadline)?;
        Ok(silent.saturating_duration_since(said.onset))
    }

    /// Fails if sound of the interrupted answer comes before its end, or anything of it afterwards. A short answer may have
    /// ended before it was interrupted.
    fn expect_the_end_of_the_answer(&mut self, deadline: Instant) -> Result<(), VoiceFault> {
        // Without an id, sound of the old answer would not be noticed.
        let Some(old) = self.answer.clone() else {
            return Err(VoiceFault::Broken("the sound of an answer has no response_id".to_owned()));
        };
        let is_old = |event: &Event| event.body["response_id"] == old.as_str();
        if self.ended != self.answer {
            let sound_or_end = |event: &Event| {
                let is_sound = event.kind == "response.output_audio.delta" && is_old(event);
                (is_sound || event.ended_response() == Some(old.as_str())).then_some(is_sound)
            };
            let is_sound = self.listen(deadline, sound_or_end)?;
            if is_sound.ok_or(VoiceFault::NotInterrupted)? {
                return Err(VoiceFault::OldSound);
            }
        }
        match self.listen(Instant::now() + AFTERMATH, |event| is_old(event).then_some(()))? {
            Some(()) => Err(VoiceFault::OldSound),
            None => Ok(()),
        }
    }

    /// Closes the session. Errors do not matter: the server may have gone already.
    pub(super) fn close(mut self) {
        let _gone = self.socket.close(None);
        let _gone = self.socket.flush();
    }

    /// Sends sound and reads events until `take` has what it looks for. `None`: the deadline passed.
    fn listen<T>(
        &mut self,
        deadline: Instant,
        mut take: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Option<T>, VoiceFault> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(VoiceFault::Stopped);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let wait = self.microphone.due().saturating_duration_since(now);
            if wait < WAIT_MIN {
                let piece = STANDARD.encode(self.microphone.piece());
                self.send(&json!({"type": "input_audio_buffer.append", "audio": piece}))?;
            } else if let Some(event) = self.read(wait)? {
                if let Some(id) = event.ended_response() {
                    self.ended = Some(id.to_owned());
                }
                if let Some(found) = take(&event) {
                    return Ok(Some(found));
                }
            }
        }
    }

    fn read_until(&mut self, kind: &str) -> Result<(), VoiceFault> {
        let deadline = Instant::now() + OPEN_WITHIN;
        while Instant::now() < deadline {
            if self.stop.load(Ordering::Relaxed) {
                return Err(VoiceFault::Stopped);
            }
            if self.read(LOOK_EVERY)?.is_some_and(|event| event.kind == kind) {
                return Ok(());
            }
        }
        Err(VoiceFault::NoAnswer)
    }

    fn read(&mut self, wait: Duration) -> Result<Option<Event>, VoiceFault> {
        self.socket.get_ref().set_read_timeout(wait).map_err(VoiceFault::Connect)?;
        let message = match self.socket.read() {
            Ok(message) => message,
            Err(Error::Io(error)) if is_pause(&error) => return Ok(None),
            Err(error) => return Err(VoiceFault::Broken(error.to_string())),
        };
        let at = Instant::now() - self.socket.get_ref().read_delay();
        match message {
            Message::Text(text) => event(at, &text).map(Some),
            Message::Close(frame) => {
                let reason = frame.map(|frame| format!("{}: {}", frame.code, frame.reason));
                Err(VoiceFault::Closed(reason.unwrap_or_default()))
            }
            _ => Ok(None),
        }
    }

    fn send(&mut self, event: &Value) -> Result<(), VoiceFault> {
        let sent = self.socket.send(Message::text(event.to_string()));
        sent.map_err(|error| VoiceFault::Broken(error.to_string()))
    }
}

impl Event {
    /// The id of the response that ends with this event.
    fn ended_response(&self) -> Option<&str> {
        let id = self.body["response"]["id"].as_str();
        id.filter(|_| self.kind == "response.done")
    }
}

/// What a turn's events say so far.
#[derive(Default)]
struct AnswerMarks {
    response_id: Option<String>,
    turn_end: Option<Instant>,
    transcript: Option<Instant>,
    first_text: Option<Instant>,
    first_sound: Option<Instant>,
    audible: Audible,
}

impl AnswerMarks {
    /// The time of the first audible sample, or why the answer has no sound.
    fn take(&mut self, event: &Event, said: SaidAt) -> Result<Option<Instant>, VoiceFault> {
        match event.kind.as_str() {
            "input_audio_buffer.speech_stopped" if event.at < said.end => {
                return Err(VoiceFault::CutIn);
            }
            "input_audio_buffer.speech_stopped" => self.turn_end = Some(event.at),
            "conversation.item.input_audio_transcription.completed" => {
                self.transcript = Some(event.at);
            }
            "response.output_item.added" => {
                self.first_text.get_or_insert(event.at);
            }
            "response.output_audio.delta" => {
                let sound = STANDARD.decode(event.body["delta"].as_str().unwrap_or_default());
                let sound = sound.map_err(|error| VoiceFault::Broken(error.to_string()))?;
                let began = *self.first_sound.get_or_insert(event.at);
                self.response_id = event.body["response_id"].as_str().map(str::to_owned);
                if let Some(position) = self.audible.hear(&sound) {
                    let offset = position as f64 / f64::from(RATE_HZ);
                    return Ok(Some(began + Duration::from_secs_f64(offset)));
                }
            }
            "response.done" => return Err(VoiceFault::Silent(event.body["response"].to_string())),
            _ => {}
        }
        Ok(None)
    }

    /// A mark that is missing, or earlier than the one before it, makes a stage of no length.
    fn marks(&self, said: SaidAt, audible: Instant) -> TurnMarks {
        let turn_end = self.turn_end.unwrap_or(said.end).clamp(said.end, audible.max(said.end));
        let transcript = self.transcript.unwrap_or(turn_end).max(turn_end);
        let first_text = self.first_text.unwrap_or(transcript).max(transcript);
        TurnMarks {
            said,
            turn_end,
            transcript,
            first_text,
            audible: audible.max(first_text),
            reported: None,
        }
    }
}

fn handshake(
    target: &Target,
    connection: BenchConnection,
) -> Result<WebSocket<BenchConnection>, VoiceFault> {
    let endpoint = &target.endpoint;
    let host = endpoint.authority();
    let model = percent_encoded(&target.model);
    let url = format!("ws://{host}{}/v1/realtime?model={model}", endpoint.prefix);
    let broken = |error: Error| VoiceFault::Broken(error.to_string());
    let mut request = url.into_client_request().map_err(broken)?;
    let agent = concat!("hob-bench/", env!("CARGO_PKG_VERSION"));
    let headers = request.headers_mut();
    headers.insert(HeaderName::from_static("user-agent"), HeaderValue::from_static(agent));
    let key = target.key.as_ref().map(|key| HeaderValue::from_str(&format!("Bearer {key}")));
    if let Some(Ok(key)) = key {
        headers.insert(HeaderName::from_static("authorization"), key);
    }
    match tungstenite::client(request, connection) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(Error::Http(answer))) => {
            Err(VoiceFault::Refused { status: answer.status().as_u16() })
        }
        Err(tungstenite::HandshakeError::Failure(error)) => Err(broken(error)),
        Err(tungstenite::HandshakeError::Interrupted(_)) => Err(VoiceFault::NoAnswer),
    }
}

fn settings(turn_end: TurnEnd, voice: Option<&str>) -> Value {
    let detection = match turn_end {
        TurnEnd::Semantic => json!({"type": "semantic_vad"}),
        TurnEnd::Silence { ms } => json!({"type": "server_vad", "silence_duration_ms": ms}),
    };
    let mut output = json!({"format": {"type": "audio/pcm", "rate": RATE_HZ}});
    if let Some(voice) = voice {
        output["voice"] = json!(voice);
    }
    json!({"type": "session.update", "session": {
        "type": "realtime",
        "instructions": INSTRUCTIONS,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": RATE_HZ},
                "transcription": {"model": "whisper-1", "language": "en"},
                "turn_detection": detection,
            },
            "output": output,
        },
    }})
}

fn event(at: Instant, text: &str) -> Result<Event, VoiceFault> {
    let body: Value =
        serde_json::from_str(text).map_err(|error| VoiceFault::Broken(error.to_string()))?;
    let kind = body["type"].as_str().unwrap_or_default().to_owned();
    if kind == "error" {
        let message = body["error"]["message"].as_str().unwrap_or("an error without a message");
        return Err(VoiceFault::Server(message.to_owned()));
    }
    Ok(Event { at, kind, body })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::target::Api;

    #[test]
    fn a_stop_ends_the_wait_for_a_session() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        // The server accepts the connection, and sends no event until the client leaves.
        let server = thread::spawn(move || {
            let socket = listener.accept().expect("a client").0;
            tungstenite::accept(socket).expect("a WebSocket").read().is_err()
        });
        let target = Target::for_tests(&url, Api::Hob);
        let stop = AtomicBool::new(true);
        let opened = Conversation::open(&target, TurnEnd::Semantic, None, &stop);
        assert!(matches!(opened, Err(VoiceFault::Stopped)));
        assert!(server.join().expect("a server"), "the client has left");
    }

    #[test]
    fn a_question_that_is_cut_off_is_a_fault_and_missing_marks_have_no_length() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let said = SaidAt { onset: at(0), end: at(1_000) };
        let stopped = |ms| Event {
            at: at(ms),
            kind: "input_audio_buffer.speech_stopped".to_owned(),
            body: Value::Null,
        };
        let mut marks = AnswerMarks::default();
        assert!(matches!(marks.take(&stopped(900), said), Err(VoiceFault::CutIn)));
        assert!(matches!(marks.take(&stopped(1_250), said), Ok(None)));
        let marks = marks.marks(said, at(1_700));
        let stages = [marks.turn_end, marks.transcript, marks.first_text, marks.audible];
        assert_eq!(stages, [at(1_250), at(1_250), at(1_250), at(1_700)]);
    }
}
