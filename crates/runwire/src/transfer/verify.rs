//! Whether a server gives back what a file says, run by run.

use futures_util::StreamExt;
use runwire_client::{Client, Cursor, Dialect, Error, FrameStream};

use super::sum::{Expected, Runs, Sum};

/// A run whose stream is not what the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) run: String,
    /// Which of its streams.
    pub(super) stream: &'static str,
    pub(super) expected: u64,
    /// Nothing where the server does not have it any more.
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

/// Reads the runs of a thread back, and lists what differs.
pub(super) async fn verify(client: &Client, runs: &Runs) -> Result<Vec<Difference>, Error> {
    let mut differences = Vec::new();
    for (run, expected) in &runs.0 {
        let frames = |raw: bool| client.run(&**run).frames(Dialect::Runwire).follow(false).raw(raw);
        for (stream, raw, wanted) in
            [("stream", false, &expected.canonical), ("raw stream", true, &expected.raw)]
        {
            let found = match read(frames(raw), expected).await {
                Ok(found) if found == *wanted => continue,
                Ok(found) => Some(found.frames),
                Err(error) if error.code() == Some("run_trimmed") => None,
                Err(error) => return Err(error),
            };
            differences.push(Difference { run: run.to_string(), stream, expected: wanted.frames, found });
        }
    }
    Ok(differences)
}

/// Adds a stream up, as far as the file goes: a run that is open may have gone on.
async fn read(mut frames: FrameStream, expected: &Expected) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    while let Some(frame) = frames.next().await {
        let frame = frame?;
        let seq = frame.cursor.map_or(0, Cursor::seq);
        if expected.open && seq > expected.last_seq {
            break;
        }
        sum.add(seq, frame.name.as_deref(), &frame.data);
    }
    Ok(sum)
}
