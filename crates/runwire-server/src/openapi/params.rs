//! Parameters that several operations share.
//!
//! Handlers parse queries themselves (`query.rs`), so that every mistake has its own words; this is what the document says
//! of them.

use runwire_model::dialect::{Dialect, Fidelity, Slots};
use runwire_model::run::WholePolicy;
use serde_json::{Value, json};
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::schemas::schema;
use crate::ids::{InteractionParam, ProducerParam, RunParam, ThreadParam};
use crate::limits;

/// Makes a parameter; those of a path are required.
fn parameter(place: ParameterIn, name: &str, description: &str, of: Value) -> Parameter {
    let mut parameter = Parameter::new(name);
    parameter.required = if place == ParameterIn::Path { Required::True } else { Required::False };
    // A list is sent as one value, with commas.
    let is_list = of["type"] == "array";
    parameter.style = is_list.then_some(utoipa::openapi::path::ParameterStyle::Form);
    parameter.explode = is_list.then_some(false);
    parameter.parameter_in = place;
    parameter.description = Some(description.to_owned());
    parameter.schema = Some(schema(of));
    parameter
}

fn id() -> Value {
    json!({"$ref": "#/components/schemas/Id"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn flag() -> Value {
    json!({"type": "boolean", "default": false})
}

fn number(maximum: usize, default: usize) -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": maximum, "default": default})
}

/// One of some words; the first is the default.
fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "default": words[0]})
}

/// Declares sets of parameters.
macro_rules! parameters {
    ($($set:ident { $($place:ident $name:literal: $description:literal, $schema:expr;)* })*) => {$(
        impl IntoParams for $set {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![$(parameter(ParameterIn::$place, $name, $description, $schema)),*]
            }
        }
    )*};
}

/// The run in a path of Agio's façade.
pub(crate) struct AgioRun;
/// The thread in a path of social-app's façade.
pub(crate) struct SocialAppThread;
/// The agent in a path.
pub(crate) struct AgentInPath;
/// Which runs are listed.
pub(crate) struct RunListQuery;
/// Which interactions are listed.
pub(crate) struct InboxQuery;
/// Where a page begins.
pub(crate) struct Before;
/// How many items a list has.
pub(crate) struct ListLimit;
/// How many runs are shown as messages.
pub(crate) struct MessageLimit;
/// Whether open runs are cancelled.
pub(crate) struct ForceQuery;
/// A conditional request.
pub(crate) struct IfNoneMatch;
/// How events are read.
pub(crate) struct ReadQuery;
/// A snapshot before the events of a run.
pub(crate) struct AttachQuery;
/// The cursor that a browser sends.
pub(crate) struct LastEventId;
/// How frames are written.
pub(crate) struct WriteQuery;
/// Whether the run ends with the body.
pub(crate) struct EndQuery;
/// The thread of a new run.
pub(crate) struct ThreadOfRun;
/// Whether a new thread takes several runs at once.
pub(crate) struct ParallelThread;
/// Whether new threads take several runs at once.
pub(crate) struct ParallelThreads;
/// The producer of a body.
pub(crate) struct ProducerHeaders;
/// A page of a façade's history.
pub(crate) struct HistoryPage;
/// Which part of a thread is exported.
pub(crate) struct ExportPart;
/// The agent that a façade starts.
pub(crate) struct FacadeAgent;
/// The agent of a socket's chats.
pub(crate) struct SocketAgent;
/// What Agio asks.
pub(crate) struct AgioQuery;
/// A page of Agio's events.
pub(crate) struct AgioPage;
/// How Loom's frames are sent.
pub(crate) struct LoomFrames;

parameters! {
    RunParam { Path "run": "The run.", id(); }
    ThreadParam { Path "thread": "The thread.", id(); }
    ProducerParam { Path "producer": "The producer.", id(); }
    InteractionParam { Path "interaction": "The question's id.", text(); }
    AgioRun { Path "run_id": "The run.", id(); }
    SocialAppThread { Path "thread_id": "The thread.", id(); }
    AgentInPath { Path "agent": "The agent.", id(); }
    RunListQuery {
        Query "status": "Only runs in this state, or in one of several with commas between them: `pending,running,suspended`.",
            json!({"type": "array", "items": {"$ref": "#/components/schemas/Status"}});
        Query "agent": "Only runs of this agent.", text();
        Query "thread": "Only runs of this thread.", text();
        Query "prefix": "Only runs whose id, thread or agent begins so.", text();
        Query "since": "Only runs created then or later.", time();
        Query "until": "Only runs created before.", time();
    }
    InboxQuery {
        Query "status": "Only `open` is listed.", json!({"type": "string", "enum": ["open"]});
        Query "run": "Only questions of this run.", text();
        Query "agent": "Only questions of this agent's runs.", text();
        Query "thread": "Only questions of this thread.", text();
        Query "before": "Go on where another page ended: its `next`.", text();
    }
    Before { Query "before": "Only what is older than this one: the `next` of the page before.", id(); }
    ForceQuery { Query "force": "Cancel the runs that are open.", flag(); }
    MessageLimit {
        Query "limit": "How many runs at most.", number(limits::FOLDED_RUNS, limits::FOLDED_RUNS);
    }
    ListLimit {
        Query "limit": "How many at most.", number(limits::LIST_ITEMS, limits::LIST_ITEMS_DEFAULT);
    }
    IfNoneMatch {
        Header "If-None-Match": "The `ETag` of an earlier answer: 304 while nothing at all was written since.", text();
    }
    ReadQuery {
        Query "dialect": "What the frames shall speak.", word(&Dialect::ALL.map(Dialect::name));
        Query "fidelity": "Whether frames carry only what the dialect has words for, or also the rest in its extension slots.",
            word(&[Fidelity::Native, Fidelity::Full].map(Fidelity::name));
        Query "slots": "Which extension slots are shown: all; only questions, answers, suspension and a person's words; or none. A cursor is valid for the `fidelity` and `slots` that gave it.",
            word(&Slots::ALL.map(Slots::name));
        Query "after": "The cursor to go on from; `0` is the start, `end` what happens from now on.", text();
        Header "Last-Event-ID": "The cursor to go on from, as an `EventSource` sends it.", text();
        Query "follow": "Whether to wait for what is still to come.", json!({"type": "boolean"});
        Query "limit": "How many frames at most.", json!({"type": "integer", "minimum": 1});
        Query "raw": "Whether to give back the stored bytes.", flag();
        Query "compact": "Whether to merge neighbouring pieces while catching up.", flag();
        Query "cursors": "Whether NDJSON wraps each frame as `{cursor, frame}`.", flag();
    }
    AttachQuery {
        Query "attach": "Whether to begin with the present in one go.", json!({"type": "string", "enum": ["snapshot"]});
    }
    LastEventId { Header "Last-Event-ID": "The cursor to go on from, as an `EventSource` sends it.", text(); }
    WriteQuery {
        Query "dialect": "What the frames speak; without it their first frames tell.",
            json!({"type": "string", "enum": Dialect::READABLE.map(Dialect::name)});
        Query "strict": "Whether a frame that its dialect's document does not allow is refused. Without it, such frames are written and counted as warnings of their run.",
            flag();
        Query "whole": "What becomes of a whole text, such as Loom's `reply`, that differs from what the run has told: what is new in it is added, it is ignored, or it replaces the last message.",
            word(&WholePolicy::ALL.map(WholePolicy::name));
    }
    EndQuery { Query "end": "Whether the run is complete at the body's end.", flag(); }
    ThreadOfRun {
        Query "thread": "The thread of a run that does not exist yet; without it the run gets one of its own.", id();
    }
    ParallelThread {
        Query "parallel": "Let a thread that this creates have several runs at once; 409 `thread_exists` for one that was created without.",
            flag();
    }
    ParallelThreads {
        Query "parallel": "Let threads that this creates have several runs at once; one that exists stays as it is.", flag();
    }
    ProducerHeaders {
        Header "Producer-Id": "Who writes, so that a retry writes nothing twice.",
            json!({"type": "string", "minLength": 1, "maxLength": limits::PRODUCER_BYTES});
        Header "Producer-Epoch": "The producer's incarnation; an older one is refused.",
            json!({"type": "integer", "minimum": 0, "default": 0});
        Header "Producer-Seq": "The index of the body's first frame in what the producer has sent; required with `Producer-Id`.",
            json!({"type": "integer", "minimum": 0});
    }
    HistoryPage {
        Query "after": "The cursor to go on from; `0` is the start.", text();
        Query "limit": "How many frames at most.", number(limits::PAGE_FRAMES, limits::PAGE_FRAMES_DEFAULT);
    }
    ExportPart {
        Query "run": "Only this run, with those that lie side by side with it.", text();
        Query "after": "Go on after this record: neither the thread nor the runs before it are told again.",
            json!({"type": "integer", "minimum": 0});
    }
    AgioPage {
        Query "offset": "How many events to pass over.", json!({"type": "integer", "minimum": 0});
        Query "limit": "How many events at most.", number(limits::PAGE_FRAMES, limits::PAGE_FRAMES_DEFAULT);
    }
    LoomFrames {
        Query "frames": "`plain`: the frames of runs as Loom's document has them, without a message around each.",
            word(&["wrapped", "plain"]);
    }
    SocketAgent { Query "agent": "The agent of chats that name none; without it the default, or the only one.", text(); }
    AgioQuery { Query "query": "What is asked, unless the body says it.", text(); }
    FacadeAgent { Query "agent": "The agent; without it the default, or the only one.", text(); }
}
