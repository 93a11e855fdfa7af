//! A spoken conversation with the real models that `make test` fetches. Workers are killed in the middle of its turns.
//! The server is that of the test of `hob talk`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_upstream::TextSocket;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::real_server::Served;

/// Sound of one event: 100 ms.
const PIECE_BYTES: usize = 4_800;
/// The beginning of the question: 1.25 s.
const BEGINNING_BYTES: usize = 60_000;
/// The silence after it: 1.5 s.
const SILENCE_BYTES: usize = 72_000;
/// Long, because a worker starts again, and other programs may use the processor.
const EVENT_TIME_MAX: Duration = Duration::from_secs(120);

struct Session(TextSocket);

impl Session {
    async fn open(url: &str) -> Session {
        let opened = TextSocket::open(url, "/v1/realtime", None, EVENT_TIME_MAX).await;
        Session(opened.expect("a session"))
    }

    async fn send(&mut self, event: &Value) {
        self.0.send(event.to_string()).await.expect("an open socket");
    }

    async fn say(&mut self, sound: &[u8]) {
        for piece in sound.chunks(PIECE_BYTES) {
            let audio = STANDARD.encode(piece);
            self.send(&json!({"type": "input_audio_buffer.append", "audio": audio})).await;
        }
    }

    /// The next event of this type.
    async fn until(&mut self, kind: &str) -> Value {
        let found = async {
            loop {
                let text = self.0.next().await.expect("no error").expect("an open socket");
                let event: Value = serde_json::from_str(&text).expect("JSON");
                if event["type"] == kind {
                    return event;
                }
            }
        };
        timeout(EVENT_TIME_MAX, found).await.expect(kind)
    }
}

/// `question` has samples of 24 kHz.
pub(crate) fn workers_that_are_killed_in_a_turn_end_it_and_not_the_session(
    served: &Served,
    mut question: Vec<u8>,
) {
    question.resize(question.len() + SILENCE_BYTES, 0);
    let settings = json!({"type": "session.update", "session": {
        "instructions": "Tell a story of twenty long sentences.",
        // More than the server's own limit, so that the model still writes when it is killed.
        "max_output_tokens": 4096,
        // In text, the first words come while the model still writes.
        "output_modalities": ["text"],
        "audio": {"input": {"transcription": {}}},
    }});
    Runtime::new().expect("a runtime").block_on(async {
        let mut session = Session::open(&served.url).await;
        session.until("session.created").await;
        session.send(&settings).await;
        let (beginning, rest) = question.split_at(BEGINNING_BYTES);
        session.say(beginning).await;
        session.until("input_audio_buffer.speech_started").await;
        served.kill_worker("hear");
        session.say(rest).await;
        let failed = session.until("conversation.item.input_audio_transcription.failed").await;
        assert_eq!(failed["error"]["code"], "worker_lost", "{failed}");

        served.until_warm(&["whisper-base"]);
        // The next question is heard, and its answer begins.
        session.say(&question).await;
        session.until("response.output_text.delta").await;
        served.kill_worker("chat");
        let done = session.until("response.done").await;
        let code = &done["response"]["status_details"]["error"]["code"];
        assert_eq!((&done["response"]["status"], code), (&json!("failed"), &json!("worker_lost")));
        session.send(&settings).await;
        session.until("session.updated").await;
    });
}
