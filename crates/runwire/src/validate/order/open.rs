//! Things that are open, by their ids, in bounded memory.

use runwire_model::limits;

/// Ids that are remembered; a stream with more open at once is not judged by them any more.
const REMEMBERED: usize = 1024;

/// The ids of one kind of thing that have begun and not ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    ids: Vec<String>,
    /// Some ids were not remembered, so that an unknown one proves nothing.
    overflowed: bool,
}

impl Open {
    /// Opens an id; false means that it was open already.
    pub(super) fn open(&mut self, id: &str) -> bool {
        if self.ids.iter().any(|open| open == id) {
            return false;
        }
        if self.ids.len() == REMEMBERED || id.len() > limits::ID_BYTES {
            self.overflowed = true;
        } else {
            self.ids.push(id.to_owned());
        }
        true
    }

    /// Closes an id; false means that it was not open.
    pub(super) fn close(&mut self, id: &str) -> bool {
        match self.ids.iter().rposition(|open| open == id) {
            Some(at) => {
                self.ids.remove(at);
                true
            }
            None => self.overflowed,
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.overflowed || self.ids.iter().any(|open| open == id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Lists what is open, for a message.
    pub(super) fn listed(&self) -> String {
        let shown: Vec<String> = self.ids.iter().take(3).map(|id| format!("`{id}`")).collect();
        match self.ids.len() {
            0..=3 => shown.join(", "),
            more => format!("{} and {} more", shown.join(", "), more - 3),
        }
    }
}

/// What is known of each of several runs side by side; the one that was silent for longest is forgotten.
#[derive(Debug, Default)]
pub(super) struct PerRun<T> {
    runs: Vec<(String, T)>,
}

/// Runs that are remembered.
const RUNS: usize = 64;

impl<T: Default> PerRun<T> {
    /// Finds a run, and begins it where it is new.
    pub(super) fn of(&mut self, run: &str) -> &mut T {
        let known = self.runs.iter().position(|(id, _)| id == run);
        let found = match known {
            Some(at) => self.runs.remove(at),
            None => (run.to_owned(), T::default()),
        };
        if self.runs.len() == RUNS {
            self.runs.remove(0);
        }
        self.runs.push(found);
        let last = self.runs.len() - 1;
        &mut self.runs[last].1
    }

    /// Lists what is known of every run.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.runs.iter().map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_open_between_its_begin_and_its_end() {
        let mut open = Open::default();
        assert!(open.open("a") && !open.open("a"));
        assert!(open.has("a") && open.close("a") && !open.close("a"));
    }

    #[test]
    fn what_could_not_be_remembered_is_not_held_against_the_stream() {
        let mut open = Open::default();
        for id in 0..=REMEMBERED {
            assert!(open.open(&id.to_string()));
        }
        assert!(open.close("never opened"));
    }
}
