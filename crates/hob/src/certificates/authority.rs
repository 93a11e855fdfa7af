//! A certificate authority of this machine, for browsers of the home network. A device that trusts its certificate
//! opens hob's page without a warning. Name constraints limit it to private addresses and local names.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::locked;
use hob_server::Certificates;
use jiff::{Span, Zoned};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, PublicKeyData, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};

use super::{FILE_BYTES_MAX, server_config};
use crate::bounded_file::read_text;

const CERTIFICATE: &str = "authority.crt";
const KEY: &str = "authority.key";

const AUTHORITY_DAYS: i64 = 3650;
/// iOS and macOS reject certificates of servers that are valid for more than 825 days, and public ones beyond 398 days.
const SERVER_DAYS: i64 = 397;
/// A server that runs for a year must not show an expired certificate.
const RENEWED_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);
/// Addresses of this machine with a certificate. A machine has a few.
const ADDRESSES_MAX: usize = 64;

/// Endings of names in home networks. Public domains do not end with them, except `fritz.box`, the name of AVM's routers. A
/// certificate for any other name is not valid, unless the authority was made with that name.
const LOCAL_NAMES: [&str; 7] =
    ["localhost", "local", "lan", "home", "home.arpa", "internal", "fritz.box"];
/// Networks that are not on the Internet. 100.64.0.0/10 is used by VPNs such as Tailscale.
const PRIVATE_V4: [([u8; 4], u8); 6] = [
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];
const PRIVATE_V6: [([u16; 8], u8); 3] = [
    ([0, 0, 0, 0, 0, 0, 0, 1], 128),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
];

/// The authority, and the certificates that it made since the start.
pub(crate) struct LocalAuthority {
    pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    /// Host names and addresses in every certificate.
    names: Vec<String>,
    issued: Mutex<BTreeMap<IpAddr, (Instant, Arc<ServerConfig>)>>,
}

impl LocalAuthority {
    /// Reads the authority from `folder`, or makes a new one there. `names` are the machine's host names.
    ///
    /// # Errors
    /// The folder cannot be read or written, or its files are damaged.
    pub(crate) fn open(folder: &Path, names: Vec<String>) -> io::Result<LocalAuthority> {
        if !folder.join(CERTIFICATE).try_exists()? {
            create(folder, &names)?;
        }
        let [certificate, key] = [CERTIFICATE, KEY].map(|name| folder.join(name));
        let damaged = |error: &dyn fmt::Display| {
            let hint = "delete the folder to make a new authority";
            let text = format!("{}: {error}; {hint}", folder.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let pem = read_text(&certificate, FILE_BYTES_MAX)?;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| damaged(&e))?;
        let key = KeyPair::from_pem(&read_text(&key, FILE_BYTES_MAX)?).map_err(|e| damaged(&e))?;
        let issuer = Issuer::new(authority_params(&key, &[]), key);
        let issued = Mutex::default();
        Ok(LocalAuthority { pem, der, issuer, names, issued })
    }

    /// SHA-256 of the authority's certificate, as browsers and phones show it.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = Sha256::digest(&self.der);
        let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    /// Names for which devices reject this authority's certificates, because it was made without them.
    ///
    /// # Errors
    /// No certificate can be made.
    pub(crate) fn rejected_names(&self) -> io::Result<Vec<String>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.der.clone()).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(io::Error::other)?;
        // Each name alone: one name that is not allowed makes a whole certificate invalid.
        let is_rejected = |name: &&String| {
            let made = self.certificate(vec![(*name).clone()]);
            let (Ok((leaf, _)), Ok(server)) = (made, ServerName::try_from((*name).clone())) else {
                return true;
            };
            let now = UnixTime::now();
            verifier.verify_server_cert(&leaf, &[], &server, &[], now).is_err()
        };
        Ok(self.names.iter().filter(is_rejected).cloned().collect())
    }

    /// Leaves out names that would make the certificate invalid for all others.
    pub(crate) fn drop_names(&mut self, rejected: &[String]) {
        self.names.retain(|name| !rejected.contains(name));
    }

    fn config(&self, address: IpAddr) -> io::Result<Arc<ServerConfig>> {
        let (leaf, key) = self.certificate(self.names_for(address))?;
        server_config(vec![leaf], key).map_err(io::Error::other)
    }

    /// The names in the certificate for an address of this machine, each once.
    fn names_for(&self, address: IpAddr) -> Vec<String> {
        let mut names = self.names.clone();
        let own = address.to_string();
        if is_private(address) && !names.contains(&own) {
            names.push(own);
        }
        names
    }

    fn certificate(
        &self,
        names: Vec<String>,
    ) -> io::Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        validity(&mut params, SERVER_DAYS);
        params.distinguished_name = common_name("hob");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let signed = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(io::Error::other)?;
        Ok((signed.der().clone(), key))
    }
}

impl Certificates for LocalAuthority {
    fn for_address(&self, address: IpAddr) -> io::Result<Arc<ServerConfig>> {
        let mut issued = locked(&self.issued);
        issued.retain(|_, (at, _)| at.elapsed() < RENEWED_AFTER);
        if let Some((_, config)) = issued.get(&address) {
            return Ok(Arc::clone(config));
        }
        let config = self.config(address)?;
        if issued.len() < ADDRESSES_MAX {
            issued.insert(address, (Instant::now(), Arc::clone(&config)));
        }
        Ok(config)
    }

    fn authority(&self) -> Option<String> {
        Some(self.pem.clone())
    }
}

// Shows no key.
hob_core::debug_fields!(LocalAuthority: names);

/// Makes an authority. Its certificate gets its name last, so a certificate always has a key.
fn create(folder: &Path, names: &[String]) -> io::Result<()> {
    fs_err::create_dir_all(folder)?;
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let certificate = authority_params(&key, names).self_signed(&key).map_err(io::Error::other)?;
    for (name, pem) in [(KEY, key.serialize_pem()), (CERTIFICATE, certificate.pem())] {
        // Only the user can read a temporary file.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(pem.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(folder.join(name)).map_err(|error| error.error)?;
    }
    Ok(())
}

/// The authority's certificate. Certificates that it signs depend on its name only, and its name on its key.
fn authority_params(key: &KeyPair, names: &[String]) -> CertificateParams {
    let digest = Sha256::digest(key.subject_public_key_info());
    let id: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    validity(&mut params, AUTHORITY_DAYS);
    params.distinguished_name = common_name(&format!("hob on this network ({id})"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = Some(constraints(names));
    params
}

fn constraints(names: &[String]) -> NameConstraints {
    let hosts = names.iter().map(String::as_str).filter(|name| name.parse::<IpAddr>().is_err());
    let hosts = LOCAL_NAMES.into_iter().chain(hosts);
    let hosts = hosts.map(|name| GeneralSubtree::DnsName(name.to_owned()));
    let addresses = names.iter().filter_map(|name| name.parse::<IpAddr>().ok());
    let addresses = addresses.map(|address| match address {
        IpAddr::V4(address) => CidrSubnet::from_v4_prefix(address.octets(), 32),
        IpAddr::V6(address) => CidrSubnet::from_v6_prefix(address.octets(), 128),
    });
    let v4 = PRIVATE_V4.map(|(address, prefix)| CidrSubnet::from_v4_prefix(address, prefix));
    let v6 = PRIVATE_V6.map(|(address, prefix)| {
        CidrSubnet::from_v6_prefix(Ipv6Addr::from(address).octets(), prefix)
    });
    let networks = addresses.chain(v4).chain(v6).map(GeneralSubtree::IpAddress);
    let permitted_subtrees = hosts.chain(networks).collect();
    NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() }
}

fn is_private(address: IpAddr) -> bool {
    let shares = |own: u128, network: u128, prefix: u8, bits: u8| {
        let shift = u32::from(bits - prefix);
        own.checked_shr(shift) == network.checked_shr(shift)
    };
    match address {
        IpAddr::V4(address) => PRIVATE_V4.iter().any(|(network, prefix)| {
            let network = Ipv4Addr::from(*network).to_bits();
            shares(address.to_bits().into(), network.into(), *prefix, 32)
        }),
        IpAddr::V6(address) => PRIVATE_V6.iter().any(|(network, prefix)| {
            shares(address.to_bits(), Ipv6Addr::from(*network).to_bits(), *prefix, 128)
        }),
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// From yesterday, because clocks of devices differ.
fn validity(params: &mut CertificateParams, days: i64) {
    let today = Zoned::now().date();
    let day = |days: i64| {
        let date = today.saturating_add(Span::new().days(days));
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    (params.not_before, params.not_after) = (day(-1), day(days - 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, names: &[&str]) -> LocalAuthority {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        LocalAuthority::open(folder, names).expect("an authority")
    }

    #[test]
    fn an_authority_is_made_once_and_signs_after_a_restart() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("tls");
        let first = open(&folder, &["localhost", "nas", "127.0.0.1"]);
        assert_eq!(first.rejected_names().expect("checked"), Vec::<String>::new());
        let again =
            open(&folder, &["localhost", "nas", "nas.lan", "hob.example.com", "192.168.1.7"]);
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_eq!(first.fingerprint().len(), 32 * 3 - 1);
        // Only names that it was made with, and local ones, are valid. So a stolen key cannot imitate a bank.
        assert_eq!(again.rejected_names().expect("checked"), ["hob.example.com"]);
    }

    #[test]
    fn each_address_of_the_machine_gets_one_certificate() {
        let home = tempfile::tempdir().expect("a folder");
        let authority = open(home.path(), &["localhost"]);
        let [a, b] = ["192.168.1.7", "fd00::7"].map(|text| text.parse().expect("an address"));
        let first = authority.for_address(a).expect("a certificate");
        assert!(Arc::ptr_eq(&first, &authority.for_address(a).expect("the same")));
        assert!(!Arc::ptr_eq(&first, &authority.for_address(b).expect("another one")));
    }

    #[test]
    fn a_certificate_has_each_name_once() {
        let home = tempfile::tempdir().expect("a folder");
        let authority = open(home.path(), &["localhost", "127.0.0.1", "::1"]);
        let names = |text: &str| authority.names_for(text.parse().expect("an address"));
        assert_eq!(names("127.0.0.1"), ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(names("192.168.1.7"), ["localhost", "127.0.0.1", "::1", "192.168.1.7"]);
        assert_eq!(names("8.8.8.8"), ["localhost", "127.0.0.1", "::1"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a folder");
        open(home.path(), &["localhost"]);
        let mode = std::fs::metadata(home.path().join(KEY)).expect("a key").permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[test]
    fn damaged_files_are_an_error_that_says_what_to_do() {
        let home = tempfile::tempdir().expect("a folder");
        open(home.path(), &["localhost"]);
        std::fs::write(home.path().join(KEY), "no key").expect("written");
        let error = LocalAuthority::open(home.path(), Vec::new()).expect_err("damaged").to_string();
        assert!(error.ends_with("delete the folder to make a new authority"), "{error}");
    }

    #[test]
    fn only_addresses_of_private_networks_are_private() {
        for (address, expected) in [
            ("192.168.1.7", true),
            ("172.31.255.255", true),
            ("172.32.0.1", false),
            ("100.100.1.1", true),
            ("8.8.8.8", false),
            ("::1", true),
            ("fd12::1", true),
            ("fe80::1", true),
            ("2001:db8::1", false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(is_private(parsed), expected, "{address}");
        }
    }
}
