//! With the real models that `make test` fetches: hob hears what its voices say in their own languages. English is left out:
//! other tests hear it.

use std::fmt::Write as _;

use hob_bench::record::RecordStore;

use crate::hear_real_model::wav;
use crate::real_server::Served;
use crate::{User, stdout};

/// A language of Kokoro's voices.
struct Language {
    /// The first letter of the voices' names.
    letter: char,
    /// ISO 639-1
    code: &'static str,
    /// The voices say them in turns. Numbers are left out, because Whisper writes them in words or in digits.
    sentences: [&'static str; 3],
    /// The largest share of wrong characters, in all clips and in the clip of each voice.
    cer_max: f64,
    clip_cer_max: f64,
    /// The largest share of wrong words. Japanese and Mandarin have no spaces between words.
    wer_max: Option<f64>,
}

const LANGUAGES: [Language; 7] = [
    Language {
        letter: 'e',
        code: "es",
        sentences: [
            "El tren sale de la estación por la mañana.",
            "Mi hermana trabaja en un hospital grande.",
            "¿Dónde puedo comprar pan y queso?",
        ],
        cer_max: 0.1,
        clip_cer_max: 0.5,
        wer_max: Some(0.2),
    },
    Language {
        letter: 'f',
        code: "fr",
        sentences: [
            "Nous avons mangé au restaurant hier soir.",
            "La pluie tombe sur les toits de la ville.",
            "Pouvez-vous répéter la question ?",
        ],
        cer_max: 0.1,
        clip_cer_max: 0.5,
        wer_max: Some(0.2),
    },
    Language {
        letter: 'h',
        code: "hi",
        sentences: ["मेरा घर यहाँ से बहुत दूर है।", "आज मौसम बहुत अच्छा है।", "मुझे एक कप चाय चाहिए।"],
        // Whisper base hardly knows Hindi: published word error rates are near 100 %. Silence would have 100 % of both.
        cer_max: 0.95,
        clip_cer_max: 1.2,
        wer_max: None,
    },
    Language {
        letter: 'i',
        code: "it",
        sentences: [
            "La biblioteca è aperta tutti i giorni.",
            "Domani mattina andiamo al mercato.",
            "Il mio amico abita vicino alla piazza.",
        ],
        cer_max: 0.1,
        clip_cer_max: 0.5,
        wer_max: Some(0.2),
    },
    Language {
        letter: 'p',
        code: "pt",
        sentences: [
            "A minha irmã mora perto da praia.",
            "O trem chega na estação à noite.",
            "Você pode abrir a janela, por favor?",
        ],
        cer_max: 0.1,
        clip_cer_max: 0.5,
        wer_max: Some(0.2),
    },
    Language {
        letter: 'j',
        code: "ja",
        sentences: [
            "明日の朝、駅で会いましょう。",
            "この本はとても面白いです。",
            "窓を開けてください。",
        ],
        cer_max: 0.3,
        clip_cer_max: 0.5,
        wer_max: None,
    },
    Language {
        letter: 'z',
        code: "zh",
        sentences: ["今天的天气非常好。", "我们明天去北京看朋友。", "请你打开窗户。"],
        cer_max: 0.3,
        clip_cer_max: 0.5,
        wer_max: None,
    },
];

#[test]
fn every_voice_is_understood_in_its_own_language() {
    let (user, home) = User::with_models();
    // espeak-ng is one of the programs that hob's own tests need.
    #[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
    let path = std::env::var_os("PATH").expect("a PATH");
    let mut voices = user.hob(&["say", "--voices"]);
    let listed = stdout(&voices.envs(home.clone()).env("PATH", &path).assert().success());
    let mut hob = user.process(&["serve", "--listen", "127.0.0.1:0"]);
    hob.envs(home).env("PATH", &path);
    let mut served = Served::run(hob);
    served.note("kokoro is ready");
    let mut set = "clips:\n".to_owned();
    for language in &LANGUAGES {
        let voices = listed.split_whitespace().filter(|voice| {
            voice.starts_with(language.letter) && voice.as_bytes().get(2) == Some(&b'_')
        });
        let voices: Vec<&str> = voices.collect();
        assert!(!voices.is_empty(), "{}: {listed}", language.code);
        // Each voice speaks, and each sentence is said.
        let count = voices.len().max(language.sentences.len());
        let clips = voices.iter().cycle().zip(language.sentences.into_iter().cycle());
        for (clip, (voice, text)) in clips.take(count).enumerate() {
            let (file, code) = (format!("{clip}-{voice}.wav"), language.code);
            let sound = wav(24_000, &served.samples(text, voice));
            std::fs::write(user.path("work").join(&file), sound).expect("written");
            writeln!(set, "- {{file: {file}, text: \"{text}\", language: {code}}}").expect("added");
        }
    }
    user.write("world.yaml", &set);
    let args = ["bench", "stt", "--target", &served.url, "--model", "whisper-base"];
    let once = ["--set", "world.yaml", "--runs-min", "1", "--runs-max", "1"];
    let said = stdout(&user.hob(&[&args[..], &once].concat()).assert().code(&[0, 5][..]));
    println!("{said}");
    let records = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let measured = records.records[0].1.stt.as_ref().expect("a transcription");
    for language in &LANGUAGES {
        let errors = &measured.languages[language.code];
        let within = |share: Option<f64>, most: f64| share.is_some_and(|share| share <= most);
        assert!(within(errors.cer, language.cer_max), "{}: {errors:?}", language.code);
        if let Some(most) = language.wer_max {
            assert!(within(errors.wer, most), "{}: {errors:?}", language.code);
        }
        for clip in measured.clips.iter().filter(|clip| clip.language == language.code) {
            assert!(within(clip.cer, language.clip_cer_max), "{clip:?}");
        }
    }
}
