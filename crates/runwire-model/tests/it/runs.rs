//! Runs that could have been stored, made up: a list of acts, each an attempt to write something, carried out
//! one after the other under the guard.
//!
//! Acts are small and name things by their position among what is open, so that a failing run shrinks to the
//! few acts that matter.

use proptest::prelude::*;
use proptest::sample::select;
use runwire_model::dialect::Dialect;
use runwire_model::event::*;
use runwire_model::record::{EventOrigin, History, Record};
use runwire_model::run::{Authority, OpenText, RunState};
use runwire_model::window::Window;
use runwire_model::{Json, Timestamp};

pub(crate) const THREAD: &str = "thread-p";
pub(crate) const RUN: &str = "run-p";

/// What is tried next.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// An event whose ids are its own.
    Say(Event),
    /// Begins a text with its first piece, or ends it at once where there is none: most dialects show a text
    /// only when a piece of it comes, and then it must stand where it began.
    BeginText {
        id: String,
        role: Option<String>,
        first: Option<String>,
    },
    BeginThinking {
        id: String,
        stage: Option<String>,
        first: Option<String>,
    },
    TextDelta {
        open: usize,
        content: String,
        format: Option<String>,
    },
    TextFinished {
        open: usize,
        finished: Box<TextFinished>,
    },
    ThinkingDelta {
        open: usize,
        content: String,
        stage: Option<String>,
    },
    ThinkingFinished {
        open: usize,
        content: Option<String>,
    },
    ArgsDelta {
        open: usize,
        delta: String,
    },
    Called {
        open: usize,
        called: Box<ToolCalled>,
    },
    ToolStarted {
        open: usize,
        named: bool,
    },
    ToolProgress {
        open: usize,
        progress: Option<f64>,
        message: Option<String>,
    },
    ToolOutput {
        open: usize,
        content: String,
    },
    ToolFinished {
        open: usize,
        finished: Box<ToolFinished>,
    },
    StepFinished {
        open: usize,
        error: Option<ErrorInfo>,
    },
    Data {
        open: Option<usize>,
        data: Box<Data>,
    },
    Ask {
        open: Option<usize>,
        asked: Box<InteractionRequested>,
        plain: bool,
    },
    Answer {
        open: usize,
        resolved: Box<InteractionResolved>,
    },
    SubagentStarted {
        name: Option<String>,
    },
    SubagentEnds {
        open: usize,
        failed: bool,
    },
}

/// An act, and what stands around its event.
#[derive(Clone)]
pub(crate) struct Attempt {
    act: Act,
    /// The subagent that acts, by position among the open ones.
    subagent: Option<usize>,
    extra: bool,
    /// Milliseconds since the act before.
    later: u64,
    /// Whether the record is a frame of the native dialect rather than an act of the server.
    frame: bool,
}

/// One line each: a failing run is told by the events that it came to.
impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.act)
    }
}

/// Carries acts out, and gives the records that a log would hold.
pub(crate) fn carry_out(attempts: &[Attempt]) -> Vec<Record> {
    let mut run = Run {
        state: RunState::new(THREAD, RUN),
        window: Window::default(),
        records: Vec::new(),
        subagents: Vec::new(),
        subagent_count: 0,
        at: Timestamp(1_794_000_000_000),
    };
    for attempt in attempts {
        run.attempt(attempt);
        if let Some(act) = run.second(&attempt.act) {
            run.attempt(&Attempt { act, ..attempt.clone() });
        }
    }
    run.records
}

struct Run {
    state: RunState,
    window: Window,
    records: Vec<Record>,
    subagents: Vec<String>,
    subagent_count: usize,
    at: Timestamp,
}

fn pick<T>(list: &[T], at: usize) -> Option<&T> {
    list.get(at.checked_rem(list.len())?)
}

impl Run {
    fn attempt(&mut self, attempt: &Attempt) {
        let mut event = match self.event(&attempt.act) {
            Some(event) => event,
            None => return,
        };
        // A whole answer is told when it is stored, so that it says nothing new.
        if let Body::RunCompleted(RunCompleted { reply: Some(reply), .. }) = &mut event.body {
            *reply = self.window.run_text();
        }
        let kind = event.body.type_name();
        let of_the_run = kind.starts_with("run.") || kind.starts_with("interaction.");
        if event.subagent_run_id.is_none() && !of_the_run {
            let acting = attempt.subagent.and_then(|at| pick(&self.subagents, at));
            event.subagent_run_id = acting.cloned();
        }
        if !kind.starts_with("run.") && !kind.starts_with("step.") {
            event.step_id = self.state.current_step().map(|step| step.id.clone());
        }
        if attempt.extra {
            event.extra.set("note", Json::parse(r#"{"a":[1,null]}"#).unwrap());
            event.extra.set("metadata.trace", Json::string("t-1"));
        }
        self.at = Timestamp(self.at.0 + attempt.later);
        let (origin, dialect) = if attempt.frame {
            (EventOrigin::Producer, Some(Dialect::Runwire))
        } else {
            (EventOrigin::Server, None)
        };
        let (seq, mut entries) = (self.records.len() as u64 + 1, Vec::new());
        let written = self.state.apply(event, origin, Authority::Server, seq, &self.window, &mut entries);
        if written.is_err() || entries.is_empty() {
            return;
        }
        let record = Record { seq, at: self.at, source_time: None, dialect, entries };
        self.window.absorb(&record);
        self.records.push(record);
    }

    /// What follows at once where something began.
    fn second(&self, act: &Act) -> Option<Act> {
        let newest = |open: &[OpenText]| open.len().wrapping_sub(1);
        let (texts, thoughts) = (newest(&self.state.texts), newest(&self.state.thoughts));
        Some(match act.clone() {
            Act::BeginText { first: Some(content), .. } => {
                Act::TextDelta { open: texts, content, format: None }
            }
            Act::BeginText { .. } => Act::TextFinished { open: texts, finished: Box::default() },
            Act::BeginThinking { first: Some(content), .. } => {
                Act::ThinkingDelta { open: thoughts, content, stage: None }
            }
            Act::BeginThinking { .. } => Act::ThinkingFinished { open: thoughts, content: None },
            _ => return None,
        })
    }

    /// Makes the event that an act means now; nothing where what it needs is not open.
    fn event(&mut self, act: &Act) -> Option<Event> {
        let of = |subagent: &Option<String>, body: Body| {
            let mut event = Event::new(body);
            event.subagent_run_id.clone_from(subagent);
            event
        };
        let call = |open: usize| pick(&self.state.calls, open).map(|call| call.id.clone());
        Some(match act {
            Act::Say(event) => event.clone(),
            Act::BeginText { id, role, .. } => {
                Event::new(TextStarted { message_id: id.clone(), role: role.clone() })
            }
            Act::BeginThinking { id, stage, .. } => {
                Event::new(ThinkingStarted { message_id: id.clone(), stage: stage.clone() })
            }
            Act::TextDelta { open, content, format } => {
                let text = pick(&self.state.texts, *open)?;
                let (message_id, content) = (text.id.clone(), content.clone());
                of(&text.subagent, TextDelta { message_id, content, format: format.clone() }.into())
            }
            Act::TextFinished { open, finished } => {
                let text = pick(&self.state.texts, *open)?;
                let message_id = text.id.clone();
                of(&text.subagent, TextFinished { message_id, ..(**finished).clone() }.into())
            }
            Act::ThinkingDelta { open, content, stage } => {
                let thought = pick(&self.state.thoughts, *open)?;
                let (message_id, content) = (thought.id.clone(), content.clone());
                of(&thought.subagent, ThinkingDelta { message_id, content, stage: stage.clone() }.into())
            }
            Act::ThinkingFinished { open, content } => {
                let thought = pick(&self.state.thoughts, *open)?;
                let message_id = thought.id.clone();
                of(&thought.subagent, ThinkingFinished { message_id, content: content.clone() }.into())
            }
            Act::ArgsDelta { open, delta } => {
                Event::new(ToolArgsDelta { call_id: call(*open)?, delta: delta.clone() })
            }
            Act::Called { open, called } => {
                let call = pick(&self.state.calls, *open)?;
                let name = call.name.clone().unwrap_or_else(|| called.name.clone());
                Event::new(ToolCalled { call_id: call.id.clone(), name, ..(**called).clone() })
            }
            Act::ToolStarted { open, named } => {
                let call = pick(&self.state.calls, *open)?;
                let name = call.name.clone().filter(|_| *named);
                Event::new(ToolStarted { call_id: call.id.clone(), name })
            }
            Act::ToolProgress { open, progress, message } => {
                let (progress, message) = (*progress, message.clone());
                Event::new(ToolProgress { call_id: call(*open)?, progress, message })
            }
            Act::ToolOutput { open, content } => {
                Event::new(ToolOutput { call_id: call(*open)?, name: None, content: content.clone() })
            }
            Act::ToolFinished { open, finished } => {
                Event::new(ToolFinished { call_id: call(*open)?, ..(**finished).clone() })
            }
            Act::StepFinished { open, error } => {
                let step = pick(&self.state.steps, *open)?;
                let mut event = Event::new(StepFinished { name: step.name.clone(), error: error.clone() });
                event.step_id = Some(step.id.clone());
                event
            }
            Act::Data { open, data } => {
                let call_id = open.and_then(call);
                Event::new(Data { call_id, ..(**data).clone() })
            }
            Act::Ask { open, asked, plain } => {
                let mut asked = (**asked).clone();
                if let Some(call) = open.and_then(|open| pick(&self.state.calls, open)) {
                    asked.call_id = Some(call.id.clone());
                    if *plain {
                        asked.interaction_id.clone_from(&call.id);
                    } else {
                        asked.name.clone_from(&call.name);
                    }
                }
                Event::new(asked)
            }
            Act::Answer { open, resolved } => {
                let question = pick(&self.state.interactions, *open)?;
                let interaction_id = question.id.clone();
                Event::new(InteractionResolved { interaction_id, ..(**resolved).clone() })
            }
            Act::SubagentStarted { name } => {
                self.subagent_count += 1;
                let id = format!("sub-{}", self.subagent_count);
                self.subagents.push(id.clone());
                of(&Some(id), SubagentStarted { name: name.clone() }.into())
            }
            Act::SubagentEnds { open, failed } => {
                let at = open.checked_rem(self.subagents.len())?;
                let id = Some(self.subagents.remove(at));
                let failed = failed.then(|| SubagentFailed { message: "broke".into(), code: None });
                match failed {
                    Some(failed) => of(&id, failed.into()),
                    None => of(&id, SubagentFinished { result: Json::parse("[1]").ok() }.into()),
                }
            }
        })
    }
}

// What acts are made of

fn json(texts: &'static [&'static str]) -> impl Strategy<Value = Json> + Clone {
    select(texts).prop_map(|text| Json::parse(text).unwrap())
}

fn any_json() -> impl Strategy<Value = Json> + Clone {
    json(&[
        "null",
        "true",
        "7",
        "-2.50",
        "\"word\"",
        "\"\"",
        "\"{\\\"a\\\":1}\"",
        "[]",
        "[1,\"zwei\",null]",
        "{}",
        "{\"a\":{\"b\":[1.0,2e3]},\"text\":\"天气 🚶 \\\"quoted\\\"\\n\"}",
        "{\"runwire\":[{\"type\":\"usage\",\"total_tokens\":3}]}",
        "{\"runwire\":{\"type\":\"usage\",\"total_tokens\":3}}",
        "12345678901234567890123",
    ])
}

/// A value of a field that may be absent: there, `null` says that it is.
fn some_json() -> impl Strategy<Value = Option<Json>> + Clone {
    proptest::option::weighted(0.35, any_json()).prop_map(|json| json.filter(|json| !json.is_null()))
}

fn object_json() -> impl Strategy<Value = Json> + Clone {
    json(&["{}", "{\"q\": \"天气\", \"n\": 1.50}", "{\"a\":null,\"deep\":{\"b\":[]}}"])
}

fn text() -> impl Strategy<Value = String> + Clone {
    select(&["Hello", " world", "你好", "", "\n\n", "a", "\"q\" \\ \u{1}", "🚶", "done"][..])
        .prop_map(str::to_owned)
}

fn first_piece() -> impl Strategy<Value = Option<String>> {
    proptest::option::weighted(
        0.9,
        text().prop_filter("a first piece says something", |text| !text.is_empty()),
    )
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(words).prop_map(str::to_owned)
}

fn opt<T: std::fmt::Debug + Clone>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.35, strategy)
}

/// Ids as sources have them, some of which a decoder would mint too. Those that end in `#2` or `:thinking` are ours.
fn message_id() -> impl Strategy<Value = String> + Clone {
    word(&["m1", "m2", "m3", "t1", "x", "y", "run-p:m1", "run-p:m2", "run-p:t1"])
}

/// No source names a call like a message; of those that did, EasyFlow could not tell one from the other.
fn call_id() -> impl Strategy<Value = String> + Clone {
    word(&["c1", "c2", "c3", "c4"])
}

fn tool() -> impl Strategy<Value = String> + Clone {
    word(&["search", "sum", "工具", "unknown"])
}

fn figure() -> impl Strategy<Value = f64> {
    select(&[0.0, 1.5, 40.0, 100.0][..])
}

fn tokens() -> impl Strategy<Value = Option<u64>> {
    opt(0u64..1000)
}

prop_compose! {
    fn error()(
        code in opt(word(&["E1", "timeout", "CANCELLED_BY_X"])),
        kind in opt(word(&["validation", "timeout", "ValueError"])),
        domain in opt(word(&["system", "business"])),
        message in word(&["it broke", "坏了", "cancelled", "", "failed"]),
        retryable in opt(any::<bool>()),
        details in some_json(),
    ) -> ErrorInfo {
        ErrorInfo { code, kind, domain, message, retryable, details, ..Default::default() }
    }
}

prop_compose! {
    fn summary()(
        prompt_tokens in tokens(),
        completion_tokens in tokens(),
        total_tokens in tokens(),
        duration_ms in opt(figure()),
        steps in tokens(),
        tool_calls in tokens(),
        response_latency_ms in opt(figure()),
    ) -> Summary {
        Summary {
            prompt_tokens,
            completion_tokens,
            total_tokens,
            duration_ms,
            steps,
            tool_calls,
            response_latency_ms,
            ..Default::default()
        }
    }
}

prop_compose! {
    fn text_finished()(
        content in proptest::option::weighted(0.1, text()),
        status in opt(word(&["success", "partial_success", "failed"])),
        result_type in opt(word(&["unknown", "plan"])),
        key_points in some_json(),
        suggested_actions in some_json(),
        ui_schema in some_json(),
        error in some_json(),
        bare in any::<bool>(),
    ) -> TextFinished {
        if bare {
            return TextFinished { content, ..Default::default() };
        }
        TextFinished {
            content,
            status,
            result_type,
            key_points,
            suggested_actions,
            ui_schema,
            error,
            ..Default::default()
        }
    }
}

prop_compose! {
    fn called()(
        call_id in call_id(),
        name in tool(),
        arguments in object_json(),
        arguments_text in proptest::option::weighted(0.1, word(&["{\"cut", "just words", "[1]"])),
        incomplete in proptest::option::weighted(0.1, any::<bool>()),
        description in proptest::option::weighted(0.1, text()),
        message_id in proptest::option::weighted(0.2, message_id()),
    ) -> ToolCalled {
        let arguments = if arguments_text.is_some() { Json::empty_object() } else { arguments };
        ToolCalled { call_id, name, arguments, arguments_text, incomplete, description, message_id }
    }
}

prop_compose! {
    fn tool_finished()(
        call_id in call_id(),
        name in opt(tool()),
        status in select(ToolStatus::ALL),
        result in some_json(),
        error in opt(error()),
        duration_ms in opt(figure()),
        message_id in proptest::option::weighted(0.2, message_id()),
    ) -> ToolFinished {
        // What failed says how, and what did not has no error: several documents want the words.
        let error = match status {
            ToolStatus::Success => None,
            ToolStatus::Failure if result.is_none() => error.or_else(|| Some(ErrorInfo::message("broke"))),
            _ => error,
        };
        ToolFinished { call_id, name, status, result, error, duration_ms, message_id }
    }
}

prop_compose! {
    fn asked()(
        interaction_id in word(&["q1", "q2", "form-1"]),
        kind in select(InteractionKind::ALL),
        title in opt(text()),
        description in opt(text()),
        schema in opt(json(&[
            "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}",
            "{\"type\":\"object\",\"required\":[\"approved\"],\"properties\":{\"approved\":{\"type\":\"boolean\"}}}",
            "{}",
            "true",
        ])),
        ui in some_json(),
        arguments in opt(object_json()),
        reason in opt(word(&["it deletes files", "tool_call", "input_required"])),
        expires_at in opt(word(&["2026-12-01T00:00:00.000Z"])),
        name in opt(tool()),
    ) -> InteractionRequested {
        InteractionRequested {
            interaction_id,
            kind,
            title,
            description,
            schema,
            ui,
            arguments,
            reason,
            expires_at,
            name,
            call_id: None,
        }
    }
}

prop_compose! {
    fn notice()(
        level in select(Level::ALL),
        domain in opt(word(&["system", "business"])),
        code in opt(word(&["E1", "E2"])),
        kind in opt(word(&["validation", "ValueError"])),
        message in word(&["it broke", "坏了", "mind the gap", ""]),
        retryable in opt(any::<bool>()),
        fatal in opt(any::<bool>()),
        details in some_json(),
    ) -> Notice {
        Notice { level, domain, code, kind, message, retryable, fatal, details }
    }
}

fn foreign() -> impl Strategy<Value = Foreign> {
    let frames = select(
        &[
            ("loom", r#"{"type":"mystery","n":1}"#),
            ("loom", r#"{"type":"mystery","node_id":"n","session_id":"s","event_id":7}"#),
            ("loom-export", r#"{"Mystery":{"n":1}}"#),
            ("loom-export", r#"{"Two":1,"Keys":2}"#),
            ("streaming-engine", r#"{"type":"mystery","data":{"n":1},"metadata":{"sequence":3,"x":1}}"#),
            ("agio", r#"{"type":"mystery","run_id":"r","timestamp":"2026-01-01T00:00:00Z","data":{"n":1}}"#),
            ("ag-ui", r#"{"type":"MYSTERY","n":1}"#),
            ("social-app", r#"{"type":"MYSTERY","n":[1]}"#),
            ("easyflow-chat", r#"{"protocol":"easyflow-chat","domain":"odd","type":"thing","payload":{}}"#),
            ("runwire", r#"{"type":"future.event","n":1}"#),
            ("runwire", r#"{"type":"interaction.resolved","interaction_id":"q1","decision":"approved"}"#),
            ("raw", r#""bare""#),
            ("unknown", r#"[1]"#),
        ][..],
    );
    (frames, proptest::option::weighted(0.2, word(&["message", "odd name"]))).prop_map(
        |((dialect, frame), name)| Foreign {
            dialect: dialect.to_owned(),
            frame: Json::parse(frame).unwrap(),
            name,
        },
    )
}

fn said(strategy: impl Strategy<Value = Body> + 'static) -> BoxedStrategy<Act> {
    strategy.prop_map(|body| Act::Say(Event::new(body))).boxed()
}

fn beginning() -> impl Strategy<Value = Act> {
    (opt(text()), opt(word(&["u1"])), opt(word(&["helper"])), some_json(), opt(word(&["run-0"]))).prop_map(
        |(message, message_id, agent, input, parent_run_id)| {
            Act::Say(Event::new(RunStarted { message, message_id, agent, input, parent_run_id }))
        },
    )
}

fn end() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => said((opt(text()), some_json(), opt(summary())).prop_map(|(reply, result, summary)| {
            RunCompleted { reply, result, summary }.into()
        })),
        2 => said((error(), opt(summary())).prop_map(|(error, summary)| RunFailed { error, summary }.into())),
        2 => said((opt(text()), opt(summary())).prop_map(|(reason, summary)| {
            RunCancelled { reason, summary }.into()
        })),
    ]
}

/// Texts, thinking, calls, steps and questions: what a run mostly is.
fn main_act() -> impl Strategy<Value = Act> {
    let open = || 0usize..4;
    prop_oneof![
        4 => (message_id(), proptest::option::weighted(0.15, word(&["assistant", "user", "system"])), first_piece())
            .prop_map(|(id, role, first)| Act::BeginText { id, role, first }),
        8 => (open(), text(), proptest::option::weighted(0.2, word(&["markdown", "latex"])))
            .prop_map(|(open, content, format)| Act::TextDelta { open, content, format }),
        3 => (open(), text_finished())
            .prop_map(|(open, finished)| Act::TextFinished { open, finished: finished.into() }),
        1 => said((message_id(), first_piece()).prop_map(|(message_id, content)| {
            TextDelta { message_id, content: content.unwrap_or_else(|| "again".into()), format: None }.into()
        })),
        3 => (message_id(), proptest::option::weighted(0.2, word(&["reasoning", "odd"])), first_piece())
            .prop_map(|(id, stage, first)| Act::BeginThinking { id, stage, first }),
        5 => (open(), text(), proptest::option::weighted(0.2, word(&["reasoning", "odd"])))
            .prop_map(|(open, content, stage)| Act::ThinkingDelta { open, content, stage }),
        2 => (open(), proptest::option::weighted(0.1, text()))
            .prop_map(|(open, content)| Act::ThinkingFinished { open, content }),
        2 => said((call_id(), proptest::option::weighted(0.8, tool()), proptest::option::weighted(0.2, message_id()))
            .prop_map(|(call_id, name, message_id)| ToolArgsStarted { call_id, name, message_id }.into())),
        4 => (open(), word(&["{\"a\":", "1}", "{}", "{\"a\":1}", "", "x"]))
            .prop_map(|(open, delta)| Act::ArgsDelta { open, delta }),
        3 => (open(), called()).prop_map(|(open, called)| Act::Called { open, called: called.into() }),
        3 => said(called().prop_map(Body::from)),
        1 => (open(), any::<bool>()).prop_map(|(open, named)| Act::ToolStarted { open, named }),
        1 => (open(), opt(figure()), opt(text()))
            .prop_map(|(open, progress, message)| Act::ToolProgress { open, progress, message }),
        1 => (open(), text()).prop_map(|(open, content)| Act::ToolOutput { open, content }),
        5 => (open(), tool_finished())
            .prop_map(|(open, finished)| Act::ToolFinished { open, finished: finished.into() }),
        1 => said(tool_finished().prop_map(Body::from)),
        2 => said(word(&["plan", "act", "a#2", "步骤"]).prop_map(|name| StepStarted { name }.into())),
        2 => (open(), opt(error())).prop_map(|(open, error)| Act::StepFinished { open, error }),
        2 => (opt(open()), asked(), any::<bool>())
            .prop_map(|(open, asked, plain)| Act::Ask { open, asked: asked.into(), plain }),
        3 => (open(), select(Decision::ALL), some_json(), opt(text()), opt(word(&["ann"]))).prop_map(
            |(open, decision, values, reason, by)| Act::Answer {
                open,
                resolved: InteractionResolved { decision, values, reason, by, ..Default::default() }.into(),
            }
        ),
    ]
}

/// Everything else.
fn side_act() -> impl Strategy<Value = Act> {
    let open = || 0usize..4;
    prop_oneof![
        (opt(open()), word(&["chart", "dataframe", "hologram"]), any_json(), some_json()).prop_map(
            |(open, data_type, data, metadata)| Act::Data {
                open,
                data: Data { data_type, data, metadata, call_id: None }.into()
            }
        ),
        said((tokens(), tokens(), tokens()).prop_map(|(prompt_tokens, completion_tokens, total_tokens)| {
            Usage { prompt_tokens, completion_tokens, total_tokens }.into()
        })),
        said(any_json().prop_map(|figures| Metrics { figures }.into())),
        said(any_json().prop_map(|state| StateSnapshot { state }.into())),
        said(any_json().prop_map(|state| StateUpdated { step: "plan".into(), state }.into())),
        said(
            json(&[
                r#"[{"op":"add","path":"/n","value":1}]"#,
                r#"[{"op":"remove","path":"/nowhere"}]"#,
                r#"{"op":"odd"}"#,
            ])
            .prop_map(|patch| StatePatched { patch }.into())
        ),
        said(
            json(&[r#"[{"id":"u1","role":"user","content":"hi"}]"#, "[]", "[{\"odd\":1}]", "{}"])
                .prop_map(|messages| MessagesSnapshot { messages }.into())
        ),
        said((some_json(), some_json(), some_json()).prop_map(|(checkpoint_id, step, state)| {
            Checkpoint { checkpoint_id, step, state, ..Default::default() }.into()
        })),
        said(any_json().prop_map(|candidates| TotExpanded { candidates }.into())),
        said((any_json(), any_json()).prop_map(|(chosen, scores)| TotEvaluated { chosen, scores }.into())),
        said(
            (opt(text()), any_json())
                .prop_map(|(reason, to_depth)| { TotBacktracked { reason, to_depth }.into() })
        ),
        said((some_json(), some_json()).prop_map(|(node_count, node_ids)| {
            GotPlanned { node_count, edge_count: None, node_ids }.into()
        })),
        said(word(&["n1"]).prop_map(|node_id| GotNodeStarted { node_id }.into())),
        said(
            opt(text()).prop_map(|result_summary| {
                GotNodeCompleted { node_id: "n1".into(), result_summary }.into()
            })
        ),
        said(text().prop_map(|error| GotNodeFailed { node_id: "n1".into(), error }.into())),
        said(some_json().prop_map(|nodes_added| {
            GotExpanded { node_id: "n1".into(), nodes_added, edges_added: None }.into()
        })),
        said((any_json(), opt(any::<bool>())).prop_map(|(content, replace)| {
            ActivitySnapshot { message_id: "act-1".into(), activity_type: "plan".into(), content, replace }
                .into()
        })),
        said(json(&[r#"[{"op":"add","path":"/n","value":1}]"#, "7"]).prop_map(|patch| {
            ActivityPatched { message_id: "act-1".into(), activity_type: "plan".into(), patch }.into()
        })),
        opt(word(&["scout"])).prop_map(|name| Act::SubagentStarted { name }),
        (open(), any::<bool>()).prop_map(|(open, failed)| Act::SubagentEnds { open, failed }),
        said(notice().prop_map(Body::from)),
        said(
            (opt(word(&["ping", "runwire.usage", "ag-ui.REASONING_ENCRYPTED_VALUE"])), any_json())
                .prop_map(|(name, value)| Custom { name, value }.into())
        ),
        said(foreign().prop_map(Body::from)),
        said(word(&["initializing", "running", "throttled"]).prop_map(|state| RunStatus { state }.into())),
        said(
            (opt(text()), opt(word(&["ann"])))
                .prop_map(|(reason, by)| RunCancelRequested { reason, by }.into())
        ),
        said(opt(text()).prop_map(|reason| RunSuspended { reason, interaction_ids: Vec::new() }.into())),
        said(opt(text()).prop_map(|reason| RunResumed { reason, interaction_ids: Vec::new() }.into())),
    ]
}

fn attempt(act: impl Strategy<Value = Act>) -> impl Strategy<Value = Attempt> {
    (
        act,
        proptest::option::weighted(0.1, 0usize..3),
        proptest::bool::weighted(0.05),
        select(&[0u64, 1, 250][..]),
        any::<bool>(),
    )
        .prop_map(|(act, subagent, extra, later, frame)| Attempt { act, subagent, extra, later, frame })
}

/// Any run: some begin properly, some do not; some end, some do not.
pub(crate) fn run() -> impl Strategy<Value = Vec<Attempt>> {
    let middle = prop_oneof![3 => main_act().boxed(), 1 => side_act().boxed()];
    (
        proptest::option::weighted(0.7, attempt(beginning())),
        proptest::collection::vec(attempt(middle), 0..40),
        proptest::option::weighted(0.8, attempt(end())),
    )
        .prop_map(|(first, middle, last)| first.into_iter().chain(middle).chain(last).collect())
}
