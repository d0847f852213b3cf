//! The sessions that are interleaved in one stream, each judged by itself.

use runwire_check::CheckState;
use runwire_model::convert::Converter;
use runwire_model::dialect::{Decoder, Dialect, Envelope};
use runwire_model::framing::Frame;

use super::converter;

/// Sessions that are remembered; the one that was silent for longest is forgotten.
const SESSIONS: usize = 64;
/// Runs of one session by whose ids its frames are known.
const RUNS: usize = 16;

/// The sessions of a stream; the one of the last frame at the end.
pub(super) struct Sessions {
    dialect: Dialect,
    opener: Decoder,
    sessions: Vec<Session>,
}

/// One session, and what is known of it.
pub(super) struct Session {
    /// What the source calls it; the first one may have no name.
    id: Option<String>,
    runs: Vec<String>,
    pub(super) state: CheckState,
    pub(super) converter: Converter,
}

impl Sessions {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, opener: Decoder::new(dialect), sessions: Vec::new() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    /// Lets every session go on in another dialect.
    pub(super) fn follow(&mut self, dialect: Dialect) {
        (self.dialect, self.opener) = (dialect, Decoder::new(dialect));
        for session in &mut self.sessions {
            session.state.follow(dialect);
        }
    }

    /// Finds the session of a frame, and begins it where it is new.
    pub(super) fn of(&mut self, frame: Frame<'_>) -> &mut Session {
        let opened = self.opener.open(frame.name, frame.data);
        let envelope = opened.map(|opened| opened.envelope).unwrap_or_default();
        let mut session = match self.known(&envelope) {
            Some(at) => self.sessions.remove(at),
            None => Session {
                id: None,
                runs: Vec::new(),
                state: CheckState::new(self.dialect),
                converter: converter(self.dialect),
            },
        };
        session.take(envelope);
        if self.sessions.len() == SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(session);
        let last = self.sessions.len() - 1;
        &mut self.sessions[last]
    }

    /// Finds a session by one of its runs, by its own id, or as the one of the frame before.
    fn known(&self, envelope: &Envelope) -> Option<usize> {
        let Envelope { thread, run, .. } = envelope;
        let by_run = run.as_ref().and_then(|run| {
            // Two sessions may call their runs the same. A run of Agio's that names no session is told as one.
            let fits =
                |session: &Session| thread.is_none() || *thread == session.id || thread.as_ref() == Some(run);
            self.sessions.iter().rposition(|session| session.runs.contains(run) && fits(session))
        });
        let by_id = || self.sessions.iter().rposition(|session| thread.is_some() && session.id == *thread);
        // A frame without a name belongs to the session before it, and so does the first name to what had none.
        let last = || self.sessions.len().checked_sub(1);
        let before = || last().filter(|last| thread.is_none() || self.sessions[*last].id.is_none());
        by_run.or_else(by_id).or_else(before)
    }
}

impl Session {
    /// Remembers what a frame tells of its session.
    fn take(&mut self, envelope: Envelope) {
        self.id = self.id.take().or(envelope.thread);
        if let Some(run) = envelope.run.filter(|run| !self.runs.contains(run)) {
            if self.runs.len() == RUNS {
                self.runs.remove(0);
            }
            self.runs.push(run);
        }
    }
}
