//! The description of the whole interface, as OpenAPI 3.1.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

/// Written by hand: `tests/it/openapi.rs` checks that it names every route, and no others.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Shows the description.
pub(crate) async fn show() -> Response {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}
