//! Checks the configuration, the programs that hob runs, and the port.
//! hob works without most programs, so a missing one is a warning.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hob_core::Language;
use hob_speech::needs_espeak;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use super::Check;
use crate::app::App;
use crate::failure::CliResult;
use crate::listen::remedy;
use crate::playback::Player;
use crate::port_owner;
use crate::printer::count_text;
use crate::remote::Remote;
use crate::settings::Espeak;

/// espeak-ng answers in milliseconds.
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) fn config(app: &App<'_>) -> Check {
    if let Err(failure) = app.settings.server.api_key.read() {
        return Check::failed("config", failure);
    }
    match &app.written.path {
        Some(path) => Check::ok("config", format!("{} is right", path.display())),
        None => Check::ok("config", "no hob.toml; all settings have their defaults"),
    }
}

pub(super) fn default_key(app: &App<'_>) -> Option<Check> {
    let is_accepted = app.settings.server.pipelines.accepts_default_key;
    is_accepted.then(|| {
        let found = "every client that reaches hob can chat with the default key of Pipelines";
        let to_do =
            "give your clients a key of hob, and remove server.pipelines.accept_default_key";
        Check::warn("pipelines", found, to_do)
    })
}

/// `missing` has the languages that cannot be spoken now, with what each needs.
pub(super) async fn espeak(app: &App<'_>, missing: &BTreeMap<Language, String>) -> Check {
    let Espeak::Program(name) = &app.settings.speech.espeak else {
        let found =
            "turned off; unknown words are read by rules, and five languages are not spoken";
        return Check::ok("espeak-ng", found);
    };
    let Some(program) = app.espeak() else {
        let found = format!("{} is not installed", name.display());
        return Check::warn(
            "espeak-ng",
            found,
            "install espeak-ng, which knows more words than hob, and five more languages",
        );
    };
    match (output(&program, &["--version"]).await, ipa(&program).await) {
        (Ok(version), Ok(ipa)) => {
            let found = format!("{version}; says \"{ipa}\"");
            let missing: Vec<String> = missing
                .keys()
                .filter(|language| needs_espeak(**language))
                .map(Language::to_string)
                .collect();
            if missing.is_empty() {
                return Check::ok("espeak-ng", format!("{found}, and speaks five more languages"));
            }
            let found = format!("{found}, and has no data for {}", missing.join(", "));
            Check::warn(
                "espeak-ng",
                found,
                "install all data of espeak-ng to speak these languages",
            )
        }
        (Err(error), _) | (_, Err(error)) => {
            let found = format!("cannot run {}: {error}", program.display());
            Check::warn("espeak-ng", found, "install it again, or turn it off with espeak = \"\"")
        }
    }
}

async fn ipa(program: &Path) -> io::Result<String> {
    let said = output(program, &["-q", "--ipa", "-v", "en-us", "hello"]).await?;
    if said.is_empty() { Err(io::Error::other("it has no English voice")) } else { Ok(said) }
}

/// The first line that a program writes.
pub(super) async fn output(program: &Path, args: &[&str]) -> io::Result<String> {
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PROGRAM_TIME_MAX, child).await??;
    if !output.status.success() {
        return Err(io::Error::other(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

pub(super) fn players(path: &OsStr) -> Check {
    let names: Vec<&str> = Player::installed(path).iter().map(Player::name).collect();
    if names.is_empty() {
        let to_do =
            "install pulseaudio-utils, alsa-utils, ffmpeg or sox; writing files works without";
        return Check::warn("players", "none is installed, so `hob say` cannot play sound", to_do);
    }
    Check::ok("players", names.join(", "))
}

pub(super) async fn port(app: &App<'_>) -> Check {
    let listen = app.settings.server.listen.0;
    match TcpListener::bind(listen).await {
        Ok(_) => Check::ok("port", format!("{listen} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match models(app).await {
            Ok(count) => {
                let models = count_text(count, "model");
                Check::ok("port", format!("a hob with {models} listens on {listen}"))
            }
            Err(_) => {
                let owner =
                    port_owner::find(listen).unwrap_or_else(|| "another program".to_owned());
                let to_do = "stop it, or set server.listen to another port";
                Check::fail("port", format!("{listen} is in use by {owner}"), to_do)
            }
        },
        Err(error) => {
            let found = format!("cannot listen on {listen}: {error}");
            Check::fail("port", found, remedy(&error))
        }
    }
}

async fn models(app: &App<'_>) -> CliResult<usize> {
    let key = app.settings.server.api_key.read()?;
    Ok(Remote::here(app.settings.server.listen.0, key).models().await?.len())
}
