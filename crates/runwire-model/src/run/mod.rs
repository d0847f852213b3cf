//! The life of a run: what is open in it, and which events may follow.
//!
//! ```
//! use runwire_model::event::{Event, TextDelta};
//! use runwire_model::record::EventOrigin;
//! use runwire_model::run::{Authority, RunState};
//! use runwire_model::window::Window;
//!
//! let mut run = RunState::new("thread-1", "run-1");
//! let mut entries = Vec::new();
//! let piece = Event::new(TextDelta { message_id: "m1".into(), content: "Hi".into(), format: None });
//! run.apply(piece, EventOrigin::Producer, Authority::Producer, 1, &Window::new("run-1"), &mut entries).unwrap();
//! // What a producer left out is added: a run begins, and so does a text.
//! let types: Vec<_> = entries.iter().map(|entry| entry.event.body.type_name()).collect();
//! assert_eq!(types, ["run.started", "text.started", "text.delta"]);
//! ```

mod digest;
mod guard;
mod replay;
mod state;
mod texts;
mod whole;

pub use digest::Digest;
pub(crate) use guard::set_arguments;
pub use guard::{Authority, EndOfInput, Refusal};
pub use replay::ReplayError;
pub(crate) use state::hash_of;
pub use state::{CallPhase, OpenCall, OpenInteraction, OpenStep, OpenText, RunState, Status};
pub(crate) use texts::continued;
pub use texts::{RunText, RunTexts, continues, join};
pub use whole::WholePolicy;
pub(crate) use whole::{AnswerTexts, NamedComparison, WholeComparison, WholeText, compare_pieces};
