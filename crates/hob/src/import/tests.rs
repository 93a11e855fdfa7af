//! Whole files in, whole files out.

mod rows;

use super::*;

const LITELLM: &str = include_str!("tests/litellm.yaml");
const LLAMA_SWAP: &str = include_str!("tests/llama_swap.yaml");

/// The file, its notes, and that hob.toml is TOML.
fn imported(text: &str) -> (String, String) {
    let imported = import(text, "config.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let parsed = toml::from_str::<toml::Table>(&imported.toml);
    assert!(parsed.is_ok(), "{parsed:?}\n{}", imported.toml);
    let notes: Vec<String> = imported.notes.iter().map(Note::to_string).collect();
    (imported.toml, notes.join("\n"))
}

#[test]
fn litellm_s_file_becomes_hob_toml() {
    let (toml, _) = imported(LITELLM);
    insta::assert_snapshot!(toml, @r#"
    # Made by `hob config import` from LiteLLM's config.yaml.

    [server]
    listen = "127.0.0.1:8484"

    [keys.master]
    secret = "env:HOB_KEY_MASTER"

    [upstream.openai]
    kind = "openai"
    url = "https://api.openai.com"
    key = "env:OPENAI_API_KEY"

    [upstream.openai-2]
    kind = "openai"
    url = "https://api.openai.com"
    key = "env:HOB_KEY_OPENAI_2"

    [upstream.vllm]
    kind = "vllm"
    url = "http://gpu-box.lan:8000"

    [upstream.ollama]
    kind = "ollama"
    url = "http://127.0.0.1:11434"

    [upstream.lm-studio]
    kind = "openai"
    url = "http://127.0.0.1:1234"

    [upstream.anthropic]
    kind = "anthropic"
    key = "env:ANTHROPIC_API_KEY"

    [upstream.openrouter-server]
    kind = "openrouter"
    key = "env:OPENROUTER_API_KEY"

    [alias.gpt-4o-pool]
    to = [{ target = "openai/gpt-4o", weight = 2 }, { target = "openai-2/gpt-4o", weight = 1 }]
    pick = "weighted"

    [alias.gpt-4o]
    to = ["gpt-4o-pool", "claude", "qwen3-coder"]
    total = "300s"
    cooldown = "30s"

    [alias.qwen3-coder]
    to = [
        { target = "vllm/Qwen/Qwen3-Coder-30B-A3B-Instruct", context = 131072, set = { chat_template_kwargs = { enable_thinking = false } }, drop = ["logit_bias"], default = { temperature = 0.2, top_k = 20 } },
        "small",
    ]
    first_token = "46s"
    total = "300s"
    retries = 2
    cooldown = "30s"

    [alias.small]
    to = [
        "lm-studio/qwen3-4b",
        { target = "ollama/qwen3:4b", context = 16384 },
        { target = "vllm/Qwen/Qwen3-Coder-30B-A3B-Instruct", context = 131072, set = { chat_template_kwargs = { enable_thinking = false } }, drop = ["logit_bias"], default = { temperature = 0.2, top_k = 20 } },
    ]
    total = "300s"
    cooldown = "30s"
    keep_alive = "30m"

    [alias.claude]
    to = ["anthropic/claude-opus-4-5", "openai/gpt-4o", "openai-2/gpt-4o"]
    effort = "high"
    total = "300s"
    cooldown = "30s"

    [alias."openrouter/deepseek-r1"]
    to = ["openrouter-server/deepseek/deepseek-r1", "small"]
    total = "300s"
    cooldown = "30s"

    [alias.gpt-4]
    to = ["gpt-4o"]

    [alias."gpt-3.5-turbo"]
    to = ["small"]
    "#);
}

#[test]
fn litellm_s_keys_are_all_accounted_for() {
    let (_, notes) = imported(LITELLM);
    insta::assert_snapshot!(notes, @r#"
    model_list[0].litellm_params.timeout: changed: hob has one for the whole alias, and takes the largest of its targets'
    model_list[1]: dropped: Azure's deployments are none of OpenAI's addresses; its /openai/v1 is one
    model_list[2].litellm_params.api_key: changed: the key itself is not copied; set HOB_KEY_OPENAI_2 to it where hob is started
    model_list[2].litellm_params.rpm: dropped: hob limits keys, not targets: see requests_per_minute of [keys.NAME]
    model_list[3].litellm_params.api_key: dropped: it is no key, and hob sends none that is not set
    model_list[3].litellm_params.stream_timeout: changed: rounded up to 46 s
    model_list[3].litellm_params.additional_drop_params[1]: dropped: hob drops whole parameters, not parts of them
    model_list[3].model_info.id: dropped: hob has no use for it: a target is called upstream/model
    model_list[3].model_info.mode: dropped: hob asks the server what its models can do
    model_list[3].model_info.input_cost_per_token: dropped: hob counts tokens, not money
    model_list[5].litellm_params.num_ctx: dropped: only Ollama is told how long a context to make
    model_list[7].model_name: changed: hob knows no patterns: ask for anthropic/MODEL instead
    model_list[8].litellm_params.frobnicate: dropped: hob has nothing like it
    router_settings.allowed_fails: dropped: hob cools a target down after 3 failures in a row, or half of 6 or more in 30 s
    router_settings.redis_password: dropped: hob is one process and shares no counters
    router_settings.model_group_alias."gpt-3.5-turbo".hidden: dropped: hob lists every alias
    router_settings.fallbacks[1].claude[0]: changed: 'gpt-4o' leads back to 'claude', and hob refuses circles; its own targets stand instead
    router_settings.fallbacks[2].ghost: dropped: no model_name that was carried over is called that
    litellm_settings.drop_params: dropped: hob does so without it: a parameter that a server refuses is left out, and it is asked again
    litellm_settings.request_timeout: dropped: router_settings.timeout wins over it
    litellm_settings.context_window_fallbacks: changed: they are at the end of `to`, so they are asked after any failure, not only for prompts that are too long; hob skips targets that are too small
    litellm_settings.context_window_fallbacks[0].small[0]: changed: 'qwen3-coder' leads back to 'small', and hob refuses circles; its own targets stand instead
    litellm_settings.success_callback: dropped: hob calls no other service: it keeps a ledger and answers /metrics
    general_settings.master_key: changed: the key itself is not copied; set HOB_KEY_MASTER to it where hob is started
    general_settings.database_url: dropped: models and keys stand in hob.toml, and requests in hob's own ledger, without their texts
    environment_variables: dropped: set them where hob is started; `env:NAME` reads one
    "#);
}

#[test]
fn llama_swap_s_file_becomes_hob_toml() {
    let (toml, _) = imported(LLAMA_SWAP);
    insta::assert_snapshot!(toml, @r#"
    # Made by `hob config import` from llama-swap's config.yaml.

    [server]
    listen = "127.0.0.1:8484"

    [keys.client-1]
    secret = "env:HOB_KEY_CLIENT_1"

    [keys.client-2]
    secret = "env:FAMILY_KEY"

    [upstream.attic]
    kind = "openai"
    url = "http://192.168.1.23:8080"
    connect = "5s"
    first_token = "60s"

    [upstream.openrouter]
    kind = "openrouter"
    key = "env:OPENROUTER_API_KEY"

    [chat]
    model = "~/models/Qwen3.5-30B-A3B-Q4_K_M.gguf"
    context_tokens = 32768
    kv_type = "q8_0"
    parallel = 2
    gpu_layers = 99
    keep_alive = "30m"
    load = "start"
    requests_max = 6

    [alias."qwen3.5:30b"]
    to = [
        { target = "Qwen3.5-30B-A3B-Q4_K_M", set = { top_p = 0.95 }, drop = ["logit_bias", "top_logprobs"], default = { temperature = 0.6, top_k = 20 } },
    ]

    [alias.gpt-4o-mini]
    to = [
        { target = "Qwen3.5-30B-A3B-Q4_K_M", set = { top_p = 0.95 }, drop = ["logit_bias", "top_logprobs"], default = { temperature = 0.6, top_k = 20 } },
    ]

    [alias.coder]
    to = [
        { target = "Qwen3.5-30B-A3B-Q4_K_M", set = { top_p = 0.95 }, drop = ["logit_bias", "top_logprobs"], default = { temperature = 0.6, top_k = 20 } },
    ]

    [alias."qwen3.5:30b:high"]
    to = [
        { target = "Qwen3.5-30B-A3B-Q4_K_M", set = { top_p = 0.95 }, drop = ["logit_bias", "top_logprobs"], default = { temperature = 0.6, top_k = 20 } },
    ]
    effort = "high"

    [alias."qwen3.5:30b:fast"]
    to = [
        { target = "Qwen3.5-30B-A3B-Q4_K_M", set = { top_p = 0.95, temperature = 0.6 }, drop = ["logit_bias", "top_logprobs"], default = { temperature = 0.6, top_k = 20 } },
    ]
    effort = "none"

    [alias."embeddings/bge-m3"]
    to = ["attic/embeddings/bge-m3"]

    [alias."z-ai/glm-4.7"]
    to = [{ target = "openrouter/z-ai/glm-4.7", set = { provider = { zdr = true } } }]

    [alias.best]
    to = ["qwen3.5:30b", { target = "openrouter/z-ai/glm-4.7", set = { provider = { zdr = true } } }]
    pick = "warm"
    "#);
}

#[test]
fn llama_swap_s_keys_are_all_accounted_for() {
    let (_, notes) = imported(LLAMA_SWAP);
    insta::assert_snapshot!(notes, @r#"
    healthCheckTimeout: dropped: hob starts, watches and stops its own model without it
    logLevel: dropped: --log or HOB_LOG says what hob logs
    startPort: dropped: hob's own model has no port
    apiKeys[0]: changed: the key itself is not copied; set HOB_KEY_CLIENT_1 to it where hob is started
    macros.ctx: dropped: nothing in the file uses it
    macros.unused: dropped: nothing in the file uses it
    models.tiny: dropped: hob runs one chat model itself, and that is 'qwen3.5:30b'; run its server on a port of its own, add an [upstream.NAME] with its url (kind = "llama-server" if it is one), and an [alias] that leads to NAME/MODEL
    models."qwen3.5:30b".cmd: changed: context_tokens is for each answer: 65536 / 2
    models."qwen3.5:30b".cmd: dropped: [chat] has nothing like --no-mmap, --api-key
    models."qwen3.5:30b".name: dropped: hob says of a model what it reads in its file, and nothing else
    models."qwen3.5:30b".aliases[1].unlisted: dropped: hob lists every alias
    models."qwen3.5:30b".env: dropped: set it where hob is started
    models.whisper: dropped: its cmd is no llama-server with a GGUF file; run its server on a port of its own, add an [upstream.NAME] with its url (kind = "llama-server" if it is one), and an [alias] that leads to NAME/MODEL
    models.embed: dropped: its model lies in a container; run its server on a port of its own, add an [upstream.NAME] with its url (kind = "llama-server" if it is one), and an [alias] that leads to NAME/MODEL
    hooks.on_startup.preload[1]: dropped: hob loads the one model that it runs itself
    groups: dropped: hob runs one chat model itself, so there is nothing to swap
    selectors.best.targets[2]: dropped: no such model was carried over
    selectors.best.name: dropped: hob says of a model what it reads in its file, and nothing else
    peers.attic.proxy: changed: kind = "openai", to which hob sends neither top_k nor min_p; if it is another hob, a llama-server, vLLM or the like, write that
    peers.attic.models[0]: changed: several peers have it; ask for attic/gemma3-27b
    peers.attic.models[2]: changed: a name of this file's own wins; ask for attic/coder
    peers.attic.timeouts.responseHeader: changed: first_token: hob's clock runs until there is an answer to read
    peers.attic.timeouts.idleConn: dropped: hob has no such clock
    peers.openrouter.models[1]: changed: several peers have it; ask for openrouter/gemma3-27b
    peers.openrouter.filters: changed: they hold for the aliases of its models; whoever asks for openrouter/MODEL itself goes without them
    telemetry: dropped: hob has nothing like it
    "#);
}

#[test]
fn no_key_of_a_source_is_repeated() {
    let secrets = [
        "0123456789abcdef",
        "second-key",
        "hunter2",
        "1234-master",
        "dbpassword",
        "lf-secret",
        "inner-secret",
        "tele-secret",
    ];
    for text in [LITELLM, LLAMA_SWAP] {
        let (toml, notes) = imported(text);
        let named: Vec<_> = secrets.iter().filter(|key| text.contains(**key)).collect();
        assert!(named.len() >= 3, "{named:?}");
        for secret in secrets {
            assert!(!toml.contains(secret) && !notes.contains(secret), "{secret}");
        }
    }
}
