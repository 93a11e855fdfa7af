//! Which source of a setting wins, what the defaults are, and which settings are refused.

use hob_core::{KeepAlive, KvType};

use super::*;
use crate::config::{KvTypeName, LoadAt, Speculation};
use crate::folders::Folders;

fn folders() -> Folders {
    Folders {
        working: PathBuf::from("/here"),
        home: Some(PathBuf::from("/me")),
        config: Some(PathBuf::from("/me/config")),
        data: Some(PathBuf::from("/me/data")),
    }
}

fn environment() -> Environment {
    Environment { folders: folders(), ..Environment::default() }
}

fn written(text: &str) -> LoadedConfig {
    let config = toml::from_str(text).expect("a good file");
    let path = Some(PathBuf::from("/etc/hob/hob.toml"));
    LoadedConfig { config, path, text: text.to_owned(), seen: None }
}

fn settle(flags: &Overrides, environment: &Environment, written: &LoadedConfig) -> Settings {
    Settings::resolve(flags, environment, written).expect("settings")
}

/// Chat settings from a `[chat]` table, for tests.
pub(crate) fn chat_settings(table: &str) -> ChatSettings {
    settle(&Overrides::default(), &environment(), &written(&format!("[chat]\n{table}\n"))).chat
}

#[test]
fn without_settings_the_defaults_apply() {
    let settings = settle(&Overrides::default(), &environment(), &LoadedConfig::default());
    let expected = Settings {
        home: PathBuf::from("/me/data/hob"),
        server: ServerSettings {
            listen: Listen(([127, 0, 0, 1], 8484).into()),
            allow_remote: false,
            api_key: KeySource::None,
            allowed_hosts: Vec::new(),
            tls: TlsSettings::Off,
            text_chars_max: NonZeroU32::new(100_000).expect("not zero"),
            requests_max: NonZeroU16::new(16).expect("not zero"),
            records: None,
            pipelines: PipelinesSettings { listen: None, accepts_default_key: false },
        },
        speech: SpeechSettings {
            model: "kokoro".to_owned(),
            default_voice: "af_heart".to_owned(),
            threads: Threads::Measured,
            espeak: Espeak::Program(PathBuf::from("espeak-ng")),
            lexicon: BTreeMap::new(),
        },
        chat: ChatSettings {
            model: ModelChoice::Named("smollm2".to_owned()),
            context_tokens: None,
            kv_type: KvTypeName(KvType::F16),
            threads: Threads::Measured,
            parallel: None,
            batch_tokens: NonZeroU32::new(512).expect("not zero"),
            device: CardUse::Allowed,
            gpu_layers: None,
            cpu_moe_layers: None,
            keep_alive: KeepAlive::Forever,
            load: LoadAt::Start,
            is_pinned: false,
            thinking_tokens_max: None,
            answer_tokens_max: None,
            speculation: Speculation::Auto,
            draft_model: None,
            requests_max: NonZeroU16::new(32).expect("not zero"),
        },
        transcription: TranscriptionSettings {
            model: ModelChoice::Named("whisper-base".to_owned()),
            is_chosen: false,
            threads: Threads::Measured,
            device: CardUse::Allowed,
            keep_alive: KeepAlive::Forever,
            load: LoadAt::Start,
            requests_max: NonZeroU16::new(16).expect("not zero"),
        },
        realtime: RealtimeSection {
            sessions_max: NonZeroU16::new(4).expect("not zero"),
            listen_while_speaking: true,
            record: false,
        },
        wyoming: WyomingSettings {
            is_enabled: false,
            listen: [127, 0, 0, 1].into(),
            speech_port: 10_200,
            transcription_port: 10_300,
            speech_model: None,
            transcription_model: None,
            announces: true,
        },
        memory: MemorySection { max: None },
        models: BTreeMap::new(),
        ledger: LedgerSection { enabled: true, days: NonZeroU16::new(90).expect("not zero") },
        dev: DevSettings { mock_unknown_models: false, scripts: BTreeMap::new() },
        allow_danger: false,
    };
    assert_eq!(settings, expected);
}

#[test]
fn the_wyoming_ports_are_where_the_server_is() {
    let file = written("[server]\nlisten = \"0.0.0.0:1\"\n[wyoming]\nspeech_port = 7\n");
    let flags = Overrides { wyoming: true, ..Overrides::default() };
    let WyomingSettings { is_enabled, listen, speech_port, transcription_port, .. } =
        settle(&flags, &environment(), &file).wyoming;
    let expected = (true, "0.0.0.0".to_owned(), 7, 10_300);
    assert_eq!((is_enabled, listen.to_string(), speech_port, transcription_port), expected);
    let file = written("[server]\nlisten = \"0.0.0.0:1\"\n[wyoming]\nlisten = \"::1\"\n");
    let wyoming = settle(&Overrides::default(), &environment(), &file).wyoming;
    assert_eq!((wyoming.is_enabled, wyoming.listen.to_string()), (false, "::1".to_owned()));
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let file = written("home = \"models\"");
    let mut environment = environment();
    let mut flags = Overrides::default();
    assert_eq!(settle(&flags, &environment, &file).home, Path::new("/etc/hob/models"));
    environment.hob_home = Some(PathBuf::from("/env"));
    assert_eq!(settle(&flags, &environment, &file).home, Path::new("/env"));
    flags.home = Some(PathBuf::from("typed"));
    assert_eq!(settle(&flags, &environment, &file).home, Path::new("/here/typed"));
}

#[test]
fn a_flag_beats_the_file_for_each_setting() {
    let file = written(
        "[server]\nlisten = \"1\"\nallowed_hosts = [\"a\"]\n[speech]\nthreads = 3\nespeak = \"\"",
    );
    let settings = settle(&Overrides::default(), &environment(), &file);
    assert_eq!(settings.server.listen.0.port(), 1);
    assert_eq!(settings.server.allowed_hosts, ["a"]);
    assert_eq!(settings.speech.threads, Threads::new(3));
    assert_eq!(settings.speech.espeak, Espeak::Never);
    let flags = Overrides {
        listen: Some(Listen(([127, 0, 0, 1], 2).into())),
        allow_remote: true,
        allowed_hosts: vec!["b".to_owned()],
        threads: Some(0),
        ..Overrides::default()
    };
    let settings = settle(&flags, &environment(), &file);
    assert_eq!(settings.server.listen.0.port(), 2);
    assert!(settings.server.allow_remote);
    assert_eq!(settings.server.allowed_hosts, ["b"]);
    assert_eq!(settings.speech.threads, Threads::Measured);
}

#[test]
fn hob_listen_beats_the_file_and_loses_to_the_flag() {
    let file = written("[server]\nlisten = \"1\"");
    let mut environment = Environment { hob_listen: Some("2".to_owned()), ..environment() };
    let mut flags = Overrides::default();
    assert_eq!(settle(&flags, &environment, &file).server.listen.0.port(), 2);
    flags.listen = Some(Listen(([127, 0, 0, 1], 3).into()));
    assert_eq!(settle(&flags, &environment, &file).server.listen.0.port(), 3);
    flags.listen = None;
    environment.hob_listen = Some("nowhere".to_owned());
    let refused = Settings::resolve(&flags, &environment, &file).expect_err("not an address");
    assert!(refused.to_string().contains("HOB_LISTEN: 'nowhere' is not an address"), "{refused}");
}

#[test]
fn the_key_of_the_environment_beats_the_file_and_is_never_shown() {
    let file = written("[server]\napi_key_file = \"~/key\"");
    let mut environment = environment();
    let settings = settle(&Overrides::default(), &environment, &file);
    assert_eq!(settings.server.api_key, KeySource::File(PathBuf::from("/me/key")));
    environment.hob_api_key = Some(Secret::new("abracadabra".to_owned()));
    let settings = settle(&Overrides::default(), &environment, &file);
    assert!(!format!("{settings:?}").contains("abracadabra"));
    assert!(!toml::to_string(&settings).expect("a file").contains("abracadabra"));
    let key = settings.server.api_key.read().expect("a key");
    assert_eq!(key.as_ref().map(Secret::expose), Some("abracadabra"));
}

#[test]
fn a_file_without_a_key_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    let missing = KeySource::File(path.clone()).read().expect_err("no file");
    assert!(missing.sentence.contains("cannot read"), "{missing}");
    fs_err::write(&path, " \n").expect("a file");
    let empty = KeySource::File(path.clone()).read().expect_err("blank");
    assert!(empty.sentence.ends_with("holds no API key"), "{empty}");
    fs_err::write(&path, " my key \nmore\n").expect("a file");
    let key = KeySource::File(path).read().expect("a key");
    assert_eq!(key, Some(Secret::new("my key".to_owned())));
}

#[test]
fn a_user_without_a_home_must_name_one() {
    let empty = Environment::default();
    let failure = Settings::resolve(&Overrides::default(), &empty, &LoadedConfig::default());
    assert_eq!(failure.expect_err("no place").exit, crate::failure::Exit::Usage);
}

#[test]
fn a_chat_model_is_a_name_or_a_file_from_where_it_was_written() {
    let rows = [
        ("", "", ModelChoice::Named("smollm2".to_owned())),
        ("", "qwen3", ModelChoice::Named("qwen3:8b".to_owned())),
        ("", "owner/name:Q4_K_M", ModelChoice::Named("owner/name:Q4_K_M".to_owned())),
        ("", "hf:owner/name/a.gguf", ModelChoice::Named("owner/name/a".to_owned())),
        ("", "a.gguf", ModelChoice::File(PathBuf::from("/etc/hob/a.gguf"))),
        ("", "~/a.gguf", ModelChoice::File(PathBuf::from("/me/a.gguf"))),
        ("", "/models/a", ModelChoice::File(PathBuf::from("/models/a"))),
        ("mine", "a.gguf", ModelChoice::Named("mine".to_owned())),
        ("./b.GGUF", "a.gguf", ModelChoice::File(PathBuf::from("/here/b.GGUF"))),
    ];
    for (typed, in_file, expected) in rows {
        let text =
            if in_file.is_empty() { String::new() } else { format!("[chat]\nmodel = '{in_file}'") };
        let chat_model = Some(typed.to_owned()).filter(|typed| !typed.is_empty());
        let flags = Overrides { chat_model, ..Overrides::default() };
        let settings = settle(&flags, &environment(), &written(&text));
        // As text: paths that differ in a dot are equal.
        let (settled, expected) = (format!("{:?}", settings.chat.model), format!("{expected:?}"));
        assert_eq!(settled, expected, "{typed:?} {in_file:?}");
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    flags: Overrides,
}

#[test]
fn the_transcription_model_of_a_server_is_a_name_or_a_whisper_file() {
    for (line, expected) in [
        (&["hob"][..], ModelChoice::Named("whisper-base".to_owned())),
        (&["hob", "--hear-model", "whisper:tiny"], ModelChoice::Named("whisper-tiny".to_owned())),
        (
            &["hob", "--hear-model", "ggml-a.bin"],
            ModelChoice::File(PathBuf::from("/here/ggml-a.bin")),
        ),
        (
            &["hob", "--transcription-model", "/models/a"],
            ModelChoice::File(PathBuf::from("/models/a")),
        ),
    ] {
        let Line { flags } = clap::Parser::parse_from(line.iter().copied());
        let settings = settle(&flags, &environment(), &LoadedConfig::default());
        assert_eq!(settings.transcription.model, expected, "{line:?}");
    }
}

#[test]
fn no_chat_model_loads_at_the_start_if_they_load_on_demand() {
    let file = written(
        "[chat]\nload = \"start\"\n[model.a]\nmodel = \"a.gguf\"\nload = \"start\"\n\
         [model.b]\nmodel = \"b.gguf\"",
    );
    let (start, later) = (LoadAt::Start, LoadAt::FirstRequest);
    for (chat_on_demand, expected) in [(false, [start, start, later]), (true, [later; 3])] {
        let flags = Overrides { chat_on_demand, ..Overrides::default() };
        let settings = settle(&flags, &environment(), &file);
        let others = ["a", "b"].map(|name| settings.models[name].load);
        assert_eq!([settings.chat.load, others[0], others[1]], expected);
    }
}

#[test]
fn the_transcription_model_loads_when_the_chat_model_does_unless_its_table_differs() {
    let chat_later = "[chat]\nload = \"first_request\"\n";
    let later_too = "[transcription]\nload = \"first_request\"\n";
    let chat_only_later = format!("{chat_later}[transcription]\nload = \"start\"\n");
    for (text, chat_on_demand, expected) in [
        ("", false, LoadAt::Start),
        ("", true, LoadAt::FirstRequest),
        (chat_later, false, LoadAt::FirstRequest),
        (later_too, false, LoadAt::FirstRequest),
        (chat_only_later.as_str(), true, LoadAt::Start),
    ] {
        let flags = Overrides { chat_on_demand, ..Overrides::default() };
        let settings = settle(&flags, &environment(), &written(text));
        assert_eq!(settings.transcription.load, expected, "{text:?} {chat_on_demand}");
    }
}

#[test]
fn a_context_that_is_typed_beats_the_file_s() {
    let file = written("[chat]\ncontext_tokens = 4096");
    let settle = |context_tokens| {
        let flags = Overrides { context_tokens, ..Overrides::default() };
        settle(&flags, &environment(), &file).chat.context_tokens.map(NonZeroU32::get)
    };
    assert_eq!(settle(None), Some(4096));
    assert_eq!(settle(NonZeroU32::new(512)), Some(512));
}

#[test]
fn a_typed_place_beats_the_file_s_and_models_have_it_unless_their_tables_differ() {
    let file = written(
        "[chat]\ndevice = \"Vulkan0\"\ngpu_layers = 9\n[model.a]\nmodel = \"a.gguf\"\n\
         [model.b]\nmodel = \"b.gguf\"\ndevice = \"all\"\n[transcription]\ndevice = \"cpu\"\n",
    );
    let devices = |place: PlaceFlags| {
        let flags = Overrides { place, ..Overrides::default() };
        let settings = settle(&flags, &environment(), &file);
        let of = |name: &str| settings.models[name].device.to_string();
        let devices = [settings.chat.device.to_string(), of("a"), of("b")];
        (devices.join(" "), settings.chat.gpu_layers, settings.transcription.device.to_string())
    };
    let in_file = devices(PlaceFlags::default());
    assert_eq!(in_file, ("Vulkan0 Vulkan0 all".to_owned(), Some(9), "cpu".to_owned()));
    let device = Some(CardUse::Only(vec!["CUDA1".to_owned()]));
    let typed = devices(PlaceFlags { device, gpu_layers: Some(3), cpu_moe_layers: None });
    assert_eq!(typed, ("CUDA1 CUDA1 all".to_owned(), Some(3), "cpu".to_owned()));
}

#[test]
fn settled_settings_written_down_settle_to_themselves() {
    let file = written("[memory]\nmax = \"6GB\"\n[model.big]\nmodel = \"/b.gguf\"\nthreads = 3\n");
    let settings = settle(&Overrides::default(), &environment(), &file);
    let again = toml::to_string(&settings).expect("a file");
    let config = toml::from_str(&again).expect("the same settings");
    let again = LoadedConfig { config, ..LoadedConfig::default() };
    assert_eq!(settle(&Overrides::default(), &environment(), &again), settings);
}

#[test]
fn a_further_model_has_the_chat_model_s_settings_unless_its_table_differs() {
    let file = written(
        "[chat]\nmodel = \"qwen3\"\nparallel = 2\nkv_type = \"q8_0\"\npinned = true\n\
         [model.big]\nmodel = \"big.gguf\"\nparallel = 1\n\
         [model.early]\nmodel = \"qwen3\"\nload = \"start\"\n",
    );
    let settings = settle(&Overrides::default(), &environment(), &file);
    let [big, early] = ["big", "early"].map(|name| settings.models[name].clone());
    let expected = ChatSettings {
        model: ModelChoice::File(PathBuf::from("/etc/hob/big.gguf")),
        parallel: Some(NonZeroU16::MIN),
        load: LoadAt::FirstRequest,
        is_pinned: false,
        ..settings.chat.clone()
    };
    assert_eq!(big, expected);
    assert_eq!(early, ChatSettings { is_pinned: false, ..settings.chat });
}

#[test]
fn a_model_without_a_file_or_with_a_taken_name_is_refused_with_its_place() {
    for (text, expected) in [
        ("[model.x]\nthreads = 1\n", "hob.toml:1:8: model.x: it has no model"),
        ("[model.\"a/b\"]\nmodel = \"m\"\n", "hob.toml:1:8: model.a/b: a model's name"),
        ("[model.smollm2]\nmodel = \"m\"\n", "hob.toml:1:8: model.smollm2: the model of [chat]"),
        ("[model.kokoro]\nmodel = \"m\"\n", "hob.toml:1:8: model.kokoro: the voice has"),
        (
            "[speech]\nmodel = \"kokoro-4bit\"\n[model.kokoro-4bit]\nmodel = \"m\"\n",
            "hob.toml:3:8: model.kokoro-4bit: the model of [speech] has this name",
        ),
        (
            "[model.whisper-base]\nmodel = \"m\"\n",
            "hob.toml:1:8: model.whisper-base: the model of [transcription] has this name",
        ),
    ] {
        let settings = Settings::resolve(&Overrides::default(), &environment(), &written(text));
        let sentence = settings.expect_err(text).sentence;
        assert!(sentence.contains(expected), "{text:?} gave {sentence:?}");
    }
}

#[test]
fn a_model_file_has_the_name_of_the_file_without_gguf() {
    for (path, name) in
        [("/models/Qwen3-4B.Q4_K_M.gguf", "Qwen3-4B.Q4_K_M"), ("a.gguf", "a"), ("b", "b")]
    {
        assert_eq!(ModelChoice::File(PathBuf::from(path)).name(), name);
    }
}

#[test]
fn speech_threads_are_as_requested_or_few() {
    assert_eq!(speech_threads(7), 7);
    assert!((1..=4).contains(&speech_threads(0)));
}
