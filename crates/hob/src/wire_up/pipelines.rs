//! Opens the second address, for clients that expect the port of Pipelines.
//! It has the routes and keys of the main one.

use tokio::net::TcpListener;

use crate::app::App;
use crate::failure::{CliResult, Failure};

/// The second address, if one is set.
///
/// # Errors
/// It is taken, or not of this machine.
pub(crate) async fn pipelines_listener(app: &App<'_>) -> CliResult<Option<TcpListener>> {
    let Some(listen) = app.settings.server.pipelines.listen else { return Ok(None) };
    let listener = TcpListener::bind(listen.0).await.map_err(|error| {
        let sentence = format!("cannot listen on {listen}, the address for Pipelines: {error}");
        let hint = "another program may use it; set server.pipelines.listen in hob.toml";
        Failure::server(sentence).hint(hint)
    })?;
    let address = listener.local_addr();
    let address = address.map_err(|error| Failure::io("the address for Pipelines", &error))?;
    app.printer.note(format_args!("Pipelines: http://{address}"));
    Ok(Some(listener))
}

/// Warns when clients may chat with the public key.
pub(crate) fn note_default_key(app: &App<'_>) {
    if app.settings.server.pipelines.accepts_default_key {
        app.printer.note(
            "every client that reaches hob can chat with the default key of Pipelines, which is public; \
             remove server.pipelines.accept_default_key when your clients have a key of hob",
        );
    }
}
