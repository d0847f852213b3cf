//! Things that are open, by their ids, in bounded memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Side;
use crate::limits::{REMEMBERED_ID_BYTES, REMEMBERED_IDS, REMEMBERED_NAMES, REMEMBERED_RUNS, STREAM_IDS};

/// Shortens an id to what is remembered of it.
pub(super) fn short(id: &str) -> Cow<'_, str> {
    if id.len() <= REMEMBERED_ID_BYTES {
        return Cow::Borrowed(id);
    }
    let hash = format!("…{:08x}", digest(id) as u32);
    Cow::Owned(format!("{}{hash}", &id[..id.floor_char_boundary(REMEMBERED_ID_BYTES - hash.len())]))
}

/// How many ids of one kind may be remembered, and whether one was not.
pub(crate) struct Memory {
    ids: usize,
    is_full: Cell<bool>,
}

impl Memory {
    /// Bounds a state that is stored with its run, or one that lasts as long as its stream is read.
    pub(crate) fn of(side: Side) -> Self {
        let ids = match side {
            Side::Producer => REMEMBERED_IDS,
            Side::Reader => STREAM_IDS,
        };
        Self { ids, is_full: Cell::new(false) }
    }

    /// Returns how many ids of one kind may be remembered.
    pub(crate) fn ids(&self) -> usize {
        self.ids
    }

    /// Returns whether an id was not remembered.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Takes room for one more id, if there is any.
    fn take(&self, remembered: usize) -> bool {
        let has_room = remembered < self.ids;
        self.is_full.set(self.is_full.get() || !has_room);
        has_room
    }
}

/// The ids of one kind of thing that have begun and not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Open {
    /// The first ones, which messages list.
    ids: Vec<String>,
    /// Digests of the others.
    more: BTreeSet<u64>,
    /// Some ids were not remembered, so that an unknown one proves nothing.
    overflowed: bool,
}

impl Open {
    /// Opens an id; false means that it was open already.
    pub(super) fn open(&mut self, id: &str, memory: &Memory) -> bool {
        if self.knows(id) {
            return false;
        }
        if !memory.take(self.ids.len() + self.more.len()) {
            self.overflowed = true;
        } else if self.ids.len() < REMEMBERED_NAMES {
            self.ids.push(short(id).into_owned());
        } else {
            self.more.insert(digest(id));
        }
        true
    }

    /// Closes an id; false means that it was not open.
    pub(super) fn close(&mut self, id: &str) -> bool {
        let name = short(id);
        match self.ids.iter().rposition(|open| *open == name) {
            Some(at) => {
                self.ids.remove(at);
                true
            }
            None => self.more.remove(&digest(id)) || self.overflowed,
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.overflowed || self.knows(id)
    }

    fn knows(&self, id: &str) -> bool {
        let name = short(id);
        self.ids.iter().any(|open| *open == name) || self.more.contains(&digest(id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.more.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Lists what is open, for a message.
    pub(super) fn listed(&self) -> String {
        let shown: Vec<String> = self.ids.iter().take(3).map(|id| format!("`{id}`")).collect();
        match self.ids.len() + self.more.len() - shown.len() {
            0 => shown.join(", "),
            more if shown.is_empty() => format!("{more} in all"),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

/// OpenNodes of a graph by their names: several runs of one may be open at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenNodes {
    open: Open,
    /// Digests of those that are open once more, for each time.
    more: Vec<u64>,
}

impl OpenNodes {
    pub(super) fn enter(&mut self, node: &str, memory: &Memory) {
        if !self.open.open(node, memory) {
            if memory.take(self.more.len()) {
                self.more.push(digest(node));
            } else {
                self.open.overflowed = true;
            }
        }
    }

    /// Leaves a node; false means that it was not open.
    pub(super) fn exit(&mut self, node: &str) -> bool {
        let digest = digest(node);
        match self.more.iter().rposition(|known| *known == digest) {
            Some(at) => {
                self.more.swap_remove(at);
                true
            }
            None => self.open.close(node),
        }
    }
}

/// Digests of the ids that were used: only whether one comes again is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Used {
    digests: BTreeSet<u64>,
}

impl Used {
    pub(super) fn has(&self, id: &str) -> bool {
        self.digests.contains(&digest(id))
    }

    /// Uses an id; false means that it was used before.
    pub(super) fn add(&mut self, id: &str, memory: &Memory) -> bool {
        let digest = digest(id);
        if self.digests.contains(&digest) {
            return false;
        }
        if memory.take(self.digests.len()) {
            self.digests.insert(digest);
        }
        true
    }
}

/// Returns the digest of an id (FNV-1a): the same on every machine, because it is stored.
fn digest(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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
        let memory = Memory::of(Side::Producer);
        let mut open = Open::default();
        for id in 0..REMEMBERED_IDS {
            let id = id.to_string();
            assert!(open.open(&id, &memory) && !open.open(&id, &memory) && open.has(&id));
        }
        for id in (0..REMEMBERED_IDS).rev() {
            let id = id.to_string();
            assert!(open.close(&id) && !open.close(&id) && !open.has(&id));
        }
        assert!(open.is_empty() && !memory.is_full());
    }

    #[test]
    fn what_could_not_be_remembered_is_told_and_not_held_against_the_stream() {
        let memory = Memory::of(Side::Producer);
        let mut open = Open::default();
        for id in 0..=REMEMBERED_IDS {
            assert!(!memory.is_full() && open.open(&id.to_string(), &memory));
        }
        assert!(memory.is_full() && open.close("never opened"));
    }

    #[test]
    fn a_node_may_be_open_any_number_of_times() {
        let memory = Memory::of(Side::Producer);
        let mut nodes = OpenNodes::default();
        (0..3).for_each(|_| nodes.enter("a", &memory));
        assert!((0..3).all(|_| nodes.exit("a")) && !nodes.exit("a"));
    }

    #[test]
    fn an_id_that_is_used_again_is_found_as_far_as_the_memory_goes() {
        let memory = Memory::of(Side::Producer);
        let mut used = Used::default();
        for id in 0..2 * REMEMBERED_IDS {
            assert_eq!(memory.is_full(), id > REMEMBERED_IDS);
            assert!(used.add(&id.to_string(), &memory));
        }
        assert!(!used.add("0", &memory) && used.digests.len() == REMEMBERED_IDS);
        // What is read to its end and not stored is judged much longer.
        let memory = Memory::of(Side::Reader);
        let mut used = Used::default();
        assert!((0..100 * REMEMBERED_IDS).all(|id| used.add(&id.to_string(), &memory)));
        assert!((0..100 * REMEMBERED_IDS).all(|id| !used.add(&id.to_string(), &memory)) && !memory.is_full());
    }

    #[test]
    fn a_message_lists_the_first_that_are_open_and_counts_the_others() {
        let memory = Memory::of(Side::Producer);
        let mut open = Open::default();
        (0..100).for_each(|id| _ = open.open(&id.to_string(), &memory));
        assert_eq!(open.listed(), "`0`, `1`, `2` and 97 more");
        (0..REMEMBERED_NAMES).for_each(|id| _ = open.close(&id.to_string()));
        assert_eq!(open.listed(), format!("{} in all", 100 - REMEMBERED_NAMES));
    }
}
