//! Why keys of LiteLLM's are not carried over, where there is more to say than that hob has no such key.
//! By the key's own name: it means the same wherever LiteLLM lets it stand.

use crate::import::reading::Reasons;

pub(crate) const REASONS: Reasons = &[
    (&["rpm", "tpm"], "hob limits keys, not targets: see requests_per_minute of [keys.NAME]"),
    (
        &["max_parallel_requests", "global_max_parallel_requests", "default_max_parallel_requests"],
        "slots and queue of an [upstream] say how much it gets at once",
    ),
    (
        &["success_callback", "failure_callback", "callbacks", "service_callbacks"],
        "hob calls no other service: it keeps a ledger and answers /metrics",
    ),
    (
        &["callback_settings", "alerting", "alerting_args", "alerting_threshold", "alert_types"],
        "hob calls no other service: it keeps a ledger and answers /metrics",
    ),
    (&["cache", "cache_params", "cache_kwargs"], "hob keeps no answers to give again"),
    (
        &["database_url", "store_model_in_db", "store_prompts_in_spend_logs"],
        "models and keys stand in hob.toml, and requests in hob's own ledger, without their texts",
    ),
    (
        &["redis_host", "redis_port", "redis_password", "redis_url", "redis_db"],
        "hob is one process and shares no counters",
    ),
    (&["set_verbose", "json_logs", "debug_level"], "--log or HOB_LOG says what hob logs"),
    (&["environment_variables"], "set them where hob is started; `env:NAME` reads one"),
    (
        &["drop_params"],
        "hob does so without it: a parameter that a server refuses is left out, and it is asked again",
    ),
    (&["enable_pre_call_checks"], "hob does so without it: a target that is too small is skipped"),
    (
        &["allowed_fails", "allowed_fails_policy", "disable_cooldowns"],
        "hob cools a target down after 3 failures in a row, or half of 6 or more in 30 s",
    ),
    (&["retry_policy"], "hob decides by the kind of failure what is worth another try"),
    (&["max_fallbacks"], "hob asks at most 4 times for one request"),
    (&["content_policy_fallbacks"], "what a server refuses to say is passed on as it is"),
    (&["default_litellm_params"], "write them as `default` of each target that is to have them"),
    (&["guardrails"], "hob filters no contents"),
    (
        &["input_cost_per_token", "output_cost_per_token", "max_budget", "budget_duration"],
        "hob counts tokens, not money",
    ),
    (
        &["supports_vision", "supports_function_calling", "supports_response_schema", "mode"],
        "hob asks the server what its models can do",
    ),
    (&["max_tokens", "max_output_tokens"], "hob takes what the model's server allows"),
    (&["id", "base_model", "tags"], "hob has no use for it: a target is called upstream/model"),
    (&["api_version", "organization", "aws_region_name"], "hob's upstreams have no such setting"),
    (&["num_ctx"], "only Ollama is told how long a context to make"),
    (&["hidden"], "hob lists every alias"),
];
