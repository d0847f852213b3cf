//! Reading a run or a thread.
//!
//! | module | what |
//! |---|---|
//! | `reading` | the stream that a program sees, in its forms |
//! | `event`, `frame`, `message`, `page` | what is handed out |
//! | `follow` | one stream over many connections: when to wait, when to give up |
//! | `link` | one connection; `sse` and `websocket` carry it |
//! | `cutter` | bytes cut into server-sent events |
//! | `ask`, `cursor` | what is asked for, and from where |

mod ask;
mod cursor;
mod cutter;
mod event;
mod follow;
mod frame;
mod link;
mod message;
mod page;
mod reading;
mod sse;
mod websocket;

pub(crate) use ask::Place;
pub use ask::Transport;
pub use cursor::{Cursor, CursorError};
pub use event::{Canonical, Received};
pub use follow::Signal;
pub use frame::Frame;
pub use message::MessageStates;
pub use page::{Page, PageFrame};
pub use reading::{AsTheyCome, Events, Form, Frames, Reading, TextAlone, Texts};
