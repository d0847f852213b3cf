//! State of a run between two records: ids, lengths, hashes and positions, never its text.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::texts::continued;
use crate::event::InteractionKind;
use crate::limits;
use crate::record::EventPosition;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing was written yet.
    #[default]
    Pending,
    /// It works.
    Running,
    /// It waits for a person.
    Suspended,
    /// It came to its end.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled];

    /// Parses the word on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Returns whether the run is closed.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An open text or thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenText {
    /// Its id.
    pub id: String,
    /// Whether the id was minted here, so that the source has no way to end the text.
    pub minted: bool,
    /// Whether the text is the assistant's.
    pub assistant: bool,
    /// The subagent it belongs to.
    pub subagent: Option<String>,
    /// Where it began.
    pub start: EventPosition,
    /// Whether it has any content.
    #[serde(default)]
    pub has_content: bool,
}

/// An open step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenStep {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The subagent it belongs to.
    pub subagent: Option<String>,
    /// Id by which the source names it in later frames, if it has one (Loom's `node_id`).
    #[serde(default)]
    pub source_id: Option<String>,
}

/// Phase of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// Its arguments are arriving.
    Arguments,
    /// It is called.
    Called,
    /// The tool has started.
    Started,
}

/// An open call: it has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Its id.
    pub id: String,
    /// Whether the id was minted here.
    pub minted: bool,
    /// The subagent it belongs to.
    pub subagent: Option<String>,
    /// Id that the source gave it later.
    pub alias: Option<String>,
    /// The tool, once it is known.
    pub name: Option<String>,
    /// How far it is.
    pub phase: CallPhase,
    /// Where it began.
    pub start: EventPosition,
    /// Bytes of arguments gathered.
    pub bytes: u64,
    /// The message that calls it.
    pub message_id: Option<String>,
}

/// An open interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenInteraction {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: InteractionKind,
    /// Position of its request.
    pub position: EventPosition,
    /// Bytes of its request.
    pub bytes: u64,
}

/// Counts of what a run has had; minted ids contain them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunCounters {
    pub(crate) messages: u64,
    pub(crate) thoughts: u64,
    pub(crate) calls: u64,
    pub(crate) steps: u64,
    pub(crate) approvals: u64,
}

/// An id that is used again, and the id that replaces it now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RenamedId {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) times: u32,
}

/// Digests of the assistant's texts outside subagents, by which a whole text is recognised as a repetition.
///
/// They leave out white space, so that it does not matter how messages are joined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TextDigests {
    /// The last message.
    pub(crate) last_id: Option<String>,
    /// Whether a message before the last one has grown since, so that the digests do not hold any more.
    pub(crate) mixed: bool,
    pub(crate) last: Digest,
    /// All messages before the last one.
    pub(crate) before: Digest,
    /// The white space that the last message ends with.
    pub(crate) trailing: Digest,
    /// Bytes of stored text that whole texts were compared with.
    pub(crate) compared: u64,
}

impl TextDigests {
    /// Returns true if the run has no text, or nothing but white space.
    pub(crate) fn is_empty(&self) -> bool {
        !self.mixed && self.all().len == 0
    }

    /// Returns the digest of all messages.
    pub(crate) fn all(&self) -> Digest {
        self.before.then(self.last)
    }

    fn begin(&mut self, id: &str) {
        self.before = self.all();
        self.last = Digest::default();
        self.trailing = Digest::default();
        self.last_id = Some(id.to_owned());
    }

    /// Adds a piece of a message, which may be its first.
    pub(crate) fn grow(&mut self, id: &str, content: &str, is_first: bool) {
        if is_first {
            self.begin(id);
        }
        if self.last_id.as_deref() != Some(id) {
            self.mixed = true;
            return;
        }
        self.last = self.last.then(Digest::without_whitespace(content));
        let words = content.trim_end();
        let trailing = Digest::of(&content[words.len()..]);
        self.trailing = if words.is_empty() { self.trailing.then(trailing) } else { trailing };
    }

    /// Replaces the content of a message.
    pub(crate) fn replace(&mut self, id: &str, content: &str, is_first: bool) {
        if self.last_id.as_deref() == Some(id) {
            self.last = Digest::default();
            self.trailing = Digest::default();
        }
        self.grow(id, content, is_first);
    }
}

/// State of a run between two records.
///
/// It is small and serialisable: open things, counters, lengths, hashes and positions. Guard and decoders work on it,
/// and it is stored with every record of the run: in a form without names, so every field is always written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// The thread's id.
    pub thread_id: String,
    /// The run's id.
    pub run_id: String,
    /// Status of the run.
    pub status: Status,
    /// Texts that are open, oldest first.
    pub texts: Vec<OpenText>,
    /// Thoughts that are open, oldest first.
    pub thoughts: Vec<OpenText>,
    /// Steps that are open, outermost first.
    pub steps: Vec<OpenStep>,
    /// Calls without a result, oldest first.
    pub calls: Vec<OpenCall>,
    /// Calls of the thread's run before this one that were left without a result: front ends answer them in
    /// the next run.
    pub carried: Vec<OpenCall>,
    /// Open interactions, oldest first.
    pub interactions: Vec<OpenInteraction>,
    pub(crate) counts: RunCounters,
    /// Steps of the thread's runs before this one: steps are counted through, so that their ids are unique.
    pub(crate) steps_before: u64,
    pub(crate) text_digests: TextDigests,
    /// Bytes of text and thinking.
    pub(crate) text_bytes: u64,
    /// Ids of all interactions of the run.
    pub(crate) interaction_ids: Vec<String>,
    /// Position of the last fatal notice.
    pub(crate) fatal: Option<EventPosition>,
    /// Hashes of ids of messages and calls that were used, the newest last.
    pub(crate) recent: Vec<u64>,
    pub(crate) renamed: Vec<RenamedId>,
    /// Ids of the source that equal minted ones, each with the id that replaces it: itself, where the source had it
    /// first.
    pub(crate) aliases: Vec<(String, String)>,
}

impl RunState {
    /// Makes the state of a run that nothing was written to.
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>) -> Self {
        Self { thread_id: thread_id.into(), run_id: run_id.into(), ..Self::default() }
    }

    /// Makes the state of the run that follows this one in the thread.
    pub fn next(&self, run_id: impl Into<String>) -> Self {
        let mut next = Self::new(self.thread_id.clone(), run_id);
        next.counts.steps = self.counts.steps;
        next.steps_before = self.counts.steps;
        // Ids are unique in the thread, and a source may count its own anew in each run.
        next.recent.clone_from(&self.recent);
        next.renamed.clone_from(&self.renamed);
        if self.status == Status::Completed {
            next.carried.clone_from(&self.calls);
        }
        next
    }

    /// Returns how many steps the run has had.
    pub(crate) fn run_steps(&self) -> u64 {
        self.counts.steps - self.steps_before
    }

    /// Returns the innermost open step.
    pub fn current_step(&self) -> Option<&OpenStep> {
        self.steps.last()
    }

    /// Returns the current id of a text, for an id of the source.
    pub(crate) fn text_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.texts.iter().any(|text| text.id == id))
    }

    /// Returns the current id of a thought, for an id of the source.
    pub(crate) fn thought_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.thoughts.iter().any(|thought| thought.id == id))
    }

    /// Returns the current id of a call, for an id of the source.
    pub(crate) fn call_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.calls.iter().any(|call| call.id == id))
    }

    /// Returns the id itself while it is open, else the id that replaced it when it was used again.
    fn id_now<'a>(&'a self, id: &'a str, is_open: bool) -> &'a str {
        let renamed = || self.renamed.iter().rev().find(|renamed| renamed.from == id);
        if is_open { id } else { renamed().map_or(id, |renamed| &renamed.to) }
    }

    /// Makes the id of a message that has none.
    pub(crate) fn mint_message_id(&mut self) -> String {
        let (id, number) = self.mint("m", self.counts.messages);
        self.counts.messages = number;
        id
    }

    /// Makes the id of a thought that has none.
    pub(crate) fn mint_thought_id(&mut self) -> String {
        let (id, number) = self.mint("t", self.counts.thoughts);
        self.counts.thoughts = number;
        id
    }

    /// Makes the id of a call that has none. Its number is taken once the call is made.
    pub(crate) fn mint_call_id(&mut self) -> String {
        self.mint("c", self.counts.calls).0
    }

    /// Makes an id that is not in use, and returns it with its number, which is above `last`.
    fn mint(&mut self, kind: &str, last: u64) -> (String, u64) {
        let mut number = last + 1;
        loop {
            let id = format!("{}:{kind}{number}", self.run_id);
            if !self.recent.contains(&hash_of(&id)) {
                return (id, number);
            }
            // The source had it first, and goes on to mean its own by it.
            self.set_alias(id.clone(), id);
            number += 1;
        }
    }

    /// Returns true for an id of a message or thought that was minted here, so that the source cannot mean it.
    pub(crate) fn is_minted(&self, id: &str) -> bool {
        let rest = id.strip_prefix(self.run_id.as_str()).unwrap_or_default();
        let is_below = |kind: &str, last: u64| {
            let number = rest.strip_prefix(kind).and_then(|number| number.parse::<u64>().ok());
            number.is_some_and(|number| number <= last)
        };
        (is_below(":m", self.counts.messages) || is_below(":t", self.counts.thoughts))
            && self.alias(id).is_none()
    }

    /// Returns the alias of an id of the source that equals a minted one.
    pub(crate) fn alias(&self, id: &str) -> Option<&str> {
        self.aliases.iter().find(|(from, _)| from == id).map(|(_, to)| to.as_str())
    }

    /// Adds an alias for an id of the source that was minted here for something else.
    pub(crate) fn add_alias(&mut self, id: &str) -> String {
        let mut number = 2;
        while self.recent.contains(&hash_of(&format!("{id}.{number}"))) {
            number += 1;
        }
        let alias = format!("{id}.{number}");
        self.set_alias(id.to_owned(), alias.clone());
        alias
    }

    fn set_alias(&mut self, from: String, to: String) {
        if self.alias(&from).is_some() {
            return;
        }
        if self.aliases.len() == limits::RECENT_IDS {
            self.aliases.remove(0);
        }
        self.aliases.push((from, to));
    }

    /// Returns the id under which a message that was closed is continued: the one that it had at first.
    pub(crate) fn continued_id(&self, id: String) -> String {
        match continued(&id) {
            Some(base) if self.renamed.iter().any(|renamed| renamed.from == base) => base.to_owned(),
            _ => id,
        }
    }

    /// Claims an id and returns it, with a number if it was used before.
    pub(crate) fn claim_id(&mut self, id: String) -> String {
        let hash = hash_of(&id);
        if !self.recent.contains(&hash) {
            self.remember(hash);
            return id;
        }
        let known = self.renamed.iter().position(|renamed| renamed.from == id);
        let mut times = known.map_or(2, |at| self.renamed.remove(at).times + 1);
        while self.recent.contains(&hash_of(&format!("{id}#{times}"))) {
            times += 1;
        }
        let to = format!("{id}#{times}");
        if self.renamed.len() == limits::RECENT_IDS {
            self.renamed.remove(0);
        }
        self.remember(hash_of(&to));
        self.renamed.push(RenamedId { from: id, to: to.clone(), times });
        to
    }

    /// Returns true if an id has named a message, a thought or a call, as far as ids are remembered.
    pub(crate) fn is_known(&self, id: &str) -> bool {
        self.recent.contains(&hash_of(id))
    }

    /// Returns true if an id has named a call, also as the alias of a call that began without one.
    pub(crate) fn has_named_call(&self, id: &str) -> bool {
        self.is_known(id) || self.recent.contains(&self.alias_hash(id))
    }

    /// Remembers the alias of a call that began without an id. Another run may use the id too.
    pub(crate) fn remember_call_alias(&mut self, id: &str) {
        self.remember(self.alias_hash(id));
    }

    fn alias_hash(&self, id: &str) -> u64 {
        hash_of(&format!("{}:c={id}", self.run_id))
    }

    fn remember(&mut self, hash: u64) {
        if self.recent.len() == limits::RECENT_IDS {
            self.recent.remove(0);
        }
        self.recent.push(hash);
    }

    /// Returns the bytes of arguments and interactions that are held while they are open.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.calls
            .iter()
            .map(|call| call.bytes)
            .chain(self.interactions.iter().map(|question| question.bytes))
            .sum()
    }
}

/// FNV-1a: ids are short, and the hash must be the same in every process.
pub(crate) fn hash_of(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
