//! Pages of frames.

use runwire_model::Json;
use serde::Deserialize;

use super::cursor::Cursor;

/// A page of frames.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct FramePage {
    /// The frames, oldest first.
    pub frames: Vec<PageFrame>,
    /// Cursor of the next page; `None` at the end of what is stored now.
    pub next: Option<Cursor>,
}

/// A frame of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct PageFrame {
    /// The cursor after this frame.
    pub cursor: Option<Cursor>,
    /// The frame; in `text`, a string.
    pub frame: Json,
}
