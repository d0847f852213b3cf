//! Frames as received.

use std::borrow::Cow;

use bytes::Bytes;

use super::cursor::Cursor;

/// A frame in the reader's dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedFrame {
    /// The cursor after this frame. Of a snapshot, only the last frame has one.
    pub cursor: Option<Cursor>,
    /// The SSE event name, if the dialect has one. A WebSocket does not carry it.
    pub name: Option<Bytes>,
    /// The data: JSON, or in `text` a piece of the text.
    pub data: Bytes,
}

impl ReceivedFrame {
    pub(super) fn new(cursor: Option<Cursor>, name: Option<Bytes>, data: Bytes) -> Self {
        Self { cursor, name, data }
    }

    /// Returns the data as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }

    /// Returns the name as text.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.name.as_deref().map(String::from_utf8_lossy)
    }
}
