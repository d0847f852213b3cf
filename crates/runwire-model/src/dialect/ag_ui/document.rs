//! The rules of the verifier of the official client (`@ag-ui/client` 1.0.0).
//!
//! Its chunks need no START, and the retired `THINKING_*` are not its own any more.

use crate::dialect::document::PartPhase::{self, Begins, Ends, GoesOn};
use crate::dialect::document::{
    CompletenessRule, DocumentRules, LifeRules, OrderRules, OtherForm, PartRule, RunNaming, RunPart,
    SecondStart, UniqueIds,
};

/// Official events that are read and never written, so that the schema does not describe them.
const CHUNKS: &[&str] = &["TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK"];

pub(super) const DOCUMENT: DocumentRules = DocumentRules {
    form: |frame| {
        if frame.kind.starts_with("THINKING_") {
            let message = "is retired, and still read as REASONING_*";
            return Some(OtherForm::Legacy { section: "BaseEvent", message });
        }
        CHUNKS.contains(&frame.kind).then_some(OtherForm::Undescribed)
    },
    ..DocumentRules::with_order(ORDER)
};

const ORDER: OrderRules = OrderRules::new(
    LifeRules {
        run: RunNaming::OneAtATime { start: Some("/runId") },
        first: Some(("RUN_STARTED", "RunStartedEvent")),
        may_be_first: |frame| frame.kind == "RUN_ERROR",
        second_start: SecondStart::RestartsWrongly {
            section: "RunStartedEvent",
            message: "a run starts while another is active",
            hint: "finish the run before with RUN_FINISHED",
        },
        needs_start: true,
        // The one thing that the client still takes after RUN_FINISHED.
        may_follow: &[("RUN_FINISHED", "RUN_ERROR")],
        completeness: Some(CompletenessRule {
            word: "RUN_FINISHED",
            section: "RunFinishedEvent",
            hint: "end everything before RUN_FINISHED",
            parts: &[
                (RunPart::Step, "steps"),
                (RunPart::Text, "text messages"),
                (RunPart::Thinking, "reasoning messages"),
                (RunPart::ThinkingSpan, "reasoning"),
                (RunPart::Arguments, "tool calls"),
                (RunPart::Subagent, "subagents"),
            ],
        }),
        ..LifeRules::new(
            "RunFinishedEvent",
            &["RUN_STARTED"],
            &[("RUN_FINISHED", "RUN_FINISHED"), ("RUN_ERROR", "RUN_ERROR")],
            "only RUN_STARTED may follow",
        )
    },
    &[
        step("STEP_STARTED", Begins, "StepStartedEvent"),
        step("STEP_FINISHED", Ends, "StepFinishedEvent"),
        text("TEXT_MESSAGE_START", Begins, "TextMessageStartEvent"),
        text("TEXT_MESSAGE_CONTENT", GoesOn, "TextMessageContentEvent"),
        text("TEXT_MESSAGE_END", Ends, "TextMessageEndEvent"),
        span("REASONING_START", Begins, "ReasoningStartEvent"),
        span("REASONING_END", Ends, "ReasoningEndEvent"),
        thought("REASONING_MESSAGE_START", Begins, "ReasoningMessageStartEvent"),
        thought("REASONING_MESSAGE_CONTENT", GoesOn, "ReasoningMessageContentEvent"),
        thought("REASONING_MESSAGE_END", Ends, "ReasoningMessageEndEvent"),
        call("TOOL_CALL_START", Begins, "ToolCallStartEvent"),
        call("TOOL_CALL_ARGS", GoesOn, "ToolCallArgsEvent"),
        call("TOOL_CALL_END", Ends, "ToolCallEndEvent"),
        subagent("SUBAGENT_STARTED", Begins, "SubagentStartedEvent"),
        subagent("SUBAGENT_FINISHED", Ends, "SubagentFinishedEvent"),
        subagent("SUBAGENT_ERROR", Ends, "SubagentErrorEvent"),
    ],
);

const MESSAGE: &[&str] = &["/messageId"];

/// Makes the rule of steps, which the client keeps apart for each subagent.
const fn step(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    let rule = PartRule::new(word, phase, RunPart::Step, "step", &["/stepName"], section);
    PartRule { within: Some("/subagentRunId"), ..rule }
}

const fn text(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    PartRule::new(word, phase, RunPart::Text, "text message", MESSAGE, section)
}

const fn span(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    PartRule::new(word, phase, RunPart::ThinkingSpan, "reasoning", MESSAGE, section)
}

const fn thought(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    PartRule::new(word, phase, RunPart::Thinking, "reasoning message", MESSAGE, section)
}

const fn call(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    PartRule::new(word, phase, RunPart::Arguments, "tool call", &["/toolCallId"], section)
}

const fn subagent(word: &'static str, phase: PartPhase, section: &'static str) -> PartRule {
    let rule = PartRule::new(word, phase, RunPart::Subagent, "subagent", &["/subagentRunId"], section);
    PartRule { unique: Some(UniqueIds::InRun), ..rule }
}
