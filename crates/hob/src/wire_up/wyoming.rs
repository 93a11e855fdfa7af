//! Opens the ports for Home Assistant, and announces them in the local network.
//! The protocol has no keys, so other machines may reach a port only if the user has said so.

use std::net::SocketAddr;

use hob_core::{Registry, task};
use hob_server::{WyomingPort, WyomingService};
use tokio::net::TcpListener;

use super::announcement::Announcement;
use crate::app::App;
use crate::failure::{CliResult, Failure};

/// # Errors
/// Other machines could reach the ports, and the user did not allow that.
pub(crate) fn check_wyoming_exposure(app: &App<'_>) -> CliResult<()> {
    let (wyoming, server) = (&app.settings.wyoming, &app.settings.server);
    if !wyoming.is_enabled {
        return Ok(());
    }
    let listen = wyoming.address(wyoming.speech_port);
    // A key of the server does not protect these ports.
    hob_server::check_exposure(listen, false, server.allow_remote).map_err(|_| {
        let sentence = format!(
            "other machines could use the Wyoming port {listen} without a key: the protocol has none"
        );
        Failure::usage(sentence).hint(
            "add --allow-remote (server.allow_remote in hob.toml) if you trust the network, or set \
             wyoming.listen = \"127.0.0.1\"",
        )
    })
}

/// The ports; none if they are not enabled.
///
/// # Errors
/// A port is taken, or a model is not there.
pub(crate) async fn wyoming_ports(
    app: &App<'_>,
    registry: &Registry,
) -> CliResult<Vec<WyomingPort>> {
    let wyoming = &app.settings.wyoming;
    if !wyoming.is_enabled {
        return Ok(Vec::new());
    }
    let (speech, transcription) = (&wyoming.speech_model, &wyoming.transcription_model);
    if let Some(name) = speech {
        let found = registry.find::<task::Speech>(name).map(drop);
        found.map_err(|_| unknown(name, "speech", app))?;
    }
    if let Some(name) = transcription {
        let found = registry.find::<task::Transcription>(name).map(drop);
        found.map_err(|_| unknown(name, "transcription", app))?;
    }
    Ok(vec![
        WyomingPort {
            listener: bind(wyoming.address(wyoming.speech_port), "speech").await?,
            service: WyomingService::Speech,
            model: speech.clone(),
        },
        WyomingPort {
            listener: bind(wyoming.address(wyoming.transcription_port), "transcription").await?,
            service: WyomingService::Transcription,
            model: transcription.clone(),
        },
    ])
}

/// Tells the user and the local network where the ports are. The network forgets them when the result is dropped.
///
/// # Errors
/// A port has no address.
pub(crate) fn announce_wyoming(
    ports: &[WyomingPort],
    app: &App<'_>,
) -> CliResult<Option<Announcement>> {
    let mut addresses = Vec::new();
    for port in ports {
        let address = port.listener.local_addr();
        let address = address.map_err(|error| Failure::io("a Wyoming port", &error))?;
        addresses.push((name(port.service), address));
    }
    for (service, address) in &addresses {
        app.printer.note(format_args!("Wyoming: {service} on {address}, without a key"));
    }
    let reachable = |(_, address): &(_, SocketAddr)| !address.ip().to_canonical().is_loopback();
    addresses.retain(reachable);
    if addresses.is_empty() || !app.settings.wyoming.announces {
        return Ok(None);
    }
    match Announcement::begin(&addresses) {
        Ok(announcement) => Ok(Some(announcement)),
        Err(error) => {
            app.printer.note(format_args!(
                "the Wyoming ports cannot be announced by mDNS ({error}); enter their addresses in Home Assistant"
            ));
            Ok(None)
        }
    }
}

fn name(service: WyomingService) -> &'static str {
    match service {
        WyomingService::Speech => "speech",
        WyomingService::Transcription => "transcription",
    }
}

async fn bind(listen: SocketAddr, service: &str) -> CliResult<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| {
        let sentence =
            format!("cannot listen on {listen}, the Wyoming port for {service}: {error}");
        let hint = format!("another program may use it; set wyoming.{service}_port in hob.toml");
        Failure::server(sentence).hint(hint)
    })
}

fn unknown(name: &str, service: &str, app: &App<'_>) -> Failure {
    let place = app.written.place(&format!("wyoming.{service}_model"));
    let sentence = format!("{place}: no {service} model or alias is called '{name}'");
    Failure::usage(sentence).hint("`hob models` lists the models of this hob")
}
