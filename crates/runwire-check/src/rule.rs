//! The rules that findings are about, with their stable codes.

use std::fmt;

use runwire_model::ErrorCode;

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $name:ident $text:literal;)*) => {
        /// The rule that a finding is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $($(#[doc = $doc])* $name,)*
            /// Whatever refuses a frame before or after the check: framing, decoder and guard.
            Refused(ErrorCode),
        }

        impl Rule {
            /// Returns the stable code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Refused(code) => code.as_str(),
                }
            }
        }
    };
}

rules! {
    /// A field that the document requires is missing.
    MissingField "missing_field";
    /// A field has another JSON type.
    WrongType "wrong_type";
    /// A field has a value that the document does not allow.
    BadValue "bad_value";
    /// A field has to be left out.
    UnexpectedField "unexpected_field";
    /// None of several fields is there, of which one is required.
    MissingChoice "missing_choice";
    /// A value has none of the forms that the document describes.
    BadShape "bad_shape";
    /// A key stands twice in an object.
    DoubledKey "doubled_key";
    /// A type or a field is one letter away from one of the document's.
    LikelyTypo "likely_typo";
    /// A type is none of the document's.
    UnknownType "unknown_type";
    /// A frame has an older form, which the document still allows.
    Legacy "legacy";
    /// A frame lacks the envelope around its payload.
    NoEnvelope "no_envelope";
    /// The SSE event name contradicts the frame.
    BadEventName "bad_event_name";
    /// A value changed that stays the same for a run.
    Changed "changed";
    /// A value must grow, and does not.
    NotIncreasing "not_increasing";
    /// A frame comes before the one that opens its run.
    NotStarted "not_started";
    /// A part ends or goes on without having begun.
    NotOpen "not_open";
    /// A part begins while it is open.
    AlreadyOpen "already_open";
    /// A part begins with an id that another one had.
    AlreadyUsed "already_used";
    /// A run ends while a part of it is open.
    StillOpen "still_open";
    /// A frame comes after the end of its run.
    AfterEnd "after_end";
    /// The stream ends before its run does.
    StreamEnded "stream_ended";
    /// The marker `[DONE]`, which is no event of any dialect.
    DoneMarker "done_marker";
    /// The check has reached its memory limit. The note appears once in a run, and breaks no document.
    Unjudged "unjudged";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
