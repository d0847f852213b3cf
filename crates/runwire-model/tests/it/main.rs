//! What the model promises, tried on whole streams.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod ag_ui_rules;
mod agio;
mod attach;
mod compact;
mod docs;
mod easyflow_chat;
mod ends;
mod ids;
mod loom;
mod model_schema;
mod open_items;
mod properties;
mod replay;
mod robustness;
mod runs;
mod schemas;
mod seeds;
mod side_by_side;
mod slots;
mod social_app;
mod sse;
mod streaming_engine;
mod vectors;
mod whole;
