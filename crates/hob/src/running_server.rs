//! Commands that ask a running hob: the `--server` option, and one request that a signal can stop.
//! Without the option they ask the hob of this machine's configuration.

use clap::Args;

use crate::app::{App, run_until_stopped};
use crate::failure::{CliResult, Failure};
use crate::remote::{NOT_RUNNING, Remote};

/// Which server to ask.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerOption {
    /// Ask this server [default: the hob that runs on this machine]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

impl ServerOption {
    /// Sends a request, and waits for its answer or for a signal.
    pub(crate) fn ask<T>(
        &self,
        app: &App<'_>,
        request: impl AsyncFnOnce(&Remote) -> CliResult<T>,
    ) -> CliResult<T> {
        let remote = self.remote(app)?;
        let answered = run_until_stopped(request(&remote));
        answered.map_err(|failure| self.explained(failure))
    }

    /// The server to ask, and the key for it.
    ///
    /// # Errors
    /// The file with the key cannot be read.
    pub(crate) fn remote(&self, app: &App<'_>) -> CliResult<Remote> {
        let key = app.settings.server.api_key.read()?;
        Ok(match &self.server {
            Some(address) => Remote::at(address, key),
            None => Remote::here(app.settings.server.listen.0, key),
        })
    }

    /// The server that the user named.
    pub(crate) fn named(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The failure of a request, with what to do when no server runs.
    pub(crate) fn explained(&self, failure: Failure) -> Failure {
        match self.is_missing(&failure) {
            true => failure.hint("start a server with `hob serve`"),
            false => failure,
        }
    }

    /// Whether no server runs on this machine, and the user named no other. A server that is busy, or that does not answer
    /// in time, runs.
    pub(crate) fn is_missing(&self, failure: &Failure) -> bool {
        self.server.is_none() && failure.hint.as_deref() == Some(NOT_RUNNING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_does_not_have_to_be_started() {
        let here = ServerOption { server: None };
        let there = ServerOption { server: Some("nas:1".to_owned()) };
        let other = "give the address of a hob with --server";
        let rows = [
            (&here, NOT_RUNNING, "start a server with `hob serve`"),
            (&there, NOT_RUNNING, NOT_RUNNING),
            (&here, other, other),
        ];
        for (option, hint, expected) in rows {
            let explained = option.explained(Failure::server("failed").hint(hint));
            assert_eq!(explained.hint.as_deref(), Some(expected), "{option:?}: {hint}");
        }
    }
}
