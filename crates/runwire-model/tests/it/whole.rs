//! Whole texts: every reader of every dialect ends with the same words, whatever the source says again.

use runwire_model::convert::Options;
use runwire_model::dialect::Dialect;
use serde_json::Value;

use crate::vectors::convert;

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

/// Gathers what a client shows that knows nothing but the dialect's document.
fn shown(frames: &[(String, Option<String>, Vec<u8>)], dialect: Dialect, own: bool) -> String {
    let mut shown = String::new();
    for (_, _, data) in frames {
        if dialect == Dialect::Text {
            shown.push_str(std::str::from_utf8(data).unwrap());
            continue;
        }
        let frame: Value = serde_json::from_slice(data).unwrap();
        let kind = frame["type"].as_str().unwrap_or_default();
        let piece = match (dialect, kind) {
            (Dialect::Runwire, "text.delta") => &frame["content"],
            (Dialect::Loom, "message_chunk") => &frame["content"],
            (Dialect::LoomExport, _) => &frame["Messages"]["chunk"]["content"],
            (Dialect::StreamingEngine, "content") | (Dialect::Agio, "text_delta") => {
                &frame["data"]["content"]
            }
            (Dialect::AgUi, "TEXT_MESSAGE_CONTENT") => &frame["delta"],
            (Dialect::SocialApp, "TEXT_MESSAGE_END") => &frame["answer"],
            (Dialect::EasyflowChat, "message") => match &frame["payload"]["delta"] {
                Value::Null => &frame["payload"]["content"],
                delta => delta,
            },
            _ => continue,
        };
        shown.push_str(piece.as_str().unwrap_or_default());
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
        let expected = match to {
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
