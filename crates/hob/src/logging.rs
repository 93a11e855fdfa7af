//! Logs go to stderr, filtered by `--log` or `HOB_LOG`. Texts that are spoken are never logged:
//! the types that hold them print their lengths only.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::failure::{CliResult, Failure};
use crate::settings::Environment;

/// Without a filter, `default` applies.
///
/// # Errors
/// The filter is not valid.
pub(crate) fn start(flag: Option<&str>, default: &str) -> CliResult<()> {
    let environment = Environment::read();
    let filter_text = flag.or(environment.hob_log.as_deref()).unwrap_or(default);
    let filter = EnvFilter::try_new(filter_text).map_err(|error| {
        Failure::usage(format!("'{filter_text}' is not a log filter: {error}"))
            .hint("try --log info, or --log hob_server=debug,warn")
    })?;
    let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    log.with_writer(io::stderr).with_ansi(colours).init();
    Ok(())
}
