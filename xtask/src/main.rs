//! Chores about the tree itself: `cargo xtask tidy` checks it, `cargo xtask docs` writes the generated pages,
//! `cargo xtask test` runs the tests. Nothing here is part of the product, and no crate may depend on it.

mod docs;
mod test;
mod tidy;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use docs::Mode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores about the tree itself")]
enum Chore {
    /// Check what no compiler checks: arrows between crates, import circles, sizes, headers, links, names, words.
    Tidy,
    /// Build and run the tests of all crates, several test programs at the same time.
    Test {
        /// Test programs at the same time.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
    },
    /// Write the pages of docs/reference that hob prints about itself.
    Docs {
        /// Write nothing; fail when a page is not what would be written.
        #[arg(long)]
        check: bool,
        /// The program that prints the pages; built first when none is named.
        #[arg(long, value_name = "PROGRAM")]
        hob: Option<PathBuf>,
    },
}

fn main() -> Result<ExitCode> {
    let complaints = match Chore::parse() {
        Chore::Tidy => tidy::complaints(&tree::Tree::read()?),
        Chore::Test { jobs } => {
            test::run(jobs)?;
            Vec::new()
        }
        Chore::Docs { check: false, hob } => docs::pages(Mode::Write, hob.as_deref())?,
        Chore::Docs { check: true, hob } => docs::pages(Mode::Check, hob.as_deref())?,
    };
    Ok(report(&complaints))
}

#[expect(clippy::print_stderr, reason = "this is what the program is for")]
fn report(complaints: &[String]) -> ExitCode {
    for complaint in complaints {
        eprintln!("{complaint}");
    }
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
