//! Detection of a stream's dialect by its first frames.

use super::Dialect;
use crate::ErrorCode;
use crate::json::Object;

/// A frame that could be of several dialects, or of none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AmbiguousDialect(String);

impl AmbiguousDialect {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::DialectAmbiguous
    }
}

/// Finds the dialect of a stream's first frame.
///
/// `text` is never guessed. A stream may turn out to be of a profile of its dialect later; the decoder sees to it.
///
/// ```
/// use runwire_model::dialect::{Dialect, detect};
/// use runwire_model::json::Object;
///
/// let frame = Object::parse(br#"{"type":"node_enter","id":"think"}"#).unwrap();
/// assert_eq!(detect(&frame), Ok(Dialect::Loom));
/// ```
pub fn detect(object: &Object<'_>) -> Result<Dialect, AmbiguousDialect> {
    let rules = Dialect::READABLE.into_iter().filter_map(|dialect| {
        let rules = dialect.spec().read.as_ref()?.detect.iter();
        let rank = rules.filter(|rule| (rule.matches)(object)).map(|rule| rule.rank).min()?;
        Some((rank, dialect))
    });
    if let Some((_, dialect)) = rules.min() {
        return Ok(dialect);
    }
    let shown = match object.get_str("type") {
        Some(kind) => format!("type `{kind}`"),
        None => format!(
            "the keys {}",
            object.fields().map(|(key, _)| format!("`{key}`")).take(8).collect::<Vec<_>>().join(", ")
        ),
    };
    Err(AmbiguousDialect(format!(
        "cannot tell the dialect of a first frame with {shown}; name it, one of: {}",
        Dialect::READABLE.map(Dialect::name).join(", ")
    )))
}
