//! `hob config`: where files are found, and how errors in them are reported.

use crate::{Has, User, stderr, stdout};

#[test]
fn mistakes_are_reported_with_file_line_and_the_nearest_key() {
    let rows = [
        ("[server]\nlisen = \"x\"\n", "hob.toml:2:1: 'server.lisen' is not", "'server.listen'?"),
        ("listen = \"x\"\n", "hob.toml:1:1: 'listen' is not", "mean 'server.listen'?"),
        ("[speech]\n\nvoice = \"x\"\n", "hob.toml:3:1: 'speech.voice' is not", "default_voice'?"),
        ("[speech]\nfrequency = 1\n", "hob.toml:2:1: 'speech.frequency' is not", "list them all"),
        ("[server]\nrequests_max = 0\n", "hob.toml:2:16: invalid value", "config schema"),
        ("[server]\nlisten = \"there\"\n", "hob.toml:2:10: 'there' is not an address", ""),
        ("[speech]\nthreads = -1\n", "hob.toml:2:11: invalid value", "config schema"),
        ("[chat]\nthreads = -1\n", "expected a number from 0 to 65535", "config schema"),
        ("[chat]\nkv_type = \"q5\"\n", "expected f16, q8_0 or q4_0", ""),
        ("[chat]\nkeep_alive = \"soon\"\n", "write 30s, 5m, 2h, a number of seconds", ""),
        ("server = [\n", "hob.toml:", ""),
        ("[server]\napi_key_file = \"none\"\n", "cannot read the API key", "api_key_file"),
        ("[upstream.gpu]\nulr = \"x\"\n", "hob.toml:2:1: 'upstream.gpu.ulr' is not a setting", ""),
        (
            "[upstream.gpu]\nkind = \"ollamma\"\n",
            "hob.toml:2:8: 'ollamma' is not a kind of upstream (expected auto, openai",
            "",
        ),
        (
            "[upstream.gpu]\nurl = \"http://127.0.0.1:1\"\n[keys.me]\naliases = [\"gpu\"]\n\
             secret = \"sha256:9b7b36061a684541007d2c543574a1db801bc8f41f85ac5fdc0155fe72a9ec38\"\n",
            "hob.toml:3:7: keys.me.aliases: 'gpu' is not the name of a model or an alias",
            "",
        ),
        (
            "[alias.a]\nto = [\"b\"]\n[alias.b]\nto = [\"a\"]\n",
            "hob.toml:1:8: alias 'a' leads back to itself: a → b → a",
            "",
        ),
    ];
    for (text, sentence, hint) in rows {
        let user = User::new().configured(text);
        let said = user.refusal("config check", 2);
        assert!(said.contains(sentence), "{text:?} gave:\n{said}");
        assert!(said.contains(hint), "{text:?} gave:\n{said}");
    }
}

#[test]
fn the_working_folder_s_file_replaces_the_user_s_and_a_named_one_replaces_both() {
    let user = User::new();
    let port = |extra: &str| {
        let mut command = user.hob(format!("config print {extra}"));
        // `User::process` sets HOB_LISTEN, which counts more than a file. Here the address is only printed.
        command.env("XDG_CONFIG_HOME", user.path("xdg")).env_remove("HOB_LISTEN");
        let text = stdout(&command.assert());
        let line = text.lines().find(|line| line.starts_with("listen")).expect("a line");
        line.rsplit(':').next().expect("a port").trim_end_matches('"').to_owned()
    };
    assert_eq!(port(""), "8484");
    std::fs::create_dir_all(user.path("xdg/hob")).expect("a folder");
    std::fs::write(user.path("xdg/hob/hob.toml"), "[server]\nlisten = \"1001\"").expect("a file");
    assert_eq!(port(""), "1001");
    user.configure("[server]\nlisten = \"1002\"");
    assert_eq!(port(""), "1002");
    user.write("other.toml", "[server]\nlisten = \"1003\"");
    assert_eq!(port("--config other.toml"), "1003");
    user.fails("config check --config no.toml", 2, "no.toml");
}

#[test]
fn printed_settings_are_an_equivalent_file() {
    let user = User::new();
    let prices = "[price.coder]\ninput = 1.5\noutput = 2.0\n";
    user.configure(&format!("home = \"models\"\n[speech]\nthreads = 3\n{prices}"));
    let first = user.prints("config print");
    assert!(first.contains("threads = 3") && first.contains(prices), "{first}");
    assert!(first.contains(&format!("home = \"{}\"", user.path("work/models").display())));
    user.configure(&first);
    let second = user.prints("config print");
    assert_eq!(first, second);
    let said = user.prints("config check");
    assert!(said.ends_with("hob.toml is right\n"), "{said}");
}

#[test]
fn a_key_is_never_printed() {
    let user = User::new();
    let print = user.hob("config print").env("HOB_API_KEY", "abracadabra").assert();
    let text = stdout(&print.success());
    assert!(text.contains("# the API key comes from HOB_API_KEY"), "{text}");
    assert!(!text.contains("abracadabra"), "{text}");
}

#[test]
fn the_environment_beats_the_file_and_a_flag_both() {
    let user = User::new().configured("home = \"/file\"\n");
    let home = |args: &str, environment: &str| {
        let mut command = user.hob(format!("config print {args}"));
        let text = stdout(&command.env("HOB_HOME", environment).assert().success());
        text.lines().find(|line| line.starts_with("home")).expect("a line").to_owned()
    };
    assert_eq!(home("", ""), "home = \"/file\"");
    assert_eq!(home("", "/environment"), "home = \"/environment\"");
    assert_eq!(home("--home /flag", "/environment"), "home = \"/flag\"");
}

#[test]
fn the_schema_is_a_schema_and_the_pages_are_pages() {
    let user = User::new();
    let schema = user.json("config schema");
    assert_eq!(schema["properties"]["server"]["additionalProperties"], false);
    let page = user.prints("docs config");
    assert!(page.starts_with("# Configuration\n"), "{page}");
    let page = user.prints("docs cli");
    assert!(page.starts_with("# Commands\n") && page.contains("## hob say\n"), "{page}");
    let narrow = stdout(&user.hob("docs cli").env("COLUMNS", "40").assert().success());
    assert_eq!(page, narrow, "the page must not depend on the terminal");
}

#[test]
fn another_gateway_s_file_becomes_hob_toml_and_no_file_is_lost() {
    let user = User::new();
    let model = "{model: gpt-4o, api_key: sk-abracadabra, x: 1}";
    let source = format!("model_list:\n- {{model_name: a, litellm_params: {model}}}\n");
    user.write("config.yaml", &source);
    let import = "config import config.yaml";
    let done = user.hob(import).assert().success();
    let (toml, notes) = (stdout(&done), stderr(&done));
    assert!(toml.contains("[alias.a]\nto = [\"openai/gpt-4o\"]\n"), "{toml}");
    assert!(notes.contains("model_list[0].litellm_params.x: dropped: "), "{notes}");
    assert!(!(toml.clone() + &notes).contains("abracadabra"), "{toml}{notes}");

    let json = user.json(format!("{import} --json"));
    assert_eq!(json["toml"], toml);
    assert_eq!(json["notes"][1]["path"], "model_list[0].litellm_params.x");

    assert_eq!(user.prints(format!("{import} --output -")), toml);
    let place = user.write("hob.toml", "# mine\n");
    let into = format!("{import} --output hob.toml");
    user.refusal(&into, 2).has(&["hob.toml already exists", "--force"]);
    assert_eq!(std::fs::read_to_string(&place).expect("a file"), "# mine\n");
    user.prints(format!("{into} --force"));
    assert_eq!(std::fs::read_to_string(&place).expect("a file"), toml);

    user.write("config.yaml", "model_list:\n- [\n");
    user.fails(import, 2, "config.yaml:2:3: ");
}

#[test]
fn wrong_values_and_unknown_names_are_in_one_report_in_file_order() {
    let user = User::new().configured(
        "[server]\nlisten = 8484\n[upstream.x]\nurl = 5\n[alias.f]\nto = [\"nowhere/m\"]\n\
         retries = -1\n[keys.l]\nsecret = \"env:NOPE\"\n[chat]\nthreads = \"two\"\n",
    );
    let report = user.refusal("config check", 2);
    let parts = [
        "6 problems:",
        "hob.toml:2:10: ",
        "hob.toml:4:7: ",
        "hob.toml:6:1: alias 'f' leads to 'nowhere/m'",
        "hob.toml:7:11: ",
        "hob.toml:8:7: keys.l.secret: the environment variable NOPE is not set",
        "hob.toml:11:11: ",
    ];
    let places: Vec<Option<usize>> = parts.iter().map(|part| report.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in:\n{report}");
}

#[test]
fn mistakes_of_all_tables_are_in_one_report() {
    let user = User::new().configured(
        "[chat]\nmodel = \"gone.gguf\"\n[model.b]\n[model.c]\nmodel = \"qwen33\"\n\
         [upstream.x]\nkey = \"env:NOPE\"\n[upstream.y]\nkind = \"vllm\"\n\
         [alias.f]\nto = [\"x/m\", \"nowhere/m\", \"b\"]\n[alias.g]\nto = [\"f\", \"smol\"]\n\
         [keys.k]\nsecret = \"hunter2\"\n[keys.l]\nsecret = \"env:NOPE\"\n",
    );
    let said = user.refusal("config check", 2);
    said.has(&[
        "9 problems:",
        "hob.toml:2:1: chat.model: ",
        "gone.gguf cannot be used",
        "hob.toml:3:8: model.b: it has no model",
        "hob.toml:5:1: model.c.model: ",
        "hob.toml:7:1: upstream.x.key: the environment variable NOPE is not set",
        "hob.toml:8:11: upstream 'y' has no url",
        "hob.toml:11:1: alias 'f' leads to 'nowhere/m'",
        "hob.toml:13:1: alias 'g' leads to 'smol'",
        "keys.k.secret: write env:NAME",
        "keys.l.secret: the environment variable NOPE is not set",
    ]);
    assert!(!said.contains("hunter2") && !said.contains("leads to 'b'"), "{said}");
    user.configure("[server]\nlisen = 1\nrequests_max = 0\n[speech]\nthreads = -1\n");
    user.refusal("serve --listen 127.0.0.1:0", 2).has(&[
        "3 problems:",
        "hob.toml:2:1: ",
        "hob.toml:3:16: ",
        "hob.toml:5:11: ",
    ]);
}

#[test]
fn pronunciations_that_lead_back_to_themselves_are_reported_with_the_rest() {
    let user = User::new()
        .configured("[alias.f]\nto = [\"nowhere/m\"]\n[speech.lexicon]\na = \"b\"\nb = \"a\"\n");
    let said = user.refusal("config check", 2);
    let loops = ": speech.lexicon: the pronunciations cannot be used: the pronunciation of a word \
                 leads back to it: a → b → a";
    said.has(&["2 problems:", "hob.toml:2:1: alias 'f'", "hob.toml:3:", loops]);
}

#[test]
fn a_speech_or_transcription_model_and_a_script_that_stop_hob_serve_are_mistakes() {
    let user = User::new().configured(
        "[transcription]\nmodel = \"whisper-small\"\n[speech]\nmodel = \"kokoro-4-bit\"\n\
         [dev.scripts]\nx = \"none.jsonl\"\n",
    );
    user.refusal("config check", 2).has(&[
        "3 problems:",
        "hob.toml:2:1: transcription.model: ",
        "hob.toml:3:2: speech: ",
        "none.jsonl: ",
    ]);
}

#[test]
fn a_certificate_without_its_key_hides_no_other_mistake() {
    let user = User::new().configured(
        "[server]\ntls_certificate = \"a.crt\"\n[model.b]\nmodel = \"smollm2\"\n\
         [alias.f]\nto = [\"nowhere/m\"]\n",
    );
    user.refusal("config check", 2).has(&[
        "2 problems:",
        "hob.toml:1:2: server: a certificate and its key are needed together",
        "hob.toml:6:1: alias 'f' leads to 'nowhere/m'",
    ]);
}

#[test]
fn a_draft_model_that_does_not_exist_is_a_mistake_if_it_is_used() {
    let user = User::new();
    let own = "[model.b]\nmodel = \"smollm2\"\ndraft_model = \"qwen33\"\n";
    user.configure(&format!("[chat]\ndraft_model = \"gone.gguf\"\n{own}"));
    user.refusal("config check", 2).has(&[
        "2 problems:",
        "hob.toml:2:1: chat.draft_model: ",
        "gone.gguf cannot be used",
        "hob.toml:5:1: model.b.draft_model: ",
    ]);
    let unused = "[chat]\nspeculation = \"off\"\ndraft_model = \"gone.gguf\"\n";
    user.configure(unused);
    user.hob("config check").assert().success();
}

/// A checked file must not differ from what `hob serve` accepts.
#[test]
fn every_kind_of_model_may_be_named_by_any_of_its_names() {
    let user = User::new();
    let digest = "0123456789abcdef".repeat(4);
    std::fs::create_dir(user.path("work/teams")).expect("a folder");
    user.write("teams/builders.toml", crate::team::TEAM);
    let speech = "[speech]\nmodel = \"me/kokoro-4bit\"\n";
    let aliases = "[alias.ears]\nto = [\"whisper-base\"]\n\
                   [alias.voice]\nto = [\"kokoro\", \"me/kokoro-4bit\"]\n\
                   [alias.small]\nto = [\"smollm2:135m\"]\n";
    let key = format!(
        "[keys.k]\nsecret = \"sha256:{digest}\"\n\
         aliases = [\"whisper-base\", \"smollm2:135m\", \"builders\"]\n"
    );
    user.configure(&format!("{speech}{aliases}{key}"));
    user.hob("config check").assert().success();
    // An alias may replace a model that is not stored.
    user.configure(
        "[alias.whisper-base]\nto = [\"far/w\"]\n[upstream.far]\nurl = \"http://127.0.0.1:9\"\n",
    );
    user.hob("config check").assert().success();
}
