//! Ids in bounded memory: those of open parts, and used ones.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Side;
use crate::limits::{REMEMBERED_ID_BYTES, REMEMBERED_IDS, REMEMBERED_NAMES, REMEMBERED_RUNS, STREAM_IDS};

/// Shortens an id to the part that is stored.
pub(super) fn short(id: &str) -> Cow<'_, str> {
    if id.len() <= REMEMBERED_ID_BYTES {
        return Cow::Borrowed(id);
    }
    let hash = format!("…{:08x}", digest(id) as u32);
    Cow::Owned(format!("{}{hash}", &id[..id.floor_char_boundary(REMEMBERED_ID_BYTES - hash.len())]))
}

/// Limits how many ids of one kind are remembered, and records whether the limit was reached.
pub(crate) struct IdLimit {
    ids: usize,
    was_reached: Cell<bool>,
}

impl IdLimit {
    /// Makes the limit of a state that is stored with its run, or of one that lasts as long as its stream is read.
    pub(crate) fn of(side: Side) -> Self {
        let ids = match side {
            Side::Producer => REMEMBERED_IDS,
            Side::Reader => STREAM_IDS,
        };
        Self { ids, was_reached: Cell::new(false) }
    }

    /// Returns the number of ids of one kind.
    pub(crate) fn ids(&self) -> usize {
        self.ids
    }

    /// Returns true once an id could not be remembered.
    pub(crate) fn was_reached(&self) -> bool {
        self.was_reached.get()
    }

    /// Returns true if one more id may be remembered.
    fn take(&self, remembered: usize) -> bool {
        let has_room = remembered < self.ids;
        self.was_reached.set(self.was_reached.get() || !has_room);
        has_room
    }
}

/// Ids of the open parts of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenIds {
    /// The first ids, which messages list.
    ids: Vec<String>,
    /// Digests of the other ids.
    more: BTreeSet<u64>,
    /// Digests of ids that are open more than once, one for each further time.
    again: Vec<u64>,
    /// Whether some ids were not remembered, so that an unknown one proves nothing.
    overflowed: bool,
}

impl OpenIds {
    /// Opens an id; returns false if it was open as often as the limit allows.
    pub(super) fn open(&mut self, id: &str, limit: usize, id_limit: &IdLimit) -> bool {
        if self.knows(id) {
            return limit > 1 && self.open_again(digest(id), limit, id_limit);
        }
        if !id_limit.take(self.ids.len() + self.more.len()) {
            self.overflowed = true;
        } else if self.ids.len() < REMEMBERED_NAMES {
            self.ids.push(short(id).into_owned());
        } else {
            self.more.insert(digest(id));
        }
        true
    }

    fn open_again(&mut self, digest: u64, limit: usize, id_limit: &IdLimit) -> bool {
        if self.again.iter().filter(|known| **known == digest).count() + 1 >= limit {
            return false;
        }
        if id_limit.take(self.again.len()) {
            self.again.push(digest);
        } else {
            self.overflowed = true;
        }
        true
    }

    /// Closes an id once; returns false if it was not open.
    pub(super) fn close(&mut self, id: &str) -> bool {
        if !self.again.is_empty() {
            let digest = digest(id);
            if let Some(at) = self.again.iter().rposition(|known| *known == digest) {
                self.again.swap_remove(at);
                return true;
            }
        }
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

/// Digests of used ids, which detect one that is used again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UsedIds {
    digests: BTreeSet<u64>,
}

impl UsedIds {
    /// Adds an id; returns false if it was used before.
    pub(super) fn add(&mut self, id: &str, id_limit: &IdLimit) -> bool {
        let digest = digest(id);
        if self.digests.contains(&digest) {
            return false;
        }
        if id_limit.take(self.digests.len()) {
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

/// Values by id, with a limit: the least recently used one is dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LruMap<T> {
    known: Vec<(String, T)>,
}

impl<T: Default> LruMap<T> {
    /// Returns the value of an id, or a new one; without an id, that of the frame before.
    pub(super) fn of(&mut self, id: Option<&str>) -> &mut T {
        let id = id.map(short);
        let known = match &id {
            Some(id) => self.known.iter().position(|(known, _)| known == id),
            None => self.known.len().checked_sub(1),
        };
        match known {
            Some(at) => self.known[at..].rotate_left(1),
            None => {
                if self.known.len() >= REMEMBERED_RUNS {
                    self.known.remove(0);
                }
                self.known.push((id.unwrap_or_default().into_owned(), T::default()));
            }
        }
        let last = self.known.len() - 1;
        &mut self.known[last].1
    }

    /// Changes the id of the value of the frame before.
    pub(super) fn rename_last(&mut self, id: &str) -> &mut T {
        self.of(None);
        let last = self.known.len() - 1;
        self.known[last].0 = short(id).into_owned();
        &mut self.known[last].1
    }

    /// Lists all values, the most recently used one last.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.known.iter().map(|(_, state)| state)
    }

    /// Lists all values, the most recently used one last.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.known.iter_mut().map(|(_, state)| state)
    }

    /// Makes a map with one value.
    pub(super) fn with(id: &str, state: T) -> Self {
        Self { known: vec![(short(id).into_owned(), state)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_open_between_its_begin_and_its_end() {
        let id_limit = IdLimit::of(Side::Producer);
        let mut open = OpenIds::default();
        for id in 0..REMEMBERED_IDS {
            let id = id.to_string();
            assert!(open.open(&id, 1, &id_limit) && !open.open(&id, 1, &id_limit) && open.has(&id));
        }
        for id in (0..REMEMBERED_IDS).rev() {
            let id = id.to_string();
            assert!(open.close(&id) && !open.close(&id) && !open.has(&id));
        }
        assert!(open.is_empty() && !id_limit.was_reached());
    }

    #[test]
    fn what_could_not_be_remembered_is_told_and_not_held_against_the_stream() {
        let id_limit = IdLimit::of(Side::Producer);
        let mut open = OpenIds::default();
        for id in 0..=REMEMBERED_IDS {
            assert!(!id_limit.was_reached() && open.open(&id.to_string(), 1, &id_limit));
        }
        assert!(id_limit.was_reached() && open.close("never opened"));
    }

    #[test]
    fn a_node_may_be_open_any_number_of_times() {
        let id_limit = IdLimit::of(Side::Producer);
        let mut nodes = OpenIds::default();
        (0..3).for_each(|_| _ = nodes.open("a", usize::MAX, &id_limit));
        assert!((0..3).all(|_| nodes.close("a")) && !nodes.close("a"));
    }

    #[test]
    fn an_id_that_is_used_again_is_found_as_far_as_the_memory_goes() {
        let id_limit = IdLimit::of(Side::Producer);
        let mut used = UsedIds::default();
        for id in 0..2 * REMEMBERED_IDS {
            assert_eq!(id_limit.was_reached(), id > REMEMBERED_IDS);
            assert!(used.add(&id.to_string(), &id_limit));
        }
        assert!(!used.add("0", &id_limit) && used.digests.len() == REMEMBERED_IDS);
        // What is read to its end and not stored is judged much longer.
        let id_limit = IdLimit::of(Side::Reader);
        let mut used = UsedIds::default();
        assert!((0..100 * REMEMBERED_IDS).all(|id| used.add(&id.to_string(), &id_limit)));
        assert!(
            (0..100 * REMEMBERED_IDS).all(|id| !used.add(&id.to_string(), &id_limit))
                && !id_limit.was_reached()
        );
    }

    #[test]
    fn a_message_lists_the_first_that_are_open_and_counts_the_others() {
        let id_limit = IdLimit::of(Side::Producer);
        let mut open = OpenIds::default();
        (0..100).for_each(|id| _ = open.open(&id.to_string(), 1, &id_limit));
        assert_eq!(open.listed(), "`0`, `1`, `2` and 97 more");
        (0..REMEMBERED_NAMES).for_each(|id| _ = open.close(&id.to_string()));
        assert_eq!(open.listed(), format!("{} in all", 100 - REMEMBERED_NAMES));
    }
}
