//! Serves the OpenAPI 3.1 document of the HTTP interface.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

/// Written by hand: `tests/it/openapi.rs` checks that it names every route, and no others.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Responds with the document.
pub(crate) async fn show() -> Response {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}
