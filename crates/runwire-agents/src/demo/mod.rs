//! The scripts of the built-in demo agents: canonical events without a key, a network or a clock.
//!
//! A script is deterministic: the same agent, message and answers give the same events. So it needs no storage: to
//! resume, a runner replays the script with the stored answers and skips the events that are already written.
//!
//! | agent | file | shows |
//! |---|---|---|
//! | `demo` | `trip/` | everything: thinking, parallel tools, data, an error, a form, an approval |
//! | `thought-tree` | `tree.rs`, `puzzle.rs` | a thought tree that backtracks |
//! | `thought-graph` | `graph.rs` | a thought graph that grows, with a node that fails |
//! | `failing` | `failing.rs` | a run that fails |
//! | `endless` | `endless.rs` | a run that only a cancel ends |
//!
//! A script is a chain of scenes. A scene writes its events to a `ScriptWriter` and
//! returns the `Transition` to the next one; only the current scene is in memory.

mod cities;
mod endless;
mod failing;
mod graph;
mod puzzle;
pub(crate) mod runner;
mod script_writer;
#[cfg(test)]
mod tests;
mod tool_call;
mod tree;
mod trip;

use std::mem;
use std::time::Duration;

use runwire_model::Event;
use runwire_model::event::{ErrorInfo, InteractionResolved};

use script_writer::ScriptWriter;

/// A built-in agent.
pub struct Demo {
    /// The name in requests.
    pub name: &'static str,
    /// The name for people.
    pub title: LocalizedText,
    /// What it shows.
    pub description: LocalizedText,
    /// Example messages.
    pub examples: &'static [LocalizedText],
    opening: fn(&mut ScriptWriter) -> Transition,
}

/// A text in two languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalizedText {
    /// In English.
    pub en: &'static str,
    /// In Chinese.
    pub zh: &'static str,
}

/// Lists the demo agents.
pub fn agents() -> &'static [Demo] {
    &AGENTS
}

static AGENTS: [Demo; 5] = [
    Demo {
        name: "demo",
        title: LocalizedText { en: "Everything at once", zh: "全部功能" },
        description: LocalizedText {
            en: "Plans a day out: thinking, two tools in parallel, a table and a chart, an error that is \
                 retried, a form and an approval.",
            zh: "规划一次出行：思考、两个并行工具、表格与图表、一次会重试的错误、一张表单和一次审批。",
        },
        examples: &[
            LocalizedText {
                en: "What can I do in Hangzhou on Saturday?", zh: "周六在杭州可以做什么？"
            },
            LocalizedText { en: "What's the weather like?", zh: "天气怎么样" },
        ],
        opening: trip::opening,
    },
    Demo {
        name: "thought-tree",
        title: LocalizedText { en: "Thought tree", zh: "思维树" },
        description: LocalizedText {
            en: "Makes 24 out of four numbers: candidates, scores, a dead end and the way back.",
            zh: "用四个数算 24 点：候选、评分、走进死胡同再回溯。",
        },
        examples: &[
            LocalizedText { en: "Make 24 out of 4, 7, 8 and 8", zh: "用 4、7、8、8 算 24 点" },
            LocalizedText { en: "Make 24 out of 1, 5, 5 and 5", zh: "用 1、5、5、5 算 24 点" },
        ],
        opening: tree::opening,
    },
    Demo {
        name: "thought-graph",
        title: LocalizedText { en: "Thought graph", zh: "思维图" },
        description: LocalizedText {
            en: "Compares two cities: nodes side by side, one that fails, and a graph that grows around it.",
            zh: "比较两座城市：节点并行执行，一个节点失败，图在它周围扩展。",
        },
        examples: &[LocalizedText {
            en: "Compare Chengdu with another city",
            zh: "把成都和另一座城市比一比",
        }],
        opening: graph::opening,
    },
    Demo {
        name: "failing",
        title: LocalizedText { en: "A run that fails", zh: "失败的运行" },
        description: LocalizedText {
            en: "Works a little, then fails with an error that says what to do.",
            zh: "先正常工作一会儿，然后失败，并说明该怎么办。",
        },
        examples: &[LocalizedText { en: "Export the report", zh: "导出报表" }],
        opening: failing::opening,
    },
    Demo {
        name: "endless",
        title: LocalizedText { en: "A run without an end", zh: "不会结束的运行" },
        description: LocalizedText {
            en: "Says something every second until it is cancelled.",
            zh: "每秒说一句话，直到被取消。",
        },
        examples: &[LocalizedText { en: "Keep me company", zh: "陪我聊一会儿" }],
        opening: endless::opening,
    },
];

/// The next action of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScriptStep {
    /// Write the event.
    Emit(Box<Event>),
    /// Wait, at a pace that people can follow.
    Pause(Duration),
    /// Wait for the answer to an interaction that was emitted before.
    Ask {
        /// The interaction.
        interaction_id: String,
    },
    /// The script is over: its terminal event was emitted.
    End,
}

/// The script of one run.
pub(crate) struct Script {
    writer: ScriptWriter,
    then: Transition,
}

impl Script {
    /// Creates the script of an agent for a message; none if there is no such agent.
    ///
    /// The run id only makes the ids in the events unique within the thread.
    pub(crate) fn new(agent: &str, message: &str, run: &str) -> Option<Self> {
        let demo = AGENTS.iter().find(|demo| demo.name == agent)?;
        Some(Self {
            writer: ScriptWriter::new(demo.name, message, run),
            then: Transition::scene(demo.opening),
        })
    }

    /// Returns the next action: the same interaction until it is answered, and `End` forever.
    pub(crate) fn next(&mut self) -> ScriptStep {
        loop {
            if let Some(step) = self.writer.take() {
                return step;
            }
            match mem::replace(&mut self.then, Transition::Finished) {
                Transition::Scene(scene) => self.then = scene(&mut self.writer),
                Transition::Ask(question) => {
                    let interaction_id = question.id.to_owned();
                    self.then = Transition::Ask(question);
                    return ScriptStep::Ask { interaction_id };
                }
                Transition::End(ending) => self.writer.end(ending),
                Transition::Finished => return ScriptStep::End,
            }
        }
    }

    /// Continues with an answer; returns false if the script does not wait for that interaction.
    pub(crate) fn answer(&mut self, resolved: &InteractionResolved) -> bool {
        match mem::replace(&mut self.then, Transition::Finished) {
            Transition::Ask(question) if question.id == resolved.interaction_id => {
                self.then = (question.then)(&mut self.writer, resolved);
                true
            }
            other => {
                self.then = other;
                false
            }
        }
    }

    /// Cancels the script: the next event is the cancellation, unless the script has ended.
    pub(crate) fn cancel(&mut self) {
        if !matches!(self.then, Transition::Finished) {
            self.writer.discard_queued();
            self.then = Transition::End(ScriptEnding::Cancelled);
        }
    }
}

/// The transition after a scene.
enum Transition {
    /// To another scene.
    Scene(Box<dyn FnOnce(&mut ScriptWriter) -> Transition + Send>),
    /// To the scene that handles an answer.
    Ask(PendingInteraction),
    /// To the end of the run.
    End(ScriptEnding),
    /// None: the terminal event was emitted.
    Finished,
}

/// An emitted interaction and the handler of its answer.
struct PendingInteraction {
    id: &'static str,
    then: OnAnswer,
}

/// Handles an answer.
type OnAnswer = Box<dyn FnOnce(&mut ScriptWriter, &InteractionResolved) -> Transition + Send>;

/// How a run ends. Emitted in one place, so that a script ends exactly once.
enum ScriptEnding {
    Completed { reply: String },
    Failed(ErrorInfo),
    Cancelled,
}

impl Transition {
    fn scene(scene: impl FnOnce(&mut ScriptWriter) -> Transition + Send + 'static) -> Self {
        Self::Scene(Box::new(scene))
    }

    fn ask(
        id: &'static str,
        then: impl FnOnce(&mut ScriptWriter, &InteractionResolved) -> Transition + Send + 'static,
    ) -> Self {
        Self::Ask(PendingInteraction { id, then: Box::new(then) })
    }
}
