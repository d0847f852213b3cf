//! The sessions that are interleaved in one stream, each with its own check state.

use runwire_check::CheckState;
use runwire_model::convert::Converter;
use runwire_model::dialect::{Decoder, Dialect, Envelope};
use runwire_model::framing::Frame;

use super::converter;

/// Limits the remembered sessions; the least recently used is evicted.
const SESSIONS: usize = 64;
/// Limits the remembered run ids of a session.
const RUNS: usize = 16;

/// The sessions of a stream, least recently used first.
pub(super) struct StreamSessions {
    dialect: Dialect,
    opener: Decoder,
    sessions: Vec<StreamSession>,
}

/// One session with its check state.
pub(super) struct StreamSession {
    /// Its id in the source; the first session may have none.
    id: Option<String>,
    runs: Vec<String>,
    pub(super) state: CheckState,
    pub(super) converter: Converter,
}

impl StreamSessions {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, opener: Decoder::new(dialect), sessions: Vec::new() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &StreamSession> {
        self.sessions.iter()
    }

    /// Switches every session to another dialect.
    pub(super) fn follow(&mut self, dialect: Dialect) {
        (self.dialect, self.opener) = (dialect, Decoder::new(dialect));
        for session in &mut self.sessions {
            session.state.follow(dialect);
        }
    }

    /// Returns the session of a frame; creates it if it is new.
    pub(super) fn of(&mut self, frame: Frame<'_>) -> &mut StreamSession {
        let opened = self.opener.open(frame.name, frame.data);
        let envelope = opened.map(|opened| opened.envelope).unwrap_or_default();
        let mut session = match self.known(&envelope) {
            Some(at) => self.sessions.remove(at),
            None => StreamSession {
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

    /// Finds a session by a run id, by its own id, or as that of the previous frame.
    fn known(&self, envelope: &Envelope) -> Option<usize> {
        let Envelope { thread, run, .. } = envelope;
        let by_run = run.as_ref().and_then(|run| {
            // Two sessions may use the same run id. A run without a session may have its run id as the session.
            let fits = |session: &StreamSession| {
                thread.is_none() || *thread == session.id || thread.as_ref() == Some(run)
            };
            self.sessions.iter().rposition(|session| session.runs.contains(run) && fits(session))
        });
        let by_id = || self.sessions.iter().rposition(|session| thread.is_some() && session.id == *thread);
        // A frame without ids belongs to the previous session; so does the first id to a session without one.
        let last = || self.sessions.len().checked_sub(1);
        let before = || last().filter(|last| thread.is_none() || self.sessions[*last].id.is_none());
        by_run.or_else(by_id).or_else(before)
    }
}

impl StreamSession {
    /// Remembers the ids of a frame.
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
