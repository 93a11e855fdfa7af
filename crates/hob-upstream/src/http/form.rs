//! `multipart/form-data` (RFC 7578): fields of text and one file, whose bytes are not copied.
//! Deliberately absent: files whose length is not known before, which hob never sends.

use bytes::Bytes;
use hyper::header::HeaderValue;

use super::body::Body;

#[derive(Clone, Debug)]
pub(crate) struct Form {
    boundary: String,
    pieces: Vec<Bytes>,
}

impl Form {
    /// Creates a form with a random boundary, which no file contains by chance.
    pub(crate) fn new() -> Form {
        let boundary = format!("hob-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        Form { boundary, pieces: Vec::new() }
    }

    #[must_use]
    pub(crate) fn text(mut self, name: &str, text: &str) -> Form {
        let head = format!("form-data; name=\"{}\"\r\n\r\n{text}\r\n", escaped(name));
        self.begin(&head);
        self
    }

    #[must_use]
    pub(crate) fn file(
        mut self,
        name: &str,
        file_name: &str,
        content_type: &str,
        bytes: Bytes,
    ) -> Form {
        let (name, file_name) = (escaped(name), escaped(file_name));
        let head = format!(
            "form-data; name=\"{name}\"; filename=\"{file_name}\"\r\nContent-Type: {content_type}\r\n\r\n"
        );
        self.begin(&head);
        self.pieces.extend([bytes, Bytes::from_static(b"\r\n")]);
        self
    }

    fn begin(&mut self, rest: &str) {
        let head = format!("--{}\r\nContent-Disposition: {rest}", self.boundary);
        self.pieces.push(head.into());
    }

    /// The content type with the boundary, and the body.
    pub(crate) fn into_body(mut self) -> (HeaderValue, Body) {
        self.pieces.push(format!("--{}--\r\n", self.boundary).into());
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        let content_type = HeaderValue::try_from(content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"));
        (content_type, self.pieces.into_iter().collect())
    }
}

/// Percent-encodes quotes and line ends, like browsers.
fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}
