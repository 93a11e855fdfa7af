//! Opens a voice conversation with a server.
//! A refusal has the words of the server, and says when to try again.

use std::time::Duration;

use hob_upstream::{TextSocket, TextSocketError};
use hob_wire::percent_encoded;

use super::Remote;
use crate::failure::{CliResult, Failure};
use crate::settings::Secret;

/// The server loads a session's models after it has opened the socket.
const OPEN_TIME_MAX: Duration = Duration::from_secs(10);

impl Remote {
    /// Opens `/v1/realtime` with this chat model, or with the server's default.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the session.
    pub(crate) async fn realtime(&self, model: Option<&str>) -> CliResult<TextSocket> {
        let url = url::Url::parse(&self.base).map_err(|error| self.silent(error))?;
        let query = model.map(|model| format!("?model={}", percent_encoded(model)));
        let prefix = url.path().trim_end_matches('/');
        let path = format!("{prefix}/v1/realtime{}", query.unwrap_or_default());
        let key = self.key.as_ref().map(Secret::expose);
        let opened = TextSocket::open(&self.base, &path, key, OPEN_TIME_MAX).await;
        opened.map_err(|error| match error {
            TextSocketError::Refused { status, body, retry_after_s } => {
                let refusal = self.refusal(status, &body);
                match retry_after_s {
                    Some(seconds) => refusal.hint(format!("try again in {seconds} s")),
                    None => refusal,
                }
            }
            TextSocketError::Http(error) => self.unreached(&error),
            error => self.silent(error),
        })
    }

    /// What to tell about a conversation that broke.
    pub(crate) fn lost(&self, error: &TextSocketError) -> Failure {
        Failure::server(format!("the conversation with {} ended: {error}", self.base))
    }
}
