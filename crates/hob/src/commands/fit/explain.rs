//! `hob fit explain`: what the terms in the answers of `hob fit` mean.
//! The texts are in `hob_core::fit`.

use clap::Args;
use hob_core::fit::{Explanation, explain, explanations};
use hob_core::nearest;

use crate::failure::{CliResult, Exit, Failure};
use crate::printer::Printer;

/// Explain a term of the answer, or all terms
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The term, such as "KV cache" [default: all]
    term: Option<String>,
}

pub(super) fn run(args: &ExplainArgs, printer: &Printer) -> CliResult<Exit> {
    let shown = |known: Explanation| format!("{}\n  {}", known.term, known.text);
    let text = match &args.term {
        None => explanations().map(shown).collect::<Vec<_>>().join("\n"),
        Some(term) => explain(term).map(shown).ok_or_else(|| unknown(term))?,
    };
    printer.data(text)?;
    Ok(Exit::Done)
}

fn unknown(term: &str) -> Failure {
    let terms: Vec<&str> = explanations().map(|known| known.term).collect();
    let near = nearest(term, terms.iter().copied(), 3);
    let hint = if near.is_empty() { terms.join(", ") } else { near.join(" or ") };
    Failure::usage(format!("'{term}' is not a term that hob explains")).hint(format!("try {hint}"))
}
