//! What a sandbox lets a command do, whichever program makes it: write in the workspace or not, use the network or not,
//! and read these paths besides.

use crate::team::{SandboxMode, SandboxNetwork};

/// What commands may read. Home folders, sockets and the rest of `/etc`, where keys and passwords are, are not there.
const READABLE: [&str; 18] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/opt",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/ssl/certs",
];
/// What commands with a network read besides.
const NETWORK_READABLE: [&str; 5] =
    ["/etc/gai.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/services", "/etc/ssl/openssl.cnf"];

/// What a sandbox allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxAccess {
    pub mode: SandboxMode,
    pub network: SandboxNetwork,
}

/// What commands may read besides the workspace.
pub(super) fn readable(access: SandboxAccess) -> impl Iterator<Item = &'static str> {
    let more: &[&str] = match access.network {
        SandboxNetwork::Off => &[],
        SandboxNetwork::On => &NETWORK_READABLE,
    };
    READABLE.iter().chain(more).copied()
}
