//! Whole texts: every reader of every dialect ends with the same words, whatever the source says again.

use runwire_model::Timestamp;
use runwire_model::convert::Options;
use runwire_model::dialect::{Decoder, Dialect, RecordBuilder};
use runwire_model::event::Body;
use runwire_model::record::Record;
use runwire_model::run::{Authority, RunState, WholePolicy};
use runwire_model::window::Window;
use serde_json::Value;

use crate::vectors::{Outcome, convert};

/// What a Loom agent writes: pieces, tools between them, and the reply.
struct Case {
    what: &'static str,
    /// The pieces of each message.
    messages: &'static [&'static [&'static str]],
    reply: &'static str,
    /// The answer, white space left out.
    answer: &'static str,
    /// How the fold joins it.
    joined: &'static str,
}

const CASES: &[Case] = &[
    Case {
        what: "the reply goes on where the pieces stopped",
        messages: &[&["I", " don't"]],
        reply: "I don't have access to your device's clock ...",
        answer: "Idon'thaveaccesstoyourdevice'sclock...",
        joined: "I don't have access to your device's clock ...",
    },
    Case {
        what: "the reply repeats the only message",
        messages: &[&["It is ", "sunny."]],
        reply: "It is sunny.",
        answer: "Itissunny.",
        joined: "It is sunny.",
    },
    Case {
        what: "the reply is a new answer after a tool",
        messages: &[&["Let me look."]],
        reply: "It is sunny.",
        answer: "Letmelook.Itissunny.",
        joined: "Let me look.\n\nIt is sunny.",
    },
    Case {
        what: "the reply repeats the first message only",
        messages: &[&["It is sunny."], &["Anything else?"]],
        reply: "It is sunny.",
        answer: "Itissunny.Anythingelse?",
        joined: "It is sunny.\n\nAnything else?",
    },
    Case {
        what: "the reply joins all messages in its own way",
        messages: &[&["Let me look."], &["It is sunny."]],
        reply: "Let me look.\nIt is sunny.\n",
        answer: "Letmelook.Itissunny.",
        joined: "Let me look.\n\nIt is sunny.",
    },
    Case {
        what: "the reply repeats the last two messages",
        messages: &[&["Let me look."], &["It is sunny."], &["Take a hat."]],
        reply: "It is sunny. Take a hat.",
        answer: "Letmelook.Itissunny.Takeahat.",
        joined: "Let me look.\n\nIt is sunny.\n\nTake a hat.",
    },
    Case {
        what: "the reply goes on after the last two messages",
        messages: &[&["Let me look."], &["It is sunny."], &["Take a hat."]],
        reply: "It is sunny. Take a hat. And water.",
        answer: "Letmelook.Itissunny.Takeahat.Andwater.",
        joined: "Let me look.\n\nIt is sunny.\n\nTake a hat. And water.",
    },
    Case {
        what: "the reply is cut short",
        messages: &[&["It is sunny, ", "and warm."]],
        reply: "It is sunny,",
        answer: "Itissunny,andwarm.",
        joined: "It is sunny, and warm.",
    },
    Case {
        what: "the reply is a cut of all messages",
        messages: &[&["Let me look."], &["It is sunny, and warm."]],
        reply: "Let me look.\n\nIt is su",
        answer: "Letmelook.Itissunny,andwarm.",
        joined: "Let me look.\n\nIt is sunny, and warm.",
    },
    Case {
        what: "the reply corrects a message",
        messages: &[&["Team Blue won, I thnk."]],
        reply: "Team Blue won 3:1.",
        answer: "TeamBluewon,Ithnk.TeamBluewon3:1.",
        joined: "Team Blue won, I thnk.\n\nTeam Blue won 3:1.",
    },
    Case {
        what: "white space at the seam is not doubled",
        messages: &[&["一、", "二、 "]],
        reply: "一、二、 三。",
        answer: "一、二、三。",
        joined: "一、二、 三。",
    },
    Case { what: "nothing was streamed", messages: &[], reply: "Hi.", answer: "Hi.", joined: "Hi." },
    Case { what: "the reply is empty", messages: &[&["Hi."]], reply: " \n", answer: "Hi.", joined: "Hi." },
];

fn loom(case: &Case) -> Vec<(Option<String>, Vec<u8>)> {
    let mut frames = vec![serde_json::json!({"type": "run_start", "run_id": "run-1"})];
    for (at, pieces) in case.messages.iter().enumerate() {
        frames.push(serde_json::json!({"type": "node_enter", "id": "think"}));
        for piece in *pieces {
            frames.push(serde_json::json!({"type": "message_chunk", "content": piece, "id": "think"}));
        }
        let call = serde_json::json!({"type": "tool_call", "call_id": format!("c{at}"), "name": "look", "arguments": {}});
        frames.push(call);
        frames.push(serde_json::json!({"type": "node_exit", "id": "think", "result": "Ok"}));
    }
    frames.push(serde_json::json!({"reply": case.reply}));
    frames.into_iter().map(|frame| (None, frame.to_string().into_bytes())).collect()
}

/// The same run as Agio and the older StreamingEngine say it.
fn agio(case: &Case) -> Vec<(Option<String>, Vec<u8>)> {
    let frame = |kind: &str, data: Value| serde_json::json!({"type": kind, "run_id": "run-1", "timestamp": "2026-11-16T08:00:00.000Z", "data": data, "metadata": {}});
    let mut frames = vec![frame("run_started", serde_json::json!({"query": "?"}))];
    for (at, pieces) in case.messages.iter().enumerate() {
        for piece in *pieces {
            frames.push(frame("text_delta", serde_json::json!({"content": piece, "step": 1})));
        }
        let call = serde_json::json!({"tool_name": "look", "tool_call_id": format!("c{at}"), "arguments": {}, "step": 1});
        frames.push(frame("tool_call_started", call));
    }
    frames.push(frame("run_completed", serde_json::json!({"response": case.reply, "metrics": {}})));
    frames.into_iter().map(|frame| (None, frame.to_string().into_bytes())).collect()
}

fn legacy(case: &Case) -> Vec<(Option<String>, Vec<u8>)> {
    let mut frames = Vec::new();
    for (at, pieces) in case.messages.iter().enumerate() {
        for piece in *pieces {
            frames.push(serde_json::json!({"type": "token", "content": piece}));
        }
        let id = format!("c{at}");
        frames.push(
            serde_json::json!({"type": "tool_call", "tool_id": id, "tool_name": "look", "tool_args": "{}"}),
        );
    }
    frames.push(serde_json::json!({"type": "final_answer", "content": case.reply}));
    frames.push(serde_json::json!({"type": "done"}));
    frames.into_iter().map(|frame| (None, frame.to_string().into_bytes())).collect()
}

/// Finds the piece of text in a frame, as a client does that is written from the dialect's document alone.
type Client = fn(&Value) -> Option<&Value>;

const CLIENTS: &[(Dialect, Client)] = &[
    (Dialect::Runwire, |frame| (frame["type"] == "text.delta").then(|| &frame["content"])),
    (Dialect::Loom, |frame| (frame["type"] == "message_chunk").then(|| &frame["content"])),
    (Dialect::LoomExport, |frame| Some(&frame["Messages"]["chunk"]["content"])),
    (Dialect::StreamingEngine, |frame| (frame["type"] == "content").then(|| &frame["data"]["content"])),
    (Dialect::Agio, |frame| (frame["type"] == "text_delta").then(|| &frame["data"]["content"])),
    (Dialect::AgUi, |frame| (frame["type"] == "TEXT_MESSAGE_CONTENT").then(|| &frame["delta"])),
    (Dialect::SocialApp, |frame| (frame["type"] == "TEXT_MESSAGE_END").then(|| &frame["answer"])),
    (Dialect::EasyflowChat, |frame| {
        let payload = (frame["type"] == "message").then(|| &frame["payload"])?;
        payload.get("delta").or(payload.get("content"))
    }),
];

/// Returns the dialect whose client reads a dialect: its own, or for one without a client here that of the canonical
/// events, which reads what the dialect's decoder makes of the frames.
fn client_dialect(dialect: Dialect) -> Dialect {
    let has_client = dialect == Dialect::Text || CLIENTS.iter().any(|(known, _)| *known == dialect);
    if has_client { dialect } else { Dialect::Runwire }
}

/// Returns the text that the client of a dialect shows.
fn shown(frames: &[(String, Option<String>, Vec<u8>)], dialect: Dialect, own: bool) -> String {
    if client_dialect(dialect) != dialect {
        let frames: Vec<_> = frames.iter().map(|(_, name, data)| (name.clone(), data.clone())).collect();
        let options = Options { from: Some(dialect), ..Options::to(client_dialect(dialect)) };
        return shown(&convert(&frames, options).unwrap().frames, client_dialect(dialect), false);
    }
    let client = CLIENTS.iter().find(|(known, _)| *known == dialect).map(|(_, client)| client);
    let mut shown = String::new();
    for (_, _, data) in frames {
        let Some(client) = client else {
            shown.push_str(std::str::from_utf8(data).unwrap());
            continue;
        };
        let frame: Value = serde_json::from_slice(data).unwrap();
        shown.push_str(client(&frame).and_then(Value::as_str).unwrap_or_default());
    }
    // Loom's own client shows the reply where it says more than the pieces.
    if let (Dialect::Loom, true, Some((_, _, last))) = (dialect, own, frames.last()) {
        let frame: Value = serde_json::from_slice(last).unwrap();
        let reply = frame["reply"].as_str().unwrap_or_default();
        let told = words(&shown);
        if words(reply).starts_with(&told) {
            return reply.to_owned();
        }
        if !told.contains(&words(reply)) {
            shown.push_str(reply);
        }
    }
    shown
}

fn words(text: &str) -> String {
    text.split_whitespace().collect()
}

fn sorted(text: &str) -> String {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    words.concat()
}

#[test]
fn every_reader_of_every_dialect_ends_with_the_same_words() {
    for case in CASES {
        let sources = [
            (Dialect::Loom, loom(case)),
            (Dialect::Agio, agio(case)),
            (Dialect::StreamingEngine, legacy(case)),
        ];
        for (from, input) in sources {
            for to in Dialect::ALL {
                let outcome = convert(&input, Options { from: Some(from), ..Options::to(to) }).unwrap();
                let label = format!("{}: {from} read as {to}", case.what);
                assert_eq!(outcome.messages[0].main_content, case.joined, "{label}");
                // In Loom's own dialect the reply itself says the rest; of several messages it may say less.
                let own = from == to;
                if own && from == Dialect::Loom && case.messages.len() > 1 {
                    continue;
                }
                assert_eq!(words(&shown(&outcome.frames, to, own)), case.answer, "{label}");
            }
        }
    }
}

#[test]
fn a_whole_that_is_followed_by_the_end_is_the_reply() {
    for case in CASES {
        let reply = words(case.reply);
        // One that was cut short says less than the texts that it begins with.
        let is_cut = reply.is_empty() || case.what.contains("cut");
        let expected = if is_cut { case.answer } else { &reply };
        for (to, pointer) in [(Dialect::Loom, "/reply"), (Dialect::Agio, "/data/response")] {
            let options = Options { from: Some(Dialect::StreamingEngine), ..Options::to(to) };
            let outcome = convert(&legacy(case), options).unwrap();
            let (_, _, last) = outcome.frames.last().unwrap();
            let last: Value = serde_json::from_slice(last).unwrap();
            let whole = last.pointer(pointer).and_then(Value::as_str).unwrap();
            assert_eq!(words(whole), expected, "{}: read as {to}", case.what);
        }
    }
}

#[test]
fn a_whole_that_the_answer_goes_on_after_is_not_the_reply() {
    let frames = [
        r#"{"type":"token","content":"Let me look."}"#,
        r#"{"type":"tool_call","tool_id":"c","tool_name":"look","tool_args":"{}"}"#,
        r#"{"type":"token","content":"It is sunny."}"#,
        r#"{"type":"final_answer","content":"It is sunny."}"#,
        r#"{"type":"tool_call","tool_id":"d","tool_name":"look","tool_args":"{}"}"#,
        r#"{"type":"token","content":"And warm."}"#,
        r#"{"type":"done"}"#,
    ];
    let frames: Vec<_> = frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
    let options = Options { from: Some(Dialect::StreamingEngine), ..Options::to(Dialect::Loom) };
    let outcome = convert(&frames, options).unwrap();
    let (_, _, last) = outcome.frames.last().unwrap();
    let last: Value = serde_json::from_slice(last).unwrap();
    assert_eq!(last["reply"], "Let me look.\n\nIt is sunny.\n\nAnd warm.");
}

/// A run in which texts and thoughts are open beside each other, and the words of its texts.
struct Interleaved {
    what: &'static str,
    from: Dialect,
    frames: &'static [&'static str],
    words: &'static [&'static str],
    /// Whether the end of a text says it.
    ends_whole: bool,
}

const INTERLEAVED: &[Interleaved] = &[
    Interleaved {
        what: "an answer beside a subagent's thought",
        from: Dialect::AgUi,
        frames: &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
            r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"helper"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"h","role":"reasoning","subagentRunId":"s1"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"h","delta":"hm","subagentRunId":"s1"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"ANSWER"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"a"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        ],
        words: &["ANSWER"],
        ends_whole: false,
    },
    Interleaved {
        what: "an answer beside a subagent's text",
        from: Dialect::AgUi,
        frames: &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
            r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"helper"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"h","role":"assistant","subagentRunId":"s1"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"h","delta":"SUB1 ","subagentRunId":"s1"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"MAIN1 "}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"h","delta":"SUB2 ","subagentRunId":"s1"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"MAIN2 "}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"a"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"h","subagentRunId":"s1"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        ],
        words: &["SUB1", "MAIN1", "SUB2", "MAIN2"],
        ends_whole: false,
    },
    Interleaved {
        what: "a subagent's text beside the answer",
        from: Dialect::Runwire,
        frames: &[
            r#"{"type":"run.started","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"MAIN1 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"h","content":"SUB1 ","subagent_run_id":"s1"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"MAIN2 "}"#,
            r#"{"type":"text.finished","run_id":"r","message_id":"a"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"h","content":"SUB2 ","subagent_run_id":"s1"}"#,
            r#"{"type":"run.completed","run_id":"r"}"#,
        ],
        words: &["MAIN1", "SUB1", "MAIN2", "SUB2"],
        ends_whole: false,
    },
    Interleaved {
        what: "two texts of the assistant",
        from: Dialect::Runwire,
        frames: &[
            r#"{"type":"run.started","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"text.started","run_id":"r","message_id":"a"}"#,
            r#"{"type":"text.started","run_id":"r","message_id":"b"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"A1 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"b","content":"B1 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"A2 "}"#,
            r#"{"type":"text.finished","run_id":"r","message_id":"a"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"b","content":"B2 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"c","content":"C1 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"b","content":"B3 "}"#,
            r#"{"type":"run.completed","run_id":"r"}"#,
        ],
        words: &["A1", "B1", "A2", "B2", "C1", "B3"],
        ends_whole: false,
    },
    Interleaved {
        what: "a text beside another one, told by its end alone",
        from: Dialect::Runwire,
        frames: &[
            r#"{"type":"run.started","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"A1 "}"#,
            r#"{"type":"text.started","run_id":"r","message_id":"b"}"#,
            r#"{"type":"text.finished","run_id":"r","message_id":"b","content":"B1 "}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"a","content":"A2 "}"#,
            r#"{"type":"run.completed","run_id":"r"}"#,
        ],
        words: &["A1", "B1", "A2"],
        ends_whole: true,
    },
    Interleaved {
        what: "a producer's own text beside one of a slot",
        from: Dialect::StreamingEngine,
        frames: &[
            r#"{"type":"session_start","data":{"session_id":"t","request_id":"r"},"metadata":{}}"#,
            r#"{"type":"runwire","data":{"type":"text.delta","message_id":"s","content":"SLOT1 "},"metadata":{}}"#,
            r#"{"type":"thinking","data":{"content":"hm"},"metadata":{}}"#,
            r#"{"type":"content","data":{"content":"OWN1 ","is_complete":false},"metadata":{}}"#,
            r#"{"type":"runwire","data":{"type":"text.delta","message_id":"s","content":"SLOT2 "},"metadata":{}}"#,
            r#"{"type":"content","data":{"content":"OWN2 ","is_complete":true},"metadata":{}}"#,
            r#"{"type":"session_end","data":{"status":"completed"},"metadata":{}}"#,
        ],
        words: &["SLOT1", "OWN1", "SLOT2", "OWN2"],
        ends_whole: false,
    },
];

#[test]
fn every_reader_sees_every_word_of_texts_beside_each_other_once() {
    for case in INTERLEAVED {
        let input: Vec<_> = case.frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
        for to in Dialect::ALL {
            let label = format!("{}: read as {to}", case.what);
            let options = |from, to| Options { from: Some(from), ..Options::to(to) };
            let outcome = convert(&input, options(case.from, to)).unwrap();
            // Social-app tells a text at its end, so the order of those beside each other is another one.
            let ordered = |text: &str| if to == Dialect::SocialApp { sorted(text) } else { words(text) };
            let told = shown(&outcome.frames, to, false);
            if to == Dialect::StreamingEngine {
                let is_last = |data: &[u8]| {
                    serde_json::from_slice::<Value>(data).unwrap()["data"]["is_complete"] == true
                };
                assert_eq!(outcome.frames.iter().filter(|(_, _, data)| is_last(data)).count(), 1, "{label}");
            }
            // Their readers are told that a text replaces another one.
            if case.ends_whole && matches!(client_dialect(to), Dialect::Runwire | Dialect::AgUi) {
                continue;
            }
            assert_eq!(ordered(&told), ordered(&case.words.join(" ")), "{label}");
            if to == Dialect::Text {
                continue;
            }
            let frames: Vec<_> =
                outcome.frames.iter().map(|(_, name, data)| (name.clone(), data.clone())).collect();
            let back = convert(&frames, options(to, Dialect::Runwire)).unwrap();
            let joined = |outcome: &Outcome| ordered(&outcome.messages[0].main_content);
            assert_eq!(joined(&back), joined(&outcome), "{label}");
        }
    }
}

#[test]
fn a_whole_that_names_its_message_replaces_it() {
    let frames = [
        r#"{"type":"run.started","run_id":"r","thread_id":"t"}"#,
        r#"{"type":"text.delta","run_id":"r","message_id":"m","content":"Two plus two is five."}"#,
        r#"{"type":"text.finished","run_id":"r","message_id":"m","content":"Two plus two is four."}"#,
        r#"{"type":"run.completed","run_id":"r"}"#,
    ];
    let input: Vec<_> = frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
    for to in Dialect::ALL {
        let options = Options { from: Some(Dialect::Runwire), ..Options::to(to) };
        let outcome = convert(&input, options).unwrap();
        assert_eq!(outcome.messages[0].main_content, "Two plus two is four.", "{to}");
        let expected = match client_dialect(to) {
            // Its end says the whole, and it has the messages in one list.
            Dialect::SocialApp => "Twoplustwoisfour.",
            Dialect::AgUi | Dialect::Runwire => "Twoplustwoisfive.",
            _ => "Twoplustwoisfive.Twoplustwoisfour.",
        };
        assert_eq!(words(&shown(&outcome.frames, to, false)), expected, "{to}");
        let is_snapshot = |data: &[u8]| data.windows(17).any(|part| part == b"MESSAGES_SNAPSHOT");
        assert_eq!(outcome.frames.iter().any(|(_, _, data)| is_snapshot(data)), to == Dialect::AgUi, "{to}");
    }
}

#[test]
fn a_text_that_only_repeats_its_pieces_is_told_once() {
    let frames = [
        r#"{"type":"text.delta","run_id":"r","thread_id":"t","message_id":"m","content":"Four."}"#,
        r#"{"type":"text.finished","run_id":"r","message_id":"m","content":"Four."}"#,
        r#"{"type":"run.completed","run_id":"r","reply":"Four."}"#,
    ];
    let input: Vec<_> = frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
    for to in Dialect::ALL {
        let options = Options { from: Some(Dialect::Runwire), ..Options::to(to) };
        let outcome = convert(&input, options).unwrap();
        assert_eq!(words(&shown(&outcome.frames, to, false)), "Four.", "{to}");
    }
}

#[test]
fn a_whole_that_is_new_is_seen_beside_a_message_that_its_source_left_open() {
    let frames = [
        r#"{"type":"run.started","run_id":"r","thread_id":"t"}"#,
        r#"{"type":"text.started","run_id":"r","message_id":"m0"}"#,
        r#"{"type":"text.delta","run_id":"r","message_id":"m0","content":"Let me look."}"#,
        r#"{"type":"run.completed","run_id":"r","reply":"It is sunny."}"#,
    ];
    let input: Vec<_> = frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
    for to in Dialect::ALL {
        let options = Options { from: Some(Dialect::Runwire), ..Options::to(to) };
        let outcome = convert(&input, options).unwrap();
        assert_eq!(words(&shown(&outcome.frames, to, false)), "Letmelook.Itissunny.", "{to}");
    }
}

#[test]
fn what_a_dialect_writes_of_its_own_wholes_reads_back_the_same() {
    for case in CASES {
        for (dialect, input) in [(Dialect::Agio, agio(case)), (Dialect::StreamingEngine, legacy(case))] {
            let own = || Options { from: Some(dialect), ..Options::to(dialect) };
            let once = convert(&input, own()).unwrap();
            let frames: Vec<_> = once.frames.into_iter().map(|(_, name, data)| (name, data)).collect();
            let twice = convert(&frames, own()).unwrap();
            let label = format!("{}: {dialect}", case.what);
            assert_eq!(twice.messages[0].main_content, once.messages[0].main_content, "{label}");
        }
    }
}

#[test]
fn many_whole_messages_without_ids_are_all_told() {
    let message = |n: usize| {
        let content = format!("{n} {}", "x".repeat(2000));
        serde_json::json!({"domain": "llm", "type": "message", "conversation_id": "c", "payload": {"content": content}})
    };
    let input: Vec<_> = (0..500).map(|n| (None, message(n).to_string().into_bytes())).collect();
    let options = Options { from: Some(Dialect::EasyflowChat), ..Options::to(Dialect::Text) };
    let outcome = convert(&input, options).unwrap();
    assert_eq!(outcome.messages[0].main_content.matches(" xx").count(), 500);
}

#[test]
fn a_whole_that_only_goes_on_replaces_nothing() {
    let frames = [r#"{"type":"message_chunk","content":"Hello","id":"a"}"#, r#"{"reply":"Hello world"}"#];
    let mut decoder = Decoder::new(Dialect::Loom);
    let (mut state, mut window) = (RunState::new("t", "r"), Window::default());
    let mut pieces = Vec::new();
    for (seq, frame) in (1..).zip(frames) {
        let opened = decoder.open(None, frame.as_bytes()).unwrap();
        let mut entries = Vec::new();
        let builder =
            RecordBuilder::new(&mut state, &window, Authority::Producer, Dialect::Loom, seq, &mut entries);
        decoder.decode(opened, &mut builder.with_whole(WholePolicy::Replace)).unwrap();
        for entry in &entries {
            match &entry.event.body {
                Body::TextDelta(delta) => pieces.push(delta.content.clone()),
                Body::TextFinished(finished) => assert_eq!(finished.content, None),
                _ => {}
            }
        }
        let (at, dialect) = (Timestamp(0), Some(Dialect::Loom));
        window.absorb(&Record { seq, at, source_time: None, dialect, entries });
    }
    assert_eq!(pieces, ["Hello", " world"]);
}

/// A run in which a message is divided, and then told whole under its id.
struct Named {
    what: &'static str,
    from: Dialect,
    frames: &'static [&'static str],
    /// The words that readers see, white space left out.
    words: &'static str,
    /// How the fold joins them.
    joined: &'static str,
}

const RUNNING: &str =
    r#"{"domain":"system","type":"status","conversation_id":"c","payload":{"state":"running"}}"#;
const DONE: &str = r#"{"domain":"system","type":"done","conversation_id":"c","payload":{}}"#;
const LOOK: &str = r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"delta":"Let me look. "}}"#;
const SUNNY: &str = r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"delta":"It is sunny."}}"#;
const CALL: &str = r#"{"domain":"tool","type":"tool_call","conversation_id":"c","payload":{"tool_call_id":"t","name":"look","arguments":{}}}"#;

const NAMED: &[Named] = &[
    Named {
        what: "a whole after a tool",
        from: Dialect::EasyflowChat,
        frames: &[
            RUNNING,
            LOOK,
            CALL,
            SUNNY,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"content":"Let me look. It is sunny."}}"#,
            DONE,
        ],
        words: "Letmelook.Itissunny.",
        joined: "Let me look. It is sunny.",
    },
    Named {
        what: "a whole after thinking that goes on",
        from: Dialect::EasyflowChat,
        frames: &[
            RUNNING,
            LOOK,
            r#"{"domain":"llm","type":"thinking","conversation_id":"c","message_id":"m","payload":{"delta":"hm"}}"#,
            SUNNY,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"content":"Let me look.\nIt is sunny. Bye."}}"#,
            DONE,
        ],
        words: "Letmelook.Itissunny.Bye.",
        joined: "Let me look. It is sunny. Bye.",
    },
    Named {
        what: "a whole that repeats the last piece only, and one that was cut short",
        from: Dialect::EasyflowChat,
        frames: &[
            RUNNING,
            LOOK,
            CALL,
            SUNNY,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"content":"It is sunny."}}"#,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"content":"Let me look. It is"}}"#,
            DONE,
        ],
        words: "Letmelook.Itissunny.",
        joined: "Let me look. It is sunny.",
    },
    Named {
        what: "wholes that go on with messages before the last one",
        from: Dialect::EasyflowChat,
        frames: &[
            RUNNING,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"delta":"ab"}}"#,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"n","payload":{"delta":"cd"}}"#,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"m","payload":{"content":"abX"}}"#,
            r#"{"domain":"llm","type":"message","conversation_id":"c","message_id":"n","payload":{"content":"cdY"}}"#,
            DONE,
        ],
        words: "abcdXY",
        joined: "ab\n\ncd\n\nX\n\nY",
    },
    Named {
        what: "an answer after its step",
        from: Dialect::SocialApp,
        frames: &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
            r#"{"type":"STEP_STARTED","stepName":"worker"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Sunny."}"#,
            r#"{"type":"STEP_FINISHED","stepName":"worker"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m","role":"assistant","stage":"worker","status":"success","answer":"Sunny.","key_points":[],"result_type":"unknown","suggested_actions":[],"error":null,"ui_schema":{}}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        ],
        words: "Sunny.",
        joined: "Sunny.",
    },
    Named {
        what: "an answer around a tool",
        from: Dialect::SocialApp,
        frames: &[
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Let me look. "}"#,
            r#"{"type":"TOOL_CALL_START","messageId":"m","toolCallId":"c","toolCallName":"look","stage":"worker"}"#,
            r#"{"type":"TOOL_CALL_END","messageId":"m","toolCallId":"c","toolCallName":"look","stage":"worker"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"It is "}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m","role":"assistant","stage":"worker","status":"success","answer":"Let me look. It is sunny.","key_points":["sun"],"result_type":"unknown","suggested_actions":[],"error":null,"ui_schema":{}}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        ],
        words: "Letmelook.Itissunny.",
        joined: "Let me look. It is sunny.",
    },
    Named {
        what: "an end with its whole after a tool",
        from: Dialect::Runwire,
        frames: &[
            r#"{"type":"run.started","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"m","content":"Let me look. "}"#,
            r#"{"type":"tool.called","run_id":"r","call_id":"c","name":"look","arguments":{}}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"m","content":"It is sunny."}"#,
            r#"{"type":"text.finished","run_id":"r","message_id":"m","content":"Let me look. It is sunny."}"#,
            r#"{"type":"run.completed","run_id":"r"}"#,
        ],
        words: "Letmelook.Itissunny.",
        joined: "Let me look. It is sunny.",
    },
    Named {
        what: "an end with its whole after a tool, of a text that the tool ended",
        from: Dialect::Runwire,
        frames: &[
            r#"{"type":"run.started","thread_id":"t","run_id":"r"}"#,
            r#"{"type":"text.delta","run_id":"r","message_id":"m","content":"Sunny."}"#,
            r#"{"type":"tool.called","run_id":"r","call_id":"c","name":"look","arguments":{}}"#,
            r#"{"type":"text.finished","run_id":"r","message_id":"m","content":"Sunny. Bye."}"#,
            r#"{"type":"run.completed","run_id":"r"}"#,
        ],
        words: "Sunny.Bye.",
        joined: "Sunny. Bye.",
    },
];

#[test]
fn a_divided_message_that_is_told_whole_is_seen_once() {
    for case in NAMED {
        let input: Vec<_> = case.frames.iter().map(|frame| (None, frame.as_bytes().to_vec())).collect();
        for to in Dialect::ALL {
            let label = format!("{}: read as {to}", case.what);
            let options = |from, to| Options { from: Some(from), ..Options::to(to) };
            let outcome = convert(&input, options(case.from, to)).unwrap();
            assert_eq!(outcome.messages[0].main_content, case.joined, "{label}");
            assert_eq!(words(&shown(&outcome.frames, to, false)), case.words, "{label}");
            if to == Dialect::Text {
                continue;
            }
            let frames: Vec<_> = outcome.frames.into_iter().map(|(_, name, data)| (name, data)).collect();
            let back = convert(&frames, options(to, Dialect::Runwire)).unwrap();
            assert_eq!(words(&back.messages[0].main_content), case.words, "{label}, and back");
        }
    }
}

#[test]
fn what_an_answer_says_beside_its_text_is_kept_after_its_step() {
    let end = r#"{"type":"TEXT_MESSAGE_END","messageId":"m","role":"assistant","stage":"worker","status":"success","answer":"Sunny.","key_points":["sun"],"result_type":"unknown","suggested_actions":[],"error":null,"ui_schema":{}}"#;
    let case = NAMED.iter().find(|case| case.what == "an answer after its step").unwrap();
    let frames = case.frames.iter().map(|frame| if frame.contains("answer") { end } else { frame });
    let input: Vec<_> = frames.map(|frame| (None, frame.as_bytes().to_vec())).collect();
    for to in [Dialect::Runwire, Dialect::StreamingEngine, Dialect::AgUi, Dialect::EasyflowChat] {
        let options = Options { from: Some(Dialect::SocialApp), ..Options::to(to) };
        let outcome = convert(&input, options).unwrap();
        let tells = |data: &[u8]| String::from_utf8_lossy(data).contains(r#""key_points":["sun"]"#);
        assert!(outcome.frames.iter().any(|(_, _, data)| tells(data)), "{to}");
    }
}
