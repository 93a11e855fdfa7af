//! Tests against servers that the test writes by hand, byte for byte.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use hyper::header::CONTENT_LENGTH;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HOPS: (hyper::header::HeaderName, HeaderValue) =
    (hyper::header::HeaderName::from_static("x-hops"), HeaderValue::from_static("1"));

/// A listener for a hand-written server, and a client for it.
async fn pair() -> (TcpListener, HttpClient) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let http = client_of(listener.local_addr());
    (listener, http)
}

fn client_of(address: io::Result<SocketAddr>) -> HttpClient {
    let address = format!("http://{}/", address.expect("it is bound"));
    let http = HttpClient::new(&address.parse().expect("an address"), HeaderMap::new(), None);
    http.expect("no TLS, so nothing to find")
}

/// Reads a request with its body, and answers with this text.
async fn answer(socket: &mut TcpStream, text: &str) -> io::Result<String> {
    let mut request = Vec::new();
    loop {
        socket.read_buf(&mut request).await?;
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = CONTENT_LENGTH.as_str();
            let said = head.lines().find_map(|line| line.strip_prefix(length)?.strip_prefix(": "));
            if body.len() >= said.map_or(0, |said| said.parse().expect("a length")) {
                break;
            }
        }
    }
    socket.write_all(text.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&request).into_owned())
}

async fn whole(mut response: HttpResponse) -> Result<String, HttpError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        body.extend_from_slice(&bytes);
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn json(text: &'static str) -> (HeaderValue, Body) {
    (JSON, [text].into_iter().collect())
}

#[tokio::test]
async fn a_connection_carries_one_request_after_the_other() {
    let (listener, http) = pair().await;
    let server = async {
        let (mut socket, _) = listener.accept().await?;
        let first = answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await?;
        let chunked =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
        let second = answer(&mut socket, chunked).await?;
        io::Result::Ok((first, second))
    };
    let client = async {
        let first = whole(http.post("/a?b=c", json("{}"), HOPS).await?).await?;
        let second = whole(http.get("/d").await?).await?;
        Ok::<_, HttpError>((first, second))
    };
    let (asked, said) = tokio::join!(server, client);
    assert_eq!(said.expect("both are answered"), ("hi".to_owned(), "ab".to_owned()));
    let (first, second) = asked.expect("both are asked");
    assert!(first.starts_with("POST /a?b=c HTTP/1.1\r\n") && first.ends_with("\r\n\r\n{}"));
    assert!(first.contains("content-type: application/json\r\n") && first.contains("x-hops: 1"));
    assert!(second.starts_with("GET /d HTTP/1.1\r\n") && second.contains("host: 127.0.0.1:"));
}

#[tokio::test]
async fn an_end_that_comes_after_the_answer_costs_no_connection() {
    let (listener, http) = pair().await;
    let address = listener.local_addr().expect("it is bound");
    let server = async {
        let (mut socket, _) = listener.accept().await?;
        let unended = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
        answer(&mut socket, unended).await?;
        // The client has left the answer when it opens this one.
        let (mut signal, _) = listener.accept().await?;
        socket.write_all(b"0\r\n\r\n").await?;
        signal.write_all(b"!").await?;
        answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nho").await
    };
    let client = async {
        let mut first = http.get("/a").await?;
        let said = first.chunk().await?;
        first.leave();
        let mut signal = TcpStream::connect(address).await.expect("it listens");
        signal.read_u8().await.expect("the end is sent before");
        Ok::<_, HttpError>((said, whole(http.get("/b").await?).await?))
    };
    let (asked, said) = tokio::join!(server, client);
    let hi = Some(Bytes::from_static(b"hi"));
    assert_eq!(said.expect("both are answered"), (hi, "ho".to_owned()));
    assert!(asked.expect("both are asked").starts_with("GET /b HTTP/1.1\r\n"));
}

#[tokio::test]
async fn an_answer_that_goes_on_after_it_was_left_costs_its_connection() {
    let (listener, http) = pair().await;
    let server = async {
        let (mut socket, _) = listener.accept().await?;
        let endless = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
        answer(&mut socket, endless).await?;
        let (mut second, _) = listener.accept().await?;
        answer(&mut second, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nho").await
    };
    let client = async {
        let mut first = http.get("/a").await?;
        first.chunk().await?;
        first.leave();
        whole(http.get("/b").await?).await
    };
    let (asked, said) = tokio::join!(server, client);
    assert_eq!(said.expect("it is answered"), "ho");
    assert!(asked.expect("it is asked").starts_with("GET /b HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let (listener, http) = pair().await;
    let once = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1";
    let server = async {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await?;
            answer(&mut socket, once).await?;
        }
        io::Result::Ok(())
    };
    let client = async {
        let first = whole(http.get("/").await?).await?;
        Ok::<_, HttpError>((first, whole(http.get("/").await?).await?))
    };
    let (served, said) = tokio::join!(server, client);
    served.expect("it was asked twice");
    assert_eq!(said.expect("both are answered"), ("1".to_owned(), "1".to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_no_end() {
    let rows = [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
        "HTTP/1.1 2",
        "SSH-2.0-x\r\n",
    ];
    for text in rows {
        let (listener, http) = pair().await;
        let server = async {
            let (mut socket, _) = listener.accept().await?;
            answer(&mut socket, text).await
        };
        let client = async { whole(http.get("/").await?).await };
        let (served, said) = tokio::join!(server, client);
        served.expect("it was asked");
        said.expect_err(text);
    }
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let (listener, http) = pair().await;
    let server = async {
        let (mut socket, _) = listener.accept().await?;
        answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi").await?;
        socket.read(&mut [0; 1]).await
    };
    let client = async {
        let mut response = http.get("/").await?;
        response.chunk().await
    };
    let (left, said) = tokio::join!(server, client);
    assert_eq!(said.expect("it began"), Some(Bytes::from_static(b"hi")));
    assert!(matches!(left, Ok(0)), "{left:?}");
}

#[tokio::test]
async fn an_unreachable_server_is_reported_without_its_address() {
    // It does not listen, and the system gives its port to no other program.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let http = client_of(socket.local_addr());
    let error = http.get("/").await.expect_err("connection refused");
    assert!(matches!(error, HttpError::Refused { .. }), "{error:?}");
    let error = error.to_string();
    assert!(error.contains("refused") && !error.contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_form_is_read_back_by_another_implementation() {
    let sound = Bytes::from_static(b"RIFF\r\n--hob-\0");
    let form =
        Form::new().text("model", "x\r\ny").file("file", "a\"b.wav", "audio/wav", sound.clone());
    let (content_type, body) = form.into_body();
    let content_type = content_type.to_str().expect("text").to_owned();
    let boundary = multer::parse_boundary(content_type).expect("it has a boundary");
    let body = http_body_util::BodyExt::collect(body).await.expect("it lies in memory").to_bytes();
    let stream = futures::stream::iter([Ok::<_, io::Error>(body)]);
    let mut form = multer::Multipart::new(stream, boundary);
    let text = form.next_field().await.expect("a form").expect("a field");
    assert_eq!(text.name(), Some("model"));
    assert_eq!(text.text().await.expect("text"), "x\r\ny");
    let file = form.next_field().await.expect("a form").expect("a field");
    assert_eq!((file.name(), file.file_name()), (Some("file"), Some("a%22b.wav")));
    assert_eq!(
        file.content_type().map(|kind| kind.essence_str().to_owned()),
        Some("audio/wav".to_owned())
    );
    assert_eq!(file.bytes().await.expect("bytes"), sound);
}

#[tokio::test]
async fn bytes_before_a_cut_are_delivered() {
    let (listener, http) = pair().await;
    let server = async {
        let (mut socket, _) = listener.accept().await?;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
        answer(&mut socket, head).await?;
        socket.write_all(b"1\r\nb\r\n1\r\nc\r\n").await
    };
    let client = async {
        let mut response = http.get("/").await?;
        let mut heard = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => heard.extend_from_slice(&bytes),
                ended => return Ok::<_, HttpError>((heard, ended.is_err())),
            }
        }
    };
    let (served, said) = tokio::join!(server, client);
    served.expect("it was asked");
    assert_eq!(said.expect("it began"), (b"abc".to_vec(), true));
}
