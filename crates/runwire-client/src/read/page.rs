//! Pages of frames, for who reads a run piece by piece.

use runwire_model::Json;
use serde::Deserialize;

use super::cursor::Cursor;

/// A page of frames.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Page {
    /// The frames, oldest first.
    pub frames: Vec<PageFrame>,
    /// Where the next page begins; nothing at the end of what is there now.
    pub next: Option<Cursor>,
}

/// A frame of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct PageFrame {
    /// The place after this frame.
    pub cursor: Option<Cursor>,
    /// The frame; in `text`, a string.
    pub frame: Json,
}
