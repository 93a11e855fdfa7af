//! `/benchmarks`: a folder of static files. The binary builds them; this crate does not know their content.
//! They need no key, because a browser sends none when it follows a link.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use hob_wire::operations;

use crate::api_error::ApiError;
use crate::benchmark_files::BenchmarkFiles;
use crate::documented_routes::DocumentedRoutes as _;
use crate::observe::NamePath;
use crate::page::page_headers;

const INDEX: &str = "index.html";

/// Only scripts and styles of this folder run. Nothing is loaded from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes; none without pages.
pub(crate) fn routes(pages: Option<&Arc<dyn BenchmarkFiles>>) -> Router {
    let Some(pages) = pages else { return Router::new() };
    // Relative links need the slash.
    Router::new()
        .at(&operations::BENCHMARKS, async || Redirect::permanent("/benchmarks/"))
        .at(&operations::BENCHMARK_INDEX, index)
        .at(&operations::BENCHMARK_PAGE, page)
        .layer(axum::Extension(Arc::clone(pages)))
}

async fn index(pages: axum::Extension<Arc<dyn BenchmarkFiles>>) -> Result<Response, ApiError> {
    page(pages, NamePath(INDEX.to_owned())).await
}

async fn page(
    axum::Extension(pages): axum::Extension<Arc<dyn BenchmarkFiles>>,
    NamePath(path): NamePath,
) -> Result<Response, ApiError> {
    let wanted = path.clone();
    let found = tokio::task::spawn_blocking(move || pages.file(&wanted)).await;
    let Ok(Some(bytes)) = found else {
        return Err(ApiError::NoSuchPath { path: format!("/benchmarks/{path}") });
    };
    Ok((page_headers(&path, POLICY), bytes).into_response())
}
