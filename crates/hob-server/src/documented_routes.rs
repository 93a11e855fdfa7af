//! Registers handlers by the table of routes in `hob-wire`, so that no route of the API lacks its documentation.
//! Outside this file, only `tls.rs` calls `Router::route`, for pages that are no part of the API.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use hob_wire::operations::{Operation, OperationMethod};

pub(crate) trait DocumentedRoutes {
    /// Registers the handler of an operation. A path that begins with `/v1` works without `/v1` too.
    fn at<H: Handler<T, ()>, T: 'static>(self, operation: &Operation, handler: H) -> Self;
}

impl DocumentedRoutes for Router {
    fn at<H: Handler<T, ()>, T: 'static>(self, operation: &Operation, handler: H) -> Router {
        let method = match operation.method {
            OperationMethod::Get => MethodFilter::GET,
            OperationMethod::Post => MethodFilter::POST,
            OperationMethod::Delete => MethodFilter::DELETE,
        };
        let router = match operation.path.strip_prefix("/v1") {
            Some(short) => self.route(short, on(method, handler.clone())),
            None => self,
        };
        router.route(operation.path, on(method, handler))
    }
}
