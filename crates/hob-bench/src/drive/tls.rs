//! TLS over a blocking socket: trusted certificates, the handshake, and reads that return all that has arrived.
//! The operating system decides which certificates are trusted, as for every other server that hob connects to.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::socket::{Socket, is_pause};

/// Bytes of one socket read. Together with the rest of a TLS record, their plain text fits into a buffer of 64 KiB.
const READ_BYTES: usize = 48 << 10;

/// The server's name and the trusted certificates.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

/// Compares names only: all endpoints trust the system's certificates.
impl PartialEq for Trust {
    fn eq(&self, other: &Trust) -> bool {
        self.name == other.name
    }
}

impl Eq for Trust {}

/// Why the TLS handshake failed.
#[derive(Debug, thiserror::Error)]
enum TlsError {
    #[error(
        "the server's certificate is not trusted ({0}): add its authority to the system's certificates, or name a file in SSL_CERT_FILE"
    )]
    Untrusted(rustls::CertificateError),
    #[error("the TLS handshake failed: {0}")]
    Foreign(io::Error),
    #[error("no TLS handshake within {seconds:.1} s", seconds = .0.as_secs_f64())]
    Slow(Duration),
}

impl Trust {
    /// Uses the system's certificates.
    ///
    /// # Errors
    /// The system has no certificates, or the name is not a server name.
    pub(super) fn of_system(host: &str) -> Result<Trust, rustls::Error> {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        Trust::with_config(host, config)
    }

    pub(super) fn with_config(
        host: &str,
        mut config: ClientConfig,
    ) -> Result<Trust, rustls::Error> {
        // A resumed handshake is shorter. All connections must take the same time.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| rustls::Error::General(format!("'{host}' is not a server name")))?;
        Ok(Trust { name, config: Arc::new(config) })
    }

    /// Performs the handshake.
    ///
    /// # Errors
    /// The certificate is not trusted, the server does not speak TLS, or the handshake takes too long.
    pub(super) fn handshake(&self, mut socket: Socket, within: Duration) -> io::Result<Tls> {
        let begun = Instant::now();
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            match connection.complete_io(&mut socket) {
                Ok(_) => {}
                Err(error) if !is_pause(&error) => return Err(io::Error::other(tls_error(error))),
                Err(_) if begun.elapsed() > within => {
                    return Err(io::Error::other(TlsError::Slow(within)));
                }
                Err(_) => {}
            }
        }
        Ok(Tls { connection, socket: BufReader::with_capacity(READ_BYTES, socket) })
    }
}

fn tls_error(error: io::Error) -> TlsError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => TlsError::Untrusted(reason.clone()),
        _ => TlsError::Foreign(error),
    }
}

/// An encrypted connection.
#[derive(Debug)]
pub(crate) struct Tls {
    connection: ClientConnection,
    socket: BufReader<Socket>,
}

impl Tls {
    pub(super) fn read_delay(&self) -> Duration {
        self.socket.get_ref().read_delay()
    }

    pub(super) fn stream(&self) -> &TcpStream {
        self.socket.get_ref().stream()
    }

    /// The plain text that has arrived; None if no TLS record is complete.
    fn read_decrypted(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut filled = 0;
        loop {
            match self.connection.reader().read(&mut buffer[filled..]) {
                Ok(0) => return Ok(Some(filled)),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock && filled == 0 => {
                    return Err(error);
                }
                Err(_) if self.socket.buffer().is_empty() => {
                    return Ok(Some(filled).filter(|filled| *filled > 0));
                }
                Err(_) => self.decrypt()?,
            }
        }
    }

    fn decrypt(&mut self) -> io::Result<()> {
        self.connection.read_tls(&mut self.socket)?;
        let done = self.connection.process_new_packets();
        // TLS may have to answer, for example with new keys or an alert.
        self.send()?;
        done.map(|_| ()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn send(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(self.socket.get_mut())?;
        }
        Ok(())
    }
}

impl Read for Tls {
    /// Returns everything of one socket read, because it has one time stamp.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(bytes) = self.read_decrypted(buffer)? {
                return Ok(bytes);
            }
            if self.socket.fill_buf()?.is_empty() {
                self.decrypt()?;
            }
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.connection.writer().write(bytes)?;
        self.send()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

#[cfg(test)]
mod tests;
