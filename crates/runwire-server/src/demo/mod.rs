//! The built-in demo agents: scripts of canonical events that need no key, no network and no clock.
//!
//! The same agent, message and answers always give the same events, so a script needs no storage: a runner that
//! lost its place makes the script anew, feeds it the answers that the log holds, and passes over what is written.
//!
//! | agent | file | shows |
//! |---|---|---|
//! | `demo` | `trip/` | everything: thinking, parallel tools, data, an error, a form, an approval |
//! | `thought-tree` | `tree.rs`, `puzzle.rs` | a thought tree that backtracks |
//! | `thought-graph` | `graph.rs` | a thought graph that grows, with a node that fails |
//! | `failing` | `failing.rs` | a run that fails |
//! | `endless` | `endless.rs` | a run that only a cancel ends |
//!
//! An agent is a chain of scenes. A scene tells its events to a [`Teller`](teller::Teller) and says what comes
//! [`Then`]; only the scene that is being told is in memory.

mod endless;
mod facts;
mod failing;
mod graph;
mod puzzle;
mod teller;
#[cfg(test)]
mod tests;
mod tool;
mod tree;
mod trip;

use std::mem;
use std::time::Duration;

use runwire_model::Event;
use runwire_model::event::{ErrorInfo, InteractionResolved};

use teller::Teller;

/// A built-in agent.
pub(crate) struct Demo {
    /// What requests call it.
    pub(crate) name: &'static str,
    /// What people call it.
    pub(crate) title: Words,
    /// What it shows.
    pub(crate) description: Words,
    /// What it can be asked, to try it.
    pub(crate) examples: &'static [Words],
    opening: fn(&mut Teller) -> Then,
}

/// The same words in two languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// In English.
    pub(crate) en: &'static str,
    /// In Chinese.
    pub(crate) zh: &'static str,
}

/// Lists the demo agents.
pub(crate) fn agents() -> &'static [Demo] {
    &AGENTS
}

static AGENTS: [Demo; 5] = [
    Demo {
        name: "demo",
        title: Words { en: "Everything at once", zh: "全部功能" },
        description: Words {
            en: "Plans a day out: thinking, two tools in parallel, a table and a chart, an error that is \
                 retried, a form and an approval.",
            zh: "规划一次出行：思考、两个并行工具、表格与图表、一次会重试的错误、一张表单和一次审批。",
        },
        examples: &[
            Words { en: "What can I do in Hangzhou on Saturday?", zh: "周六在杭州可以做什么？" },
            Words { en: "What's the weather like?", zh: "天气怎么样" },
        ],
        opening: trip::opening,
    },
    Demo {
        name: "thought-tree",
        title: Words { en: "Thought tree", zh: "思维树" },
        description: Words {
            en: "Makes 24 out of four numbers: candidates, scores, a dead end and the way back.",
            zh: "用四个数算 24 点：候选、评分、走进死胡同再回溯。",
        },
        examples: &[
            Words { en: "Make 24 out of 4, 7, 8 and 8", zh: "用 4、7、8、8 算 24 点" },
            Words { en: "Make 24 out of 1, 5, 5 and 5", zh: "用 1、5、5、5 算 24 点" },
        ],
        opening: tree::opening,
    },
    Demo {
        name: "thought-graph",
        title: Words { en: "Thought graph", zh: "思维图" },
        description: Words {
            en: "Compares two cities: nodes side by side, one that fails, and a graph that grows around it.",
            zh: "比较两座城市：节点并行执行，一个节点失败，图在它周围扩展。",
        },
        examples: &[Words {
            en: "Compare Chengdu with another city", zh: "把成都和另一座城市比一比"
        }],
        opening: graph::opening,
    },
    Demo {
        name: "failing",
        title: Words { en: "A run that fails", zh: "失败的运行" },
        description: Words {
            en: "Works a little, then fails with an error that says what to do.",
            zh: "先正常工作一会儿，然后失败，并说明该怎么办。",
        },
        examples: &[Words { en: "Export the report", zh: "导出报表" }],
        opening: failing::opening,
    },
    Demo {
        name: "endless",
        title: Words { en: "A run without an end", zh: "不会结束的运行" },
        description: Words {
            en: "Says something every second until it is cancelled.",
            zh: "每秒说一句话，直到被取消。",
        },
        examples: &[Words { en: "Keep me company", zh: "陪我聊一会儿" }],
        opening: endless::opening,
    },
];

/// What a script wants done next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Write the event.
    Emit(Box<Event>),
    /// Wait, so that a person can follow.
    Pause(Duration),
    /// Wait for the answer to a question that was written before.
    Ask {
        /// Which question.
        interaction_id: String,
    },
    /// The run has its terminal event; there is no more.
    End,
}

/// One run of a demo agent.
pub(crate) struct Script {
    teller: Teller,
    then: Then,
}

impl Script {
    /// Makes the script of an agent for a message; none where no agent has that name.
    ///
    /// The run's id only makes the ids in the events unique within the thread.
    pub(crate) fn new(agent: &str, message: &str, run: &str) -> Option<Self> {
        let demo = AGENTS.iter().find(|demo| demo.name == agent)?;
        Some(Self { teller: Teller::new(demo.name, message, run), then: Then::scene(demo.opening) })
    }

    /// Tells what to do next: the same question again until it is answered, and the end for ever.
    pub(crate) fn next(&mut self) -> Step {
        loop {
            if let Some(step) = self.teller.take() {
                return step;
            }
            match mem::replace(&mut self.then, Then::Over) {
                Then::Scene(scene) => self.then = scene(&mut self.teller),
                Then::Ask(question) => {
                    let interaction_id = question.id.to_owned();
                    self.then = Then::Ask(question);
                    return Step::Ask { interaction_id };
                }
                Then::End(ending) => self.teller.end(ending),
                Then::Over => return Step::End,
            }
        }
    }

    /// Goes on with an answer. Tells whether it was the question that the script waits for.
    pub(crate) fn answer(&mut self, resolved: &InteractionResolved) -> bool {
        match mem::replace(&mut self.then, Then::Over) {
            Then::Ask(question) if question.id == resolved.interaction_id => {
                self.then = (question.then)(&mut self.teller, resolved);
                true
            }
            other => {
                self.then = other;
                false
            }
        }
    }

    /// Stops: the next event says that the run was cancelled, unless it has ended.
    pub(crate) fn cancel(&mut self) {
        if !matches!(self.then, Then::Over) {
            self.teller.fall_silent();
            self.then = Then::End(Ending::Cancelled);
        }
    }
}

/// What follows a scene.
enum Then {
    /// Another scene.
    Scene(Box<dyn FnOnce(&mut Teller) -> Then + Send>),
    /// Whatever the answer to a question leads to.
    Ask(Question),
    /// The run's end.
    End(Ending),
    /// Nothing: the terminal event was told.
    Over,
}

/// A question that was told, and what follows its answer.
struct Question {
    id: &'static str,
    then: Answered,
}

/// Goes on with an answer.
type Answered = Box<dyn FnOnce(&mut Teller, &InteractionResolved) -> Then + Send>;

/// How a run ends. It is told in one place, so that no script can end twice or not at all.
enum Ending {
    Completed { reply: String },
    Failed(ErrorInfo),
    Cancelled,
}

impl Then {
    fn scene(scene: impl FnOnce(&mut Teller) -> Then + Send + 'static) -> Self {
        Self::Scene(Box::new(scene))
    }

    fn ask(
        id: &'static str,
        then: impl FnOnce(&mut Teller, &InteractionResolved) -> Then + Send + 'static,
    ) -> Self {
        Self::Ask(Question { id, then: Box::new(then) })
    }
}
