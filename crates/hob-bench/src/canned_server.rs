//! A server for tests. It answers each request on a connection of its own, as a closure says.
//! It notes the requests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

pub(crate) struct CannedServer {
    address: SocketAddr,
    answering: JoinHandle<Vec<String>>,
}

impl CannedServer {
    /// `answer` gets the path of a request, and returns the status and the body.
    pub(crate) fn start(
        mut answer: impl FnMut(&str) -> (u16, String) + Send + 'static,
    ) -> CannedServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let answering = thread::spawn(move || {
            let mut asked = Vec::new();
            loop {
                let (mut socket, _) = listener.accept().expect("a client");
                let mut request = [0; 4096];
                let bytes = socket.read(&mut request).expect("a request");
                let request = String::from_utf8_lossy(&request[..bytes]).into_owned();
                // An empty request ends the server.
                let Some(path) = request.split(' ').nth(1) else { return asked };
                let (status, body) = answer(path);
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
                // A client may have what it needs, and leave.
                let _left = socket.write_all((head + &body).as_bytes());
                asked.push(request);
            }
        });
        CannedServer { address, answering }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the server, and returns the requests.
    pub(crate) fn end(self) -> Vec<String> {
        drop(TcpStream::connect(self.address));
        self.answering.join().expect("a server")
    }
}
