//! The order that the official AG-UI client (`@ag-ui/client` 1.0.0) wants, ported, and what it takes without
//! a word and then shows wrongly (`docs/dialects/ag-ui.md`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// A client that is given one frame after the other of one thread.
#[derive(Default)]
pub(crate) struct Client {
    begun: bool,
    phase: Phase,
    response: Response,
    /// Over all runs of the thread: in which run an id was used, and what for.
    texts: HashMap<String, Use>,
    thoughts: HashMap<String, Use>,
    calls: HashMap<String, Use>,
    run: usize,
    /// Counts calls, so that a text that begins before and after one is noticed.
    call_count: usize,
    run_id: Option<String>,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum Phase {
    #[default]
    Idle,
    Active,
    Finished,
    Errored,
}

/// What the client forgets at the next `RUN_STARTED`.
#[derive(Default)]
struct Response {
    texts: HashSet<String>,
    calls: HashSet<String>,
    spans: HashSet<String>,
    thoughts: HashSet<String>,
    steps: HashSet<(Option<String>, String)>,
    subagents: HashSet<String>,
    closed_subagents: HashSet<String>,
    /// Which subagent opened a message, a call or a thought.
    owners: HashMap<(Kind, String), Option<String>>,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Kind {
    Message,
    Call,
    Thought,
    Activity,
}

#[derive(Clone, Copy)]
struct Use {
    run: usize,
    call_count: usize,
}

impl Client {
    /// Takes a frame, or tells the rule that it breaks.
    pub(crate) fn take(&mut self, frame: &Value) -> Result<(), String> {
        let kind = frame["type"].as_str().ok_or("a frame without a type")?;
        self.refuse_by_phase(kind)?;
        self.begun = true;
        let text = |key: &str| frame[key].as_str().map(str::to_owned);
        let required = |key: &str| text(key).ok_or_else(|| format!("{kind} without {key}"));
        let subagent = text("subagentRunId");
        match kind {
            "RUN_STARTED" => self.start(&required("threadId")?, required("runId")?),
            "RUN_FINISHED" => self.finish(),
            "RUN_ERROR" => {
                self.phase = Phase::Errored;
                Ok(())
            }
            "TEXT_MESSAGE_START" => self.start_text(required("messageId")?, subagent),
            "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" => {
                let id = required("messageId")?;
                self.response.owned(Kind::Message, &id, subagent.as_deref())?;
                goes_on(&mut self.response.texts, kind, id)
            }
            "TOOL_CALL_START" => self.start_call(required("toolCallId")?, text("parentMessageId"), subagent),
            "TOOL_CALL_ARGS" | "TOOL_CALL_END" => {
                let id = required("toolCallId")?;
                self.response.owned(Kind::Call, &id, subagent.as_deref())?;
                goes_on(&mut self.response.calls, kind, id)
            }
            "TOOL_CALL_RESULT" => self.result(&required("messageId")?, &required("toolCallId")?, subagent),
            "REASONING_START" => {
                let id = required("messageId")?;
                self.response.own(Kind::Thought, &id, subagent)?;
                begins(&mut self.response.spans, kind, id)
            }
            "REASONING_MESSAGE_START" => {
                let id = required("messageId")?;
                self.response.own(Kind::Thought, &id, subagent)?;
                self.use_once("a thought", &id, |client| &mut client.thoughts)?;
                if self.texts.contains_key(&id) {
                    return Err(format!("`{id}` is a thought and a text"));
                }
                begins(&mut self.response.thoughts, kind, id)
            }
            "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" => {
                let id = required("messageId")?;
                self.response.owned(Kind::Thought, &id, subagent.as_deref())?;
                goes_on(&mut self.response.thoughts, kind, id)
            }
            "REASONING_END" => goes_on(&mut self.response.spans, kind, required("messageId")?),
            "STEP_STARTED" => {
                let name = required("stepName")?;
                match self.response.steps.insert((subagent, name.clone())) {
                    true => Ok(()),
                    false => Err(format!("step `{name}` is started while it is open")),
                }
            }
            "STEP_FINISHED" => {
                let name = required("stepName")?;
                match self.response.steps.remove(&(subagent, name.clone())) {
                    true => Ok(()),
                    false => Err(format!("step `{name}` is finished and not open")),
                }
            }
            "SUBAGENT_STARTED" => {
                required("name")?;
                let id = required("subagentRunId")?;
                if self.response.closed_subagents.contains(&id) {
                    return Err(format!("subagent `{id}` is started after its end"));
                }
                begins(&mut self.response.subagents, kind, id)
            }
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let id = required("subagentRunId")?;
                self.response.closed_subagents.insert(id.clone());
                match self.response.subagents.remove(&id) {
                    true => Ok(()),
                    false => Err(format!("{kind} of `{id}`, which is not active")),
                }
            }
            "ACTIVITY_SNAPSHOT" => {
                let key = (Kind::Activity, required("messageId")?);
                if frame["replace"] != false || !self.response.owners.contains_key(&key) {
                    self.response.owners.insert(key, subagent);
                }
                Ok(())
            }
            "ACTIVITY_DELTA" => {
                self.response.owned(Kind::Activity, &required("messageId")?, subagent.as_deref())
            }
            _ if kind.ends_with("_CHUNK") || kind.starts_with("THINKING_") => {
                Err(format!("{kind} is read and never written"))
            }
            _ => Ok(()),
        }
    }

    fn refuse_by_phase(&self, kind: &str) -> Result<(), String> {
        let fits = match self.phase {
            Phase::Idle => matches!(kind, "RUN_STARTED" | "RUN_ERROR"),
            Phase::Active => kind != "RUN_STARTED",
            Phase::Finished => matches!(kind, "RUN_STARTED" | "RUN_ERROR"),
            Phase::Errored => kind == "RUN_STARTED",
        };
        let when = match self.phase {
            Phase::Idle => "as the first frame",
            Phase::Active => "while a run is active",
            Phase::Finished => "after RUN_FINISHED",
            Phase::Errored => "after RUN_ERROR",
        };
        if fits { Ok(()) } else { Err(format!("{kind} {when}")) }
    }

    fn start(&mut self, _thread: &str, run: String) -> Result<(), String> {
        self.phase = Phase::Active;
        self.response = Response::default();
        // An answered interrupt starts again under the id that the run has on the wire.
        if self.run_id.as_ref() != Some(&run) {
            self.run += 1;
            self.run_id = Some(run);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Response { texts, calls, spans, thoughts, steps, subagents, .. } = &self.response;
        let steps: HashSet<String> = steps.iter().map(|(_, name)| name.clone()).collect();
        for (what, open) in [
            ("steps", &steps),
            ("texts", texts),
            ("thoughts", thoughts),
            ("reasoning spans", spans),
            ("calls", calls),
            ("subagents", subagents),
        ] {
            if !open.is_empty() {
                return Err(format!("RUN_FINISHED while {what} are open: {open:?}"));
            }
        }
        self.phase = Phase::Finished;
        Ok(())
    }

    fn start_text(&mut self, id: String, subagent: Option<String>) -> Result<(), String> {
        self.response.own(Kind::Message, &id, subagent)?;
        if self.thoughts.contains_key(&id) {
            return Err(format!("`{id}` is a thought and a text"));
        }
        if let Some(before) = self.texts.get(&id)
            && before.run == self.run
            && before.call_count != self.call_count
        {
            return Err(format!("text `{id}` stands before and after a call"));
        }
        self.use_once("a text", &id, |client| &mut client.texts)?;
        begins(&mut self.response.texts, "TEXT_MESSAGE_START", id)
    }

    fn start_call(
        &mut self,
        id: String,
        parent: Option<String>,
        subagent: Option<String>,
    ) -> Result<(), String> {
        let parent = parent.and_then(|parent| self.response.owners.get(&(Kind::Message, parent)).cloned());
        if let (Some(parent), Some(subagent)) = (&parent, &subagent)
            && parent.as_ref() != Some(subagent)
        {
            return Err(format!("call `{id}` belongs to another subagent than its message"));
        }
        if self.calls.contains_key(&id) {
            return Err(format!("call `{id}` is started twice"));
        }
        self.response.own(Kind::Call, &id, subagent.or(parent.flatten()))?;
        self.calls.insert(id.clone(), Use { run: self.run, call_count: self.call_count });
        self.call_count += 1;
        begins(&mut self.response.calls, "TOOL_CALL_START", id)
    }

    fn result(&mut self, message: &str, call: &str, subagent: Option<String>) -> Result<(), String> {
        if self.texts.contains_key(message) || self.thoughts.contains_key(message) {
            return Err(format!("the result of `{call}` has the id of another message, `{message}`"));
        }
        self.response.owners.insert((Kind::Message, message.to_owned()), subagent);
        Ok(())
    }

    /// An id of an earlier run must not come again: the client would go on with the earlier message.
    fn use_once(
        &mut self,
        what: &str,
        id: &str,
        known: impl Fn(&mut Self) -> &mut HashMap<String, Use>,
    ) -> Result<(), String> {
        let now = Use { run: self.run, call_count: self.call_count };
        match known(self).insert(id.to_owned(), now) {
            Some(before) if before.run != now.run => Err(format!("{what} of two runs has the id `{id}`")),
            Some(_) => Err(format!("{what} with the id `{id}` is started twice")),
            None => Ok(()),
        }
    }
}

impl Response {
    fn own(&mut self, kind: Kind, id: &str, subagent: Option<String>) -> Result<(), String> {
        self.owned(kind, id, subagent.as_deref())?;
        self.owners.entry((kind, id.to_owned())).or_insert(subagent);
        Ok(())
    }

    fn owned(&self, kind: Kind, id: &str, subagent: Option<&str>) -> Result<(), String> {
        match self.owners.get(&(kind, id.to_owned())) {
            Some(owner) if subagent.is_some() && owner.as_deref() != subagent => {
                Err(format!("`{id}` was opened by {owner:?} and is continued by {subagent:?}"))
            }
            _ => Ok(()),
        }
    }
}

fn begins(open: &mut HashSet<String>, kind: &str, id: String) -> Result<(), String> {
    match open.insert(id.clone()) {
        true => Ok(()),
        false => Err(format!("{kind} of `{id}`, which is open")),
    }
}

fn goes_on(open: &mut HashSet<String>, kind: &str, id: String) -> Result<(), String> {
    let known = if kind.ends_with("_END") { open.remove(&id) } else { open.contains(&id) };
    if known { Ok(()) } else { Err(format!("{kind} of `{id}`, which is not open")) }
}
