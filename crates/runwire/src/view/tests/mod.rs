//! What a view shows: plain text against golden files, and the screen of a terminal.

mod golden;
mod properties;
mod screen;
mod stage;
