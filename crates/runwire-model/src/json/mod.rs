//! JSON without building trees: values that stay text, objects read one level deep, objects written
//! straight into a buffer.
//!
//! A frame is parsed exactly once, one level deep ([`Object`]): names are matched, declared fields are read into Rust
//! types, and all other values stay the producer's text ([`Json`]).

mod object;
mod scan;
mod tree;
mod value;
mod write;

pub use object::{Field, FieldError, FieldFault, Object};
pub use scan::{FrameFault, check_frame, check_nested};
pub(crate) use tree::Tree;
pub use value::{Json, ValueError};
pub use write::ObjectWriter;
pub(crate) use write::write_str;
