//! The flags that every command takes. The doc comments are the help texts.
//! They stand apart from `cli.rs`, because each command needs them and `cli.rs` needs each command.

use std::path::PathBuf;

use clap::Args;

/// What every command takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Globals {
    /// The configuration; without it, hob.toml of the working folder, then of the user's
    /// configuration folder
    #[arg(long, global = true, value_name = "FILE", help_heading = "For every command")]
    pub(crate) config: Option<PathBuf>,
    /// Where models are kept (also HOB_HOME)
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "For every command")]
    pub(crate) home: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true, help_heading = "For every command")]
    pub(crate) quiet: bool,
    /// What to log on stderr, such as "info" or "hob_server=debug" (also HOB_LOG); texts never are
    #[arg(long, global = true, value_name = "FILTER", help_heading = "For every command")]
    pub(crate) log: Option<String>,
}
