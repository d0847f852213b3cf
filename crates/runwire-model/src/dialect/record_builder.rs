//! Builds the record of a frame: resolves which message, call or step the frame means, mints ids that the source
//! lacks, and adds the events that the normal form needs.
//!
//! Decoders read all fields of a frame before they add anything, so an unreadable frame changes nothing.

use std::borrow::Cow;

use super::Dialect;
use crate::event::{
    Body, ErrorInfo, Event, Extra, Foreign, InteractionRequested, Notice, RunCompleted, RunFailed,
    StepFinished, StepStarted, TextDelta, TextFinished, TextStarted, ThinkingDelta, ThinkingFinished,
    ThinkingStarted, ToolArgsDelta, ToolArgsStarted, ToolCalled, ToolFinished, ToolOutput, ToolProgress,
    ToolStarted,
};
use crate::json::Json;
use crate::record::{Entry, EventOrigin, History};
use crate::run::{
    AnswerTexts, Authority, CallPhase, Digest, NamedComparison, OpenCall, OpenStep, OpenText, Refusal,
    RunState, WholeComparison, WholePolicy, WholeText, compare_pieces, continued, continues,
};

/// Builder of the record of one frame, on the state of its run.
pub struct RecordBuilder<'a> {
    /// The run's state.
    pub state: &'a mut RunState,
    /// The run's stored events.
    pub history: &'a dyn History,
    authority: Authority,
    dialect: Dialect,
    seq: u64,
    whole: WholePolicy,
    /// Id of the open step that the frame names.
    named_step: Option<String>,
    /// Whether the frame ends something that never began.
    ends_nothing: bool,
    out: &'a mut Vec<Entry>,
}

impl<'a> RecordBuilder<'a> {
    /// Begins a record.
    pub fn new(
        state: &'a mut RunState,
        history: &'a dyn History,
        authority: Authority,
        dialect: Dialect,
        seq: u64,
        out: &'a mut Vec<Entry>,
    ) -> Self {
        Self {
            state,
            history,
            authority,
            dialect,
            seq,
            whole: WholePolicy::Add,
            named_step: None,
            ends_nothing: false,
            out,
        }
    }

    /// Sets the policy for a whole text that differs from the run's texts.
    #[must_use]
    pub fn with_whole(mut self, whole: WholePolicy) -> Self {
        self.whole = whole;
        self
    }

    /// Adds an event that the frame states.
    pub(crate) fn add(&mut self, body: impl Into<Body>, extra: Extra) -> Result<(), Refusal> {
        self.add_with_origin(body, extra, EventOrigin::Producer)
    }

    /// Adds an event that the frame implies.
    pub(crate) fn imply(&mut self, body: impl Into<Body>) -> Result<(), Refusal> {
        self.add_with_origin(body, Extra::default(), EventOrigin::Decoder)
    }

    fn add_with_origin(
        &mut self,
        body: impl Into<Body>,
        extra: Extra,
        origin: EventOrigin,
    ) -> Result<(), Refusal> {
        let mut event = Event::new(body);
        event.extra = extra;
        let step = match &event.body {
            Body::StepStarted(_) => None,
            Body::StepFinished(finished) => self.step().filter(|step| step.name == finished.name),
            body if body.type_name().starts_with("run.") => None,
            _ => self.step(),
        };
        event.step_id = step.map(|step| step.id.clone());
        self.event(event, origin)
    }

    /// Sets the frame's step by the source's id; among several open ones, the innermost.
    pub(crate) fn name_step(&mut self, source_id: &Json) {
        let Some(id) = source_id.as_string() else { return };
        let named = self.state.steps.iter().rfind(|step| step.source_id.as_deref() == Some(&*id));
        self.named_step = named.map(|step| step.id.clone());
    }

    /// Returns the frame's open step: the one that it names, else the innermost.
    pub(crate) fn step(&self) -> Option<&OpenStep> {
        let is_named = |step: &&OpenStep| Some(&step.id) == self.named_step.as_ref();
        self.state.steps.iter().rfind(is_named).or_else(|| self.state.current_step())
    }

    /// Adds an event. The end of something that never began is left out, and the frame is kept instead.
    pub(crate) fn event(&mut self, event: Event, origin: EventOrigin) -> Result<(), Refusal> {
        if origin == EventOrigin::Producer && self.state.ends_nothing(&event) {
            self.ends_nothing = true;
            return self.state.check_open();
        }
        self.state.apply(event, origin, self.authority, self.seq, self.history, self.out)
    }

    /// Adds the event of a slot or a residue.
    ///
    /// Its message may be one that native frames have built without an id.
    pub(crate) fn slot(&mut self, mut event: Event) -> Result<(), Refusal> {
        self.translate_id(&mut event.body)?;
        match &event.body {
            Body::TextStarted(started) if !started.is_not_assistant() => {
                return self.begin_next(event, |state| &mut state.texts, Self::end_texts);
            }
            Body::ThinkingStarted(_) => {
                return self.begin_next(event, |state| &mut state.thoughts, Self::end_thoughts);
            }
            _ => {}
        }
        let last_id = &self.state.text_digests.last_id;
        let known =
            |id: &str, open: &[OpenText]| !self.state.is_minted(id) && open.iter().any(|text| text.id == id);
        let natively = |open: &[OpenText]| open.iter().rfind(|text| text.minted).map(|text| text.id.clone());
        match &mut event.body {
            Body::TextFinished(finished)
                if !known(self.state.text_id(&finished.message_id), &self.state.texts) =>
            {
                let replaced = last_id.clone().filter(|_| finished.content.is_some());
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
        self.event(event, EventOrigin::Producer)
    }

    /// Replaces an event's message id by its alias: an id of the source may equal one that was minted for another
    /// message.
    fn translate_id(&mut self, body: &mut Body) -> Result<(), Refusal> {
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

    /// Adds a thought of which only the end is known, in the normal form.
    fn whole_thought(&mut self, event: Event) -> Result<(), Refusal> {
        let Body::ThinkingFinished(ThinkingFinished { message_id, content: Some(content) }) = &event.body
        else {
            return self.event(event, EventOrigin::Producer);
        };
        let like = |body: Body| Event { body, extra: Extra::default(), ..event.clone() };
        let started = ThinkingStarted { message_id: message_id.clone(), stage: None };
        let delta =
            ThinkingDelta { message_id: message_id.clone(), content: content.clone(), ..Default::default() };
        let ended = ThinkingFinished { message_id: message_id.clone(), content: None };
        let (started, ended) = (like(started.into()), Event { body: ended.into(), ..event.clone() });
        let delta = (!content.is_empty()).then(|| like(delta.into()));
        self.atomically(|builder| {
            let mut events = [Some(started), delta, Some(ended)].into_iter().flatten();
            events.try_for_each(|event| builder.event(event, EventOrigin::Producer))
        })
    }

    /// Begins a text or thought after one of native frames; the next native pieces continue it.
    fn begin_next(
        &mut self,
        event: Event,
        open: fn(&mut RunState) -> &mut Vec<OpenText>,
        end: fn(&mut Self, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let follows = open(self.state).iter().any(|text| text.minted) && event.subagent_run_id.is_none();
        if !follows {
            return self.event(event, EventOrigin::Producer);
        }
        end(self, true)?;
        let before = open(self.state).len();
        self.event(event, EventOrigin::Producer)?;
        open(self.state).iter_mut().skip(before).for_each(|text| text.minted = true);
        Ok(())
    }

    /// Continues the last text, whose frames may have had no id; the next native pieces continue it.
    pub(crate) fn continuation(&mut self, mut started: Event, mut delta: Event) -> Result<(), Refusal> {
        self.end_texts(true)?;
        if let (Body::TextStarted(started), Some(last)) =
            (&mut started.body, &self.state.text_digests.last_id)
            && !continues(last, &started.message_id)
        {
            started.message_id = self.state.continued_id(last.clone());
        }
        let before = self.state.texts.len();
        self.event(started, EventOrigin::Producer)?;
        if let (Some(text), Body::TextDelta(delta)) = (self.state.texts.get_mut(before), &mut delta.body) {
            text.minted = true;
            delta.message_id.clone_from(&text.id);
        }
        self.event(delta, EventOrigin::Producer)
    }

    /// Adds several events as one: a refusal of any of them undoes all of them.
    pub(crate) fn atomically<E>(&mut self, add: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let (before, entries) = (self.state.clone(), self.out.len());
        add(self).inspect_err(|_| {
            *self.state = before;
            self.out.truncate(entries);
        })
    }

    /// Reads a frame; one that only ends something that never began is kept as `foreign`.
    pub(crate) fn read<E: From<Refusal>>(
        &mut self,
        frame: &str,
        name: Option<&str>,
        read: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.out.len();
        self.ends_nothing = false;
        read(self)?;
        let says_more = self.out[before..].iter().any(|entry| entry.origin == EventOrigin::Producer);
        if self.ends_nothing && !says_more {
            self.foreign(frame, name)?;
        }
        Ok(())
    }

    /// Adds a frame for which the model has no event.
    pub(crate) fn foreign(&mut self, frame: &str, name: Option<&str>) -> Result<(), Refusal> {
        let dialect = self.dialect.name().to_owned();
        let frame = Json::from_valid(frame);
        self.add(Foreign { dialect, frame, name: name.map(str::to_owned) }, Extra::default())
    }

    /// Returns true if the run is suspended, or has had an interaction.
    pub(crate) fn may_have_waited(&self) -> bool {
        self.state.status == crate::run::Status::Suspended || !self.state.interaction_ids.is_empty()
    }

    /// Returns true until the run has begun.
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

    /// Adds an extension field to the events that the frame states.
    pub(crate) fn extend_added(&mut self, name: &str, value: Json) {
        let said = self.out.iter_mut().filter(|entry| entry.origin == EventOrigin::Producer);
        said.for_each(|entry| entry.event.extra.set(name, value.clone()));
    }

    // Texts

    /// Ends the texts and thoughts with minted ids: the source has moved on to something else.
    pub(crate) fn end_minted(&mut self) -> Result<(), Refusal> {
        self.end_thoughts(true)?;
        self.end_texts(true)
    }

    /// Ends open texts; with `minted`, only those with minted ids.
    pub(crate) fn end_texts(&mut self, minted: bool) -> Result<(), Refusal> {
        while let Some(text) = self.state.texts.iter().find(|text| text.minted || !minted) {
            let message_id = text.id.clone();
            self.imply(TextFinished { message_id, ..Default::default() })?;
        }
        Ok(())
    }

    /// Ends open thoughts; with `minted`, only those with minted ids.
    pub(crate) fn end_thoughts(&mut self, minted: bool) -> Result<(), Refusal> {
        while let Some(thought) = self.state.thoughts.iter().find(|thought| thought.minted || !minted) {
            let message_id = thought.id.clone();
            self.imply(ThinkingFinished { message_id, content: None })?;
        }
        Ok(())
    }

    /// Returns true if the run has had a text of the assistant, even an empty one.
    pub(crate) fn has_texts(&self) -> bool {
        self.state.counts.messages > 0 || self.state.text_digests.last_id.is_some()
    }

    /// Returns the text of a piece; a new one is begun.
    pub(crate) fn open_text(&mut self, message_id: Option<String>) -> Result<String, Refusal> {
        self.open_text_of(message_id, None)
    }

    /// Finds the open text that a piece belongs to.
    fn known_text(&self, message_id: Option<&str>) -> Option<String> {
        let texts = &self.state.texts;
        let known = match message_id {
            Some(id) => {
                let current = self.state.text_id(id);
                texts.iter().find(|text| text.id == current)
            }
            None => texts.iter().rfind(|text| text.minted),
        };
        known.map(|text| text.id.clone())
    }

    fn open_text_of(&mut self, message_id: Option<String>, role: Option<String>) -> Result<String, Refusal> {
        self.end_thoughts(true)?;
        if let Some(text) = self.known_text(message_id.as_deref()) {
            return Ok(text);
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
    ) -> Result<(), Refusal> {
        let known = self.known_text(message_id.as_deref()).unwrap_or_default();
        let mut body =
            Body::TextDelta(TextDelta { message_id: known, content: content.into_owned(), format });
        self.state.check_limits(&body)?;
        let id = self.open_text(message_id)?;
        if let Body::TextDelta(delta) = &mut body {
            delta.message_id = id;
        }
        self.add(body, extra)
    }

    /// Adds the new part of a whole text without an id (`run/whole.rs`).
    pub(crate) fn whole_text(
        &mut self,
        whole: &str,
        origin: EventOrigin,
        extra: Extra,
    ) -> Result<(), Refusal> {
        self.state.check_open()?;
        if whole.trim().is_empty() {
            return Ok(());
        }
        let compared = self.state.compare(&WholeText::new(whole), self.history);
        let policy = if compared == WholeComparison::First { WholePolicy::Add } else { self.whole };
        match (policy, compared) {
            (_, WholeComparison::Known) | (WholePolicy::Ignore, _) => Ok(()),
            (WholePolicy::Replace, WholeComparison::New) => match self.state.text_digests.last_id.clone() {
                Some(message_id) => {
                    let content = Some(whole.to_owned());
                    self.add_with_origin(
                        TextFinished { message_id, content, ..Default::default() },
                        extra,
                        origin,
                    )
                }
                None => Ok(()),
            },
            (_, WholeComparison::Rest(rest)) => {
                let last = self.state.text_digests.last_id.clone();
                self.add_text(last, rest, origin, extra).map(drop)
            }
            (_, WholeComparison::First) => self.add_text(None, whole, origin, extra).map(drop),
            (WholePolicy::Add, WholeComparison::New) => {
                self.state.check_limits(&Body::TextDelta(TextDelta {
                    content: whole.to_owned(),
                    ..Default::default()
                }))?;
                self.end_answer()?;
                self.add_text(None, whole, origin, extra).map(drop)
            }
        }
    }

    /// Adds what a whole text says, and returns the texts that it consists of: the producer's answer.
    pub(crate) fn whole_answer(&mut self, whole: &str, extra: Extra) -> Result<Option<AnswerTexts>, Refusal> {
        if whole.trim().is_empty() || self.whole == WholePolicy::Ignore {
            self.whole_text(whole, EventOrigin::Producer, extra)?;
            return Ok(None);
        }
        let known = self.state.texts_of(&WholeText::new(whole), self.history);
        self.whole_text(whole, EventOrigin::Producer, extra)?;
        Ok(AnswerTexts::after_whole(known, self.state.text_digests.last_id.as_ref()))
    }

    /// Joins the texts of the producer's answer; `None` if these are all texts of the run.
    pub(crate) fn reply_of(&self, answer: &AnswerTexts) -> Option<String> {
        answer.join(self.state.text_digests.last_id.as_ref(), self.history)
    }

    /// Ends the assistant's open texts outside subagents, with minted or given ids.
    fn end_answer(&mut self) -> Result<(), Refusal> {
        let is_answer = |text: &&OpenText| text.minted || (text.assistant && text.subagent.is_none());
        while let Some(text) = self.state.texts.iter().find(is_answer) {
            let message_id = text.id.clone();
            self.imply(TextFinished { message_id, ..Default::default() })?;
        }
        Ok(())
    }

    /// Adds a piece to a text, and returns its id; a closed one is continued under another one.
    fn add_text(
        &mut self,
        message_id: Option<String>,
        content: &str,
        origin: EventOrigin,
        extra: Extra,
    ) -> Result<String, Refusal> {
        let message_id = message_id.map(|id| self.state.continued_id(id));
        let known = self.known_text(message_id.as_deref()).unwrap_or_default();
        let mut delta = TextDelta { message_id: known, content: content.to_owned(), format: None };
        self.state.check_limits(&Body::TextDelta(delta.clone()))?;
        let id = self.open_text(message_id)?;
        delta.message_id.clone_from(&id);
        self.add_with_origin(delta, extra, origin)?;
        Ok(id)
    }

    /// Compares a whole text with the message that it names, all its pieces joined, and adds what continues it.
    ///
    /// Returns the id of the message's last piece, with the text that replaces it, if any; `None` if the run has no such
    /// message.
    pub(crate) fn named_text(
        &mut self,
        id: &str,
        whole: &str,
        origin: EventOrigin,
    ) -> Result<Option<(String, Option<String>)>, Refusal> {
        let message_id = self.state.text_id(id).to_owned();
        let is_last = self.state.text_digests.last_id.as_ref() == Some(&message_id);
        let open = self.state.texts.iter().find(|text| text.id == message_id);
        let is_open = open.is_some();
        let streamed = match open {
            _ if is_last => self.state.text_digests.last,
            Some(text) => Digest::without_whitespace(&self.history.text(text.start, &message_id)),
            None => Digest::default(),
        };
        let known = message_id != id || self.state.is_known(id);
        let pieces = match is_last && message_id == id {
            false if known => self.state.pieces_of(id, self.history),
            _ => Vec::new(),
        };
        let whole = WholeText::new(whole);
        let compared = match pieces.as_slice() {
            // Undivided, it is compared without a look at the stored texts.
            [] | [_] if is_last && whole.is(streamed) => NamedComparison::Known,
            [] | [_] if is_last => match whole.rest_after(streamed) {
                Some(rest) => NamedComparison::Rest(self.state.without_trailing(rest)),
                None if streamed.len == 0 => NamedComparison::Rest(whole.text()),
                None => NamedComparison::Replaced(whole.text()),
            },
            [] if !is_open => return Ok(None),
            [] if whole.is(streamed) => NamedComparison::Known,
            [] if streamed.len == 0 => NamedComparison::Rest(whole.text()),
            [] => NamedComparison::Replaced(whole.text()),
            pieces => compare_pieces(pieces, &whole, is_open),
        };
        match compared {
            NamedComparison::Known => Ok(Some((message_id, None))),
            NamedComparison::Replaced(content) if is_open || is_last => {
                self.state.check_limits(&Body::TextDelta(TextDelta {
                    message_id: message_id.clone(),
                    content: content.to_owned(),
                    format: None,
                }))?;
                Ok(Some((message_id, Some(content.to_owned()))))
            }
            NamedComparison::Replaced(_) if self.is_known(whole.text()) => Ok(Some((message_id, None))),
            // What readers were shown before other messages stays.
            NamedComparison::Replaced(rest) | NamedComparison::Rest(rest) => {
                let message_id = self.add_text(Some(message_id), rest, origin, Extra::default())?;
                Ok(Some((message_id, None)))
            }
        }
    }

    /// Returns true if a text is open.
    pub(crate) fn is_open_text(&self, id: &str) -> bool {
        self.state.texts.iter().any(|text| text.id == id)
    }

    /// Returns true if a whole text adds nothing to the run's texts.
    pub(crate) fn is_known(&mut self, whole: &str) -> bool {
        self.state.compare(&WholeText::new(whole), self.history) == WholeComparison::Known
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
    ) -> Result<(), Refusal> {
        let known = self.open_thought(message_id.as_deref()).map(|thought| thought.id.clone());
        let mut body = Body::ThinkingDelta(ThinkingDelta {
            message_id: known.unwrap_or_default(),
            content: content.into_owned(),
            stage: stage.clone(),
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
        self.add(body, extra)
    }

    /// Returns the open thought of a piece.
    fn open_thought(&self, message_id: Option<&str>) -> Option<&OpenText> {
        match message_id {
            Some(id) => {
                let current = self.state.thought_id(id);
                self.state.thoughts.iter().find(|thought| thought.id == current)
            }
            None => self.state.thoughts.iter().rfind(|thought| thought.minted),
        }
    }

    /// Adds the new part of a whole thought, and ends it.
    pub(crate) fn complete_thought(
        &mut self,
        message_id: Option<String>,
        whole: String,
        extra: Extra,
    ) -> Result<(), Refusal> {
        let open =
            self.open_thought(message_id.as_deref()).map(|thought| (thought.id.clone(), thought.start));
        let Some((id, start)) = open else {
            self.thinking(message_id, whole.into(), None, extra)?;
            return self.end_thoughts(true);
        };
        let streamed = Digest::without_whitespace(&self.history.text(start, &id));
        let compared = WholeText::new(&whole);
        let rest = if compared.is(streamed) { Some("") } else { compared.rest_after(streamed) };
        match rest {
            Some("") => self.imply(ThinkingFinished { message_id: id, content: None }),
            Some(rest) => {
                self.thinking(Some(id.clone()), Cow::Borrowed(rest), None, extra)?;
                self.imply(ThinkingFinished { message_id: id, content: None })
            }
            None => self.add(ThinkingFinished { message_id: id, content: Some(whole) }, extra),
        }
    }

    /// Returns true if a thought is open.
    pub(crate) fn is_open_thought(&self, id: &str) -> bool {
        self.open_thought(Some(id)).is_some()
    }

    /// Adds the new part of a whole thought that other events have ended or divided, and ends it.
    ///
    /// `streamed` is what was told of it: all, and the last part.
    pub(crate) fn rest_of_thought(
        &mut self,
        id: &str,
        whole: &str,
        streamed: [Digest; 2],
        extra: Extra,
    ) -> Result<(), Refusal> {
        self.state.check_open()?;
        let compared = WholeText::new(whole);
        if !streamed.iter().any(|streamed| compared.is(*streamed)) {
            let rest = streamed.iter().find_map(|streamed| compared.rest_after(*streamed));
            if rest.is_none() && self.is_open_thought(id) {
                return self.complete_thought(Some(id.to_owned()), whole.to_owned(), extra);
            }
            self.thinking(Some(id.to_owned()), Cow::Borrowed(rest.unwrap_or(whole)), None, extra)?;
        }
        self.end_thoughts(true)
    }

    /// Adds the whole thinking of a run without thoughts.
    pub(crate) fn whole_thinking(&mut self, whole: &str) -> Result<(), Refusal> {
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
    pub(crate) fn step_started(&mut self, name: String, extra: Extra) -> Result<(), Refusal> {
        self.end_minted()?;
        self.add(StepStarted { name }, extra)
    }

    /// Ends a step.
    pub(crate) fn step_finished(
        &mut self,
        name: String,
        error: Option<ErrorInfo>,
        extra: Extra,
    ) -> Result<(), Refusal> {
        self.end_minted()?;
        self.add(StepFinished { name, error }, extra)
    }

    // Calls

    /// Resolves the call of a frame.
    ///
    /// An id names it, or becomes the alias of a call without an id to the same tool, unless it named another call that
    /// has ended. Without an id it is the oldest call to the tool in one of the `phases`, with neither id nor name the
    /// newest; calls without an id come first, except for pieces of arguments, which continue the last call.
    fn find_call(&self, id: Option<&str>, name: Option<&str>, phases: &[CallPhase]) -> Option<usize> {
        let calls = &self.state.calls;
        let in_phase = |call: &OpenCall| phases.contains(&call.phase);
        let is_unnamed = |call: &OpenCall| call.minted && call.alias.is_none() && in_phase(call);
        let may_be = |call: &OpenCall| match (&call.name, name) {
            (Some(known), Some(name)) => known == name,
            _ => true,
        };
        match (id, name) {
            (Some(id), _) => {
                let id = self.state.alias(id).unwrap_or(id);
                let current = self.state.call_id(id);
                let named = |call: &OpenCall| call.id == current || call.alias.as_deref() == Some(id);
                let unnamed = || calls.iter().position(|call| is_unnamed(call) && may_be(call));
                calls.iter().position(named).or_else(|| (!self.state.has_named_call(id)).then(unnamed)?)
            }
            (None, Some(_)) => {
                let unnamed = calls.iter().position(|call| is_unnamed(call) && may_be(call));
                unnamed.or_else(|| calls.iter().position(|call| in_phase(call) && may_be(call)))
            }
            (None, None) if phases == [CallPhase::Arguments] => calls.iter().rposition(in_phase),
            (None, None) => calls.iter().rposition(is_unnamed).or_else(|| calls.iter().rposition(in_phase)),
        }
    }

    /// Returns the id of a frame's call; a new one gets the frame's id or a minted one.
    fn resolve_call(
        &mut self,
        id: Option<String>,
        name: Option<&str>,
        phases: &[CallPhase],
    ) -> (String, Option<usize>, bool) {
        match self.find_call(id.as_deref(), name, phases) {
            Some(at) => {
                let call = &mut self.state.calls[at];
                let call_id = call.id.clone();
                if let Some(id) = id.filter(|id| call.minted && *id != call.id && call.alias.is_none()) {
                    call.alias = Some(id.clone());
                    self.state.remember_call_alias(&id);
                }
                (call_id, Some(at), false)
            }
            None => {
                let minted = id.is_none();
                let id = id.map(|id| self.state.alias(&id).map(str::to_owned).unwrap_or(id));
                (id.unwrap_or_else(|| self.state.mint_call_id()), None, minted)
            }
        }
    }

    /// Returns the id of a call of the source; if it equals the minted one of another open call, its alias.
    fn own_call_id(&mut self, id: String) -> String {
        let is_taken = |call: &OpenCall| call.minted && call.phase != CallPhase::Arguments && call.id == id;
        if self.state.alias(&id).is_none() && self.state.calls.iter().any(is_taken) {
            return self.state.add_alias(&id);
        }
        id
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
    ) -> Result<(), Refusal> {
        self.state.check_limits(&Body::ToolArgsStarted(ToolArgsStarted::default()))?;
        let id = id.map(|id| self.own_call_id(id));
        let probe = self.find_call(id.as_deref(), name.as_deref(), &[CallPhase::Arguments]);
        let probe_id = probe.map(|at| self.state.calls[at].id.clone()).unwrap_or_default();
        let mut piece = ToolArgsDelta { call_id: probe_id, delta };
        self.state.check_limits(&Body::ToolArgsDelta(piece.clone()))?;
        self.end_minted()?;
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
        self.add(piece, extra)
    }

    /// Adds a call with complete arguments.
    pub(crate) fn called(
        &mut self,
        id: Option<String>,
        mut called: ToolCalled,
        extra: Extra,
    ) -> Result<(), Refusal> {
        self.state.check_limits(&Body::ToolCalled(called.clone()))?;
        self.end_minted()?;
        let id = id.map(|id| self.own_call_id(id));
        let (call_id, known, minted) = self.resolve_call(id, Some(&called.name), &[CallPhase::Arguments]);
        called.call_id.clone_from(&call_id);
        self.add(called, extra)?;
        self.mark_minted(&call_id, minted && known.is_none());
        Ok(())
    }

    /// Returns a call that was made, or whose arguments are arriving.
    pub(crate) fn known_call(&self, id: Option<&str>, name: &str) -> Option<String> {
        let at = self.find_call(id, Some(name), &[CallPhase::Called, CallPhase::Arguments])?;
        Some(self.state.calls[at].id.clone())
    }

    /// Adds a call that the frame implies, and returns its id.
    pub(crate) fn imply_call(
        &mut self,
        id: Option<String>,
        mut called: ToolCalled,
    ) -> Result<String, Refusal> {
        self.state.check_limits(&Body::ToolCalled(called.clone()))?;
        self.end_minted()?;
        let minted = id.is_none();
        called.call_id = id.unwrap_or_else(|| self.state.mint_call_id());
        self.imply(called)?;
        let Some(call) = self.state.calls.last_mut() else { return Ok(String::new()) };
        call.minted = minted;
        Ok(call.id.clone())
    }

    /// Returns the id of the call that an event refers to; an unknown one is added.
    fn ensure_call(
        &mut self,
        id: Option<String>,
        name: Option<&str>,
        phases: &[CallPhase],
    ) -> Result<String, Refusal> {
        self.state.check_open()?;
        let (call_id, known, minted) = self.resolve_call(id, name, phases);
        if known.is_none() {
            self.end_minted()?;
            let name = name.unwrap_or("unknown").to_owned();
            let arguments = Json::empty_object();
            self.imply(ToolCalled { call_id: call_id.clone(), name, arguments, ..Default::default() })?;
            self.mark_minted(&call_id, minted);
        }
        Ok(call_id)
    }

    /// Adds the start of a tool.
    pub(crate) fn tool_started(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        extra: Extra,
    ) -> Result<(), Refusal> {
        let phases = [CallPhase::Called, CallPhase::Arguments];
        let call_id = self.ensure_call(id, name.as_deref(), &phases)?;
        self.add(ToolStarted { call_id, name }, extra)
    }

    /// Adds a tool's progress.
    pub(crate) fn tool_progress(
        &mut self,
        id: Option<String>,
        mut progress: ToolProgress,
        extra: Extra,
    ) -> Result<(), Refusal> {
        progress.call_id = self.ensure_call(id, None, OPEN)?;
        self.add(progress, extra)
    }

    /// Adds a tool's output.
    pub(crate) fn tool_output(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        content: String,
        extra: Extra,
    ) -> Result<(), Refusal> {
        let call_id = self.ensure_call(id, name.as_deref(), OPEN)?;
        self.add(ToolOutput { call_id, name, content }, extra)
    }

    /// Ends a call.
    pub(crate) fn tool_finished(
        &mut self,
        id: Option<String>,
        mut finished: ToolFinished,
        extra: Extra,
    ) -> Result<(), Refusal> {
        let carried = id.as_ref().filter(|id| self.state.carried.iter().any(|call| call.id == **id));
        finished.call_id = match carried {
            Some(id) => id.clone(),
            None => self.ensure_call(id, finished.name.as_deref(), OPEN)?,
        };
        if finished.name.is_none() {
            let call = self.state.calls.iter().find(|call| call.id == finished.call_id);
            finished.name = call.and_then(|call| call.name.clone());
        }
        self.add(finished, extra)
    }

    // Questions and endings

    /// Adds an interaction. The guard cuts off a text that is open.
    pub(crate) fn ask(&mut self, asked: InteractionRequested, extra: Extra) -> Result<(), Refusal> {
        self.add(asked, extra)
    }

    /// Replaces the call id of an interaction by the call's current id.
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
        self.state.fatal.and_then(|position| self.history.notice(position)).as_ref().map(Notice::to_error)
    }

    /// Completes the run; the new part of a whole answer is added before.
    pub(crate) fn complete(&mut self, completed: RunCompleted, extra: Extra) -> Result<(), Refusal> {
        if self.state.status.is_closed() {
            return Err(Refusal::RunClosed(self.state.status));
        }
        if let Some(reply) = &completed.reply {
            self.whole_text(reply, EventOrigin::Decoder, Extra::default())?;
        }
        self.end_thoughts(true)?;
        self.end_texts(true)?;
        self.add(completed, extra)
    }

    /// Fails the run, without an error of the frame with that of the last fatal notice.
    pub(crate) fn fail(
        &mut self,
        error: Option<ErrorInfo>,
        mut failed: RunFailed,
        extra: Extra,
    ) -> Result<(), Refusal> {
        failed.error =
            error.or_else(|| self.fatal_error()).unwrap_or_else(|| ErrorInfo::message("the run failed"));
        self.add(failed, extra)
    }
}

/// Returns the id of the text or thought of an event, and whether the event only ends it.
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
