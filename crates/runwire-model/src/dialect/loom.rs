//! `loom`: Loom's streaming output, type and payload (`docs/dialects/loom.md`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decode::{
    DecodeError, DecoderState, Envelope, Opened, owned, read_arguments, slot_event, take_residue,
    weave_residue,
};
use super::encode::{CALL_ID, Encode, Turn, looks_minted};
use super::registry::{AgentStart, Ending, NamedIds, Read, Rule, Spec, StartRequest};
use super::track::Step;
use super::{Frames, Weave};
use crate::event::{
    Body, Checkpoint, Custom, ErrorInfo, Extra, GotExpanded, GotNodeCompleted, GotNodeFailed, GotNodeStarted,
    GotPlanned, InteractionKind, InteractionRequested, RunCancelled, RunCompleted, RunFailed, RunStarted,
    StateSnapshot, StateUpdated, Summary, ToolCalled, ToolFinished, ToolStatus, TotBacktracked, TotEvaluated,
    TotExpanded, Usage,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::limits;
use crate::record::By;

/// The node that Loom's web client shows for what happens outside any node.
const OUTSIDE: &str = "agent";
/// Extension field: the node that a piece names in its own dialect.
const NODE: &str = "own.node";
/// Extension field of `step.started`: the producer's `node_id` of the node run.
const NODE_ID: &str = "own.node_id";
/// Extension field of `run.started`: the `session_id` of the run, where it is not the thread's id.
pub const SESSION_ID: &str = "own.session_id";

pub(super) const SPEC: Spec = Spec {
    name: "loom",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 9, matches: is_loom }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::RunAtStart,
    thread_field: "session_id",
    schema: include_str!("../../../../vectors/loom/schema.json"),
    frames_section: "§3",
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
};

// Decoding

/// The event types that a first frame is recognised by.
const TYPES: &[&str] = &[
    "run_start",
    "node_enter",
    "node_exit",
    "message_chunk",
    "thought_chunk",
    "usage",
    "values",
    "updates",
    "custom",
    "checkpoint",
    "tot_expand",
    "tot_evaluate",
    "tot_backtrack",
    "got_plan",
    "got_node_start",
    "got_node_complete",
    "got_node_failed",
    "got_expand",
    "tool_call_chunk",
    "tool_call",
    "tool_start",
    "tool_output",
    "tool_end",
    "tool_approval",
];

fn is_loom(frame: &Object<'_>) -> bool {
    frame.has("reply") || frame.get_str("type").is_some_and(|kind| TYPES.contains(&&*kind))
}

/// The message that starts a run on Loom's WebSocket.
pub(super) fn start_request(start: &AgentStart<'_>) -> Value {
    json!({
        "type": "run",
        "id": start.run,
        "message": start.message.unwrap_or_default(),
        "agent": start.agent,
        "thread_id": start.thread,
    })
}

/// A second reply is another answer, not the same end again.
pub(super) fn ending(_frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    None
}

pub(super) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let kind = object.get_str("type");
    // After a reply, a run start or a node opens the next run.
    let starts = matches!(kind.as_deref(), Some("run_start" | "node_enter"));
    let run = match kind.as_deref() {
        Some("run_start") => object.get_id("run_id")?,
        _ => None,
    };
    let thread = object.take_id("session_id")?;
    object.take("event_id");
    let begins = kind.as_deref() == Some("run_start");
    Ok(Envelope { thread, run, time: None, starts, begins })
}

pub(super) fn decode(
    _state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let session = frame.envelope.thread.take().filter(|_| weave.is_pending());
    // A node's start names the whole span, and the payload of got_expand has a node_id of its own.
    if !matches!(frame.object.get_str("type").as_deref(), Some("got_expand" | "node_enter"))
        && let Some(node_id) = frame.object.take("node_id").map(Json::from_raw)
    {
        weave.name_step(&node_id);
    }
    decode_payload(frame, weave)?;
    if let Some(session) = session.filter(|session| *session != weave.state.thread_id) {
        weave.add_to_start(SESSION_ID, Json::string(&session));
    }
    Ok(())
}

fn decode_payload(mut frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let residue = take_residue(&mut frame.object);
    if weave_residue(residue.as_ref(), weave)? {
        return Ok(());
    }
    let whole = frame.whole();
    let Opened { mut object, name, .. } = frame;
    if object.has("reply") && !object.has("type") {
        return reply(object, weave);
    }
    let kind = object.take_str("type")?;
    if !payload(&kind, object, weave)? {
        weave.foreign(whole, name)?;
    }
    Ok(())
}

/// Weaves the payload of a type; gives `false` for a type that the document does not define.
///
/// The export form has the same payloads under other names, and calls this too.
pub(super) fn payload(
    kind: &str,
    mut object: Object<'_>,
    weave: &mut Weave<'_>,
) -> Result<bool, DecodeError> {
    let names_call = object.get_str("call_id").is_some_and(|id| looks_minted(&id, &weave.state.run_id));
    match kind {
        "run_start" => {
            object.take_id("run_id")?;
            let (message, agent) = (owned(object.take_opt_str("message")?), object.take_id("agent")?);
            weave.say(RunStarted { message, agent, ..Default::default() }, object.rest())?;
        }
        "node_enter" => {
            let name = object.take_required_id("id")?;
            let node_id = object.take("node_id").map(Json::from_raw);
            let node_id = node_id.as_ref().and_then(Json::as_string).filter(|id| is_id(id));
            let mut extra = object.rest();
            if let Some(id) = node_id.as_deref() {
                keep_node_id(&mut extra, id, &name, weave);
            }
            weave.step_started(name, extra)?;
            if let Some(step) = weave.state.steps.last_mut() {
                step.source_id = node_id.map(Cow::into_owned);
            }
        }
        "node_exit" => {
            let (name, error) = (object.take_required_id("id")?, node_error(&mut object)?);
            weave.step_finished(name, error, object.rest())?;
        }
        "message_chunk" => {
            let content = object.take_str("content")?;
            let extra = extra_of(object, weave);
            weave.text(None, content, None, extra)?;
        }
        "thought_chunk" => {
            let content = object.take_str("content")?;
            let extra = extra_of(object, weave);
            weave.thinking(None, content, None, extra)?;
        }
        "usage" => {
            let usage = Usage {
                prompt_tokens: object.take_opt("prompt_tokens")?,
                completion_tokens: object.take_opt("completion_tokens")?,
                total_tokens: object.take_opt("total_tokens")?,
            };
            weave.say(usage, object.rest())?;
        }
        "values" => {
            let state = object.take_json("state")?;
            weave.say(StateSnapshot { state }, object.rest())?;
        }
        "updates" => {
            let (step, state) = (object.take_required_id("id")?, object.take_json("state")?);
            weave.say(StateUpdated { step, state }, object.rest())?;
        }
        "custom" => {
            let value = object.take_json("value")?;
            custom(value, object.rest(), weave)?;
        }
        "checkpoint" => {
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let checkpoint = Checkpoint {
                checkpoint_id: take("checkpoint_id"),
                timestamp: take("timestamp"),
                step: take("step"),
                state: take("state"),
                thread: take("thread_id"),
                checkpoint_ns: take("checkpoint_ns"),
            };
            weave.say(checkpoint, object.rest())?;
        }
        "tot_expand" => {
            let candidates = object.take_json("candidates")?;
            weave.say(TotExpanded { candidates }, object.rest())?;
        }
        "tot_evaluate" => {
            let (chosen, scores) = (object.take_json("chosen")?, object.take_json("scores")?);
            weave.say(TotEvaluated { chosen, scores }, object.rest())?;
        }
        "tot_backtrack" => {
            let (reason, to_depth) = (owned(object.take_opt_str("reason")?), object.take_json("to_depth")?);
            weave.say(TotBacktracked { reason, to_depth }, object.rest())?;
        }
        "got_plan" => {
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let planned = GotPlanned {
                node_count: take("node_count"),
                edge_count: take("edge_count"),
                node_ids: take("node_ids"),
            };
            weave.say(planned, object.rest())?;
        }
        "got_node_start" => {
            let node_id = object.take_required_id("id")?;
            weave.say(GotNodeStarted { node_id }, object.rest())?;
        }
        "got_node_complete" => {
            let node_id = object.take_required_id("id")?;
            let result_summary = owned(object.take_opt_str("result_summary")?);
            weave.say(GotNodeCompleted { node_id, result_summary }, object.rest())?;
        }
        "got_node_failed" => {
            let (node_id, error) = (object.take_required_id("id")?, object.take_str("error")?.into_owned());
            weave.say(GotNodeFailed { node_id, error }, object.rest())?;
        }
        "got_expand" => {
            let node_id = object.take_required_id("node_id")?;
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let (nodes_added, edges_added) = (take("nodes_added"), take("edges_added"));
            weave.say(GotExpanded { node_id, nodes_added, edges_added }, object.rest())?;
        }
        "tool_call_chunk" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let delta = object.take_str("arguments_delta")?.into_owned();
            weave.call_arguments(id, name, delta, object.rest())?;
        }
        "tool_call" => {
            let (id, called) = call(&mut object)?;
            weave.called(id, called, object.rest())?;
        }
        "tool_start" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            weave.tool_started(id, name, object.rest())?;
        }
        "tool_output" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let content = object.take_str("content")?.into_owned();
            weave.tool_output(id, name, content, object.rest())?;
        }
        "tool_end" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let result = object.take_present("result").map(Json::from_raw);
            let failed = object.take_opt::<bool>("is_error")?.unwrap_or(false);
            weave.tool_finished(id, ended(name, result, failed), object.rest())?;
        }
        "tool_approval" => {
            let (id, called) = call(&mut object)?;
            approval(id, called, object.rest(), weave)?;
        }
        _ => return Ok(false),
    }
    if names_call {
        weave.add_to_said(CALL_ID, Json::from_valid("true"));
    }
    Ok(true)
}

/// Keeps what the document does not define, and the piece's node where it is not the step's name.
fn extra_of(mut object: Object<'_>, weave: &Weave<'_>) -> Extra {
    let node = object.take_present("id").map(Json::from_raw);
    let mut extra = object.rest();
    keep_node(&mut extra, node, weave);
    extra
}

/// A piece's node repeats the step's name; only one that does not is kept.
pub(super) fn keep_node(extra: &mut Extra, node: Option<Json>, weave: &Weave<'_>) {
    let other = node.filter(|node| node.as_string().as_deref() != Some(current_node(weave)));
    if let Some(node) = other {
        extra.set(NODE, node);
    }
}

/// Keeps the producer's id of a node run where it is not the one that is minted anyway.
fn keep_node_id(extra: &mut Extra, node_id: &str, name: &str, weave: &Weave<'_>) {
    if node_id != minted_node_id(name, weave.state.run_steps()) {
        extra.set(NODE_ID, Json::string(node_id));
    }
}

/// Returns whether a text can be an id.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::ID_BYTES
}

/// Makes the id of a node run; `before` counts the node runs before it.
fn minted_node_id(name: &str, before: u64) -> String {
    format!("run-{name}-{before}")
}

/// Returns the name of the node that something happens in.
fn current_node<'w>(weave: &'w Weave<'_>) -> &'w str {
    weave.step().map_or(OUTSIDE, |step| step.name.as_str())
}

/// Weaves the whole answer, which ends the run.
pub(super) fn reply(mut object: Object<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let reply = object.take_str("reply")?.into_owned();
    let stop_reason = owned(object.take_opt_str("stop_reason")?);
    let error = object.take_present("error").map(|raw| ErrorInfo::read_lenient(&Json::from_raw(raw)));
    let reasoning = object.get_str("reasoning_content").map(Cow::into_owned).unwrap_or_default();
    let mut extra = object.rest();
    weave.atomically(|weave| {
        weave.whole_thinking(&reasoning)?;
        match (stop_reason.as_deref(), error) {
            (Some("cancelled"), _) => {
                weave.whole_text(&reply, By::Decoder, Extra::default())?;
                weave.say(RunCancelled::default(), extra)?;
            }
            (Some("error"), error) => {
                weave.whole_text(&reply, By::Decoder, Extra::default())?;
                weave.fail(error, RunFailed::default(), extra)?;
            }
            (None, Some(error)) => {
                weave.whole_text(&reply, By::Decoder, Extra::default())?;
                weave.fail(Some(error), RunFailed::default(), extra)?;
            }
            (other, error) => {
                if let Some(reason) = other {
                    extra.set("stop_reason", Json::string(reason));
                }
                if let Some(error) = error {
                    extra.set("error", Json::string(&error.message));
                }
                weave.complete(RunCompleted { reply: Some(reply), ..Default::default() }, extra)?;
            }
        }
        Ok(())
    })
}

fn node_error(object: &mut Object<'_>) -> Result<Option<ErrorInfo>, FieldError> {
    let Some(raw) = object.take_present("result") else { return Ok(None) };
    if raw.get() == "\"Ok\"" {
        return Ok(None);
    }
    let problem = "must be \"Ok\" or {\"Err\": string}";
    let mut result = Object::of(raw).ok_or_else(|| FieldError::new("result", problem))?;
    match result.take("Err") {
        Some(error) => Ok(Some(ErrorInfo::message(Json::from_raw(error).text_form()))),
        None if result.has("Ok") => Ok(None),
        None => Err(FieldError::new("result", problem)),
    }
}

fn call(object: &mut Object<'_>) -> Result<(Option<String>, ToolCalled), FieldError> {
    let (id, name) = (object.take_id("call_id")?, object.take_required_id("name")?);
    let mut called = ToolCalled { name, ..Default::default() };
    read_arguments(&mut called, object.take("arguments").map(Json::from_raw));
    Ok((id, called))
}

fn ended(name: Option<String>, result: Option<Json>, failed: bool) -> ToolFinished {
    let mut finished = ToolFinished { name, ..Default::default() };
    if failed {
        finished.status = ToolStatus::Failure;
        finished.error = result.map(|result| ErrorInfo::message(result.text_form()));
    } else {
        finished.result = result;
    }
    finished
}

pub(super) fn custom(value: Json, extra: Extra, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let slot = Object::of_json(&value).and_then(|mut object| object.take("runwire").map(Json::from_raw));
    match slot.as_ref().and_then(slot_event) {
        Some(event) => weave.slot(event)?,
        None => weave.say(Custom { name: None, value }, extra)?,
    }
    Ok(())
}

fn approval(
    id: Option<String>,
    called: ToolCalled,
    extra: Extra,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let mut asked = InteractionRequested {
        kind: InteractionKind::Approval,
        name: Some(called.name.clone()),
        arguments: Some(called.arguments.clone()),
        ..Default::default()
    };
    weave.state.check_limits(&Body::InteractionRequested(asked.clone()))?;
    let known = weave.known_call(id.as_deref(), &called.name);
    let call_id = match known {
        Some(call_id) => call_id,
        None => weave.imply_call(id.clone(), called)?,
    };
    asked.interaction_id = match id {
        Some(id) => id,
        None => weave.mint_approval(),
    };
    asked.call_id = Some(call_id);
    Ok(weave.ask(asked, extra)?)
}

// Encoding

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    event_id: u64,
    /// The `session_id` of the run, where it is not the thread's id.
    session: Option<String>,
    /// The producer's ids of open node runs, each with the ordinal of its step.
    named: Vec<(u64, String)>,
    /// The id of the node run that ended last: it stays until another begins.
    ended: Option<String>,
    /// The id of the node run that said the last text: it belongs to the reply.
    spoke: Option<String>,
}

/// Writes the frames of one event in Loom's vocabulary, whatever their envelope.
///
/// Type and payload are the same in both forms of Loom's output; only names and places differ.
pub(super) trait Form {
    /// Writes a frame of a type.
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    );
    /// Writes the reply.
    fn reply(&mut self, turn: &Turn<'_>, out: &mut Frames, payload: impl FnOnce(&mut ObjectWriter<'_>));
    /// Returns whether the frame of a step's end says which step ends.
    fn tells_step_end(&self, turn: &Turn<'_>, name: &str) -> bool {
        turn.track.ends_innermost(turn.event(), name)
    }
    /// Writes the slot.
    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames);
    /// Returns an event in the slot, if the reader wants to see it there.
    fn slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        if turn.shows_slot() {
            self.write_slot(turn, out);
        }
    }
}

impl Form for Encoder {
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        // The payload of got_expand has a node_id of its own.
        let node_id = self.node_id(turn).filter(|_| kind != "got_expand");
        let mut object = self.envelope(turn, out, node_id.as_deref());
        object.str("type", kind);
        payload(&mut object);
        finish(turn, object);
        out.end(None);
        if kind == "message_chunk" {
            self.spoke = node_id;
        }
    }

    fn reply(&mut self, turn: &Turn<'_>, out: &mut Frames, payload: impl FnOnce(&mut ObjectWriter<'_>)) {
        let node_id = self.spoke.clone().or_else(|| self.node_id(turn));
        let mut object = self.envelope(turn, out, node_id.as_deref());
        payload(&mut object);
        finish(turn, object);
        out.end(None);
    }

    /// Among nodes of one name and id, the innermost ends.
    fn tells_step_end(&self, turn: &Turn<'_>, name: &str) -> bool {
        let Some(ended) = turn.track.step_of(turn.event()) else { return true };
        let node_id = self.id_of(ended);
        let same = |step: &&Step| step.name == name && self.id_of(step) == node_id;
        turn.track.steps.iter().rfind(same).is_none_or(|step| step.ordinal == ended.ordinal)
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let node_id = self.node_id(turn);
        let mut object = self.envelope(turn, out, node_id.as_deref());
        object.str("type", "custom");
        let mut value = object.object("value");
        turn.write_native(value.key("runwire"));
        value.end();
        turn.told_in_slot();
        object.end();
        out.end(None);
    }
}

impl Encoder {
    fn envelope<'o>(
        &mut self,
        turn: &Turn<'_>,
        out: &'o mut Frames,
        node_id: Option<&str>,
    ) -> ObjectWriter<'o> {
        self.event_id += 1;
        let mut object = ObjectWriter::begin(out.begin());
        object.str("session_id", self.session.as_deref().unwrap_or(&turn.ids.thread));
        object.opt_str("node_id", node_id);
        object.u64("event_id", turn.order_base.saturating_add(self.event_id));
        object
    }

    /// Returns the id of the node run that an event happens in, else of the one that ended last.
    fn node_id(&self, turn: &Turn<'_>) -> Option<String> {
        turn.track.step_of(turn.event()).map(|step| self.id_of(step)).or_else(|| self.ended.clone())
    }

    /// Returns the id of a node run: the producer's, else ours.
    fn id_of(&self, step: &Step) -> String {
        let named = self.named.iter().find(|(ordinal, _)| *ordinal == step.ordinal);
        named.map_or_else(|| minted_node_id(&step.name, step.ordinal - 1), |(_, id)| id.clone())
    }

    /// Takes in what a start says of the ids in the envelope.
    fn begin(&mut self, turn: &Turn<'_>) {
        let id = |name| turn.event().extra.get(name).and_then(Json::as_string).map(Cow::into_owned);
        match &turn.event().body {
            Body::RunStarted(_) => self.session = id(SESSION_ID),
            Body::StepStarted(_) => self.named.extend(id(NODE_ID).map(|id| (turn.track.step_count, id))),
            _ => {}
        }
    }

    /// Forgets the node run that an event ends.
    fn end(&mut self, turn: &Turn<'_>) {
        if let Body::StepFinished(_) = &turn.event().body {
            self.ended = self.node_id(turn);
            let ended = turn.track.step_of(turn.event()).map(|step| step.ordinal);
            self.named.retain(|(ordinal, _)| Some(*ordinal) != ended);
        }
    }
}

/// Adds what the source said beyond the document, in its own dialect, and the residue.
fn finish(turn: &Turn<'_>, mut object: ObjectWriter<'_>) {
    turn.write_own("", &mut object);
    turn.write_residue(&mut object);
    object.end();
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        self.begin(turn);
        match &turn.event().body {
            Body::Foreign(foreign)
                if foreign.dialect == "loom" && foreign.frame.is_object() && !turn.full =>
            {
                let node_id = self.node_id(turn).filter(|_| !foreign.frame.text().contains("\"node_id\""));
                let mut object = self.envelope(turn, out, node_id.as_deref());
                for (name, raw) in Object::of_json(&foreign.frame).iter().flat_map(Object::fields) {
                    if !matches!(name, "session_id" | "event_id") {
                        object.raw(name, raw.get());
                    }
                }
                turn.write_residue(&mut object);
                object.end();
                out.end(None);
            }
            _ => tell(self, turn, out),
        }
        self.end(turn);
    }

    fn tells_chunks(&self) -> bool {
        true
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        Form::write_slot(self, turn, out);
    }

    fn order(&mut self) -> Option<&mut u64> {
        Some(&mut self.event_id)
    }
}

/// Returns an event in Loom's vocabulary.
pub(super) fn tell(form: &mut impl Form, turn: &Turn<'_>, out: &mut Frames) {
    let event = turn.event();
    let node = shown_node(turn);
    let node = node.as_ref();
    match &event.body {
        Body::RunStarted(started) => {
            if started.input.is_some() || started.parent_run_id.is_some() || started.message_id.is_some() {
                turn.keep_whole();
            }
            form.frame(turn, out, "run_start", |object| {
                object.str("run_id", &turn.ids.run);
                object.opt_str("message", started.message.as_deref());
                object.opt_str("agent", started.agent.as_deref());
            });
        }
        Body::StepStarted(started) => {
            form.frame(turn, out, "node_enter", |object| object.str("id", &started.name));
        }
        Body::StepFinished(finished) => {
            if !form.tells_step_end(turn, &finished.name) {
                turn.keep_whole();
            }
            form.frame(turn, out, "node_exit", |object| {
                object.str("id", &finished.name);
                match &finished.error {
                    None => object.str("result", "Ok"),
                    Some(error) => {
                        let mut result = object.object("result");
                        result.str("Err", &error.message);
                        result.end();
                    }
                }
            });
        }
        Body::TextStarted(started) => {
            if turn.track.tells_start(started) {
                form.slot(turn, out);
            }
        }
        Body::TextDelta(delta) => {
            if turn.track.text(&delta.message_id).is_none_or(|text| text.aside) {
                return form.slot(turn, out);
            }
            turn.keep_continuation(delta);
            write_chunk(form, turn, out, &delta.content);
        }
        Body::TextFinished(finished) => {
            let aside = turn.track.text(&finished.message_id).is_some_and(|text| text.aside);
            let silent = turn.track.is_silent(&finished.message_id) && finished.content.is_none();
            match turn.replacement(finished).filter(|_| !aside) {
                Some(content) => {
                    turn.keep_whole();
                    write_chunk(form, turn, out, content);
                }
                None if !silent && (aside || finished.says_more()) => form.slot(turn, out),
                None => {}
            }
        }
        Body::ThinkingStarted(started) => {
            if turn.track.tells_thought_start(started) {
                form.slot(turn, out);
            }
        }
        Body::ThinkingDelta(delta) => {
            if turn.track.thought(&delta.message_id).is_none_or(|thought| thought.aside) {
                return form.slot(turn, out);
            }
            form.frame(turn, out, "thought_chunk", |object| {
                object.str("content", &delta.content);
                object.str("id", node);
            });
        }
        Body::ThinkingFinished(finished) => {
            let told =
                turn.track.thought(&finished.message_id).is_some_and(|thought| thought.aside && thought.told);
            if told || finished.content.is_some() {
                form.slot(turn, out);
            }
        }
        Body::ToolArgsStarted(_) => {}
        Body::ToolArgsDelta(delta) => {
            // In its own dialect only the first piece names the tool.
            let first = || {
                turn.record.entries.iter().any(|entry| matches!(entry.event.body, Body::ToolArgsStarted(_)))
            };
            let name = turn.track.call(&delta.call_id).map(|call| call.name.as_str());
            let name = name.filter(|name| !name.is_empty() && (!turn.own || first()));
            form.frame(turn, out, "tool_call_chunk", |object| {
                write_call_id(turn, object, &delta.call_id);
                object.opt_str("name", name);
                object.str("arguments_delta", &delta.delta);
            });
        }
        Body::ToolCalled(called) => {
            if called.arguments_text.is_some() || called.incomplete.is_some() || called.description.is_some()
            {
                turn.keep_whole();
            }
            form.frame(turn, out, "tool_call", |object| {
                write_call_id(turn, object, &called.call_id);
                object.str("name", &called.name);
                object.json("arguments", &called.arguments);
            });
        }
        Body::ToolStarted(started) => form.frame(turn, out, "tool_start", |object| {
            write_call_id(turn, object, &started.call_id);
            object.str("name", call_name(turn, &started.call_id, started.name.as_deref()));
        }),
        Body::ToolOutput(output) => form.frame(turn, out, "tool_output", |object| {
            write_call_id(turn, object, &output.call_id);
            object.str("name", call_name(turn, &output.call_id, output.name.as_deref()));
            object.str("content", &output.content);
        }),
        Body::ToolFinished(finished) => {
            turn.keep_result_beside_error(finished);
            form.frame(turn, out, "tool_end", |object| {
                write_call_id(turn, object, &finished.call_id);
                object.str("name", call_name(turn, &finished.call_id, finished.name.as_deref()));
                object.str("result", &finished.text_form().unwrap_or_default());
                object.bool("is_error", finished.status == ToolStatus::Failure);
            });
        }
        Body::InteractionRequested(asked) => approve(form, turn, out, asked),
        Body::StateSnapshot(snapshot) => {
            form.frame(turn, out, "values", |object| object.json("state", &snapshot.state))
        }
        Body::StateUpdated(updated) => form.frame(turn, out, "updates", |object| {
            object.str("id", &updated.step);
            object.json("state", &updated.state);
        }),
        Body::StatePatched(_) => match turn.earlier.state() {
            Some(state) => form.frame(turn, out, "values", |object| object.json("state", &state)),
            None => form.slot(turn, out),
        },
        Body::Checkpoint(checkpoint) => form.frame(turn, out, "checkpoint", |object| {
            object.json("checkpoint_id", checkpoint.checkpoint_id.as_ref().unwrap_or(&Json::string("")));
            object.json("timestamp", checkpoint.timestamp.as_ref().unwrap_or(&Json::string("")));
            object.opt_json("step", checkpoint.step.as_ref());
            object.json("state", checkpoint.state.as_ref().unwrap_or(&Json::null()));
            object.json("thread_id", checkpoint.thread.as_ref().unwrap_or(&Json::null()));
            object.json("checkpoint_ns", checkpoint.checkpoint_ns.as_ref().unwrap_or(&Json::null()));
        }),
        Body::TotExpanded(expanded) => {
            form.frame(turn, out, "tot_expand", |object| object.json("candidates", &expanded.candidates));
        }
        Body::TotEvaluated(evaluated) => form.frame(turn, out, "tot_evaluate", |object| {
            object.json("chosen", &evaluated.chosen);
            object.json("scores", &evaluated.scores);
        }),
        Body::TotBacktracked(back) => form.frame(turn, out, "tot_backtrack", |object| {
            object.str("reason", back.reason.as_deref().unwrap_or_default());
            object.json("to_depth", &back.to_depth);
        }),
        Body::GotPlanned(planned) => form.frame(turn, out, "got_plan", |object| {
            object.opt_json("node_count", planned.node_count.as_ref());
            object.opt_json("edge_count", planned.edge_count.as_ref());
            object.opt_json("node_ids", planned.node_ids.as_ref());
        }),
        Body::GotNodeStarted(started) => {
            form.frame(turn, out, "got_node_start", |object| object.str("id", &started.node_id));
        }
        Body::GotNodeCompleted(completed) => form.frame(turn, out, "got_node_complete", |object| {
            object.str("id", &completed.node_id);
            object.str("result_summary", completed.result_summary.as_deref().unwrap_or_default());
        }),
        Body::GotNodeFailed(failed) => form.frame(turn, out, "got_node_failed", |object| {
            object.str("id", &failed.node_id);
            object.str("error", &failed.error);
        }),
        Body::GotExpanded(expanded) => form.frame(turn, out, "got_expand", |object| {
            object.str("node_id", &expanded.node_id);
            object.opt_json("nodes_added", expanded.nodes_added.as_ref());
            object.opt_json("edges_added", expanded.edges_added.as_ref());
        }),
        Body::Usage(usage) => write_usage(form, turn, out, usage),
        // A value that could be taken for a slot goes into one.
        Body::Custom(custom) if custom.name.is_none() && !super::looks_like_slot(&custom.value) => {
            form.frame(turn, out, "custom", |object| object.json("value", &custom.value));
        }
        Body::RunCompleted(completed) => {
            if completed.result.is_some() {
                turn.keep_whole();
            }
            summed_usage(form, turn, out, completed.summary.as_ref());
            let joined;
            let reply = match &completed.reply {
                Some(reply) => reply,
                None => {
                    joined = turn.earlier.run_text();
                    &joined
                }
            };
            form.reply(turn, out, |object| object.str("reply", reply));
        }
        Body::RunFailed(failed) => {
            summed_usage(form, turn, out, failed.summary.as_ref());
            form.reply(turn, out, |object| {
                object.str("reply", &turn.earlier.run_text());
                object.str("stop_reason", "error");
                super::write_error(object, "error", &failed.error);
            });
        }
        Body::RunCancelled(cancelled) => {
            summed_usage(form, turn, out, cancelled.summary.as_ref());
            if cancelled.reason.is_some() {
                turn.keep_whole();
            }
            form.reply(turn, out, |object| {
                object.str("reply", &turn.earlier.run_text());
                object.str("stop_reason", "cancelled");
            });
        }
        _ => form.slot(turn, out),
    }
}

fn write_chunk(form: &mut impl Form, turn: &Turn<'_>, out: &mut Frames, content: &str) {
    form.frame(turn, out, "message_chunk", |object| {
        object.str("content", content);
        object.str("id", &shown_node(turn));
    });
}

/// Returns the node of a piece: the source's own word in its own dialect, else the step's name.
pub(super) fn shown_node<'t>(turn: &'t Turn<'_>) -> Cow<'t, str> {
    let own = turn.event().extra.get(NODE).filter(|_| turn.own).and_then(Json::as_string);
    own.unwrap_or_else(|| turn.track.step_of(turn.event()).map_or(OUTSIDE, |step| step.name.as_str()).into())
}

/// Writes the call's id, which in its own dialect a frame may have lacked.
fn write_call_id(turn: &Turn<'_>, object: &mut ObjectWriter<'_>, call_id: &str) {
    if !turn.is_own_minted(call_id) {
        object.str("call_id", call_id);
    }
}

fn write_usage(form: &mut impl Form, turn: &Turn<'_>, out: &mut Frames, usage: &Usage) {
    let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
    form.frame(turn, out, "usage", |object| {
        object.u64("prompt_tokens", prompt);
        object.u64("completion_tokens", completion);
        object.u64("total_tokens", usage.total_tokens.unwrap_or(prompt.saturating_add(completion)));
    });
}

/// Writes tokens that the source only summed up at the end; Loom's reply has no place for them.
fn summed_usage(form: &mut impl Form, turn: &Turn<'_>, out: &mut Frames, summary: Option<&Summary>) {
    if let Some(usage) = turn.track.summed_usage(summary).filter(|_| !turn.full) {
        write_usage(form, turn, out, &usage);
    }
}

fn call_name<'t>(turn: &'t Turn<'_>, call_id: &str, told: Option<&'t str>) -> &'t str {
    told.or_else(|| turn.track.call(call_id).map(|call| call.name.as_str())).unwrap_or("unknown")
}

/// Asks for an approval natively where the question is about a call, and in the slot otherwise.
fn approve(form: &mut impl Form, turn: &Turn<'_>, out: &mut Frames, asked: &InteractionRequested) {
    let call = asked.call_id.as_ref().and_then(|id| turn.track.call(id));
    let name = asked.name.as_deref().or(call.map(|call| call.name.as_str())).filter(|name| !name.is_empty());
    let (InteractionKind::Approval, Some(name)) = (asked.kind, name) else { return form.slot(turn, out) };
    let plain = asked.title.is_none() && asked.description.is_none() && asked.reason.is_none();
    let minted = asked.call_id.as_deref().is_some_and(|call_id| turn.is_own_minted(call_id));
    let named_by_call = minted || asked.call_id.as_ref() == Some(&asked.interaction_id);
    // An approval of a call that was not made would make it.
    let made = call.is_some_and(|call| call.called);
    if !plain || asked.schema.is_some() || asked.ui.is_some() || !named_by_call || !made {
        turn.keep_whole();
    }
    let known = call.and_then(|call| turn.earlier.call(call.start, &call.id)).map(|called| called.arguments);
    let arguments =
        asked.arguments.clone().or(known).filter(Json::is_object).unwrap_or_else(Json::empty_object);
    form.frame(turn, out, "tool_approval", |object| {
        object.opt_str("call_id", asked.call_id.as_deref().filter(|_| !minted));
        object.str("name", name);
        object.json("arguments", &arguments);
    });
}
