//! What the fuzz target does with its bytes; the tests do the same with every seed.
//!
//! The first byte chooses the dialect, the framing, the authority and what becomes of a frame that cannot be
//! read. The rest is a stream: cut, decoded, guarded, and written in every dialect, plainly and in full.

use std::collections::HashMap;

use runwire_model::convert::{Converted, Converter, Options};
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::fold::MessageState;
use runwire_model::framing::{Framing, Unframer};
use runwire_model::run::Authority;
use runwire_model::window::Window;
use serde::de::IgnoredAny;

use super::ag_ui_rules::Client;

const FRAMINGS: [Framing; 3] = [Framing::Ndjson, Framing::Sse, Framing::Json];

/// How a stream is read: what the first byte says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    /// Without one the dialect is detected.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) framing: Framing,
    pub(crate) authority: Authority,
    /// Whether a frame that cannot be read becomes `foreign`.
    pub(crate) lenient: bool,
}

impl Choice {
    pub(crate) fn of(byte: u8) -> Self {
        let (byte, dialects) = (usize::from(byte), Dialect::READABLE.len() + 1);
        let rest = byte / dialects;
        Self {
            dialect: Dialect::READABLE.get(byte % dialects).copied(),
            framing: FRAMINGS[rest % 3],
            authority: if rest / 3 % 2 == 0 { Authority::Producer } else { Authority::Server },
            lenient: rest / 6 % 2 == 1,
        }
    }
}

/// Translates a stream as its first byte says, and panics where a promise is broken.
pub(crate) fn translate(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else { return };
    let choice = Choice::of(*first);
    let options =
        Options { from: choice.dialect, authority: choice.authority, ..Options::to(Dialect::Runwire) };
    let mut converter = Converter::new(options);
    let mut readers = Readers::default();
    let mut sink = |converted: Converted<'_>| readers.take(&converted);
    let mut unframer = Unframer::new(choice.framing);
    unframer.push(stream);
    unframer.finish();
    while let Some(cut) = unframer.next() {
        let Ok(frame) = cut else { continue };
        let read = converter.push(frame.line, frame.name, frame.data, &mut sink);
        if read.is_err() && choice.lenient {
            let _ = converter.push_foreign(frame.data, &mut sink);
        }
    }
    let _ = converter.finish(&mut sink);
}

/// A reader of every dialect for each run.
#[derive(Default)]
struct Readers {
    threads: HashMap<String, Thread>,
    frames: Frames,
}

struct Thread {
    window: Window,
    run_id: String,
    encoders: Vec<Encoder>,
    clients: [Client; 2],
    message: MessageState,
}

fn encoders(thread_id: &str, run_id: &str) -> Vec<Encoder> {
    let each = |fidelity| Dialect::ALL.map(|dialect| Encoder::new(dialect, thread_id, run_id, fidelity));
    [each(Fidelity::Native), each(Fidelity::Full)].concat()
}

impl Readers {
    fn take(&mut self, converted: &Converted<'_>) {
        let (thread_id, run_id) = (converted.thread_id, converted.run_id);
        let thread = self.threads.entry(thread_id.to_owned()).or_insert_with(|| Thread {
            window: Window::new(run_id),
            run_id: run_id.to_owned(),
            encoders: encoders(thread_id, run_id),
            clients: Default::default(),
            message: MessageState::new(run_id),
        });
        if thread.run_id != run_id {
            thread.window.next_run(run_id);
            thread.run_id = run_id.to_owned();
            thread.encoders = encoders(thread_id, run_id);
            thread.message = MessageState::new(run_id);
        }
        thread.window.absorb(converted.record);
        thread.message.apply_record(converted.record);
        for (at, encoder) in thread.encoders.iter_mut().enumerate() {
            self.frames.clear();
            encoder.step(converted.record, &thread.window, &mut self.frames);
            let full = usize::from(at >= Dialect::ALL.len());
            for (_, data) in self.frames.iter() {
                if encoder.dialect() == Dialect::Text {
                    std::str::from_utf8(data).expect("text is UTF-8");
                    continue;
                }
                assert!(!data.contains(&b'\n') && !data.contains(&b'\r'), "a frame is one line");
                if let Err(error) = serde_json::from_slice::<IgnoredAny>(data) {
                    panic!("{}: {error}: {}", encoder.dialect(), String::from_utf8_lossy(data));
                }
                // A number may be larger than any that this test can hold.
                let frame = serde_json::from_slice::<serde_json::Value>(data);
                if let (Dialect::AgUi, Ok(frame)) = (encoder.dialect(), frame) {
                    let taken = thread.clients[full].take(&frame);
                    taken.unwrap_or_else(|problem| panic!("the official client refuses {frame}: {problem}"));
                }
            }
        }
    }
}
