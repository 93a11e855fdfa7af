//! Announces ports in the local network by mDNS, where Home Assistant looks for Wyoming servers.
//! A thread of the library answers queries until the announcement is dropped.

use std::net::SocketAddr;
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};

use crate::machine::host_name;

const SERVICE: &str = "_wyoming._tcp.local.";
/// Bytes of the host's name. A label of DNS has at most 63, and the label has other words, too.
const HOST_BYTES_MAX: usize = 32;
/// Time for the messages that withdraw an announcement.
const GOODBYE_TIME_MAX: Duration = Duration::from_millis(300);

/// Ports that the local network knows.
pub(crate) struct Announcement {
    daemon: ServiceDaemon,
    names: Vec<String>,
}

impl Announcement {
    /// Announces services, each with the address on which it listens.
    ///
    /// # Errors
    /// The system allows no such socket, or a name is not allowed.
    pub(crate) fn begin(services: &[(&str, SocketAddr)]) -> Result<Announcement, mdns_sd::Error> {
        let host = host_label(host_name().as_deref().unwrap_or_default());
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        let mut announcement = Announcement { daemon, names: Vec::new() };
        for (service, address) in services {
            let info = described(service, *address, &host)?;
            announcement.names.push(info.get_fullname().to_owned());
            announcement.daemon.register(info)?;
        }
        Ok(announcement)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for name in &self.names {
            if let Ok(withdrawn) = self.daemon.unregister(name) {
                // If the library does not answer in time, the network still forgets the port, but later.
                let _withdrawn = withdrawn.recv_timeout(GOODBYE_TIME_MAX);
            }
        }
        if let Ok(ended) = self.daemon.shutdown() {
            let _ended = ended.recv_timeout(GOODBYE_TIME_MAX);
        }
    }
}

/// One service. Home Assistant takes its name for its identity, so the name has the host in it.
fn described(
    service: &str,
    address: SocketAddr,
    host: &str,
) -> Result<ServiceInfo, mdns_sd::Error> {
    let (instance, host) = (format!("hob {service} on {host}"), format!("hob-{host}.local."));
    let ip = address.ip().to_canonical();
    let none: &[(&str, &str)] = &[];
    if ip.is_unspecified() {
        let info = ServiceInfo::new(SERVICE, &instance, &host, "", address.port(), none)?;
        return Ok(info.enable_addr_auto());
    }
    ServiceInfo::new(SERVICE, &instance, &host, ip, address.port(), none)
}

/// The host's name as a label of DNS.
fn host_label(name: &str) -> String {
    let name = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let label: String = name.chars().map(plain).take(HOST_BYTES_MAX).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "server".to_owned() } else { label.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_s_name_becomes_a_label() {
        for (name, label) in [
            ("nas", "nas"),
            ("Living Room.lan", "living-room"),
            ("-a_b-", "a-b"),
            ("é", "server"),
            ("", "server"),
            (&"x".repeat(70), &"x".repeat(32)),
        ] {
            assert_eq!(host_label(name), label, "{name}");
        }
    }

    #[test]
    fn a_service_has_its_port_and_the_addresses_on_which_it_listens() {
        let listens = |address: &str| {
            described("speech", address.parse().expect("an address"), "nas").expect("a service")
        };
        let everywhere = listens("0.0.0.0:10200");
        let name = "hob speech on nas._wyoming._tcp.local.";
        assert_eq!((everywhere.get_fullname(), everywhere.get_port()), (name, 10_200));
        assert!(everywhere.is_addr_auto(), "all addresses of the machine");
        let one = listens("192.168.1.7:10300");
        let addresses: Vec<String> = one.get_addresses().iter().map(ToString::to_string).collect();
        assert_eq!((addresses, one.is_addr_auto()), (vec!["192.168.1.7".to_owned()], false));
        assert_eq!(one.get_hostname(), "hob-nas.local.");
    }
}
