//! `/benchmarks`: a folder of pages that somebody else makes. What they are about is not known here.
//! Open as the page is, because a browser cannot bring a key along when it follows a link.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::failure::ApiError;
use crate::page::content_type;
use crate::requests::NamePath;
use crate::router::App;

const INDEX: &str = "index.html";

/// Pages by their place in a folder.
pub trait Pages: fmt::Debug + Send + Sync {
    /// May take its time, and read files: it is not asked on a thread that answers others.
    fn page(&self, path: &str) -> Option<Bytes>;

    /// The scripts that stand in them, as a Content-Security-Policy names them.
    fn script_hashes(&self) -> Vec<String>;
}

/// None where there are no pages.
pub(crate) fn routes(pages: Option<&Arc<dyn Pages>>) -> Router<Arc<App>> {
    let Some(pages) = pages else { return Router::new() };
    // Relative links need the slash.
    Router::new()
        .route("/benchmarks", get(async || Redirect::permanent("/benchmarks/")))
        .route("/benchmarks/", get(index))
        .route("/benchmarks/{*path}", get(page))
        .layer(axum::Extension(Arc::clone(pages)))
}

async fn index(
    pages: axum::Extension<Arc<dyn Pages>>,
    state: State<Arc<App>>,
) -> Result<Response, ApiError> {
    page(pages, state, NamePath(INDEX.to_owned())).await
}

async fn page(
    axum::Extension(pages): axum::Extension<Arc<dyn Pages>>,
    State(_): State<Arc<App>>,
    NamePath(path): NamePath,
) -> Result<Response, ApiError> {
    let policy = policy(&pages.script_hashes());
    let wanted = path.clone();
    let found = tokio::task::spawn_blocking(move || pages.page(&wanted)).await;
    let Ok(Some(bytes)) = found else {
        return Err(ApiError::NoSuchPath { path: format!("/benchmarks/{path}") });
    };
    let headers = [
        (CONTENT_TYPE, content_type(&path)),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, &policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, bytes).into_response())
}

/// These scripts, this folder's style, and nothing from anywhere else.
fn policy(script_hashes: &[String]) -> String {
    let scripts: Vec<String> = script_hashes.iter().map(|hash| format!("'{hash}'")).collect();
    let scripts = scripts.join(" ");
    format!(
        "default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
