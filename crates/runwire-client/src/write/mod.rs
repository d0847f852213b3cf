//! Writing a run: [`StreamingEngine`] queues events, and a task sends them to an [`EngineSink`] in batches.
//!
//! # Frames
//!
//! One `emit_*` is one frame of the `streaming-engine` dialect, with the metadata of its document: `request_id`,
//! `timestamp`, `sequence`, and `duration_ms` where it is known. Events that the document has no frame for (steps,
//! interactions, state, thought trees, …) travel in the dialect's extension slot: a frame of the type `runwire` with the
//! canonical event as its data. So nothing is lost, and every reader gets it in its own dialect.
//!
//! This is simpler than canonical events with an encoder per sink: an event's `sequence` is its frame's index in the
//! producer's stream, which exactly-once writing counts by; the log keeps the document's frames byte for byte; and a sink
//! in another dialect is what `runwire convert` does.
//!
//! # Preflight check
//!
//! Every frame passes the server's own decoder and guard, and a few more rules (a call that ends must have started),
//! before it is queued. A refused event changes nothing, and [`EmitError`] names the field. After the session's end every
//! event is refused.
//!
//! # Batches and backpressure
//!
//! The task sends all queued frames as one batch, and the next one when that is acknowledged. `emit_*` returns as soon as
//! the event is queued; it waits while a whole [window](EngineBuilder::window) is in flight and another one is queued
//! behind it. [`PendingAck::acknowledged`] waits for one event, [`StreamingEngine::flush`] for all;
//! [`StreamingEngine::state`] returns the counts.
//!
//! # Retries and failures
//!
//! If a server cannot be reached, restarts or is overloaded, the batch is retried with backoff until
//! [`EngineBuilder::retry_timeout`]. The producer headers make that safe: every event is written once, in order.
//! Meanwhile up to [`EngineBuilder::buffer`] is kept.
//!
//! A refused frame or an expired retry timeout stops the engine: earlier events are acknowledged; the outcome of this one
//! and later ones is unknown. Their [`PendingAck::acknowledged`], every later `emit_*` and [`StreamingEngine::state`]
//! return the same [`EngineFailure`]. The engine does not skip a refused frame: readers would see a run with a gap.
//!
//! # Closing
//!
//! [`StreamingEngine::close`] flushes the queue. An engine that is dropped instead keeps sending in the background, while
//! the runtime lives, for at most [`EngineBuilder::linger`]. Neither ends a run that was not ended: on a server it fails
//! with `producer_lost` when its lease expires, unless a resumed engine continues it.

mod builder;
mod emission;
mod emit_canonical;
mod emit_document;
mod emit_thoughts;
mod engine;
mod enums;
mod error;
mod preflight;
mod pump;
mod queue;
mod shared;
mod signals;
mod sink;
mod state;
mod value;

pub use builder::{EngineBuilder, ResumeError, WhenFull};
pub use engine::StreamingEngine;
pub use enums::{DataType, ErrorType, Format, SessionStatus, Stage, ToolStatus};
pub use error::{EmitError, EngineFailure};
pub use queue::SendBatch;
pub use signals::{Signal, Signals};
pub use sink::{ChannelSink, Emitted, EngineSink, OutputSink, Receipt, SendError, SinkContext};
pub use state::{ConnectionState, EngineState, PendingAck};
pub use value::{InteractionRequest, IntoJson, ToolEnd};

/// Where the engine logs to.
const TARGET: &str = "runwire_client::engine";
