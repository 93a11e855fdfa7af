//! `hob pull` of other models, from a hub on loopback and from files,
//! and how a running server serves them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use assert_cmd::assert::Assert;
use hob_models::gguf::sample::SampleGguf;
use serde_json::{Value, json};

use crate::hub::{Hub, TOKEN};
use crate::loopback;
use crate::real_server::{Served, test_home};
use crate::{Has, User, json_stdout, stderr, stdout, until};

const MIB: u32 = 1 << 20;

/// A very small GGUF file.
fn tiny() -> Vec<u8> {
    SampleGguf::llama().u32("general.file_type", 15).bytes()
}

fn pull(user: &User, hub: &Hub, words: &str) -> Assert {
    user.hob(format!("pull {words}")).env("HF_ENDPOINT", &hub.address).assert()
}

#[test]
fn a_mirror_may_have_a_certificate_that_only_this_machine_trusts() {
    let user = User::new().configured("[dev]\nmock_unknown_models = true\n");
    let mirror = Served::run(user.process("serve --tls --listen 127.0.0.1:0"));
    let address = mirror.url.trim_end_matches('/').replace("http://", "https://");
    let mut pull = user.hob("pull owner/name --dry-run");
    pull.env("HF_ENDPOINT", address);
    stderr(&pull.assert().failure()).has(&["cannot be reached", "certificate"]);
    pull.env("SSL_CERT_FILE", user.path("home/.local/share/hob/tls/authority.crt"));
    stderr(&pull.assert().failure()).has(&["owner/name does not exist"]);
}

#[test]
fn a_model_of_the_hub_is_planned_fetched_listed_and_removed_by_its_name() {
    let (user, hub) = (User::new(), Hub::start());
    hub.put("Qwen/Qwen3-8B-GGUF", &[("Qwen3-8B-Q4_K_M.gguf", &tiny())]);
    let plan = json_stdout(&pull(&user, &hub, "qwen3 --dry-run --json").success());
    assert_eq!((&plan[0]["name"], &plan[0]["arrival"]), (&json!("qwen3:8b"), &Value::Null));
    assert_eq!(plan[0]["files"][0]["sha256"].as_str().map(str::len), Some(64));
    stdout(&pull(&user, &hub, "qwen3:8b --dry-run").success())
        .has(&["qwen3:8b: 1 MB into", "Qwen/Qwen3-8B-GGUF"]);
    assert!(!user.path("home/.local/share/hob/models").exists(), "nothing was fetched");

    let done = json_stdout(&pull(&user, &hub, "qwen3:8b --json").success());
    assert_eq!(done[0]["arrival"], "fetched");
    assert_eq!(done[0]["bytes"], tiny().len());
    stderr(&pull(&user, &hub, "qwen3:latest").success()).has(&["qwen3:8b is here already"]);
    // A model that is stored already needs no network.
    user.notes("pull qwen3:8b").has(&["is here already", "no source can be reached"]);

    let list = user.json("models --json");
    let list = list.as_array().expect("a list");
    let of = |name: &str| list.iter().find(|model| model["name"] == name).expect(name).clone();
    assert_eq!(of("qwen3:8b")["condition"], "stored");
    assert_eq!(of("llama3.1:8b")["condition"], "not_stored");
    let fit = user.json("fit qwen3 --kv f16 --machine rtx-4090 --json");
    assert_eq!(fit["model"]["basis"], "measured", "of the file that is here");
    user.hob("models rm qwen3 --yes").assert().success();
    user.fails("models rm qwen3:8b --yes", 3, "`hob pull qwen3:8b` fetches it");
}

#[test]
fn a_dry_run_says_when_a_pull_would_change_a_stored_model() {
    let (user, hub) = (User::new(), Hub::start());
    hub.put("o/m", &[("m-Q4_K_M.gguf", &tiny())]);
    let planned = || stdout(&pull(&user, &hub, "o/m --dry-run").success());
    let again = "o/m:Q4_K_M: 1 MB into";
    pull(&user, &hub, "o/m").success();
    assert!(planned().contains("o/m:Q4_K_M is here already"), "{}", planned());
    let stored = stored_file(&user, "o%2Fm%3AQ4_K_M");
    flip_a_bit(&stored);
    assert!(planned().starts_with(again), "damaged: {}", planned());
    pull(&user, &hub, "o/m").success();
    assert!(planned().contains("o/m:Q4_K_M is here already"), "repaired: {}", planned());
    let manifest = stored.with_file_name("model.json");
    let manifest_text = fs::read_to_string(&manifest).expect("a file");
    let mut older: Value = serde_json::from_str(&manifest_text).expect("JSON");
    older["transform_version"] = json!(0);
    fs::write(&manifest, older.to_string()).expect("written");
    assert!(planned().starts_with(again), "an older form: {}", planned());
}

/// The only file of a model that the user's hob stored.
fn stored_file(user: &User, folder: &str) -> PathBuf {
    let model = user.path("home/.local/share/hob/models").join(folder);
    let mut forms = model.read_dir().expect("a folder");
    forms.next().expect("a form").expect("a form").path().join("model.gguf")
}

#[test]
fn a_file_that_its_server_calls_another_one_is_fetched_again_with_a_reason() {
    let (user, hub, asked) = (User::new(), Hub::start(), Arc::new(AtomicUsize::new(0)));
    let address = loopback::listen(move |loopback::Request { range, .. }| {
        let file = tiny();
        let end = |last: Option<usize>| last.map_or(file.len(), |last| file.len().min(last + 1));
        let answer = match range {
            Some((first, last)) => loopback::Answer::part(&file, first, end(last)),
            None => loopback::Answer::ok(file),
        };
        answer.with("ETag", asked.fetch_add(1, Ordering::Relaxed).to_string())
    });
    let address = format!("{address}/m.gguf");
    let reason = "states another length, time or tag than for the stored file";
    let said = || stderr(&pull(&user, &hub, &format!("{address} --as mine")).success());
    let (first, second) = (said(), said());
    assert!(!first.contains(reason) && second.contains(reason), "{first}{second}");
}

#[test]
fn a_user_s_own_file_is_not_replaced_by_a_model_of_the_hub_with_the_same_name() {
    let (user, hub) = (User::new(), Hub::start());
    let own = SampleGguf::llama().u32("general.file_type", 7).bytes();
    let file = user.path("work/x.gguf");
    fs::write(&file, &own).expect("written");
    hub.put("Qwen/Qwen3-8B-GGUF", &[("Qwen3-8B-Q4_K_M.gguf", &tiny())]);
    pull(&user, &hub, "./x.gguf --as qwen3:8b").success();
    let stored = stored_file(&user, "qwen3%3A8b");
    fs::write(&stored, b"cut").expect("written");
    stderr(&pull(&user, &hub, "qwen3").success()).has(&[
        "'qwen3:8b' is here from ",
        "x.gguf, so",
        "`hob models rm qwen3:8b`",
    ]);
    assert_eq!(fs::read(&stored).expect("a file"), own, "repaired from its own place");
    assert!(hub.requests().is_empty());

    fs::write(&stored, b"cut").expect("written");
    fs::remove_file(&file).expect("removed");
    stderr(&pull(&user, &hub, "qwen3:8b").code(2))
        .has(&["x.gguf: there is no such file or folder", "`hob models rm qwen3:8b`"]);
    assert!(hub.requests().is_empty());
    pull(&user, &hub, "qwen3:8b --as other").success();
    assert_eq!(fs::read(stored_file(&user, "other")).expect("a file"), tiny());
    user.hob("models rm qwen3:8b --yes").assert().success();
    pull(&user, &hub, "qwen3:8b").success();
    assert_eq!(fs::read(stored_file(&user, "qwen3%3A8b")).expect("a file"), tiny());
}

#[test]
fn a_whole_model_is_here_without_the_file_that_it_came_from() {
    let (user, hub) = (User::new(), Hub::start());
    let file = user.path("work/x.gguf");
    fs::write(&file, tiny()).expect("written");
    pull(&user, &hub, "./x.gguf --as mine").success();
    fs::remove_file(&file).expect("removed");
    stderr(&pull(&user, &hub, "mine").success())
        .has(&["x.gguf, from which 'mine' came, is gone", "mine is here already: "]);
    assert!(hub.requests().is_empty());

    flip_a_bit(&stored_file(&user, "mine"));
    stderr(&pull(&user, &hub, "mine").code(2)).has(&["x.gguf: there is no such file or folder"]);
}

#[test]
fn a_repository_without_a_quant_does_not_replace_a_user_s_own_file() {
    let (user, hub) = (User::new(), Hub::start());
    let own = SampleGguf::llama().u32("general.file_type", 7).bytes();
    fs::write(user.path("work/x.gguf"), &own).expect("written");
    hub.put("o/m", &[("m-Q4_K_M.gguf", &tiny())]);
    for name in ["o/m:Q4_K_M", "o/m:Q8_0"] {
        pull(&user, &hub, &format!("./x.gguf --as {name}")).success();
    }
    stderr(&pull(&user, &hub, "o/m").code(2)).has(&["'o/m:Q4_K_M' is here from ", "`--as`"]);
    let stored = stored_file(&user, "o%2Fm%3AQ4_K_M");
    assert_eq!(fs::read(&stored).expect("a file"), own);
    pull(&user, &hub, "o/m --as o/m:Q4_K_M").success();
    let stored = stored_file(&user, "o%2Fm%3AQ4_K_M");
    assert_eq!(fs::read(&stored).expect("a file"), tiny(), "the user chose the name");
    // Nor does it replace a model of another repository, only its own.
    pull(&user, &hub, "o/m").success();
    hub.put("p/n", &[("n-Q8_0.gguf", &own)]);
    pull(&user, &hub, "p/n --as o/m:Q4_K_M").success();
    stderr(&pull(&user, &hub, "o/m").code(2)).has(&["'o/m:Q4_K_M' is here from p/n, so"]);
}

#[test]
fn a_model_of_the_hub_with_a_name_of_the_user_s_is_found_again_by_that_name() {
    let (user, hub) = (User::new(), Hub::start());
    hub.put("o/m", &[("m-Q4_K_M.gguf", &tiny())]);
    pull(&user, &hub, "o/m --as mine").success();
    let stored = stored_file(&user, "mine");
    let is_here = |said: &str| said.contains("mine is here already");
    let said = stderr(&pull(&user, &hub, "mine").success());
    assert!(is_here(&said) && said.contains("'mine' is here from o/m, so"), "{said}");
    fs::write(&stored, b"cut").expect("written");
    pull(&user, &hub, "mine").success();
    assert_eq!(fs::read(&stored).expect("a file"), tiny(), "repaired");
    let said = stderr(&pull(&user, &hub, "mine").success());
    assert!(is_here(&said), "the repaired model is found again, too: {said}");
    let said = user.notes("pull mine");
    assert!(is_here(&said) && said.contains("no source can be reached"), "{said}");

    // A folder of that name would come before the hub.
    fs::create_dir_all(user.path("work/o/m")).expect("a folder");
    let said = stderr(&pull(&user, &hub, "mine").code(2));
    assert!(said.contains("'mine' was pulled as 'o/m', which is also a file"), "{said}");
    fs::remove_dir_all(user.path("work/o")).expect("removed");

    // A newer file of the repository replaces the stored one.
    let newer =
        SampleGguf::llama().u32("general.file_type", 15).text("general.license", "mit").bytes();
    hub.put("o/m", &[("m-Q4_K_M.gguf", &newer)]);
    pull(&user, &hub, "mine").success();
    assert_eq!(fs::read(stored_file(&user, "mine")).expect("a file"), newer);
}

#[test]
fn a_model_that_does_not_fit_is_warned_of_before_its_weights_travel() {
    let (user, hub) = (User::new(), Hub::start());
    // Terabytes of KV cache.
    let sizes =
        [("head_count", 64), ("head_count_kv", 64), ("key_length", MIB), ("value_length", MIB)];
    let huge = SampleGguf::llama().u32("general.file_type", 15).u32("llama.context_length", 8_192);
    let huge = sizes
        .into_iter()
        .fold(huge, |file, (name, value)| file.u32(&format!("llama.attention.{name}"), value));
    hub.put("o/huge", &[("m-Q4_K_M.gguf", &huge.bytes())]);
    let plan = json_stdout(&pull(&user, &hub, "o/huge --dry-run --json").success());
    let warning = "o/huge:Q4_K_M does not fit this machine now: ";
    assert!(plan[0]["warnings"][0].as_str().is_some_and(|it| it.starts_with(warning)), "{plan}");
    let said = stderr(&pull(&user, &hub, "o/huge").success());
    let places = [warning, "fetching weights"].map(|part| said.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {said}");
}

#[test]
fn fit_names_the_file_that_pull_downloads() {
    let (user, hub) = (User::new(), Hub::start());
    hub.put("Qwen/Qwen3-8B-GGUF", &[("a-Q8_0.gguf", &tiny()), ("a-Q4_K_M.gguf", &tiny())]);
    for quant in ["Q4_K_M", "Q8_0"] {
        let said = user.prints(format!("fit qwen3:8b --quant {quant} --machine rtx-4090"));
        let line =
            said.lines().find(|line| line.contains("# first: hob pull ")).expect("a command");
        let name = line.rsplit(' ').next().expect("a name");
        assert!(said.contains(&format!("model = \"{name}\"")), "{said}");
        assert!(said.contains(&format!("-hf Qwen/Qwen3-8B-GGUF:{quant}")), "{said}");
        pull(&user, &hub, name).success();
    }
    // The header of such a file calls it Q4_K_M.
    hub.put("o/m", &[("m-Q4_K_M.gguf", &tiny()), ("m-UD-Q4_K_XL.gguf", &tiny())]);
    let mut fit = user.hob("fit o/m:UD-Q4_K_XL --machine rtx-4090");
    let said = stdout(&fit.env("HF_ENDPOINT", &hub.address).assert().success());
    assert!(said.contains("# first: hob pull o/m:UD-Q4_K_XL\n"), "{said}");
    assert!(said.contains("-hf o/m:UD-Q4_K_XL ") && !said.contains("o/m:Q4_K_M"), "{said}");
    pull(&user, &hub, "o/m:UD-Q4_K_XL").success();
    let mut fit = user.hob("fit hf:o/m/m-Q4_K_M.gguf --machine rtx-4090");
    let said = stdout(&fit.env("HF_ENDPOINT", &hub.address).assert().success());
    assert!(said.contains("# first: hob pull hf:o/m/m-Q4_K_M.gguf\n"), "{said}");
    let all = user.json("fit --recommend --for code --machine rtx-4090 --json");
    for one in all.as_array().expect("a list") {
        let flags = one["answer"]["plans"][0]["flags"].to_string();
        assert!(!flags.contains("model = ") || flags.contains("# first: hob pull "), "{flags}");
    }
    // The settings that `fit` prints are a whole configuration.
    let fit = user.json("fit qwen3:14b --machine rtx-4090 --json");
    let flags = fit["plans"][0]["flags"].as_array().expect("a list");
    let own = flags.iter().find(|one| one["engine"] == "hob").expect("settings of hob");
    user.configure(own["text"].as_str().expect("a text"));
    user.hob("config check").assert().success();
}

#[test]
fn a_failed_pull_says_what_to_do_and_has_its_own_exit_code() {
    let (user, hub) = (User::new(), Hub::start());
    hub.put("o/gated", &[("m-Q4_K_M.gguf", &tiny())]);
    hub.gate("o/gated");
    let rows = [
        ("o/gated", 4, "accept its terms there, and set HF_TOKEN"),
        ("o/none", 4, "needs a token, or does not exist"),
        ("./none.gguf", 2, "there is no such file or folder"),
        ("qwen3:8", 4, "did you mean qwen3:8b"),
        ("smolm", 4, "did you mean smollm2"),
        ("llama3", 4, "/v2/library/llama3/manifests/latest cannot be reached"),
    ];
    for (args, code, expected) in rows {
        let said = stderr(&pull(&user, &hub, args).code(code));
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let mut open = user.hob("pull o/gated --log debug");
    let opened = open.env("HF_ENDPOINT", &hub.address).env("HF_TOKEN", TOKEN).assert().success();
    assert!(!stderr(&opened).contains(TOKEN) && !stdout(&opened).contains(TOKEN));
    user.fails("pull llama3.1", 4, "'llama3.1' was not found");
}

fn listed(served: &Served) -> Vec<String> {
    let list = served.get("v1/models").body;
    let models = list["data"].as_array().expect("a list").iter();
    models.map(|model| model["id"].as_str().expect("a name").to_owned()).collect()
}

fn answered(served: &Served, model: &str) {
    let messages = json!([{"role": "user", "content": "Say hello to Anna."}]);
    let body = json!({"model": model, "temperature": 0, "max_tokens": 4, "messages": messages});
    // On a busy machine a load takes longer than a request waits, so the client must try again.
    until(120, model, || {
        served
            .chat(&body)
            .is_ok_and(|answer| answer["choices"][0]["message"]["content"].is_string())
    });
}

#[test]
fn pulled_models_are_served_side_by_side_switched_by_name_and_followed_while_hob_runs() {
    let user = User::new().with_home("home");
    let weights = test_home().join("models/smollm2/1.0-t2/model.gguf");
    assert!(weights.is_file(), "{}", weights.display());
    let pull = |name: &str| user.prints(format!("pull '{}' --as {name}", weights.display()));
    // There is room for two of the three models.
    user.configure(
        "[memory]\nmax = \"640MB\"\n[chat]\nthreads = 1\nparallel = 1\ncontext_tokens = 2048\n",
    );
    pull("qwen3:8b");
    pull("owner/name:Q4_1");
    let served = Served::start(&user);
    let list = listed(&served);
    assert!(["qwen3:8b", "owner/name:Q4_1"].iter().all(|name| list.iter().any(|id| id == name)));
    answered(&served, "qwen3");
    let names = ["hf.co/owner/name:Q4_1", "owner/name", "Owner/Name:q4_1", "owner/name:Q4_1"];
    names.iter().for_each(|name| answered(&served, name));
    assert_eq!(served.warm(), ["owner/name:Q4_1", "qwen3:8b"], "side by side");

    pull("third");
    until(120, "the third is listed", || listed(&served).iter().any(|id| id == "third"));
    answered(&served, "third");
    assert_eq!(served.warm(), ["owner/name:Q4_1", "third"], "the least recently used left");

    user.prints(format!("chat --server {} -m qwen3 --max-tokens 4 Hello.", served.url));
    until(120, "the next least recently used left", || served.warm() == ["qwen3:8b", "third"]);

    let story = json!({
        "model": "third", "stream": true, "temperature": 0, "max_tokens": 600, "ignore_eos": true,
        "messages": [{"role": "user", "content": "Tell me a very long story about a ship."}],
    });
    let socket = served.begin("v1/chat/completions", &story);
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"content\"")), "it begins");
    user.hob("models rm third --yes").assert().success();
    until(120, "it is listed no more", || !listed(&served).iter().any(|id| id == "third"));
    let is_whole = |line: String| line.contains(r#""finish_reason":"length""#);
    assert!(lines.any(is_whole), "the running answer was cut");
    answered(&served, "qwen3:8b");
}

/// The whole seconds of a file's time tell whether it changed, so the damaged file is dated back.
fn flip_a_bit(file: &std::path::Path) {
    let mut bytes = fs::read(file).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 1;
    fs::write(file, bytes).expect("written");
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().write(true).open(file).expect("open");
    file.set_modified(an_hour_ago).expect("a time");
}

#[test]
fn weights_with_a_flipped_bit_are_not_loaded_and_a_pull_repairs_them() {
    let user = User::new();
    user.shallow_model("weights.gguf");
    user.configure("[chat]\nparallel = 1\ncontext_tokens = 2048\nthreads = 1\n");
    user.prints("pull ./weights.gguf --as mine");
    let folders = user.path("home/.local/share/hob/models/mine").read_dir().expect("a folder");
    let stored: Vec<PathBuf> =
        folders.map(|form| form.expect("a form").path().join("model.gguf")).collect();
    let [stored] = &stored[..] else { panic!("one form: {stored:?}") };
    flip_a_bit(stored);

    let served = Served::start(&user);
    let hi = json!({
        "model": "mine", "max_tokens": 4, "messages": [{"role": "user", "content": "Hello."}],
    });
    let damage = "model 'mine' is damaged: model.gguf has the SHA-256 ";
    until(120, "the damage is named", || {
        served.post("v1/chat/completions", &hi).body.to_string().contains(damage)
    });

    // The error says so: `hob pull mine`.
    let is_repaired = || {
        user.prints("pull mine");
        let [stored, whole] = [stored, &user.path("work/weights.gguf")].map(fs::read);
        stored.expect("a file") == whole.expect("a file")
    };
    assert!(is_repaired());
    // The repaired form has the folder of the damaged one.
    answered(&served, "mine");
    drop(served);
    let cut = || {
        File::options().write(true).open(stored).and_then(|file| file.set_len(100)).expect("cut");
    };
    cut();
    assert!(is_repaired());

    cut();
    fs::remove_file(user.path("work/weights.gguf")).expect("removed");
    user.fails("pull mine", 2, "weights.gguf: there is no such file or folder");
}
