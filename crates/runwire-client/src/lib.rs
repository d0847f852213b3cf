//! Runwire's Rust SDK: read any run as it grows, and write the run of an agent.
//!
//! # Reading
//!
//! A run is a stream. It begins wherever it is asked to, ends with the run, and goes on after the last item that
//! was handed out when a connection breaks or the server restarts: nothing is missing, nothing comes twice.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use runwire_client::{Body, Client};
//!
//! # async fn read() -> Result<(), runwire_client::Error> {
//! let client = Client::from_env()?; // RUNWIRE_URL, RUNWIRE_TOKEN; else a server on this machine
//! let mut events = client.run("r1").events();
//! while let Some(event) = events.try_next().await? {
//!     match &event.body {
//!         Body::TextDelta(delta) => print!("{}", delta.content),
//!         Body::ToolCalled(call) => println!("[{}]", call.name),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The text alone, as Agio's `arun` gives it; a run in the words of another protocol; the message that a front end
//! shows, as it grows; all runs of a conversation:
//!
//! ```no_run
//! # use futures_util::TryStreamExt;
//! # use runwire_client::{Client, Dialect, Transport};
//! # async fn read(client: Client) -> Result<(), runwire_client::Error> {
//! let run = client.run("r1");
//! let text: String = run.text().try_collect().await?;
//! let mut frames = run.frames(Dialect::AgUi).transport(Transport::WebSocket);
//! let mut states = run.message_states();
//! while let Some(state) = states.try_next().await? {
//!     println!("{} calls, {} letters", state.tool_calls.len(), state.main_content.len());
//! }
//! let mut thread = client.thread("t1").events().after("12-0".parse().unwrap());
//! # Ok(())
//! # }
//! ```
//!
//! [`Reading::signal`] tells, beside the items, when a stream has caught up and when it was interrupted.
//!
//! # What is tried again
//!
//! Streams try again what may pass: a connection that is refused, breaks, or is silent for 45 s, and the answers
//! 408, 425, 429, 500, 502, 503 and 504. Between attempts they wait, longer each time, up to 5 s; progress begins
//! anew. A stream that has never been connected gives up after 3 attempts; one that has, never. All of it can be
//! set on the [`ClientBuilder`]. Everything else is an [`Error`] and the stream's last item. Single requests are
//! not tried again.
//!
//! # Asking and acting
//!
//! ```no_run
//! # use runwire_client::{Client, NewRun, RunFilter, RunStatus};
//! # async fn ask(client: Client) -> Result<(), runwire_client::Error> {
//! let run = client.create_run(&NewRun { agent: Some("demo".into()), ..NewRun::default() }).await?;
//! let open = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
//! println!("{} of them run", client.runs(&open).await?.runs.len());
//! client.run(run.run_id).cancel(Some("no longer needed")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Writing
//!
//! An agent writes with a [`StreamingEngine`]; see [`mod@write`].
#![forbid(unsafe_code)]

mod backoff;
mod client;
mod error;
mod http;
mod problem;
mod read;
mod resources;
pub mod write;

pub use client::{Client, ClientBuilder};
pub use error::Error;
pub use http::{BaseUrl, UrlError};
pub use problem::Problem;
pub use read::{
    AsTheyCome, Canonical, Cursor, CursorError, Events, Form, Frame, Frames, MessageStates, Page, PageFrame,
    Reading, Received, Signal, TextAlone, Texts, Transport,
};
pub use resources::{
    AgentInfo, Answer, Beat, Counts, GivenAnswer, Imported, Interaction, InteractionFilter, InteractionInfo,
    InteractionPage, LatestRun, ListStream, Messages, NewRun, NewThread, Records, RunError, RunFilter,
    RunHandle, RunInfo, RunPage, RunStatus, ThreadHandle, ThreadInfo, ThreadPage, Upload, Usage, Warning,
    Warnings, Written, WrongField,
};
pub use runwire_model as model;
pub use runwire_model::dialect::{Dialect, Slots};
pub use runwire_model::event::{Body, Decision, Event};
pub use runwire_model::fold::MessageState;
pub use runwire_model::framing::Framing;
pub use runwire_model::{Json, Timestamp};
pub use write::StreamingEngine;
