//! Checks frames against their dialect's document.
//!
//! The state of the check is part of the run's head, so that a body may arrive in pieces and on different nodes.
//! Duplicate frames are skipped before the check, so that nothing is counted twice.

use runwire_check::{CheckState, CheckedFrame, Finding, FrameScan, Rule, Side};
use runwire_model::dialect::{Decoder, Dialect, OpenedFrame};
use runwire_model::run::WholePolicy;

use super::heads::{RunHead, ThreadHead};
use super::{CommandResult, Txn, TxnStore};
use crate::append::{Append, CheckMode, FrameIn};
use crate::error::{Breach, FrameProblem};

/// How the frames of an append are checked and decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checking {
    pub(crate) mode: CheckMode,
    pub(crate) whole: WholePolicy,
    /// A hash of the producer and its epoch.
    writer: u64,
}

impl Checking {
    pub(crate) fn of(append: &Append) -> Self {
        let writer = append.stamp.as_ref().map_or(0, |stamp| hash(stamp.producer.as_bytes(), stamp.epoch));
        Self { mode: append.check, whole: append.whole, writer }
    }

    /// Refuses a frame that its document does not allow; returns the state of the check after one that it does, and
    /// what is to be kept as a warning all the same.
    pub(crate) fn refuse(
        self,
        run: &RunHead,
        dialect: Dialect,
        scanned: &ScannedFrame<'_>,
    ) -> Result<(CheckState, Vec<Finding>), FrameProblem> {
        let mut state = match &run.head.check {
            Some(state) => {
                let mut state = (**state).clone();
                state.follow(dialect);
                state
            }
            None => begin(run, dialect),
        };
        let findings = self.findings(run, &mut state, scanned);
        breach(dialect, &findings)?;
        Ok((state, findings))
    }

    /// Counts the violations of a written frame as warnings.
    pub(crate) fn warn(self, run: &mut RunHead, dialect: Dialect, scanned: &ScannedFrame<'_>, seq: u64) {
        // The box is reused: every frame comes through here.
        let mut state = match run.head.check.take() {
            Some(mut state) => {
                state.follow(dialect);
                state
            }
            None => Box::new(begin(run, dialect)),
        };
        let findings = self.findings(run, &mut state, scanned);
        run.head.check = Some(state);
        if !findings.is_empty() {
            run.head.summary.warnings.add(seq, dialect, findings);
        }
    }

    fn findings(self, run: &RunHead, state: &mut CheckState, scanned: &ScannedFrame<'_>) -> Vec<Finding> {
        warnings(state, scanned, self.writer_of(run))
    }

    /// Returns a number for who writes: another one after an answer, when a producer may begin anew.
    pub(crate) fn writer_of(self, run: &RunHead) -> u64 {
        let settled = run.head.summary.interactions.iter().filter(|asked| !asked.is_open()).count();
        self.writer.wrapping_add(settled as u64)
    }
}

/// A frame, and the result of scanning it as a whole.
pub(crate) struct ScannedFrame<'a> {
    pub(crate) frame: FrameIn<'a>,
    scan: Option<FrameScan<'a>>,
}

impl<'a> ScannedFrame<'a> {
    /// Reads the envelope of a frame, and scans it if it is to be checked.
    pub(crate) fn open(
        decoder: &Decoder,
        frame: FrameIn<'a>,
        checking: Checking,
    ) -> Result<(OpenedFrame<'a>, Self), FrameProblem> {
        let mut scan = None;
        let opened = decoder.open_with(frame.name, frame.data, |object, text| {
            if checking.mode != CheckMode::Off {
                scan = FrameScan::of(decoder.dialect(), Side::Producer, object, text);
            }
        })?;
        Ok((opened, Self { frame, scan }))
    }
}

/// Lists what a frame of a producer breaks of its document, and that the check may miss something from there on.
fn warnings(state: &mut CheckState, scanned: &ScannedFrame<'_>, writer: u64) -> Vec<Finding> {
    let ScannedFrame { frame, scan } = scanned;
    let mut findings = match scan.as_ref().filter(|scan| scan.dialect() == state.dialect()) {
        Some(scan) => state.check_scanned(scan, frame.name, writer),
        // It shows that the stream is of a profile of its dialect.
        None => state.check(CheckedFrame { name: frame.name, data: frame.data }, writer, Side::Producer),
    };
    findings.retain(|finding| finding.is_problem() || finding.rule == Rule::Unjudged);
    findings
}

/// Refuses a frame for the first thing that it breaks.
fn breach(dialect: Dialect, findings: &[Finding]) -> Result<(), FrameProblem> {
    match findings.iter().find(|finding| finding.is_problem()) {
        Some(finding) => Err(FrameProblem::Document(Box::new(Breach { dialect, finding: finding.clone() }))),
        None => Ok(()),
    }
}

/// Starts the check of a run; frames that came before were not checked.
fn begin(run: &RunHead, dialect: Dialect) -> CheckState {
    match run.first_seq {
        None => CheckState::new(dialect),
        Some(_) => CheckState::joined(dialect),
    }
}

impl<S: TxnStore> Txn<S> {
    /// Refuses a frame that would begin a new run, before anything changes.
    pub(crate) fn refuse_to_begin(
        &mut self,
        thread: &ThreadHead,
        checking: Checking,
        dialect: Dialect,
        scanned: &ScannedFrame<'_>,
    ) -> CommandResult<S, (), FrameProblem> {
        if checking.mode != CheckMode::Refuse {
            return Ok(());
        }
        let mut state = CheckState::new(dialect);
        if let Some(latest) = thread.latest
            && let Some(latest) = self.heads.take_run_by_id(&self.store, latest)?
        {
            if let Some(known) = &latest.head.check {
                state = known.next();
                state.follow(dialect);
            }
            self.heads.put_run(latest);
        }
        breach(dialect, &warnings(&mut state, scanned, checking.writer)).map_err(Self::refuse)
    }
}

/// Hashes a producer and its epoch (FNV-1a): the same on every node, because it is stored.
fn hash(name: &[u8], epoch: u64) -> u64 {
    let bytes = name.iter().copied().chain(epoch.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
