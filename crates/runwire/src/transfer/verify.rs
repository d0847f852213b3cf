//! Verifies an import: compares the server's streams of each run with the file.

use futures_util::StreamExt;
use runwire_client::{Client, Cursor, Dialect, Error, FrameStream};
use runwire_model::ErrorCode;

use super::digest::{ExpectedRuns, ExpectedStreams, StreamDigest};

/// A stream that differs from the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) run: String,
    /// Name of the stream.
    pub(super) stream: &'static str,
    pub(super) expected: u64,
    /// Number of frames found; `None` if retention has removed the run.
    pub(super) found: Option<u64>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, stream, expected, found } = self;
        write!(formatter, "the {stream} of run `{run}` is not what the file says: ")?;
        match found {
            None => formatter.write_str("the server's retention has removed it"),
            Some(found) if found == expected => {
                write!(formatter, "it has as many frames, {found}, but others")
            }
            Some(found) => write!(formatter, "it has {found} frames instead of {expected}"),
        }
    }
}

/// Reads the runs of a thread back, and returns the differences.
pub(super) async fn verify(client: &Client, runs: &ExpectedRuns) -> Result<Vec<Difference>, Error> {
    let mut differences = Vec::new();
    for (run, expected) in &runs.0 {
        let frames = |raw: bool| client.run(&**run).frames(Dialect::Runwire).follow(false).raw(raw);
        for (stream, raw, wanted) in
            [("stream", false, &expected.canonical), ("raw stream", true, &expected.raw)]
        {
            let found = match read(frames(raw), expected).await {
                Ok(found) if found == *wanted => continue,
                Ok(found) => Some(found.frames),
                Err(error) if error.code() == Some(ErrorCode::RunTrimmed) => None,
                Err(error) => return Err(error),
            };
            differences.push(Difference { run: run.to_string(), stream, expected: wanted.frames, found });
        }
    }
    Ok(differences)
}

/// Digests a stream up to the file's last record: an open run may have continued.
async fn read(mut frames: FrameStream, expected: &ExpectedStreams) -> Result<StreamDigest, Error> {
    let mut digest = StreamDigest::default();
    while let Some(frame) = frames.next().await {
        let frame = frame?;
        let seq = frame.cursor.map_or(0, Cursor::seq);
        if expected.open && seq > expected.last_seq {
            break;
        }
        digest.add(seq, frame.name.as_deref(), &frame.data);
    }
    Ok(digest)
}
