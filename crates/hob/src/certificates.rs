//! Certificates for `hob serve --tls`: of a local authority that hob makes, or from the user's files.
//! The user's files are read again when they change, because programs that renew certificates replace them.

mod authority;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use hob_core::locked;
use hob_server::Certificates;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) use authority::LocalAuthority;

use crate::bounded_file::read_text;

/// A chain of certificates takes a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate and its key, in two PEM files of the user.
#[derive(Debug)]
pub(crate) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    read: Mutex<ReadFiles>,
}

#[derive(Debug)]
struct ReadFiles {
    /// Modification times of both files.
    modified: [SystemTime; 2],
    config: Arc<ServerConfig>,
}

impl CertificateFiles {
    /// # Errors
    /// A file cannot be read, or the key does not belong to the certificate.
    pub(crate) fn open(certificate: PathBuf, key: PathBuf) -> io::Result<CertificateFiles> {
        let read = Mutex::new(ReadFiles::read(&certificate, &key)?);
        Ok(CertificateFiles { certificate, key, read })
    }
}

impl ReadFiles {
    fn read(certificate: &Path, key: &Path) -> io::Result<ReadFiles> {
        let modified = modified(certificate, key)?;
        let in_file = |path: &Path, error: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        };
        let text = read_text(certificate, FILE_BYTES_MAX)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let chain = chain.map_err(|error| in_file(certificate, &error))?;
        if chain.is_empty() {
            return Err(in_file(certificate, &"it has no certificate in PEM format"));
        }
        let text = read_text(key, FILE_BYTES_MAX)?;
        let private =
            PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| in_file(key, &error))?;
        let config = server_config(chain, private).map_err(|error| in_file(key, &error))?;
        Ok(ReadFiles { modified, config })
    }
}

impl Certificates for CertificateFiles {
    fn for_address(&self, _address: IpAddr) -> io::Result<Arc<ServerConfig>> {
        let mut read = locked(&self.read);
        // Between two writes of a renewal, the files may not match. The old certificate stays in use.
        if modified(&self.certificate, &self.key).is_ok_and(|modified| modified != read.modified) {
            match ReadFiles::read(&self.certificate, &self.key) {
                Ok(renewed) => *read = renewed,
                Err(error) => tracing::warn!(%error, "the changed certificate cannot be used"),
            }
        }
        Ok(Arc::clone(&read.config))
    }

    fn authority(&self) -> Option<String> {
        None
    }
}

fn modified(certificate: &Path, key: &Path) -> io::Result<[SystemTime; 2]> {
    Ok([fs_err::metadata(certificate)?.modified()?, fs_err::metadata(key)?.modified()?])
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("written");
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    }

    #[test]
    fn a_renewed_certificate_is_used_without_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        write(folder.path(), "a.lan");
        let files = CertificateFiles::open(cert.clone(), key.clone()).expect("readable");
        let address = IpAddr::from([127, 0, 0, 1]);
        let first = files.for_address(address).expect("a certificate");
        assert!(Arc::ptr_eq(&first, &files.for_address(address).expect("the same")));
        // Half of a renewal: the key does not belong to the certificate.
        let other = rcgen::KeyPair::generate().expect("a key");
        std::fs::write(&key, other.serialize_pem()).expect("written");
        assert!(Arc::ptr_eq(&first, &files.for_address(address).expect("the old one")));
        write(folder.path(), "b.lan");
        assert!(!Arc::ptr_eq(&first, &files.for_address(address).expect("the new one")));
        let error = CertificateFiles::open(key, cert).expect_err("files swapped").to_string();
        assert!(error.ends_with("key.pem: it has no certificate in PEM format"), "{error}");
    }
}
