//! What is known of a run between two records: ids, lengths, hashes and places, never its text.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::texts::continued;
use crate::event::InteractionKind;
use crate::limits;
use crate::record::Place;

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
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled];

    /// Reads the word on the wire.
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

/// A text or a thought that has begun and not ended.
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
    pub start: Place,
    /// Whether it has said anything.
    #[serde(default)]
    pub told: bool,
}

/// A step that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenStep {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The subagent it belongs to.
    pub subagent: Option<String>,
    /// The id by which the source names it in later frames, where they have one (Loom's `node_id`).
    #[serde(default)]
    pub source_id: Option<String>,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// Its arguments arrive.
    Arguments,
    /// It is called.
    Called,
    /// The tool works.
    Started,
}

/// A call that has begun and has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Its id.
    pub id: String,
    /// Whether the id was minted here.
    pub minted: bool,
    /// The subagent it belongs to.
    pub subagent: Option<String>,
    /// The id that the source gave it later.
    pub alias: Option<String>,
    /// The tool, once it is known.
    pub name: Option<String>,
    /// How far it is.
    pub phase: CallPhase,
    /// Where it began.
    pub start: Place,
    /// Bytes of arguments gathered.
    pub bytes: u64,
    /// The message that calls it.
    pub message_id: Option<String>,
}

/// A question that has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// What is asked for.
    pub kind: InteractionKind,
    /// Where it was asked.
    pub place: Place,
    /// Bytes of the question.
    pub bytes: u64,
}

/// How many of each kind a run has had; minted ids are made of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) thoughts: u64,
    pub(crate) calls: u64,
    pub(crate) steps: u64,
    pub(crate) approvals: u64,
}

/// An id that is used again, and the id that stands for it now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Renamed {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) times: u32,
}

/// Digests of the assistant's texts outside subagents, by which a whole text is recognised as one already told.
///
/// White space is left out, so that it does not matter how messages are joined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    /// The last message.
    pub(crate) last_id: Option<String>,
    /// Whether a message before the last one has grown since, so that the digests are not of what was told.
    pub(crate) mixed: bool,
    pub(crate) last: Digest,
    /// All messages before the last one.
    pub(crate) before: Digest,
    /// The white space that the last message ends with.
    pub(crate) trailing: Digest,
    /// Bytes of stored text that whole texts were compared with.
    pub(crate) compared: u64,
}

impl Told {
    /// Returns whether the run has told no text, or nothing but white space.
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

    /// Takes in a piece of a message, which may be its first.
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

    /// Takes in the text that replaces that of a message.
    pub(crate) fn replace(&mut self, id: &str, content: &str, is_first: bool) {
        if self.last_id.as_deref() == Some(id) {
            self.last = Digest::default();
            self.trailing = Digest::default();
        }
        self.grow(id, content, is_first);
    }
}

/// What is known of a run between two records.
///
/// It is small and serialisable: open things, counters, lengths, hashes and places in the log. Guard and
/// decoders work on it, and it is stored with every record of the run: in a form without names, so every field is
/// always written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// The thread's id.
    pub thread_id: String,
    /// The run's id.
    pub run_id: String,
    /// How far the run is.
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
    /// Questions without an answer, oldest first.
    pub questions: Vec<Question>,
    pub(crate) counts: Counts,
    /// Steps of the thread's runs before this one: steps are counted through, so that their ids are unique.
    pub(crate) steps_before: u64,
    pub(crate) told: Told,
    /// Bytes of text and thinking.
    pub(crate) text_bytes: u64,
    /// Every question's id.
    pub(crate) asked: Vec<String>,
    /// Where the last fatal notice stands.
    pub(crate) fatal: Option<Place>,
    /// Hashes of ids of messages and calls that were used, the newest last.
    pub(crate) recent: Vec<u64>,
    pub(crate) renamed: Vec<Renamed>,
    /// Ids of the source that equal minted ones, each with the id that stands for it: itself, where the source had
    /// it first.
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

    /// Returns the id of the text that one of the source's ids stands for now.
    pub(crate) fn text_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.texts.iter().any(|text| text.id == id))
    }

    /// Returns the id of the thought that one of the source's ids stands for now.
    pub(crate) fn thought_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.thoughts.iter().any(|thought| thought.id == id))
    }

    /// Returns the id of the call that one of the source's ids stands for now.
    pub(crate) fn call_id<'a>(&'a self, id: &'a str) -> &'a str {
        self.id_now(id, self.calls.iter().any(|call| call.id == id))
    }

    /// What is open under an id is what the id stands for; else what came of it when it was used again.
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

    /// Returns whether an id of a message or a thought was minted here, so that the source cannot mean it.
    pub(crate) fn is_minted(&self, id: &str) -> bool {
        let rest = id.strip_prefix(self.run_id.as_str()).unwrap_or_default();
        let is_below = |kind: &str, last: u64| {
            let number = rest.strip_prefix(kind).and_then(|number| number.parse::<u64>().ok());
            number.is_some_and(|number| number <= last)
        };
        (is_below(":m", self.counts.messages) || is_below(":t", self.counts.thoughts))
            && self.alias(id).is_none()
    }

    /// Returns what stands for an id of the source that is also one that was minted here.
    pub(crate) fn alias(&self, id: &str) -> Option<&str> {
        self.aliases.iter().find(|(from, _)| from == id).map(|(_, to)| to.as_str())
    }

    /// Makes an id that stands for one of the source's, which was minted here for something else.
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

    /// Takes an id into use and tells under which name; one that was used before gets a number.
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
        self.renamed.push(Renamed { from: id, to: to.clone(), times });
        to
    }

    fn remember(&mut self, hash: u64) {
        if self.recent.len() == limits::RECENT_IDS {
            self.recent.remove(0);
        }
        self.recent.push(hash);
    }

    /// Bytes of arguments and questions that must be kept at hand while they are open.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.calls
            .iter()
            .map(|call| call.bytes)
            .chain(self.questions.iter().map(|question| question.bytes))
            .sum()
    }
}

/// FNV-1a: ids are short, and the hash must be the same in every process.
pub(crate) fn hash_of(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
