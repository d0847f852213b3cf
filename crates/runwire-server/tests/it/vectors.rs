//! Loads the golden vectors as streams to write.

use std::fs;
use std::path::{Path, PathBuf};

use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, Unframer};

/// A golden stream.
pub(crate) struct Case {
    pub(crate) dialect: Dialect,
    /// Its dialect and its name, good as an id.
    pub(crate) label: String,
    /// The frames, each with the name that SSE carried.
    pub(crate) frames: Vec<(Option<String>, Vec<u8>)>,
    /// Whether it holds several runs.
    pub(crate) several: bool,
}

/// Lists every case of every dialect.
pub(crate) fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut cases = Vec::new();
    for dialect in Dialect::READABLE {
        let Ok(entries) = fs::read_dir(folder.join(dialect.name())) else { continue };
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        for folder in folders {
            let (bytes, framing) = match fs::read(folder.join("input.ndjson")) {
                Ok(bytes) => (bytes, Framing::Ndjson),
                Err(_) => (fs::read(folder.join("input.sse")).unwrap(), Framing::Sse),
            };
            let messages: serde_json::Value =
                serde_json::from_slice(&fs::read(folder.join("message.json")).unwrap()).unwrap();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            cases.push(Case {
                dialect,
                label: format!("{dialect}.{name}"),
                frames: frames_of(&bytes, framing),
                several: messages.as_array().unwrap().len() > 1,
            });
        }
    }
    assert!(!cases.is_empty(), "there are no vectors");
    cases
}

fn frames_of(bytes: &[u8], framing: Framing) -> Vec<(Option<String>, Vec<u8>)> {
    let mut unframer = Unframer::new(framing);
    unframer.push(bytes);
    unframer.finish();
    let mut frames = Vec::new();
    while let Some(frame) = unframer.next() {
        let frame = frame.unwrap();
        // The end mark that many SSE servers write after their last event is no frame.
        if frame.data != b"[DONE]" {
            frames.push((frame.name.map(str::to_owned), frame.data.to_vec()));
        }
    }
    frames
}
