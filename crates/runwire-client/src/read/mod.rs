//! Reading a run or a thread as a stream that reconnects.
//!
//! | module | what |
//! |---|---|
//! | `run_stream` | the public stream of events, frames or text |
//! | `event`, `frame`, `message_states`, `page` | the items |
//! | `reconnect` | one stream over many connections: backoff, retries, resuming at the cursor |
//! | `connection` | one connection with its idle timeout; `sse` and `websocket` are its transports |
//! | `sse_parser` | parser of server-sent events |
//! | `request`, `cursor` | the parameters of a stream, and where it starts |

mod connection;
mod cursor;
mod event;
mod frame;
mod message_states;
mod page;
mod reconnect;
mod request;
mod run_stream;
mod sse;
mod sse_parser;
mod websocket;

pub use cursor::{Cursor, CursorError};
pub use event::{CanonicalEvents, ReceivedEvent};
pub use frame::ReceivedFrame;
pub use message_states::MessageStates;
pub use page::{FramePage, PageFrame};
pub use reconnect::StreamUpdate;
pub(crate) use request::Resource;
pub use request::Transport;
pub use run_stream::{EventStream, FrameDecoder, FrameStream, PassThrough, RunStream, TextOnly, TextStream};
