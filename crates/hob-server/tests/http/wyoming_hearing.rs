//! Transcription over Wyoming: sound in any layout, heard while it arrives; the text as it grows and whole.
//! Sound that comes faster than it was spoken waits, and sound without an end is refused.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::wyoming::{Wyoming, WyomingClient};

fn layout(rate: u32, width: usize, channels: usize) -> Value {
    json!({ "rate": rate, "width": width, "channels": channels, "timestamp": 0 })
}

fn usual() -> Value {
    layout(16_000, 2, 1)
}

/// One second of sound in the usual layout.
fn second() -> Vec<u8> {
    vec![0; 32_000]
}

async fn hear(client: &mut WyomingClient, sound: &[u8]) {
    client.send_with("audio-chunk", usual(), sound).await;
}

#[tokio::test]
async fn sound_is_heard_while_it_arrives_and_its_text_is_sent_twice() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.hearer().await;
    let wish = json!({ "name": "ears", "language": "en-GB", "transcript_names": ["Ann", "Bob"] });
    client.send("transcribe", wish).await;
    client.send("audio-start", usual()).await;
    // A satellite sends 1024 samples at a time, and bytes may be cut inside a sample.
    hear(&mut client, &[0x00, 0x40, 0x00]).await;
    assert_eq!(client.expect("transcript-start").await.data, json!({ "language": "en" }));
    assert_eq!(client.expect("transcript-chunk").await.data, json!({ "text": " 1" }));
    hear(&mut client, &[0x20; 2047]).await;
    assert_eq!(client.expect("transcript-chunk").await.data, json!({ "text": " 1024" }));
    client.send("audio-stop", json!({ "timestamp": 64 })).await;
    let expected = json!({ "text": "1 1024", "language": "en" });
    assert_eq!(client.expect("transcript").await.data, expected);
    client.expect("transcript-stop").await;
    let asked = wyoming.transcript.asked.lock().expect("no panic").remove(0);
    assert_eq!(asked.language.as_deref(), Some("en"));
    assert_eq!(asked.prompt.as_deref(), Some("Ann, Bob"));
    assert_eq!(wyoming.transcript.sound.lock().expect("no panic")[0], 0.5);
    let now = wyoming.server.get("/api/hob/now").await.json();
    let recent = &now["recent"][0];
    assert_eq!((&recent["route"], &recent["alias"]), (&json!("transcription"), &json!("ears")));
    assert_eq!(recent["target"], "whisper");
}

#[tokio::test]
async fn every_layout_becomes_the_model_s_own() {
    for (layout, bytes) in [
        (layout(16_000, 2, 1), 32_000),
        (layout(8_000, 1, 1), 8_000),
        (layout(44_100, 2, 2), 176_400),
        (layout(48_000, 4, 1), 192_000),
        (layout(22_050, 3, 2), 132_300),
    ] {
        let wyoming = Wyoming::start().await;
        let mut client = wyoming.hearer().await;
        client.send("audio-start", layout.clone()).await;
        for piece in vec![0x10; bytes].chunks(4096) {
            client.send_with("audio-chunk", layout.clone(), piece).await;
        }
        client.send("audio-stop", json!({})).await;
        client.until("transcript-stop").await;
        let samples = wyoming.transcript.sound.lock().expect("no panic").len();
        assert_eq!(samples, 16_000, "one second of {layout}");
    }
}

#[tokio::test]
async fn a_layout_may_change_and_a_start_may_be_missing() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.hearer().await;
    hear(&mut client, &second()).await;
    client.send_with("audio-chunk", layout(48_000, 2, 1), &[0; 96_000]).await;
    client.send("audio-stop", json!({})).await;
    client.until("transcript-stop").await;
    assert_eq!(wyoming.transcript.sound.lock().expect("no panic").len(), 32_000);
    // A recording without a sample has a text, too.
    client.send("audio-start", usual()).await;
    client.send("audio-stop", json!({})).await;
    client.expect("transcript-start").await;
    assert_eq!(client.expect("transcript").await.data, json!({ "text": "" }));
    client.expect("transcript-stop").await;
}

#[tokio::test]
async fn bad_sound_and_unknown_names_are_refused() {
    let wyoming = Wyoming::start().await;
    for (wish, layout, message) in [
        (json!({}), layout(16_000, 0, 1), "a sample of raw sound has 0 bytes (expected 1 to 4)"),
        (json!({}), layout(16_000, 5, 1), "a sample of raw sound has 5 bytes"),
        (json!({}), layout(16_000, 2, 0), "16000 Hz and 0 channels"),
        (json!({}), layout(0, 2, 1), "0 Hz and 1 channels"),
        (json!({ "language": "xx" }), usual(), "'language' must be a language of ISO 639-1"),
        (json!({ "name": "absent" }), usual(), "no model is called 'absent'"),
        (json!({ "name": "gpu/a" }), usual(), "no model is called 'gpu/a'"),
    ] {
        let mut client = wyoming.hearer().await;
        client.send("transcribe", wish).await;
        client.send("audio-start", layout).await;
        let (said, _) = client.refused().await;
        assert!(said.contains(message), "{said}");
    }
    let mut client = wyoming.hearer().await;
    client.send("audio-start", usual()).await;
    client.send("transcribe", json!({})).await;
    let (said, _) = client.refused().await;
    assert!(said.contains("the sound of a transcription is not complete"), "{said}");
}

/// Such an alias may be of any kind, so `describe` does not list it.
#[tokio::test]
async fn an_alias_leads_to_another_server() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.hearer().await;
    client.send("transcribe", json!({ "name": "gpu/any" })).await;
    client.send("audio-start", usual()).await;
    client.expect("transcript-start").await;
    client.expect("transcript-chunk").await;
    assert_eq!(client.expect("transcript").await.data, json!({ "text": "Hi" }));
}

/// The engine gives up live sound that is a minute ahead of it.
#[tokio::test(start_paused = true)]
async fn a_microphone_that_falls_silent_is_given_up() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.hearer().await;
    client.send("audio-start", usual()).await;
    let begun = Instant::now();
    let error = client.read().await.expect("an event").data;
    assert_eq!(error["text"], "the client sent nothing for 30 s in the middle of a request");
    assert!(begun.elapsed() >= Duration::from_secs(29));
}

#[tokio::test]
async fn a_speaker_who_leaves_frees_the_model() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.hearer().await;
    hear(&mut client, &second()).await;
    client.until("transcript-chunk").await;
    let mut second_client = wyoming.hearer().await;
    hear(&mut second_client, &second()).await;
    assert_eq!(second_client.refused().await.1.as_deref(), Some("queue_full"));
    drop(client);
    wyoming.server.until_in_flight(0).await;
    let mut third = wyoming.hearer().await;
    hear(&mut third, &second()).await;
    third.until("transcript-chunk").await;
}
