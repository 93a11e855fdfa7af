//! The page: files of `web/`, built into the binary, with headers that block foreign scripts.
//! It serves embedded files only: no folders, no directory listings.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::api_error::ApiError;

/// Allows scripts and styles from this server only. Sound may also come from memory, where the player builds it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; media-src 'self' blob:; connect-src 'self'; \
    manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(RustEmbed)]
#[folder = "../../web"]
struct Web;

/// `GET /`.
pub(crate) async fn index(request: Request) -> Result<Response, ApiError> {
    file("index.html", &request)
}

/// A path without a route: a file of the page, or 404.
pub(crate) async fn asset(request: Request) -> Result<Response, ApiError> {
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(ApiError::NoSuchPath { path: path.to_owned() });
    }
    file(path.trim_start_matches('/'), &request)
}

pub(crate) fn file(name: &str, request: &Request) -> Result<Response, ApiError> {
    let file = Web::get(name)
        .ok_or_else(|| ApiError::NoSuchPath { path: request.uri().path().to_owned() })?;
    let etag = etag(&file);
    let (headers, tag) = (page_headers(name, POLICY), [(ETAG, etag.as_str())]);
    if has_it_already(request.headers(), &etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers, tag).into_response());
    }
    Ok((headers, tag, file.data.into_owned()).into_response())
}

/// Headers of a file that a browser shows.
pub(crate) fn page_headers(name: &str, policy: &'static str) -> [(HeaderName, &'static str); 6] {
    [
        (CONTENT_TYPE, content_type(name)),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ]
}

fn etag(file: &EmbeddedFile) -> String {
    let hash = &file.metadata.sha256_hash()[..8];
    format!("\"{:016x}\"", hash.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte)))
}

/// Whether the client has this version. A proxy that compresses marks the tag as weak (`W/`).
fn has_it_already(headers: &HeaderMap, etag: &str) -> bool {
    let seen = headers.get(IF_NONE_MATCH).and_then(|seen| seen.to_str().ok());
    seen.is_some_and(|seen| seen.strip_prefix("W/").unwrap_or(seen) == etag)
}

/// Content types of the files of the page and of the results page. Any other file is offered as a download.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_content_type() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("player/clock.js", "text/javascript; charset=utf-8"),
            ("page.css", "text/css; charset=utf-8"),
            ("hob.svg", "image/svg+xml"),
            ("README", "application/octet-stream"),
            ("a.exe", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
    }
}
