//! Things that are open, by their ids, in bounded memory.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::limits::{REMEMBERED_ID_BYTES, REMEMBERED_IDS, REMEMBERED_RUNS};

/// Shortens an id to what is remembered of it.
pub(super) fn short(id: &str) -> Cow<'_, str> {
    if id.len() <= REMEMBERED_ID_BYTES {
        return Cow::Borrowed(id);
    }
    let hash = format!("…{:08x}", hash(id));
    Cow::Owned(format!("{}{hash}", &id[..id.floor_char_boundary(REMEMBERED_ID_BYTES - hash.len())]))
}

/// The ids of one kind of thing that have begun and not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Open {
    ids: Vec<String>,
    /// Some ids were not remembered, so that an unknown one proves nothing.
    overflowed: bool,
}

impl Open {
    /// Opens an id; false means that it was open already.
    pub(super) fn open(&mut self, id: &str) -> bool {
        let id = short(id);
        if self.ids.iter().any(|open| *open == id) {
            return false;
        }
        if self.ids.len() >= REMEMBERED_IDS {
            self.overflowed = true;
        } else {
            self.ids.push(id.into_owned());
        }
        true
    }

    /// Closes an id; false means that it was not open.
    pub(super) fn close(&mut self, id: &str) -> bool {
        let id = short(id);
        match self.ids.iter().rposition(|open| *open == id) {
            Some(at) => {
                self.ids.remove(at);
                true
            }
            None => self.overflowed,
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        let id = short(id);
        self.overflowed || self.ids.iter().any(|open| *open == id)
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

/// The ids that were used lately, as hashes: only whether one comes again is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Used {
    hashes: Vec<u32>,
}

impl Used {
    /// Uses an id; false means that it was used before.
    pub(super) fn add(&mut self, id: &str) -> bool {
        let hash = hash(id);
        if self.hashes.contains(&hash) {
            return false;
        }
        if self.hashes.len() >= REMEMBERED_IDS {
            self.hashes.remove(0);
        }
        self.hashes.push(hash);
        true
    }
}

/// Hashes an id (FNV-1a): the same on every machine, because it is stored.
fn hash(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What is known of each of several runs side by side; the one that was silent for longest is forgotten.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PerRun<T> {
    runs: Vec<(String, T)>,
}

impl<T: Default> PerRun<T> {
    /// Finds a run, and begins it where it is new; a frame that names none belongs to the run of the frame before.
    pub(super) fn of(&mut self, run: Option<&str>) -> &mut T {
        let run = run.map(short);
        let known = match &run {
            Some(run) => self.runs.iter().position(|(id, _)| id == run),
            None => self.runs.len().checked_sub(1),
        };
        let found = match known {
            Some(at) => self.runs.remove(at),
            None => (run.unwrap_or_default().into_owned(), T::default()),
        };
        if self.runs.len() >= REMEMBERED_RUNS {
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

    /// Begins with a run that is known.
    pub(super) fn with(run: &str, state: T) -> Self {
        Self { runs: vec![(short(run).into_owned(), state)] }
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
        for id in 0..=REMEMBERED_IDS {
            assert!(open.open(&id.to_string()));
        }
        assert!(open.close("never opened"));
    }

    #[test]
    fn an_id_that_is_used_again_is_told_and_old_ones_are_forgotten() {
        let mut used = Used::default();
        assert!(used.add("a") && !used.add("a"));
        for id in 0..10 * REMEMBERED_IDS {
            assert!(used.add(&id.to_string()));
        }
        assert_eq!(used.hashes.len(), REMEMBERED_IDS);
        assert!(used.add("a"), "it was used too long ago");
    }
}
