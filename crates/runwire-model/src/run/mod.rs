//! The life of a run: what is open in it, and which events may follow.

mod digest;
mod guard;
mod state;

pub use digest::Digest;
pub(crate) use guard::set_arguments;
pub use guard::{Authority, EndOfInput, Refusal};
pub(crate) use state::hash_of;
pub use state::{CallPhase, OpenCall, OpenStep, OpenText, Question, RunState, Status};
