//! Serves the web console, a bundle of files embedded in the binary (`console/dist`, built by `cargo xtask console`).
//!
//! The console is a single-page application, so each of its addresses is answered with `index.html`. Files are
//! compressed on first use: the bundle in git stays independent of the version of a compressor.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rust_embed::RustEmbed;

/// Content security policy: no third-party and no inline code, because the page shows texts of agents. `'self'` covers
/// a WebSocket to this server, too.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const INDEX: &str = "index.html";

/// First path segments of the console's pages.
const PAGES: [&str; 4] = ["runs", "threads", "inbox", "agents"];

/// Folder of files whose names contain a hash of their content.
const HASHED: &str = "assets/";

// A build of the console empties the folder for a moment, which must not break a build of the server.
#[derive(RustEmbed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Bundle;

/// A file of the bundle.
struct File {
    media_type: &'static str,
    caching: &'static str,
    etag: HeaderValue,
    plain: Bytes,
    gzipped: OnceLock<Option<Bytes>>,
}

static FILES: LazyLock<BTreeMap<Cow<'static, str>, File>> = LazyLock::new(|| {
    let files = Bundle::iter().filter_map(|name| {
        let file = Bundle::get(&name)?;
        let hash: String =
            file.metadata.sha256_hash()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        let caching =
            if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
        let plain = match file.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        let file = File {
            media_type: media_type(&name),
            caching,
            // Weak, because it identifies both the plain and the compressed form.
            etag: HeaderValue::try_from(format!("W/\"{hash}\"")).ok()?,
            plain,
            gzipped: OnceLock::new(),
        };
        Some((name, file))
    });
    files.collect()
});

/// Responds with a page or file of the console; none if the path is neither.
pub(crate) fn respond(method: &Method, path: &str, request_headers: &HeaderMap) -> Option<Response> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let path = path.strip_prefix('/')?;
    let first = path.split('/').next().unwrap_or_default();
    let name = if path.is_empty() || PAGES.contains(&first) { INDEX } else { path };
    FILES.get(name).map(|file| file.respond(method, request_headers))
}

impl File {
    fn respond(&self, method: &Method, request_headers: &HeaderMap) -> Response {
        let mut headers = HeaderMap::new();
        let mut fixed = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
        fixed(CACHE_CONTROL, self.caching);
        fixed(CONTENT_SECURITY_POLICY, POLICY);
        fixed(REFERRER_POLICY, "no-referrer");
        fixed(X_CONTENT_TYPE_OPTIONS, "nosniff");
        fixed(VARY, "accept-encoding");
        headers.insert(ETAG, self.etag.clone());
        if self.is_current(request_headers) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        let mut body = self.plain.clone();
        if let Some(gzipped) = self.gzipped().filter(|_| accepts_gzip(request_headers)) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            body = gzipped;
        }
        if method == Method::HEAD {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            body = Bytes::new();
        }
        (headers, body).into_response()
    }

    /// Returns true if `If-None-Match` names this content.
    fn is_current(&self, request_headers: &HeaderMap) -> bool {
        let bare = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
        let own = bare(self.etag.as_bytes());
        let tags = request_headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        tags.map(<[u8]>::trim_ascii).any(|tag| tag == b"*" || bare(tag) == own)
    }

    /// Compresses the file once; none if that saves little.
    fn gzipped(&self) -> Option<Bytes> {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&self.plain).ok()?;
            let bytes = encoder.finish().ok()?;
            (bytes.len() < self.plain.len() / 10 * 9).then(|| Bytes::from(bytes))
        };
        self.gzipped.get_or_init(compress).clone()
    }
}

/// Returns true if `Accept-Encoding` names gzip with a weight above zero.
fn accepts_gzip(request_headers: &HeaderMap) -> bool {
    let values = request_headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
