//! The certificates that the settings ask for, and what the user must know about them.
//! A mistake in them is found before a model loads.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;

use hob_server::Certificates;

use crate::app::App;
use crate::certificates::{CertificateFiles, LocalAuthority};
use crate::failure::{CliResult, Failure};
use crate::machine::host_name;
use crate::settings::TlsSettings;

/// The folder of the authority, in hob's home.
const FOLDER: &str = "tls";

/// The certificates of the server. `None`: connections are not encrypted.
///
/// # Errors
/// The files of the certificate or of the authority cannot be used.
pub(crate) fn certificates(app: &App<'_>) -> CliResult<Option<Arc<dyn Certificates>>> {
    let unusable = |error| Failure::io("the certificate cannot be used", &error);
    match &app.settings.server.tls {
        TlsSettings::Off => Ok(None),
        TlsSettings::Files { certificate, key } => {
            let files = CertificateFiles::open(certificate.clone(), key.clone());
            Ok(Some(Arc::new(files.map_err(unusable)?)))
        }
        TlsSettings::LocalAuthority => {
            let folder = app.settings.home.join(FOLDER);
            let names = names(host_name().as_deref(), &app.settings.server.allowed_hosts);
            let mut authority = LocalAuthority::open(&folder, names).map_err(unusable)?;
            let rejected = authority.rejected_names().map_err(unusable)?;
            for name in &rejected {
                app.printer.note(format_args!(
                    "hob's certificate authority was made without '{name}', so the certificate leaves it out; \
                     delete {} to make a new authority, which every device must then trust again",
                    folder.display()
                ));
            }
            authority.drop_names(&rejected);
            app.printer.note(format_args!(
                "devices that trust hob's certificate authority open the page without a warning; the page /tls explains how. \
                 Its SHA-256 fingerprint: {}",
                authority.fingerprint()
            ));
            Ok(Some(Arc::new(authority)))
        }
    }
}

/// The names under which devices may reach this machine, each once. `own` is the machine's host name.
fn names(own: Option<&str>, allowed_hosts: &[String]) -> Vec<String> {
    let own = own.map(str::to_ascii_lowercase);
    let own = own.filter(|name| name != "localhost");
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    if let Some(own) = own {
        let bare = own.split('.').next().unwrap_or(&own);
        names.push(format!("{bare}.local"));
        names.push(own);
    }
    let allowed = allowed_hosts.iter().filter(|host| *host != "*");
    names.extend(allowed.map(|host| host.to_ascii_lowercase()));
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

/// The IPv4 address of this machine in its network. Connecting a UDP socket chooses a route and sends nothing.
pub(crate) fn network_address() -> Option<IpAddr> {
    /// An address outside every network, reserved for documentation.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_the_machine_is_in_the_certificate_once() {
        let local = ["localhost", "127.0.0.1", "::1"];
        for (own, allowed, expected) in [
            (
                Some("NAS"),
                &["*", "Localhost", "nas", "hob.lan"][..],
                &["nas.local", "nas", "hob.lan"][..],
            ),
            (Some("nas.local"), &[], &["nas.local"]),
            (Some("localhost"), &["127.0.0.1"], &[]),
            (None, &[], &[]),
        ] {
            let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
            assert_eq!(names(own, &allowed), [&local[..], expected].concat(), "{own:?}");
        }
    }
}
