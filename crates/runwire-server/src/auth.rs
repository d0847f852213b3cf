//! The tenant of a request. There is no authentication yet, so there is one tenant.

use std::sync::{Arc, LazyLock};

use http::HeaderMap;

static DEFAULT: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("default"));

/// Returns the tenant of a request.
pub(crate) fn tenant_of(_headers: &HeaderMap) -> Arc<str> {
    DEFAULT.clone()
}
