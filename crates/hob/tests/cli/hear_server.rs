//! `hob hear --server`: text and subtitles are made of the events that the server sends, and JSON comes whole.
//! The server is a mock, which hears the same words in every recording.

use hob_bench::mock::{MockServer, Script};

use crate::hear_real_model::wav;
use crate::{User, stderr, stdout};

#[test]
fn a_server_transcribes_into_every_format() {
    let user = User::new();
    std::fs::write(user.path("work/a.wav"), wav(16_000, &[1_000; 8_000])).expect("written");
    let script = Script::default().with("ttft_ms=5,itl_ms=5").expect("a script");
    let mock = MockServer::start_local(script).expect("a mock");
    let url = mock.url();
    for (format, expected) in [
        ("text", "hello world\n"),
        ("srt", "1\n00:00:00,000 --> 00:00:00,000\nhello world\n\n"),
        ("vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:00.000\nhello world\n\n"),
        // As the server sent it.
        ("json", r#"{"text":"hello world"}"#),
    ] {
        let args = ["hear", "--server", &url, "-f", format, "a.wav"];
        let heard = user.hob(&args).assert().success();
        assert_eq!(stdout(&heard), expected, "{format}");
        // Only events say how much was heard.
        assert_eq!(stderr(&heard).contains(" s of sound in "), format != "json", "{format}");
    }
}
