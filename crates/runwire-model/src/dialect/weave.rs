//! Weaves what a frame says into the run: finds out which message, call or step is meant, mints the ids that
//! the source lacks, and adds what the normal form needs.
//!
//! Decoders read all fields of a frame first and weave afterwards, so that a frame that cannot be read has
//! changed nothing.

use std::borrow::Cow;

use super::Dialect;
use crate::event::{
    Body, ErrorInfo, Event, Extra, Foreign, InteractionRequested, Notice, RunCompleted, RunFailed,
    StepFinished, StepStarted, TextDelta, TextFinished, TextStarted, ThinkingDelta, ThinkingFinished,
    ThinkingStarted, ToolArgsDelta, ToolArgsStarted, ToolCalled, ToolFinished, ToolOutput, ToolProgress,
    ToolStarted,
};
use crate::json::Json;
use crate::record::{By, Earlier, Entry};
use crate::run::{
    Authority, CallPhase, Compared, Digest, OpenCall, OpenStep, OpenText, Refusal, RunState, Whole,
    WholePolicy, continued, continues,
};

/// The run that a frame is woven into.
pub struct Weave<'a> {
    /// The run's state.
    pub state: &'a mut RunState,
    /// What the run stored before.
    pub earlier: &'a dyn Earlier,
    authority: Authority,
    dialect: Dialect,
    seq: u64,
    whole: WholePolicy,
    /// The open step that the frame names.
    named_step: Option<String>,
    /// Whether the frame ends something that never began.
    ends_nothing: bool,
    out: &'a mut Vec<Entry>,
}

/// A result of weaving.
pub(crate) type Woven = Result<(), Refusal>;

impl<'a> Weave<'a> {
    /// Begins a record.
    pub fn new(
        state: &'a mut RunState,
        earlier: &'a dyn Earlier,
        authority: Authority,
        dialect: Dialect,
        seq: u64,
        out: &'a mut Vec<Entry>,
    ) -> Self {
        Self {
            state,
            earlier,
            authority,
            dialect,
            seq,
            whole: WholePolicy::Add,
            named_step: None,
            ends_nothing: false,
            out,
        }
    }

    /// Sets what becomes of a whole text that differs from what the run has told.
    #[must_use]
    pub fn with_whole(mut self, whole: WholePolicy) -> Self {
        self.whole = whole;
        self
    }

    /// Adds what the frame says.
    pub(crate) fn say(&mut self, body: impl Into<Body>, extra: Extra) -> Woven {
        self.put(body, extra, By::Producer)
    }

    /// Adds what the frame implies.
    pub(crate) fn imply(&mut self, body: impl Into<Body>) -> Woven {
        self.put(body, Extra::default(), By::Decoder)
    }

    fn put(&mut self, body: impl Into<Body>, extra: Extra, by: By) -> Woven {
        let mut event = Event::new(body);
        event.extra = extra;
        let step = match &event.body {
            Body::StepStarted(_) => None,
            Body::StepFinished(finished) => self.step().filter(|step| step.name == finished.name),
            body if body.type_name().starts_with("run.") => None,
            _ => self.step(),
        };
        event.step_id = step.map(|step| step.id.clone());
        self.event(event, by)
    }

    /// Finds the open step that the frame names by the source's id; among several, the innermost.
    pub(crate) fn name_step(&mut self, source_id: &Json) {
        let Some(id) = source_id.as_string() else { return };
        let named = self.state.steps.iter().rfind(|step| step.source_id.as_deref() == Some(&*id));
        self.named_step = named.map(|step| step.id.clone());
    }

    /// Returns the open step that the frame happens in: the one that it names, else the innermost.
    pub(crate) fn step(&self) -> Option<&OpenStep> {
        let is_named = |step: &&OpenStep| Some(&step.id) == self.named_step.as_ref();
        self.state.steps.iter().rfind(is_named).or_else(|| self.state.current_step())
    }

    /// Adds a whole event as it is. The end of something that never began is left out: the frame is kept instead.
    pub(crate) fn event(&mut self, event: Event, by: By) -> Woven {
        if by == By::Producer && self.state.ends_nothing(&event) {
            self.ends_nothing = true;
            return self.state.check_open();
        }
        self.state.apply(event, by, self.authority, self.seq, self.earlier, self.out)
    }

    /// Adds the event of a slot or a residue.
    ///
    /// What it says of a message may be about one that the frames around it told natively, without an id.
    pub(crate) fn slot(&mut self, mut event: Event) -> Woven {
        self.translate_id(&mut event.body)?;
        match &event.body {
            Body::TextStarted(started) if !started.is_not_assistant() => return self.next_text(event),
            Body::ThinkingStarted(_) => return self.next_thought(event),
            _ => {}
        }
        let told = &self.state.told.last_id;
        let known =
            |id: &str, open: &[OpenText]| !self.state.is_minted(id) && open.iter().any(|text| text.id == id);
        let natively = |open: &[OpenText]| open.iter().rfind(|text| text.minted).map(|text| text.id.clone());
        match &mut event.body {
            Body::TextFinished(finished)
                if !known(self.state.text_id(&finished.message_id), &self.state.texts) =>
            {
                let replaced = told.clone().filter(|_| finished.content.is_some());
                if let Some(id) = natively(&self.state.texts).or(replaced) {
                    finished.message_id = id;
                }
            }
            Body::ThinkingFinished(finished)
                if !known(self.state.thought_id(&finished.message_id), &self.state.thoughts) =>
            {
                match (natively(&self.state.thoughts), &finished.content) {
                    (Some(id), _) => finished.message_id = id,
                    (None, Some(_)) => return self.whole_thought(event),
                    (None, None) => {}
                }
            }
            _ => {}
        }
        self.event(event, By::Producer)
    }

    /// Makes an event name its message by the id that it has here: an id of the source may equal one that was
    /// minted for another message.
    fn translate_id(&mut self, body: &mut Body) -> Woven {
        let Some((id, is_end)) = message_id(body) else { return Ok(()) };
        let base = continued(id).unwrap_or(id).to_owned();
        let suffix = id[base.len()..].to_owned();
        let alias = match self.state.alias(&base) {
            Some(alias) => alias.to_owned(),
            // An end may be that of a message that was told natively, and begins none.
            None if !is_end && self.state.is_minted(&base) => {
                self.state.check_limits(body)?;
                self.state.add_alias(&base)
            }
            None => return Ok(()),
        };
        if let Some((id, _)) = message_id(body) {
            *id = alias + &suffix;
        }
        Ok(())
    }

    /// Adds a thought of which only the end tells, in its normal form.
    fn whole_thought(&mut self, event: Event) -> Woven {
        let Body::ThinkingFinished(ThinkingFinished { message_id, content: Some(content) }) = &event.body
        else {
            return self.event(event, By::Producer);
        };
        let like = |body: Body| Event { body, extra: Extra::default(), ..event.clone() };
        let started = ThinkingStarted { message_id: message_id.clone(), stage: None };
        let delta =
            ThinkingDelta { message_id: message_id.clone(), content: content.clone(), ..Default::default() };
        let ended = ThinkingFinished { message_id: message_id.clone(), content: None };
        let (started, ended) = (like(started.into()), Event { body: ended.into(), ..event.clone() });
        let delta = (!content.is_empty()).then(|| like(delta.into()));
        self.atomically(|weave| {
            let mut events = [Some(started), delta, Some(ended)].into_iter().flatten();
            events.try_for_each(|event| weave.event(event, By::Producer))
        })
    }

    /// Begins a text that follows one told natively, and is itself told natively from here on.
    fn next_text(&mut self, event: Event) -> Woven {
        let follows = self.state.texts.iter().any(|text| text.minted) && event.subagent_run_id.is_none();
        if !follows {
            return self.event(event, By::Producer);
        }
        self.end_texts(true)?;
        let before = self.state.texts.len();
        self.event(event, By::Producer)?;
        self.state.texts.iter_mut().skip(before).for_each(|text| text.minted = true);
        Ok(())
    }

    /// Continues the last text, of which the frames before may have told no id; what follows natively is its.
    pub(crate) fn continuation(&mut self, mut started: Event, mut delta: Event) -> Woven {
        self.end_texts(true)?;
        if let (Body::TextStarted(started), Some(last)) = (&mut started.body, &self.state.told.last_id)
            && !continues(last, &started.message_id)
        {
            started.message_id = self.state.continued_id(last.clone());
        }
        let before = self.state.texts.len();
        self.event(started, By::Producer)?;
        if let (Some(text), Body::TextDelta(delta)) = (self.state.texts.get_mut(before), &mut delta.body) {
            text.minted = true;
            delta.message_id.clone_from(&text.id);
        }
        self.event(delta, By::Producer)
    }

    /// Begins a thought that follows one told natively, and is itself told natively from here on.
    fn next_thought(&mut self, event: Event) -> Woven {
        let follows =
            self.state.thoughts.iter().any(|thought| thought.minted) && event.subagent_run_id.is_none();
        if !follows {
            return self.event(event, By::Producer);
        }
        self.end_thoughts(true)?;
        let before = self.state.thoughts.len();
        self.event(event, By::Producer)?;
        self.state.thoughts.iter_mut().skip(before).for_each(|thought| thought.minted = true);
        Ok(())
    }

    /// Weaves several things of which any may be refused: all of them, or none.
    pub(crate) fn atomically<E>(&mut self, weave: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let (before, entries) = (self.state.clone(), self.out.len());
        weave(self).inspect_err(|_| {
            *self.state = before;
            self.out.truncate(entries);
        })
    }

    /// Reads a frame, and keeps it as `foreign` where all that it says is the end of something that never began.
    pub(crate) fn read<E: From<Refusal>>(
        &mut self,
        frame: &str,
        name: Option<&str>,
        read: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.out.len();
        self.ends_nothing = false;
        read(self)?;
        let says_more = self.out[before..].iter().any(|entry| entry.by == By::Producer);
        if self.ends_nothing && !says_more {
            self.foreign(frame, name)?;
        }
        Ok(())
    }

    /// Adds a frame that the model has no event for.
    pub(crate) fn foreign(&mut self, frame: &str, name: Option<&str>) -> Woven {
        let dialect = self.dialect.name().to_owned();
        let frame = Json::from_valid(frame);
        self.say(Foreign { dialect, frame, name: name.map(str::to_owned) }, Extra::default())
    }

    /// Returns whether the run has begun.
    pub(crate) fn is_pending(&self) -> bool {
        self.state.status == crate::run::Status::Pending
    }

    /// Adds an extension field to the start of the run, where this record holds it.
    pub(crate) fn add_to_start(&mut self, name: &str, value: Json) {
        let start = self.out.iter_mut().find(|entry| matches!(entry.event.body, Body::RunStarted(_)));
        if let Some(start) = start {
            start.event.extra.set(name, value);
        }
    }

    /// Adds an extension field to what the frame says.
    pub(crate) fn add_to_said(&mut self, name: &str, value: Json) {
        let said = self.out.iter_mut().filter(|entry| entry.by == By::Producer);
        said.for_each(|entry| entry.event.extra.set(name, value.clone()));
    }

    // Texts

    /// Ends the texts and thoughts whose ids the source does not know: it has moved on to something else.
    pub(crate) fn boundary(&mut self) -> Woven {
        self.end_thoughts(true)?;
        self.end_texts(true)
    }

    /// Ends open texts; with `minted`, only those whose ids the source does not know.
    pub(crate) fn end_texts(&mut self, minted: bool) -> Woven {
        while let Some(text) = self.state.texts.iter().find(|text| text.minted || !minted) {
            let message_id = text.id.clone();
            self.imply(TextFinished { message_id, ..Default::default() })?;
        }
        Ok(())
    }

    /// Ends open thoughts; with `minted`, only those whose ids the source does not know.
    pub(crate) fn end_thoughts(&mut self, minted: bool) -> Woven {
        while let Some(thought) = self.state.thoughts.iter().find(|thought| thought.minted || !minted) {
            let message_id = thought.id.clone();
            self.imply(ThinkingFinished { message_id, content: None })?;
        }
        Ok(())
    }

    /// Returns whether the run has had a text of the assistant, be it an empty one.
    pub(crate) fn has_texts(&self) -> bool {
        self.state.counts.messages > 0 || self.state.told.last_id.is_some()
    }

    /// Finds the text that a piece belongs to, and begins it if it is new.
    pub(crate) fn open_text(&mut self, message_id: Option<String>) -> Result<String, Refusal> {
        self.open_text_of(message_id, None)
    }

    fn open_text_of(&mut self, message_id: Option<String>, role: Option<String>) -> Result<String, Refusal> {
        self.end_thoughts(true)?;
        let known = match &message_id {
            Some(id) => {
                let current = self.state.text_id(id);
                self.state.texts.iter().find(|text| text.id == current)
            }
            None => self.state.texts.iter().rfind(|text| text.minted),
        };
        if let Some(text) = known {
            return Ok(text.id.clone());
        }
        self.end_texts(true)?;
        let id = message_id.unwrap_or_else(|| self.state.mint_message_id());
        self.imply(TextStarted { message_id: id, role })?;
        match self.state.texts.last_mut() {
            Some(text) => {
                // No dialect that streams text this way says where it ends.
                text.minted = true;
                Ok(text.id.clone())
            }
            None => Ok(String::new()),
        }
    }

    /// Adds a piece of text.
    pub(crate) fn text(
        &mut self,
        message_id: Option<String>,
        content: Cow<'_, str>,
        format: Option<String>,
        extra: Extra,
    ) -> Woven {
        let delta = TextDelta { content: content.into_owned(), format, ..Default::default() };
        let mut body = Body::TextDelta(delta);
        self.state.check_limits(&body)?;
        let id = self.open_text(message_id)?;
        if let Body::TextDelta(delta) = &mut body {
            delta.message_id = id;
        }
        self.say(body, extra)
    }

    /// Adds what a whole text without an id says beyond what the run has told (`run/whole.rs`).
    pub(crate) fn whole_text(&mut self, whole: &str, by: By, extra: Extra) -> Woven {
        self.state.check_open()?;
        if whole.trim().is_empty() {
            return Ok(());
        }
        let compared = self.state.compare(&Whole::new(whole), self.earlier);
        let policy = if compared == Compared::First { WholePolicy::Add } else { self.whole };
        match (policy, compared) {
            (_, Compared::Told) | (WholePolicy::Ignore, _) => Ok(()),
            (WholePolicy::Replace, _) => match self.state.told.last_id.clone() {
                Some(message_id) => {
                    let content = Some(whole.to_owned());
                    self.put(TextFinished { message_id, content, ..Default::default() }, extra, by)
                }
                None => Ok(()),
            },
            (WholePolicy::Add, Compared::Rest(rest)) => {
                let last = self.state.told.last_id.clone();
                self.add_text(last, rest, by, extra)
            }
            (WholePolicy::Add, Compared::First) => self.add_text(None, whole, by, extra),
            (WholePolicy::Add, Compared::New) => {
                self.state.check_limits(&Body::TextDelta(TextDelta {
                    content: whole.to_owned(),
                    ..Default::default()
                }))?;
                self.end_answer()?;
                self.add_text(None, whole, by, extra)
            }
        }
    }

    /// Ends the assistant's open texts outside subagents, whether their ids were minted or given.
    fn end_answer(&mut self) -> Woven {
        let is_answer = |text: &&OpenText| text.minted || (text.assistant && text.subagent.is_none());
        while let Some(text) = self.state.texts.iter().find(is_answer) {
            let message_id = text.id.clone();
            self.imply(TextFinished { message_id, ..Default::default() })?;
        }
        Ok(())
    }

    /// Adds a piece to a text; one that is closed is continued under another id.
    fn add_text(&mut self, message_id: Option<String>, content: &str, by: By, extra: Extra) -> Woven {
        let mut delta = TextDelta { content: content.to_owned(), ..Default::default() };
        self.state.check_limits(&Body::TextDelta(delta.clone()))?;
        let message_id = message_id.map(|id| self.state.continued_id(id));
        delta.message_id = self.open_text(message_id)?;
        self.put(delta, extra, by)
    }

    /// Compares a whole text with the message that it names, which is open or the run's last.
    ///
    /// Returns the text where it replaces what was told; what is only more of it is added.
    pub(crate) fn named_text(
        &mut self,
        message_id: &str,
        whole: &str,
        by: By,
    ) -> Result<Option<String>, Refusal> {
        let is_last = self.state.told.last_id.as_deref() == Some(message_id);
        let open = self.state.texts.iter().find(|text| text.id == message_id);
        let whole = Whole::new(whole);
        let told = match open {
            _ if is_last => self.state.told.last,
            Some(text) => Digest::without_whitespace(&self.earlier.text(text.start, message_id)),
            None => return Ok(None),
        };
        if whole.is(told) {
            return Ok(None);
        }
        let rest = whole.rest_after(told).filter(|_| is_last).map(|rest| self.state.without_trailing(rest));
        let content = rest.unwrap_or(whole.text());
        self.state.check_limits(&Body::TextDelta(TextDelta {
            content: content.to_owned(),
            ..Default::default()
        }))?;
        if told.len > 0 && rest.is_none() {
            return Ok(Some(content.to_owned()));
        }
        self.add_text(Some(message_id.to_owned()), content, by, Extra::default())?;
        Ok(None)
    }

    /// Returns whether a whole text adds nothing to what the run has told.
    pub(crate) fn is_told(&mut self, whole: &str) -> bool {
        self.state.compare(&Whole::new(whole), self.earlier) == Compared::Told
    }

    /// Adds a new text under the source's id, and leaves it open.
    pub(crate) fn imply_text_as(
        &mut self,
        id: Option<String>,
        role: Option<String>,
        whole: &str,
    ) -> Result<String, Refusal> {
        let mut delta = TextDelta { content: whole.to_owned(), ..Default::default() };
        self.state.check_limits(&Body::TextDelta(delta.clone()))?;
        let id = self.open_text_of(id, role)?;
        delta.message_id.clone_from(&id);
        self.imply(delta)?;
        Ok(id)
    }

    /// Adds a piece of thinking.
    pub(crate) fn thinking(
        &mut self,
        message_id: Option<String>,
        content: Cow<'_, str>,
        stage: Option<String>,
        extra: Extra,
    ) -> Woven {
        let mut body = Body::ThinkingDelta(ThinkingDelta {
            content: content.into_owned(),
            stage: stage.clone(),
            ..Default::default()
        });
        self.state.check_limits(&body)?;
        self.end_texts(true)?;
        let known = self.open_thought(message_id.as_deref());
        let id = match known {
            Some(thought) => thought.id.clone(),
            None => {
                self.end_thoughts(true)?;
                let id = message_id.unwrap_or_else(|| self.state.mint_thought_id());
                self.imply(ThinkingStarted { message_id: id, stage })?;
                match self.state.thoughts.last_mut() {
                    Some(thought) => {
                        // No dialect that streams thinking this way says where it ends.
                        thought.minted = true;
                        thought.id.clone()
                    }
                    None => String::new(),
                }
            }
        };
        if let Body::ThinkingDelta(delta) = &mut body {
            delta.message_id = id;
        }
        self.say(body, extra)
    }

    /// Finds the open thought that a piece belongs to.
    fn open_thought(&self, message_id: Option<&str>) -> Option<&OpenText> {
        match message_id {
            Some(id) => {
                let current = self.state.thought_id(id);
                self.state.thoughts.iter().find(|thought| thought.id == current)
            }
            None => self.state.thoughts.iter().rfind(|thought| thought.minted),
        }
    }

    /// Adds a whole thought, as far as its pieces have not told it, and ends it.
    pub(crate) fn complete_thought(
        &mut self,
        message_id: Option<String>,
        whole: String,
        extra: Extra,
    ) -> Woven {
        let open =
            self.open_thought(message_id.as_deref()).map(|thought| (thought.id.clone(), thought.start));
        let Some((id, start)) = open else {
            self.thinking(message_id, whole.into(), None, extra)?;
            return self.end_thoughts(true);
        };
        let told = Digest::without_whitespace(&self.earlier.text(start, &id));
        let compared = Whole::new(&whole);
        let rest = if compared.is(told) { Some("") } else { compared.rest_after(told) };
        match rest {
            Some("") => self.imply(ThinkingFinished { message_id: id, content: None }),
            Some(rest) => {
                self.thinking(Some(id.clone()), Cow::Borrowed(rest), None, extra)?;
                self.imply(ThinkingFinished { message_id: id, content: None })
            }
            None => self.say(ThinkingFinished { message_id: id, content: Some(whole) }, extra),
        }
    }

    /// Adds the whole thinking of a run that has told none.
    pub(crate) fn whole_thinking(&mut self, whole: &str) -> Woven {
        if self.state.status.is_closed() {
            return Err(Refusal::RunClosed(self.state.status));
        }
        if whole.is_empty() || self.state.counts.thoughts > 0 {
            return Ok(());
        }
        let mut delta = ThinkingDelta { content: whole.to_owned(), ..Default::default() };
        self.state.check_limits(&Body::ThinkingDelta(delta.clone()))?;
        self.end_texts(true)?;
        delta.message_id = self.state.mint_thought_id();
        let message_id = delta.message_id.clone();
        self.imply(ThinkingStarted { message_id: message_id.clone(), stage: None })?;
        self.imply(delta)?;
        self.imply(ThinkingFinished { message_id, content: None })
    }

    // Steps

    /// Begins a step.
    pub(crate) fn step_started(&mut self, name: String, extra: Extra) -> Woven {
        self.boundary()?;
        self.say(StepStarted { name }, extra)
    }

    /// Ends a step.
    pub(crate) fn step_finished(&mut self, name: String, error: Option<ErrorInfo>, extra: Extra) -> Woven {
        self.boundary()?;
        self.say(StepFinished { name, error }, extra)
    }

    // Calls

    /// Finds the call that a frame means.
    ///
    /// An id names it, or becomes the alias of an id-less call to the same tool. Without an id the oldest
    /// call to the tool in one of the `phases` is meant, and with neither id nor name the newest.
    fn find_call(&self, id: Option<&str>, name: Option<&str>, phases: &[CallPhase]) -> Option<usize> {
        let calls = &self.state.calls;
        let in_phase = |call: &OpenCall| phases.contains(&call.phase);
        let may_be = |call: &OpenCall| match (&call.name, name) {
            (Some(known), Some(name)) => known == name,
            _ => true,
        };
        match (id, name) {
            (Some(id), _) => {
                let current = self.state.call_id(id);
                let named = |call: &OpenCall| call.id == current || call.alias.as_deref() == Some(id);
                calls.iter().position(named).or_else(|| {
                    calls.iter().position(|call| {
                        call.minted && call.alias.is_none() && in_phase(call) && may_be(call)
                    })
                })
            }
            (None, Some(_)) => calls.iter().position(|call| in_phase(call) && may_be(call)),
            (None, None) => calls.iter().rposition(in_phase),
        }
    }

    /// Returns the id of the call that a frame means; a new one gets the frame's id or a minted one.
    fn resolve_call(
        &mut self,
        id: Option<String>,
        name: Option<&str>,
        phases: &[CallPhase],
    ) -> (String, Option<usize>, bool) {
        match self.find_call(id.as_deref(), name, phases) {
            Some(at) => {
                let call = &mut self.state.calls[at];
                if let Some(id) = id.filter(|id| call.minted && *id != call.id && call.alias.is_none()) {
                    call.alias = Some(id);
                }
                (call.id.clone(), Some(at), false)
            }
            None => {
                let minted = id.is_none();
                (id.unwrap_or_else(|| self.state.mint_call_id()), None, minted)
            }
        }
    }

    fn mark_minted(&mut self, id: &str, minted: bool) {
        if minted && let Some(call) = self.state.calls.iter_mut().rfind(|call| call.id == id) {
            call.minted = true;
        }
    }

    /// Adds a piece of a call's arguments.
    pub(crate) fn call_arguments(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        delta: String,
        extra: Extra,
    ) -> Woven {
        self.state.check_limits(&Body::ToolArgsStarted(ToolArgsStarted::default()))?;
        let probe = self.find_call(id.as_deref(), name.as_deref(), &[CallPhase::Arguments]);
        let probe_id = probe.map(|at| self.state.calls[at].id.clone()).unwrap_or_default();
        let mut piece = ToolArgsDelta { call_id: probe_id, delta };
        self.state.check_limits(&Body::ToolArgsDelta(piece.clone()))?;
        self.boundary()?;
        let (call_id, known, minted) = self.resolve_call(id, name.as_deref(), &[CallPhase::Arguments]);
        if known.is_none() {
            self.imply(ToolArgsStarted { call_id: call_id.clone(), name, message_id: None })?;
            self.mark_minted(&call_id, minted);
        } else if let Some(at) = known
            && self.state.calls[at].name.is_none()
        {
            self.state.calls[at].name = name;
        }
        piece.call_id = call_id;
        self.say(piece, extra)
    }

    /// Makes a call with whole arguments.
    pub(crate) fn called(&mut self, id: Option<String>, mut called: ToolCalled, extra: Extra) -> Woven {
        self.state.check_limits(&Body::ToolCalled(called.clone()))?;
        self.boundary()?;
        let (call_id, known, minted) = self.resolve_call(id, Some(&called.name), &[CallPhase::Arguments]);
        called.call_id.clone_from(&call_id);
        self.say(called, extra)?;
        self.mark_minted(&call_id, minted && known.is_none());
        Ok(())
    }

    /// Finds a call that was made, or whose arguments arrive.
    pub(crate) fn known_call(&self, id: Option<&str>, name: &str) -> Option<String> {
        let at = self.find_call(id, Some(name), &[CallPhase::Called, CallPhase::Arguments])?;
        Some(self.state.calls[at].id.clone())
    }

    /// Makes a call that the frame implies, and tells its id.
    pub(crate) fn imply_call(
        &mut self,
        id: Option<String>,
        mut called: ToolCalled,
    ) -> Result<String, Refusal> {
        self.state.check_limits(&Body::ToolCalled(called.clone()))?;
        self.boundary()?;
        let minted = id.is_none();
        called.call_id = id.unwrap_or_else(|| self.state.mint_call_id());
        self.imply(called)?;
        let Some(call) = self.state.calls.last_mut() else { return Ok(String::new()) };
        call.minted = minted;
        Ok(call.id.clone())
    }

    /// Finds the call that something is said of, and makes it if nobody did.
    fn ensure_call(
        &mut self,
        id: Option<String>,
        name: Option<&str>,
        phases: &[CallPhase],
    ) -> Result<String, Refusal> {
        self.state.check_open()?;
        let (call_id, known, minted) = self.resolve_call(id, name, phases);
        if known.is_none() {
            self.boundary()?;
            let name = name.unwrap_or("unknown").to_owned();
            let arguments = Json::empty_object();
            self.imply(ToolCalled { call_id: call_id.clone(), name, arguments, ..Default::default() })?;
            self.mark_minted(&call_id, minted);
        }
        Ok(call_id)
    }

    /// Says that the tool begins to work.
    pub(crate) fn tool_started(&mut self, id: Option<String>, name: Option<String>, extra: Extra) -> Woven {
        let phases = [CallPhase::Called, CallPhase::Arguments];
        let call_id = self.ensure_call(id, name.as_deref(), &phases)?;
        self.say(ToolStarted { call_id, name }, extra)
    }

    /// Says how far the tool is.
    pub(crate) fn tool_progress(
        &mut self,
        id: Option<String>,
        mut progress: ToolProgress,
        extra: Extra,
    ) -> Woven {
        progress.call_id = self.ensure_call(id, None, OPEN)?;
        self.say(progress, extra)
    }

    /// Adds what the tool printed.
    pub(crate) fn tool_output(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        content: String,
        extra: Extra,
    ) -> Woven {
        let call_id = self.ensure_call(id, name.as_deref(), OPEN)?;
        self.say(ToolOutput { call_id, name, content }, extra)
    }

    /// Ends a call.
    pub(crate) fn tool_finished(
        &mut self,
        id: Option<String>,
        mut finished: ToolFinished,
        extra: Extra,
    ) -> Woven {
        let carried = id.as_ref().filter(|id| self.state.carried.iter().any(|call| call.id == **id));
        finished.call_id = match carried {
            Some(id) => id.clone(),
            None => self.ensure_call(id, finished.name.as_deref(), OPEN)?,
        };
        if finished.name.is_none() {
            let call = self.state.calls.iter().find(|call| call.id == finished.call_id);
            finished.name = call.and_then(|call| call.name.clone());
        }
        self.say(finished, extra)
    }

    // Questions and endings

    /// Asks a person. A text that is open is cut off by the question, which the guard sees to.
    pub(crate) fn ask(&mut self, asked: InteractionRequested, extra: Extra) -> Woven {
        self.say(asked, extra)
    }

    /// Makes a question about a call name it by the id that stands for it here.
    pub(crate) fn refer_to_call(&self, asked: &mut InteractionRequested) {
        if let Some(id) = &asked.call_id {
            asked.call_id = Some(self.state.call_id(id).to_owned());
        }
    }

    /// Mints the id of an approval.
    pub(crate) fn mint_approval(&mut self) -> String {
        self.state.counts.approvals += 1;
        format!("{}:a{}", self.state.run_id, self.state.counts.approvals)
    }

    /// Returns the error of the last fatal notice.
    pub(crate) fn fatal_error(&self) -> Option<ErrorInfo> {
        self.state.fatal.and_then(|place| self.earlier.notice(place)).as_ref().map(Notice::to_error)
    }

    /// Completes the run; a whole answer is told as far as it is new.
    pub(crate) fn complete(&mut self, completed: RunCompleted, extra: Extra) -> Woven {
        if self.state.status.is_closed() {
            return Err(Refusal::RunClosed(self.state.status));
        }
        if let Some(reply) = &completed.reply {
            self.whole_text(reply, By::Decoder, Extra::default())?;
        }
        self.end_thoughts(true)?;
        self.end_texts(true)?;
        self.say(completed, extra)
    }

    /// Fails the run. Where the frame does not say why, the last fatal notice does.
    pub(crate) fn fail(&mut self, error: Option<ErrorInfo>, mut failed: RunFailed, extra: Extra) -> Woven {
        failed.error =
            error.or_else(|| self.fatal_error()).unwrap_or_else(|| ErrorInfo::message("the run failed"));
        self.say(failed, extra)
    }
}

/// Returns the id of the text or thought that an event is about, and whether the event only ends it.
fn message_id(body: &mut Body) -> Option<(&mut String, bool)> {
    match body {
        Body::TextStarted(started) => Some((&mut started.message_id, false)),
        Body::TextDelta(delta) => Some((&mut delta.message_id, false)),
        Body::TextFinished(finished) => Some((&mut finished.message_id, true)),
        Body::ThinkingStarted(started) => Some((&mut started.message_id, false)),
        Body::ThinkingDelta(delta) => Some((&mut delta.message_id, false)),
        Body::ThinkingFinished(finished) => Some((&mut finished.message_id, finished.content.is_none())),
        _ => None,
    }
}

/// Every phase of a call without a result.
const OPEN: &[CallPhase] = &[CallPhase::Started, CallPhase::Called, CallPhase::Arguments];
