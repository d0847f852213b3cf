//! Checks of a frame's bytes before they are parsed.

use crate::ErrorCode;
use crate::limits;

/// A reason why bytes cannot be a frame, whatever the dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The frame is longer than [`limits::FRAME_BYTES`].
    #[error("the frame has {bytes} bytes; at most {} are allowed", limits::FRAME_BYTES)]
    TooLong {
        /// Its length, as far as it was read.
        bytes: usize,
    },
    /// Objects and arrays are nested deeper than [`limits::JSON_DEPTH`].
    #[error("objects and arrays are nested more than {} deep at column {column}", limits::JSON_DEPTH)]
    TooDeep {
        /// Column where the limit was exceeded, in bytes from 1.
        column: usize,
    },
    /// The bytes are not UTF-8.
    #[error("byte {column} is not UTF-8")]
    NotUtf8 {
        /// Position of the first invalid byte, from 1.
        column: usize,
    },
    /// A string holds half a surrogate pair, which is no character.
    #[error(
        "the escape at column {column} is half of a surrogate pair; send whole characters, also when a text is cut into pieces"
    )]
    LoneSurrogate {
        /// Column of the escape, in bytes from 1.
        column: usize,
    },
    /// The text is not JSON.
    #[error("this is not JSON: {reason}")]
    NotJson {
        /// The parser's message, with its position.
        reason: String,
    },
    /// The text is JSON, but no object.
    #[error("a frame is one JSON object; this is {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
}

impl FrameFault {
    /// Returns the stable code of the fault.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooLong { .. } => ErrorCode::FrameTooLong,
            Self::TooDeep { .. } => ErrorCode::TooDeep,
            Self::NotUtf8 { .. } => ErrorCode::NotUtf8,
            Self::LoneSurrogate { .. } => ErrorCode::LoneSurrogate,
            Self::NotJson { .. } => ErrorCode::NotJson,
            Self::NotAnObject { .. } => ErrorCode::NotAnObject,
        }
    }
}

/// Checks length, encoding, nesting and surrogates of a frame's bytes.
pub fn check_frame(bytes: &[u8]) -> Result<&str, FrameFault> {
    if bytes.len() > limits::FRAME_BYTES {
        return Err(FrameFault::TooLong { bytes: bytes.len() });
    }
    check_nested(bytes, limits::JSON_DEPTH)
}

/// Checks encoding, nesting up to a depth, and surrogates of JSON that contains frames, of any length.
pub fn check_nested(bytes: &[u8], max_depth: usize) -> Result<&str, FrameFault> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| FrameFault::NotUtf8 { column: error.valid_up_to() + 1 })?;
    // Counting brackets and looking for escapes runs at memory speed; only a frame that could be at
    // fault is walked byte by byte.
    let suspicious = memchr::memchr2_iter(b'{', b'[', bytes).nth(max_depth).is_some()
        || memchr::memchr_iter(b'\\', bytes).any(|at| bytes.get(at + 1) == Some(&b'u'));
    if suspicious {
        walk(bytes, max_depth)?;
    }
    Ok(text)
}

fn walk(bytes: &[u8], max_depth: usize) -> Result<(), FrameFault> {
    let (mut depth, mut in_string, mut at) = (0usize, false, 0usize);
    while at < bytes.len() {
        match (in_string, bytes[at]) {
            (true, b'\\') => {
                if bytes.get(at + 1) == Some(&b'u') {
                    at += check_escape(bytes, at)?;
                    continue;
                }
                at += 1;
            }
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > max_depth {
                    return Err(FrameFault::TooDeep { column: at + 1 });
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Checks the escape at `at` and returns the length of it and its partner.
fn check_escape(bytes: &[u8], at: usize) -> Result<usize, FrameFault> {
    let unit = |from: usize| {
        let digits = bytes.get(from..from + 6)?;
        let hex = std::str::from_utf8(digits.strip_prefix(b"\\u")?).ok()?;
        u16::from_str_radix(hex, 16).ok()
    };
    match unit(at) {
        Some(0xD800..=0xDBFF) => match unit(at + 6) {
            Some(0xDC00..=0xDFFF) => Ok(12),
            _ => Err(FrameFault::LoneSurrogate { column: at + 1 }),
        },
        Some(0xDC00..=0xDFFF) => Err(FrameFault::LoneSurrogate { column: at + 1 }),
        Some(_) => Ok(6),
        None => Ok(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_up_to_the_limit_is_accepted_and_one_more_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_frame(nested(limits::JSON_DEPTH).as_bytes()).is_ok());
        assert_eq!(
            check_frame(nested(limits::JSON_DEPTH + 1).as_bytes()),
            Err(FrameFault::TooDeep { column: limits::JSON_DEPTH + 1 })
        );
    }

    #[test]
    fn brackets_inside_strings_do_not_nest() {
        let text = format!("{{\"a\":\"{}\"}}", "[".repeat(500));
        assert!(check_frame(text.as_bytes()).is_ok());
    }

    #[test]
    fn half_a_surrogate_pair_is_refused_and_a_whole_one_is_not() {
        assert!(check_frame(br#"{"a":"\ud83d\ude00"}"#).is_ok());
        assert!(check_frame(br#"{"a":"\\ud83d"}"#).is_ok());
        for bad in [r#"{"a":"\ud83d"}"#, r#"{"a":"\ude00"}"#, r#"{"a":"\ud83dx"}"#] {
            assert_eq!(check_frame(bad.as_bytes()), Err(FrameFault::LoneSurrogate { column: 7 }), "{bad}");
        }
    }

    #[test]
    fn the_first_byte_that_is_not_utf8_is_named() {
        assert_eq!(check_frame(b"{\"a\":\"\xff\"}"), Err(FrameFault::NotUtf8 { column: 7 }));
    }

    #[test]
    fn one_byte_more_than_a_mebibyte_is_refused() {
        let frame = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(check_frame(frame(limits::FRAME_BYTES).as_bytes()).is_ok());
        assert!(matches!(
            check_frame(frame(limits::FRAME_BYTES + 1).as_bytes()),
            Err(FrameFault::TooLong { .. })
        ));
    }
}
