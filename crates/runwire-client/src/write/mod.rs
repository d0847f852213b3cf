//! Writing a run: [`StreamingEngine`], and where it writes.
//!
//! # What is sent
//!
//! One `emit_*` is one frame of the `streaming-engine` dialect, with the metadata that its document asks for:
//! `request_id`, `timestamp`, `sequence`, and `duration_ms` where it is known. What the document has no frame for
//! (steps, questions, state, thought trees, …) travels in the dialect's extension slot, a frame of the type
//! `runwire` with the canonical event as its data, so that nothing is lost on the way, and every reader gets it in
//! the dialect that it asks for.
//!
//! That is simpler than canonical events with a translation for each sink: an event's `sequence` is its frame's index
//! in what the producer has sent, which is what writing exactly once counts by; the log keeps the frames of the
//! document byte for byte; and a sink in another dialect is what `runwire convert` does.
//!
//! # What is checked
//!
//! Every frame passes the server's own decoder and guard, and a few rules beyond (a call that ends must have begun),
//! before it is queued. What is refused changes nothing, and [`EmitError`] names the field. After the session's end
//! nothing is taken.
//!
//! # When it is sent
//!
//! A task sends whatever has queued up as one batch, and the next when that is acknowledged: the server sets the pace.
//! `emit_*` returns as soon as the event is queued, and waits while a whole [window](EngineBuilder::window) is on its
//! way and another one is queued behind it. [`Sent::acknowledged`] waits for one event, [`StreamingEngine::flush`]
//! for all, [`StreamingEngine::state`] tells how far it is.
//!
//! # When it cannot be sent
//!
//! A server that cannot be reached, is restarted or overloaded is tried again with growing waits until
//! [`EngineBuilder::patience`] is over. The producer headers make that safe: every event is written once, in order.
//! Meanwhile up to [`EngineBuilder::buffer`] is kept.
//!
//! A server that refuses a frame, or patience that is over, stops the engine: the events before are acknowledged;
//! this one and those after it are not written, or not known to be. Their [`Sent::acknowledged`], every later `emit_*`
//! and [`StreamingEngine::state`] give the same [`Failure`]. Going on after a hole would tell readers another story
//! than the agent's.
//!
//! # The end
//!
//! [`StreamingEngine::close`] writes what is left. An engine that is dropped instead goes on in the background, while
//! the runtime lives, for [`EngineBuilder::linger`] at most. Neither ends a run that was not ended: on a server it fails
//! with `producer_lost` when its lease runs out, unless a resumed engine goes on.

mod batch;
mod beyond;
mod builder;
mod check;
mod document;
mod engine;
mod error;
mod frame;
mod pump;
mod shared;
mod signals;
mod sink;
mod state;
mod thoughts;
mod value;
mod words;

pub use batch::Batch;
pub use builder::{EngineBuilder, ResumeError, WhenFull};
pub use engine::StreamingEngine;
pub use error::{EmitError, Failure};
pub use signals::{Signal, Signals};
pub use sink::{ChannelSink, Emitted, Link, OutputSink, Receipt, SendError, Sink};
pub use state::{Connection, EngineState, Sent};
pub use value::{IntoJson, Question, ToolEnd};
pub use words::{DataType, ErrorType, Format, SessionStatus, Stage, ToolStatus};

/// Where the engine logs to.
const TARGET: &str = "runwire_client::engine";
