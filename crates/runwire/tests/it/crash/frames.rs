//! Generates frames with a unique token: writer and number.

use std::fmt::Write;

/// The dialect of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterDialect {
    Runwire,
    AgUi,
    Agio,
    Loom,
}

impl WriterDialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Runwire => "runwire",
            Self::AgUi => "ag-ui",
            Self::Agio => "agio",
            Self::Loom => "loom",
        }
    }

    /// Makes the frame with a number: texts, thoughts and calls that begin and end, again and again.
    pub(crate) fn frame(self, writer: &str, number: usize) -> String {
        let token = token(writer, number);
        let turn = number / TURN;
        match self {
            Self::Runwire => match number % TURN {
                0 => {
                    format!(r#"{{"type":"text.started","message_id":"{writer}-m{turn}","role":"assistant"}}"#)
                }
                1..=4 => {
                    format!(r#"{{"type":"text.delta","message_id":"{writer}-m{turn}","content":"{token}"}}"#)
                }
                5 => format!(r#"{{"type":"text.finished","message_id":"{writer}-m{turn}"}}"#),
                6 => format!(
                    r#"{{"type":"tool.called","call_id":"{writer}-c{turn}","name":"look","arguments":{{"n":{number}}}}}"#
                ),
                7 => format!(
                    r#"{{"type":"tool.finished","call_id":"{writer}-c{turn}","name":"look","status":"success","result":{number}}}"#
                ),
                _ => format!(r#"{{"type":"custom","name":"{writer}","value":"{token}"}}"#),
            },
            Self::AgUi => match number % TURN {
                0 => format!(
                    r#"{{"type":"TEXT_MESSAGE_START","messageId":"{writer}-m{turn}","role":"assistant"}}"#
                ),
                1..=3 => format!(
                    r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{writer}-m{turn}","delta":"{token}"}}"#
                ),
                4 => format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"{writer}-m{turn}"}}"#),
                5 => format!(
                    r#"{{"type":"TOOL_CALL_START","toolCallId":"{writer}-c{turn}","toolCallName":"look"}}"#
                ),
                6 => format!(
                    r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{writer}-c{turn}","delta":"{{\"n\":{number}}}"}}"#
                ),
                7 => format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"{writer}-c{turn}"}}"#),
                8 => format!(
                    r#"{{"type":"TOOL_CALL_RESULT","messageId":"{writer}-t{turn}","toolCallId":"{writer}-c{turn}","content":"{number}"}}"#
                ),
                _ => format!(r#"{{"type":"CUSTOM","name":"{writer}","value":"{token}"}}"#),
            },
            Self::Agio => {
                let (kind, data) = match number % TURN {
                    6 => (
                        "tool_call_started",
                        format!(
                            r#"{{"tool_name":"look","tool_call_id":"{writer}-c{turn}","arguments":{{"n":{number}}},"step":1}}"#
                        ),
                    ),
                    7 => (
                        "tool_call_completed",
                        format!(
                            r#"{{"tool_name":"look","tool_call_id":"{writer}-c{turn}","result":"{number}","duration":0.1,"step":1}}"#
                        ),
                    ),
                    8 => (
                        "usage_update",
                        format!(
                            r#"{{"prompt_tokens":{number},"completion_tokens":1,"total_tokens":{},"step":1}}"#,
                            number + 1
                        ),
                    ),
                    _ => ("text_delta", format!(r#"{{"content":"{token}","step":1}}"#)),
                };
                format!(
                    r#"{{"type":"{kind}","run_id":"{writer}","timestamp":"2026-11-20T18:00:01.123Z","data":{data},"metadata":{{}}}}"#
                )
            }
            Self::Loom => {
                let mut frame =
                    format!(r#"{{"session_id":"{writer}","node_id":"run-think-{turn}","event_id":{number},"#);
                let rest = match number % TURN {
                    0 => r#""type":"node_enter","id":"think""#.to_owned(),
                    1..=3 => format!(r#""type":"thought_chunk","content":"{token}","id":"think""#),
                    4..=6 => format!(r#""type":"message_chunk","content":"{token}","id":"think""#),
                    7 => format!(
                        r#""type":"tool_call","call_id":"{writer}-c{turn}","name":"look","arguments":{{"n":{number}}}"#
                    ),
                    8 => format!(
                        r#""type":"tool_end","call_id":"{writer}-c{turn}","name":"look","result":"{number}","is_error":false"#
                    ),
                    _ => r#""type":"node_exit","id":"think","result":"Ok""#.to_owned(),
                };
                let _ = write!(frame, "{rest}}}");
                frame
            }
        }
    }

    /// Makes the frame with a number in a stream of several runs, one after the other.
    pub(crate) fn frame_of_thread(writer: &str, number: usize) -> String {
        let run = number / RUN;
        match number % RUN {
            0 => format!(r#"{{"type":"RUN_STARTED","threadId":"{writer}","runId":"{writer}-r{run}"}}"#),
            at if at == RUN - 1 => {
                format!(r#"{{"type":"RUN_FINISHED","threadId":"{writer}","runId":"{writer}-r{run}"}}"#)
            }
            _ => format!(r#"{{"type":"CUSTOM","name":"{writer}","value":"{}"}}"#, token(writer, number)),
        }
    }
}

/// Frames until texts and calls begin anew.
const TURN: usize = 10;
/// Frames of a run in a stream of several.
pub(crate) const RUN: usize = 16;

/// Who wrote a frame, and its number: `p1.17;`.
pub(crate) fn token(writer: &str, number: usize) -> String {
    format!("{writer}.{number};")
}

/// Finds the numbers of a writer's tokens in what a reader got, in their order.
pub(crate) fn numbers(writer: &str, text: &str) -> Vec<usize> {
    let begins = format!("\"{writer}.");
    let tokens = text.match_indices(&begins).filter_map(|(at, _)| text[at + begins.len()..].split_once(';'));
    tokens.map(|(number, _)| number.parse().unwrap()).collect()
}

/// Returns true if the frame's token is visible to readers of events.
pub(crate) fn carries_token(frame: &str, writer: &str) -> bool {
    !numbers(writer, frame).is_empty()
}
