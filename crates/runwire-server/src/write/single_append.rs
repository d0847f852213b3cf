//! A body that is one append: all of it has arrived, and nothing has to be looked up to write it.

use std::sync::Arc;

use runwire_log::{Append, Appended, FrameBatch, LogError, Stamp, Target};

use super::WriteParams;
use super::body_unframer::{BodyUnframer, FillResult};
use super::body_writer::{BodyWriter, WriteSummary, with_counts};
use crate::AppState;
use crate::problem::Problem;

/// What becomes of a body that has arrived completely.
pub(crate) enum SingleAppend {
    /// One append, and what its answer needs.
    Ready(Append, SentAppend),
    /// Something else: several appends, a position to look up, an error with the counts before it.
    Other(WriteParams),
}

/// An append that was sent to the log.
#[derive(Debug)]
pub(crate) struct SentAppend {
    target: Target,
    stamp: Option<Stamp>,
    /// The line of its first frame.
    line: Option<u64>,
}

/// A write that has failed.
#[derive(Debug)]
pub(crate) struct FailedAppend {
    target: Target,
    problem: Problem,
    written: Option<WriteSummary>,
}

impl SingleAppend {
    /// Cuts a body into the frames of one append, if they are that.
    pub(crate) fn of(params: WriteParams, body: &[u8]) -> Self {
        let mut frames = FrameBatch::default();
        let mut unframer = BodyUnframer::new(params.framing);
        if !unframer.take_single_line(body, &mut frames) {
            unframer.push(body);
            unframer.finish();
            if !matches!(unframer.fill(&mut frames), FillResult::Complete) || frames.is_empty() {
                return Self::Other(params);
            }
        }
        let line = frames.iter().next().map(|frame| frame.line);
        let sent = SentAppend { target: params.target.clone(), stamp: params.stamp.clone(), line };
        let WriteParams { target, thread, dialect, stamp, end, parallel, check, whole, framing: _ } = params;
        Self::Ready(Append { target, thread, dialect, stamp, frames, end, check, whole, parallel }, sent)
    }
}

impl SentAppend {
    /// Returns the answer to the log's reply; a failure has to look up what to say.
    pub(crate) fn answer(
        self,
        state: &AppState,
        result: Result<Appended, LogError>,
    ) -> Result<WriteSummary, Box<FailedAppend>> {
        let Self { target, stamp, line } = self;
        match result {
            Ok(appended) => {
                if let Some(stamp) = &stamp {
                    state.open_bodies.fence(&target, stamp);
                }
                let written = WriteSummary::of_run(&appended);
                match appended.fault {
                    None => Ok(written),
                    Some(fault) => {
                        Err(Box::new(FailedAppend { target, problem: fault.into(), written: Some(written) }))
                    }
                }
            }
            Err(error) => {
                let problem = Problem::from(error).with_some("line", line);
                Err(Box::new(FailedAppend { target, problem, written: None }))
            }
        }
    }
}

impl FailedAppend {
    /// Returns the problem, with the counts of what was written.
    pub(crate) async fn into_problem(self, state: &AppState) -> Problem {
        with_counts(state, &self.target, self.problem, self.written).await
    }
}

/// Writes a body that has arrived completely, in as many appends as it takes.
pub(crate) async fn write_whole_body(
    state: &Arc<AppState>,
    params: WriteParams,
    body: &[u8],
) -> Result<WriteSummary, Problem> {
    BodyWriter::new(state, params).write_whole_body(body).await
}
