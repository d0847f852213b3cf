//! Cursors: positions in a thread.

use std::fmt;
use std::str::FromStr;

/// A position in a thread: after one frame of a record (`12-0`), or after all of it (`12`).
///
/// It is valid for the dialect that it came from. [`Cursor::START`] is before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    seq: u64,
    frame: Option<u64>,
}

impl Cursor {
    /// Before everything.
    pub const START: Self = Self::after(0);

    /// Returns the position after a whole record.
    pub const fn after(seq: u64) -> Self {
        Self { seq, frame: None }
    }

    /// Returns the `seq` of the record.
    pub fn seq(self) -> u64 {
        self.seq
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let dash = memchr::memchr(b'-', text);
        let frame = match dash {
            Some(dash) => Some(number(&text[dash + 1..])?),
            None => None,
        };
        Some(Self { seq: number(&text[..dash.unwrap_or(text.len())])?, frame })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if all_digits { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame {
            Some(frame) => write!(formatter, "{}-{frame}", self.seq),
            None => write!(formatter, "{}", self.seq),
        }
    }
}

/// The text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is `seq-k` or `seq`, such as `12-0`; `0` is the start")]
pub struct CursorError;

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        Self::parse(text.as_bytes()).ok_or(CursorError)
    }
}

impl serde::Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Cursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_as_it_is_written() {
        for text in ["0", "12", "12-0", "12-7"] {
            assert_eq!(text.parse::<Cursor>().map(|cursor| cursor.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "-", "1-", "-1", "a", "1-x", "+1", "1-2-3", " 1", "99999999999999999999"] {
            assert_eq!(text.parse::<Cursor>(), Err(CursorError), "{text}");
        }
    }
}
