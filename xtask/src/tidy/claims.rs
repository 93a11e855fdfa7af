//! Checks claims of docs/ARCHITECTURE.md of the form "only this file does that" by searching the code.
//! A claim that no search checks becomes false without anyone noticing.

use crate::tree::{File, product_lines};

/// One claim: `what` may stand in `allowed` only, among the files whose paths begin with `scope`.
struct Claim {
    says: &'static str,
    scope: &'static [&'static str],
    patterns: &'static [&'static str],
    /// Beginnings of paths.
    allowed: &'static [&'static str],
}

/// Patterns are cut in two so that this file does not contain them.
const CLAIMS: [Claim; 17] = [
    Claim {
        says: "only these files read the environment",
        scope: &["crates/"],
        patterns: &[
            concat!("env::", "var("),
            concat!("env::", "var_os("),
            concat!("env::", "vars"),
        ],
        allowed: &[
            "crates/hob/src/settings/environment.rs",
            "crates/hob-engines/src/supervisor/process.rs",
            "crates/hob-speech/src/espeak.rs",
        ],
    },
    Claim {
        says: "the nouns do no I/O and read no clock",
        scope: &["crates/hob-core/src/"],
        patterns: &[
            "std::fs",
            "std::net",
            "std::io",
            "std::thread",
            "Instant::now",
            "SystemTime::now",
        ],
        allowed: &[],
    },
    Claim {
        says: "it opens no socket",
        scope: &["crates/hob-wire/src/", "crates/hob-speech/src/"],
        patterns: &["std::net::", "tokio::net", "TcpStream"],
        allowed: &[],
    },
    Claim {
        says: "only the graph runner knows rten",
        scope: &["crates/"],
        patterns: &["rten::"],
        allowed: &["crates/hob-engines/src/onnx_graph.rs"],
    },
    Claim {
        says: "only these files hold unsafe code",
        scope: &["crates/", "xtask/"],
        patterns: &[
            concat!("unsafe", " {"),
            concat!("unsafe", " fn "),
            concat!("unsafe", " impl"),
            concat!("unsafe", " trait "),
            concat!("unsafe", " extern "),
            concat!("unsafe", "("),
        ],
        allowed: &[
            "crates/hob-engines/src/backends.rs",
            "crates/hob-engines/src/chat/llama/log.rs",
            "crates/hob-engines/src/memory.rs",
            "crates/hob-engines/src/quantize.rs",
            "crates/hob-engines/src/quantize/raw.rs",
            "crates/hob-engines/src/timing/kernels.rs",
            "crates/hob-engines/src/transcription/whisper/ggml.rs",
            "crates/hob-engines/src/transcription/whisper/ggml/custom.rs",
            "crates/hob-kernels/src/",
        ],
    },
    Claim {
        says: "it writes nothing to the terminal",
        scope: &["crates/hob-models/src/", "crates/hob-core/src/", "crates/hob-wire/src/"],
        patterns: &["println!(", "io::stdout", "io::stderr"],
        allowed: &[],
    },
    Claim {
        says: "sessions, tasks, comparisons and the steps of a run do no I/O and read no clock",
        scope: &[
            "crates/hob-voice/src/",
            "crates/hob-eval/src/",
            "crates/hob-agents/src/machine",
            "crates/hob-bench/src/compare",
        ],
        patterns: &[
            "std::fs",
            "fs_err",
            "std::net",
            "std::io",
            "std::thread",
            "Instant::now",
            "SystemTime::now",
        ],
        allowed: &[],
    },
    Claim {
        says: "callers pass the time to schedulers, to the back-off and to the limits of keys",
        scope: &[
            "crates/hob-engines/src/speech/scheduler",
            "crates/hob-engines/src/speech/kokoro/window_plan",
            "crates/hob-engines/src/chat/scheduler",
            "crates/hob-engines/src/supervisor/backoff",
            "crates/hob-server/src/keys/window",
        ],
        patterns: &["Instant::now", "SystemTime::now"],
        allowed: &[],
    },
    Claim {
        says: "hob-wire alone reads and writes the JSON of APIs",
        scope: &["crates/hob-server/src/", "crates/hob-upstream/src/"],
        patterns: &["serde_json::"],
        allowed: &[],
    },
    Claim {
        says: "only these files set a status",
        scope: &["crates/hob-server/src/"],
        patterns: &["StatusCode::", "Redirect::"],
        allowed: &[
            "crates/hob-server/src/api_error.rs",
            "crates/hob-server/src/api_error/rows.rs",
            "crates/hob-server/src/benchmarks.rs",
            "crates/hob-server/src/keys/refusal.rs",
            "crates/hob-server/src/lists.rs",
            "crates/hob-server/src/page.rs",
            "crates/hob-server/src/teams.rs",
            "crates/hob-server/src/tls.rs",
        ],
    },
    Claim {
        says: "libraries say who can act, and anyhow does not",
        scope: &["crates/"],
        patterns: &["anyhow::"],
        allowed: &[],
    },
    Claim {
        says: "the results page fetches nothing",
        scope: &["crates/hob-bench/src/site/"],
        patterns: &["XMLHttpRequest", "fetch("],
        allowed: &[],
    },
    Claim {
        says: "the page and the results page insert texts as text",
        scope: &["web/", "crates/hob-bench/src/site/"],
        patterns: &["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"],
        allowed: &[],
    },
    Claim {
        says: "only these files of the page store something: the key and the settings",
        scope: &["web/"],
        patterns: &["localStorage", "sessionStorage", "indexedDB"],
        allowed: &["web/api.js", "web/settings.js"],
    },
    Claim {
        says: "the outermost layer makes the context of a request, and Wyoming's its own",
        scope: &["crates/hob-server/src/"],
        patterns: &["RequestContext::new("],
        allowed: &["crates/hob-server/src/observe.rs", "crates/hob-server/src/wyoming.rs"],
    },
    Claim {
        says: "only these files write to stdout and stderr",
        scope: &["crates/hob/src/"],
        patterns: &[
            "println!(",
            "print!(",
            "print()",
            "anstream::std",
            "stdout().lock(",
            "io::stderr)",
            "rustyline::",
        ],
        allowed: &[
            "crates/hob/src/cli.rs",
            "crates/hob/src/commands/chat/lines.rs",
            "crates/hob/src/logging.rs",
            "crates/hob/src/printer.rs",
            "crates/hob/src/sink.rs",
        ],
    },
    Claim {
        says: "no event is decoded during a measurement",
        scope: &["crates/hob-bench/src/drive"],
        patterns: &["serde_json::", "timeline::"],
        allowed: &[],
    },
];

pub(crate) fn broken(files: &[File]) -> Vec<String> {
    CLAIMS.iter().flat_map(|claim| against(claim, files)).collect()
}

fn against(claim: &Claim, files: &[File]) -> Vec<String> {
    let begins = |path: &str, starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
    let is_meant = |file: &&File| {
        begins(&file.path, claim.scope)
            && !begins(&file.path, claim.allowed)
            && is_product(&file.path)
    };
    let mut complaints = Vec::new();
    for file in files.iter().filter(is_meant) {
        for (line, number) in product_lines(&file.text).zip(1..) {
            let code = line.split("//").next().unwrap_or(line);
            if let Some(pattern) = claim.patterns.iter().find(|pattern| has(code, pattern)) {
                complaints.push(format!("{}:{number}: `{pattern}`, but {}", file.path, claim.says));
            }
        }
    }
    complaints
}

/// Source of the product: tests may do what the product may not.
fn is_product(path: &str) -> bool {
    let is_source = path.ends_with(".rs") || path.ends_with(".js");
    let is_test = path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "examples"));
    is_source && !is_test
}

/// Not inside a longer word: `prefetch(` is no `fetch(`.
fn has(code: &str, pattern: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(pattern).any(|(at, _)| !code[..at].ends_with(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_fails_on_an_example() {
        for claim in &CLAIMS {
            for pattern in claim.patterns {
                let path = format!("{}attic/x.rs", claim.scope[0]);
                let complaints = against(claim, &[File::new(&path, &format!("let x = {pattern}"))]);
                assert_eq!(complaints.len(), 1, "{} {pattern}", claim.says);
            }
        }
    }

    #[test]
    fn comments_tests_and_allowed_files_are_left_alone() {
        let claim = &CLAIMS[1];
        let check = |path: &str, text: &str, found: usize| {
            assert_eq!(against(claim, &[File::new(path, text)]).len(), found, "{path}: {text}");
        };
        check("crates/hob-core/src/a.rs", "use std::fs;", 1);
        check("crates/hob-core/src/a.rs", "// use std::fs;", 0);
        check("crates/hob-core/src/a.rs", "#[cfg(test)]\nmod tests {\nuse std::fs;\n}", 0);
        check("crates/hob-core/src/a.rs", "#[cfg(test)]\nmod tests;\nuse std::fs;", 1);
        check("crates/hob-core/src/a/tests.rs", "use std::fs;", 0);
        check("crates/hob-wire/src/a.rs", "use std::fs;", 0);
    }
}
