//! Tests of the view: golden files, properties, and the screen of a terminal.

mod fixtures;
mod golden;
mod properties;
mod terminal;
