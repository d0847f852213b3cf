//! The dialects that Runwire speaks, one line each.
//!
//! All that is particular to a dialect is in its own folder: a [`Spec`], and an `Encoder`. Everything else in the
//! workspace asks [`Dialect`] for it.

use serde::{Deserialize, Serialize};

use super::decode::{DecodeError, DecoderState, Envelope, OpenedFrame};
use super::document::DocumentRules;
use super::start::{StartRequest, StoredInput};
use super::{EncoderOptions, Frames, RecordBuilder};
use crate::attach::AttachSnapshot;
use crate::json::{FieldError, Object};

/// Passes the list of dialects to a macro: variant, and module with its `SPEC` and `Encoder`.
///
/// The position of a line is stored (in records, run states and checkpoints), so new lines go to the end.
macro_rules! with_dialects {
    ($callback:ident) => {
        $callback! {
            /// The canonical events as JSON.
            Runwire => runwire,
            /// Loom's streaming output, type and payload.
            Loom => loom,
            /// Loom's single-key export form.
            LoomExport => loom_export,
            /// StreamingEngine's events.
            StreamingEngine => streaming_engine,
            /// Agio's events.
            Agio => agio,
            /// The official AG-UI protocol, version 1.0.
            AgUi => ag_ui,
            /// social-app's profile of AG-UI.
            SocialApp => social_app,
            /// EasyFlow's chat protocol, version 1.1.
            EasyflowChat => easyflow_chat,
            /// The answer's text alone; written, never read.
            Text => text,
        }
    };
}

/// Properties of a dialect, apart from its encoder.
pub(super) struct Spec {
    /// Name on the command line and in requests.
    pub(super) name: &'static str,
    /// How its frames are read; `None` for a dialect that is only written.
    pub(super) read: Option<Read>,
    /// Which ids every frame carries.
    pub(super) ids: NamedIds,
    /// Path of the field that names the thread.
    pub(super) thread_field: &'static str,
    /// JSON Schema of its frames.
    pub(super) schema: &'static str,
    /// Section of its document about frames as such.
    pub(super) frames_section: &'static str,
    /// Rules of its document beyond the schema.
    pub(super) document: DocumentRules,
    /// Whether readers may attach to a snapshot of a run instead of replaying it.
    pub(super) offers_attach: bool,
    /// Whether pieces of a text carry no id, so that the first piece of a continuation must be marked.
    pub(super) has_unnamed_pieces: bool,
    /// Whether frames can carry extension slots and residues, so that `fidelity` and `slots` matter.
    pub(super) has_extensions: bool,
    /// Properties that few dialects have.
    pub(super) quirks: Quirks,
}

/// Properties that few dialects have.
pub(super) struct Quirks {
    /// Whether the run's id is the thread's where a frame names no thread.
    pub(super) run_stands_for_thread: bool,
    /// Whether runs side by side have sessions of their own.
    pub(super) has_run_sessions: bool,
    /// Whether an SSE keep-alive is a comment and nothing else.
    pub(super) has_bare_keep_alive: bool,
    /// Returns whether a frame ends a response: readers of a run stop there, though the run may go on.
    pub(super) ends_response: Option<fn(&[u8]) -> bool>,
    /// Writes the snapshot for readers that attach, if an encoder over the snapshot's records is not enough.
    pub(super) write_attach: Option<fn(&AttachSnapshot, EncoderOptions) -> Frames>,
    /// How inputs are stored whose clients send whole conversations.
    pub(super) stored_input: Option<StoredInput>,
}

impl Quirks {
    pub(super) const NONE: Self = Self {
        run_stands_for_thread: false,
        has_run_sessions: false,
        has_bare_keep_alive: false,
        ends_response: None,
        write_attach: None,
        stored_input: None,
    };
}

/// How the frames of a dialect are read; all of it is in the dialect's folder.
pub(super) struct Read {
    /// Reads a frame's envelope; the SSE event name is given too.
    pub(super) open: fn(&mut Object<'_>, Option<&str>) -> Result<Envelope, FieldError>,
    /// Adds the events of a frame to its record.
    pub(super) decode:
        fn(&mut DecoderState, OpenedFrame<'_>, &mut RecordBuilder<'_>) -> Result<(), DecodeError>,
    /// Rules that recognise a first frame.
    pub(super) detect: &'static [DetectionRule],
    /// Returns the outcome of the run that a frame ends, if it ends one.
    pub(super) ending: fn(&Object<'_>, Option<&str>) -> Option<Ending>,
    /// The dialect that a stream turns out to be by one of its later frames.
    pub(super) refinement: Option<Refinement>,
    /// Whether a suspended run goes on under another run id.
    pub(super) resumes_as_new_run: bool,
    /// The request that starts an agent of the dialect over HTTP.
    pub(super) start: StartRequest,
}

/// A profile of a dialect, and how one of its frames shows it.
#[derive(Clone, Copy)]
pub(super) struct Refinement {
    pub(super) dialect: Dialect,
    pub(super) shows: fn(&Object<'_>) -> bool,
}

/// A rule that recognises a dialect by a frame. Rules apply in the order of their ranks.
pub(super) struct DetectionRule {
    pub(super) rank: u8,
    pub(super) matches: fn(&Object<'_>) -> bool,
}

/// The ids that every frame of a dialect carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedIds {
    /// Not even the session's.
    None,
    /// The session's.
    Session,
    /// The session's, and the run's where it starts.
    RunAtStart,
    /// The run's.
    Run,
}

/// Outcome of the run that a frame ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is over, with any outcome.
    Over,
    /// It failed.
    Failed,
}

macro_rules! define_dialects {
    ($($(#[$doc:meta])* $variant:ident => $module:ident,)*) => {
        /// A protocol that Runwire speaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Dialect {
            $($(#[$doc])* $variant,)*
        }

        impl Dialect {
            /// Every dialect.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            pub(super) const fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$variant => &super::$module::SPEC,)*
                }
            }
        }
    };
}
with_dialects!(define_dialects);

const fn readable_count() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < Dialect::ALL.len() {
        count += Dialect::ALL[at].spec().read.is_some() as usize;
        at += 1;
    }
    count
}

const fn readable() -> [Dialect; readable_count()] {
    let mut found = [Dialect::Runwire; readable_count()];
    let (mut at, mut count) = (0, 0);
    while at < Dialect::ALL.len() {
        if Dialect::ALL[at].spec().read.is_some() {
            found[count] = Dialect::ALL[at];
            count += 1;
        }
        at += 1;
    }
    found
}

impl Dialect {
    /// Every dialect that can be read.
    pub const READABLE: [Self; readable_count()] = readable();

    /// Returns the name on the command line and in requests.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Finds the dialect of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the number that stores know the dialect by.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Finds the dialect of a number in a store.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns whether every frame names its run, or a session of its own, so that runs may be interleaved in one
    /// stream.
    pub fn names_its_run(self) -> bool {
        matches!(self.spec().ids, NamedIds::Run | NamedIds::RunAtStart)
    }

    /// Returns whether every frame names its run, so that runs of one session may be interleaved.
    ///
    /// Elsewhere only its first frame names a run, so that a second one begins where the first is over.
    pub fn names_run_in_every_frame(self) -> bool {
        self.spec().ids == NamedIds::Run
    }

    /// Returns whether frames name their session or run, so that one stream may hold several sessions.
    pub fn names_its_session(self) -> bool {
        self.spec().ids != NamedIds::None
    }

    /// Returns the path of the field that names the thread.
    pub fn thread_field(self) -> &'static str {
        self.spec().thread_field
    }

    /// Returns the JSON Schema of the dialect's frames.
    pub fn schema(self) -> &'static str {
        self.spec().schema
    }

    /// Returns the section of the dialect's document about frames as such.
    pub fn frames_section(self) -> &'static str {
        self.spec().frames_section
    }

    /// Returns the rules of the dialect's document beyond the schema.
    pub fn document(self) -> &'static DocumentRules {
        &self.spec().document
    }

    /// Returns the dialect that a stream of this one may turn out to be by a later frame.
    pub fn refinement(self) -> Option<Self> {
        Some(self.spec().read.as_ref()?.refinement?.dialect)
    }

    /// Returns true if readers may attach to a snapshot of a run instead of replaying it.
    pub fn offers_attach(self) -> bool {
        self.spec().offers_attach
    }

    /// Returns the dialect's own writer of attach snapshots.
    pub(crate) fn attach_writer(self) -> Option<fn(&AttachSnapshot, EncoderOptions) -> Frames> {
        self.spec().quirks.write_attach
    }

    /// Returns how inputs of the dialect's clients are stored, where they have whole conversations.
    pub(super) fn stored_input(self) -> Option<&'static StoredInput> {
        self.spec().quirks.stored_input.as_ref()
    }

    /// Returns true if the run's id is the thread's where a frame names no thread.
    pub fn run_stands_for_thread(self) -> bool {
        self.spec().quirks.run_stands_for_thread
    }

    /// Returns true if runs side by side have sessions of their own ([`SESSION_ID`](super::SESSION_ID)).
    pub fn has_run_sessions(self) -> bool {
        self.spec().quirks.has_run_sessions
    }

    /// Returns whether an SSE keep-alive is a comment and nothing else.
    pub fn has_bare_keep_alive(self) -> bool {
        self.spec().quirks.has_bare_keep_alive
    }

    /// Returns whether readers of a run stop at the end of a response, though the run may go on.
    pub fn has_responses(self) -> bool {
        self.spec().quirks.ends_response.is_some()
    }

    /// Returns whether a frame ends a response.
    pub fn ends_response(self, frame: &[u8]) -> bool {
        self.spec().quirks.ends_response.is_some_and(|ends| ends(frame))
    }

    /// Returns whether frames can carry extension slots and residues.
    pub fn has_extensions(self) -> bool {
        self.spec().has_extensions
    }

    /// Returns whether a run that was suspended goes on under another run id in the source.
    pub fn resumes_as_new_run(self) -> bool {
        self.spec().read.as_ref().is_some_and(|read| read.resumes_as_new_run)
    }

    /// Returns the request that starts an agent of the dialect over HTTP; `None` if it cannot be read.
    pub fn start_request(self) -> Option<StartRequest> {
        self.spec().read.as_ref().map(|read| read.start)
    }

    /// Returns the outcome of the run that a frame ends, if it ends one.
    pub fn ending(self, name: Option<&str>, frame: &Object<'_>) -> Option<Ending> {
        self.spec().read.as_ref().and_then(|read| (read.ending)(frame, name))
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_is_found_by_its_name_and_its_number() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
            assert_eq!(Dialect::from_number(dialect.number()), Some(dialect));
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
        }
        assert_eq!(Dialect::from_number(Dialect::ALL.len() as u8), None);
    }

    #[test]
    fn every_detection_rule_has_a_rank_of_its_own() {
        let rules = Dialect::READABLE.iter().filter_map(|dialect| dialect.spec().read.as_ref());
        let mut ranks: Vec<u8> = rules.flat_map(|read| read.detect).map(|rule| rule.rank).collect();
        ranks.sort_unstable();
        let count = ranks.len();
        ranks.dedup();
        assert_eq!(ranks.len(), count);
    }
}
