//! The flags that every command takes. The doc comments are the help texts.
//! They stand apart from `cli.rs`, because each command needs them and `cli.rs` needs each command.

use std::path::PathBuf;

use clap::Args;

/// The flags of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Globals {
    /// The configuration file [default: hob.toml in the working folder, then in the user's
    /// configuration folder]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// The folder of models, request log and calibration (also HOB_HOME) [default: hob's folder in the
    /// user's data folder]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Global options")]
    pub(crate) home: Option<PathBuf>,
    /// Print only errors on stderr
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Log filter for stderr, such as "info" or "hob_server=debug" (also HOB_LOG); texts are never logged
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Global options")]
    pub(crate) log: Option<String>,
}
