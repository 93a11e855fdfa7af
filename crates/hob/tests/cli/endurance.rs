//! The real speech model with several concurrent clients, clients that disconnect, and a worker that crashes.
//! Also its sound in every format, as decoded by another program.

use std::io::Read;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::real_server::Served;
use crate::{User, until, until_ok};

// Each takes several windows of the vocoder. Longer texts would only take longer: most of these tests' time is synthesis.
const SEA: &str = "The salt breeze came across from the sea.";
const TRAIN: &str = "Trains leave every hour from platform nine.";

/// More than the head of an answer.
const FIRST_SOUND_BYTES: usize = 2 << 10;
/// More than the head and the longest first window: 1 s of sound, on slow machines. [`SEA`] has more than 2 s.
const SECOND_WINDOW_BYTES: usize = FIRST_SOUND_BYTES + 24_000 * 2;

/// A server with the threads that users have. Engines with several threads also compute two windows at the same time.
fn served() -> (User, Served) {
    let user = User::with_only(&["kokoro"]).configured("[speech]\nthreads = 0\n");
    let served = Served::start(&user).until_ready("kokoro");
    (user, served)
}

/// The cosine of the angle between two sounds: 1 for equal sounds, 0 for unrelated ones.
fn likeness(a: &[i16], b: &[i16]) -> f64 {
    let dot = |x: &[i16], y: &[i16]| -> f64 {
        x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn clients_hear_their_own_text_and_a_killed_worker_is_replaced() {
    let (_user, served) = served();
    two_clients_at_once_hear_their_own_text_to_the_last_sample(&served);
    a_worker_that_is_killed_is_an_error_for_its_client_and_is_replaced(&served);
    served.end("-INT");
}

fn two_clients_at_once_hear_their_own_text_to_the_last_sample(served: &Served) {
    let alone = [served.samples(SEA, "af_heart"), served.samples(TRAIN, "bm_fable")];
    let together = thread::scope(|scope| {
        let sea = scope.spawn(|| served.samples(SEA, "af_heart"));
        let train = scope.spawn(|| served.samples(TRAIN, "bm_fable"));
        [sea.join().expect("the first"), train.join().expect("the second")]
    });
    for at in 0..2 {
        // Windows are cut according to the listener's lead, so samples differ a little. The words and their times do
        // not.
        assert_eq!(together[at].len(), alone[at].len());
        let (own, other) =
            (likeness(&together[at], &alone[at]), likeness(&together[at], &alone[1 - at]));
        assert!(own > 0.8, "client {at} heard its own text with a likeness of {own}");
        assert!(other.abs() < 0.3, "client {at} heard the other's text: {other}");
    }
}

fn a_worker_that_is_killed_is_an_error_for_its_client_and_is_replaced(served: &Served) {
    let mut body = served.ask(&SEA.repeat(40), "af_heart").expect("an answer").into_reader();
    body.read_exact(&mut [0; 4800]).expect("sound");
    served.kill_worker("speech");
    let cut = body.read_to_end(&mut Vec::new());
    assert!(cut.is_err(), "the answer ended as if it were whole");
    let mut again = until_ok(300, || served.ask("Here I am again.", "af_heart"));
    let again = again.read_to_vec().expect("a whole answer");
    assert!(again.len() > 24_000, "{} bytes", again.len());
}

#[test]
fn answers_of_three_hundred_clients_that_leave_are_stopped() {
    let (_user, served) = served();
    let leave = |clients: std::ops::Range<u64>| {
        for client in clients {
            let body = json!({"input": SEA, "response_format": "pcm"});
            let mut socket = served.begin("v1/audio/speech", &body);
            // Every fifth client hears the first window before it leaves, and every 25th more than that, on slow machines too.
            if client % 5 == 0 {
                let heard = if client % 25 == 0 { SECOND_WINDOW_BYTES } else { FIRST_SOUND_BYTES };
                socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
                socket.read_exact(&mut vec![0; heard]).expect("sound");
            }
            // The others leave before the first window is computed, or meanwhile.
            thread::sleep(Duration::from_millis(client * 7919 % 100));
            drop(socket);
        }
    };
    let five_at_a_time = |first: u64, each: u64| {
        thread::scope(|scope| {
            for lane in 0..5 {
                let from = first + lane * each;
                scope.spawn(move || leave(from..from + each));
            }
        });
    };
    five_at_a_time(0, 10);
    let before_mb = served.worker_mb();
    five_at_a_time(50, 50);
    let is_idle = || served.metric("hob_speech_in_flight{") == Some(0.0);
    until(60, "requests of clients that left are still answered", is_idle);
    assert!(served.samples("Still here.", "af_heart").len() > 12_000);
    let grown_mb = served.worker_mb() - before_mb;
    assert!(grown_mb < 55.0, "the worker grew by {grown_mb} MB");
    served.end("-INT");
}

#[test]
fn another_program_decodes_every_format_to_the_same_length() {
    let user = User::with_only(&["kokoro"]);
    let served = Served::start(&user).until_ready("kokoro");
    // One window and a part of another. The text is short because it is synthesised for each format.
    let text = "Trains leave from here.";
    let samples = served.samples(text, "af_heart").len();
    // Padding samples that the container cannot declare; 0 if it can declare them.
    for (format, padding) in
        [("wav", 0), ("flac", 0), ("opus", 0), ("mp3", 1152 * 3), ("aac", 1024 * 3)]
    {
        let file = user.path("work").join(format!("a.{format}"));
        let file = file.to_str().expect("UTF-8");
        let url = &served.url;
        user.hob(&["say", "--server", url, "-f", format, "-o", file, text]).assert().success();
        let decoded = Command::new("ffmpeg")
            .args(["-v", "error", "-i", file, "-f", "s16le", "-ar", "24000", "-ac", "1", "-"])
            .output()
            .expect("ffmpeg, which scripts/bootstrap --test installs");
        assert!(
            decoded.stderr.is_empty(),
            "{format}: {}",
            String::from_utf8_lossy(&decoded.stderr)
        );
        let heard = decoded.stdout.len() / 2;
        assert!((samples..=samples + padding).contains(&heard), "{format}: {heard} of {samples}");
    }
    served.end("-INT");
}
