//! Sound that comes as it is made, told from sound that is held until all of it is there.
//! The mock's own times decide, and they are far apart: a machine that is busy does not change a verdict.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use hob_bench::drive::{Arrivals, Drive, Endpoint, Patience};
use hob_bench::mock::scripted::{Script, Scripted};
use hob_bench::timeline::{Sound, SoundFormat, sound};

const TEXT: &str = "The kettle is on the hob. It will not be long now. Sit down, and wait for it.";

fn heard(audio: &str, format: SoundFormat) -> Sound {
    let script = Script::default().with(&format!("ttft_ms=20,audio_rtf=0.1,audio={audio}"));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mock = Scripted::start(address, script.expect("a script")).expect("a mock");
    let name = format.name();
    let body = format!(r#"{{"model":"mock","input":"{TEXT}","response_format":"{name}"}}"#);
    let length = body.len();
    let job = Bytes::from(format!(
        "POST /v1/audio/speech HTTP/1.1\r\nhost: mock\r\ncontent-length: {length}\r\n\r\n{body}"
    ));
    let drive = Drive {
        endpoint: Endpoint::parse(&mock.url()).expect("an address"),
        jobs: vec![job],
        arrivals: Arrivals::Closed { users: 1 },
        seed: 1,
        patience: Patience::default(),
        answer_bytes: 1 << 18,
    };
    let driven = drive.run(&AtomicBool::new(false)).expect("a drive");
    sound(&driven.exchanges[0], format).expect("sound")
}

#[test]
fn sound_that_is_held_back_is_told_from_sentences_that_come_when_they_are_made() {
    for format in SoundFormat::ALL {
        let (held, by_sentence) = (heard("hold_all", format), heard("per_sentence", format));
        let name = format.name();
        assert!(held.is_fake(), "{name}: {}", held.spread());
        assert!(!by_sentence.is_fake(), "{name}: {}", by_sentence.spread());
        assert!(by_sentence.ttfa_ms < held.ttfa_ms, "{name}: the first sentence does not wait");
        assert!((held.audio_s - by_sentence.audio_s).abs() < 0.1, "{name}: the same is said");
    }
}
