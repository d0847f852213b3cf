//! Frames as they come over the wire.

use std::borrow::Cow;

use bytes::Bytes;

use super::cursor::Cursor;

/// One message of a run in the reader's dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The place after this frame: reading goes on from it. Of a snapshot, only the last frame has one.
    pub cursor: Option<Cursor>,
    /// The name that the dialect gives to a frame beside its data. A WebSocket does not carry it.
    pub name: Option<Bytes>,
    /// What the frame says: JSON, or in `text` a piece of the text.
    pub data: Bytes,
}

impl Frame {
    pub(super) fn new(cursor: Option<Cursor>, name: Option<Bytes>, data: Bytes) -> Self {
        Self { cursor, name, data }
    }

    /// Gives the data as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }

    /// Gives the name as text.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.name.as_deref().map(String::from_utf8_lossy)
    }
}
