//! The client with test servers: with a new certificate, with an untrusted one, and without TLS.
//! The system's certificates are not used: each endpoint gets the certificate that it trusts.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::drive::{Arrivals, Drive, End, Endpoint, Exchange, RequestLimits};
use crate::timeline::{Protocol, timeline};

/// No server here is as slow, even on a machine that does much else.
const LONG: RequestLimits = RequestLimits {
    connect: Duration::from_secs(30),
    silence: Duration::from_secs(30),
    total: Duration::from_secs(120),
    bytes_max: usize::MAX,
};
const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

type Peer = StreamOwned<ServerConnection, TcpStream>;
type Conversation = fn(&mut Peer) -> io::Result<()>;

/// A server of one or a few connections, one after the other, whose certificate is for `localhost`.
struct Server {
    port: u16,
    certificate: CertificateDer<'static>,
    over: JoinHandle<io::Result<()>>,
}

fn server(connections: usize, answer: Conversation) -> Server {
    let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let CertifiedKey { cert, signing_key } = made;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let certificate = cert.der().clone();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("as it was made");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let config = Arc::new(config);
    let over = thread::spawn(move || {
        let serve = |_| {
            let (socket, _) = listener.accept()?;
            let connection = ServerConnection::new(Arc::clone(&config));
            answer(&mut StreamOwned::new(connection.map_err(io::Error::other)?, socket))
        };
        // Serves all connections, then returns the first error.
        let ended: Vec<io::Result<()>> = (0..connections).map(serve).collect();
        ended.into_iter().collect()
    });
    Server { port, certificate, over }
}

/// A configuration that trusts this certificate.
fn trusting(certificate: CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn endpoint(server: &Server) -> Endpoint {
    let config = trusting(server.certificate.clone());
    let url = format!("https://localhost:{}", server.port);
    Endpoint::trusting(&url, |host| Trust::with_config(host, config)).expect("an address")
}

fn drive(limits: RequestLimits, endpoint: Endpoint, requests: usize) -> Vec<Exchange> {
    let jobs = (0..requests).map(|number| {
        Bytes::from(format!("POST /{number} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"))
    });
    let arrivals = Arrivals::Closed { users: 1 };
    let jobs = jobs.collect();
    let drive = Drive { endpoint, jobs, arrivals, seed: 1, limits, answer_bytes: 1 << 16 };
    drive.run(&AtomicBool::new(false)).expect("a drive").exchanges
}

fn read_request(peer: &mut Peer) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    Ok(())
}

fn event(text: &str) -> String {
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn end() -> String {
    "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n".to_owned()
}

/// Longer than the timeout of a read, so that reads time out in the middle of an answer. A client that reads later than
/// this would give two pieces one time stamp.
const PAUSE: Duration = Duration::from_millis(800);

#[test]
fn an_answer_with_pauses_is_read_over_a_reused_tls_connection() {
    let server = server(1, |peer| {
        for _ in 0..2 {
            read_request(peer)?;
            peer.write_all(HEAD.as_bytes())?;
            for text in ["a", "b", "c"] {
                thread::sleep(PAUSE);
                peer.write_all(event(text).as_bytes())?;
            }
            peer.write_all(end().as_bytes())?;
        }
        Ok(())
    });
    let exchanges = drive(LONG, endpoint(&server), 2);
    server.over.join().expect("a server").expect("as it was asked");
    let connects: Vec<bool> = exchanges.iter().map(|one| one.connect.is_some()).collect();
    assert_eq!(connects, [true, false], "the handshake is in the first one's time to connect");
    for exchange in &exchanges {
        let got = timeline(exchange, Protocol::OpenAi);
        assert_eq!((got.fault.clone(), got.chunks.len()), (None, 3), "{got:?}");
        let gaps = got.chunks.windows(2).map(|pair| pair[1].at - pair[0].at);
        assert!(gaps.min() >= Some(PAUSE / 2), "each piece has its own stamp: {got:?}");
    }
}

#[test]
fn tls_records_that_arrive_together_share_a_time_stamp() {
    let server = server(1, |peer| {
        read_request(peer)?;
        let many = [HEAD.to_owned(), (0..400).map(|_| event("word")).collect(), end()].concat();
        // Each piece is a TLS record, and one socket write sends them all.
        for piece in many.as_bytes().chunks(64) {
            peer.conn.writer().write_all(piece)?;
        }
        peer.flush()
    });
    let exchanges = drive(LONG, endpoint(&server), 1);
    server.over.join().expect("a server").expect("as it was asked");
    let got = timeline(&exchanges[0], Protocol::OpenAi);
    assert_eq!((got.fault, got.chunks.len()), (None, 400));
    let reads = exchanges[0].recording.reads.len();
    assert!(reads < 40, "{reads} reads for 500 records");
}

#[test]
fn a_closed_or_silent_tls_connection_has_its_own_end() {
    let rows: [(Conversation, RequestLimits, End); 3] = [
        (
            |peer| {
                read_request(peer)?;
                peer.write_all(HEAD.as_bytes())
            },
            LONG,
            End::CutOff,
        ),
        (
            |peer| {
                read_request(peer)?;
                peer.write_all(HEAD.as_bytes())?;
                peer.write_all(event("a").as_bytes())?;
                peer.conn.send_close_notify();
                peer.flush()
            },
            LONG,
            End::CutOff,
        ),
        (
            |peer| {
                read_request(peer)?;
                peer.write_all(HEAD.as_bytes())?;
                let mut rest = [0];
                // Waits until the client gives up.
                peer.read(&mut rest).map(|_| ()).or(Ok(()))
            },
            RequestLimits { silence: Duration::from_millis(2500), ..LONG },
            End::Silent,
        ),
    ];
    for (answer, limits, expected) in rows {
        let server = server(1, answer);
        let exchanges = drive(limits, endpoint(&server), 1);
        assert_eq!(exchanges[0].end, expected);
        server.over.join().expect("a server").expect("as it was asked");
    }
}

fn refusal(limits: RequestLimits, endpoint: Endpoint) -> String {
    match drive(limits, endpoint, 1).remove(0).end {
        End::Unreachable { cause } => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_untrusted_certificate_is_rejected_with_a_reason() {
    // Each client connects twice: before the start, and for its first request.
    let made = || server(2, read_request);
    let stranger = made();
    let url = format!("https://localhost:{}", stranger.port);
    let other = trusting(made_elsewhere());
    let unknown =
        Endpoint::trusting(&url, |host| Trust::with_config(host, other)).expect("an address");
    let said = refusal(LONG, unknown);
    assert!(said.starts_with("the server's certificate is not trusted ("), "{said}");
    assert!(said.contains("SSL_CERT_FILE"), "{said}");
    let namesake = made();
    let url = format!("https://127.0.0.1:{}", namesake.port);
    let config = trusting(namesake.certificate.clone());
    let misnamed =
        Endpoint::trusting(&url, |host| Trust::with_config(host, config)).expect("an address");
    let said = refusal(LONG, misnamed);
    assert!(said.starts_with("the server's certificate is not trusted"), "{said}");
    assert!(stranger.over.join().expect("a server").is_err(), "no request was sent");
    assert!(namesake.over.join().expect("a server").is_err(), "no request was sent");
}

fn made_elsewhere() -> CertificateDer<'static> {
    let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    made.cert.der().clone()
}

#[test]
fn a_server_without_tls_is_reported_within_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let plain = thread::spawn(move || -> io::Result<()> {
        // Each client connects twice.
        let said: [&[u8]; 4] = [b"HTTP/1.1 400 Bad\r\n\r\n", b"HTTP/1.1 400 Bad\r\n\r\n", b"", b""];
        for said in said {
            let (mut socket, _) = listener.accept()?;
            socket.write_all(said)?;
            let _reset = socket.read_to_end(&mut Vec::new());
        }
        Ok(())
    });
    let url = format!("https://localhost:{port}");
    let to =
        || Endpoint::trusting(&url, |host| Trust::with_config(host, trusting(made_elsewhere())));
    let said = refusal(LONG, to().expect("an address"));
    assert!(said.starts_with("the TLS handshake failed: received"), "{said}");
    let short = RequestLimits { connect: Duration::from_secs(3), ..LONG };
    let said = refusal(short, to().expect("an address"));
    assert!(said.starts_with("no TLS handshake within 3.0 s"), "{said}");
    plain.join().expect("a server").expect("as it was asked");
}
