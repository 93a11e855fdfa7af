//! Why keys of llama-swap's are not carried over, where there is more to say than that hob has no such
//! key. By the key's own name: it means the same wherever llama-swap lets it stand.

use crate::import::reading::Reasons;

pub(crate) const REASONS: Reasons = &[
    (
        &["groups", "matrix", "routing", "scheduler"],
        "hob runs one chat model itself, so there is nothing to swap",
    ),
    (&["profiles", "profile"], "hob's aliases are changed in hob.toml, which is read again"),
    (&["startPort"], "hob's own model has no port"),
    (
        &["healthCheckTimeout", "checkEndpoint", "cmdStop", "unloadTimeout", "proxy"],
        "hob starts, watches and stops its own model without it",
    ),
    (&["env"], "set it where hob is started"),
    (&["useModelName"], "the model that hob runs itself needs no name to be asked by"),
    (
        &["logLevel", "logTimeFormat", "logToStdout", "logRequests"],
        "--log or HOB_LOG says what hob logs",
    ),
    (
        &["metricsMaxInMemory", "captureBuffer", "performance", "store"],
        "hob keeps a ledger of numbers and names, and answers /metrics",
    ),
    (&["sendLoadingState"], "hob says on the wire that a model is loading, not in its answer"),
    (
        &["name", "description", "metadata", "capabilities"],
        "hob says of a model what it reads in its file, and nothing else",
    ),
    (&["unlisted", "includeAliasesInList"], "hob lists every alias"),
    (&["keepalive", "tlsHandshake", "idleConn", "responseHeader"], "hob has no such clock"),
    (&["settings"], "hob knows by itself when a target has no room"),
    (&["ui", "tailcat", "tailcatKey", "upstream", "compat"], "hob has nothing like it"),
];
