//! Producers: deduplicates their frames, and finds their decoder.

use std::collections::HashMap;

use runwire_model::Timestamp;
use runwire_model::dialect::{DecodeError, Decoder, detect};
use runwire_model::json::Object;

use super::check::Checking;
use super::heads::{ProducerHead, RunHead, Session};
use crate::append::{Append, Stamp, Target};
use crate::error::{AppendFault, FrameProblem, LogError};
use crate::limits;

/// Maximum number of frames that are inspected to detect the dialect.
const DETECTED_FROM: usize = 16;

/// Returns the name of who writes; the one without a name has an empty one.
pub(crate) fn name_of(append: &Append) -> &str {
    append.stamp.as_ref().map_or("", |stamp| &stamp.producer)
}

/// Copies the head of a producer, or makes one; [`keep`] stores it.
pub(crate) fn head_of(
    producers: &HashMap<String, ProducerHead>,
    name: &str,
) -> Result<ProducerHead, LogError> {
    head_among(producers, name, limits::PRODUCERS)
}

/// Copies the head of a producer, or makes one if there are fewer than `limit`.
pub(crate) fn head_among(
    producers: &HashMap<String, ProducerHead>,
    name: &str,
    limit: usize,
) -> Result<ProducerHead, LogError> {
    match producers.get(name) {
        Some(producer) => Ok(producer.clone()),
        None if producers.len() >= limit => Err(LogError::TooManyProducers(limit)),
        None => Ok(ProducerHead::default()),
    }
}

/// Finds the producer of a tenant that was silent for longest, where there is room for another only without it.
pub(crate) fn silent_for_longest(
    producers: &HashMap<String, ProducerHead>,
    name: &str,
    now: Timestamp,
) -> Option<String> {
    if producers.len() < limits::TENANT_PRODUCERS || producers.contains_key(name) {
        return None;
    }
    let written_at = |producer: &ProducerHead| producer.state.written_at.unwrap_or(0);
    let (silent, producer) = producers.iter().min_by_key(|(_, producer)| written_at(producer))?;
    let is_due = now.0.saturating_sub(written_at(producer)) >= limits::TENANT_PRODUCER_MILLIS;
    is_due.then(|| silent.clone())
}

/// Returns how many of the frames were written before.
pub(crate) fn check_stamp(
    producer: &mut ProducerHead,
    stamp: Option<&Stamp>,
    frames: usize,
) -> Result<usize, LogError> {
    let Some(stamp) = stamp else { return Ok(0) };
    if stamp.epoch < producer.epoch {
        return Err(LogError::ProducerFenced { epoch: producer.epoch });
    }
    if stamp.index > producer.next {
        return Err(LogError::ProducerGap { expected: producer.next, got: stamp.index });
    }
    producer.epoch = stamp.epoch;
    let written = usize::try_from(producer.next - stamp.index).unwrap_or(usize::MAX);
    Ok(written.min(frames))
}

/// Refuses a frame of another session than those before it that a producer has written to a run: it belongs to another
/// run. Returns the session to remember, where the frame is the first to name one.
pub(crate) fn session_of(
    producer: &ProducerHead,
    run: &RunHead,
    named: Option<&str>,
    checking: Checking,
) -> Result<Option<Session>, LogError> {
    let Some(got) = named.filter(|id| !id.is_empty() && !run.head.state.status.is_closed()) else {
        return Ok(None);
    };
    let writer = checking.writer_of(run);
    match &producer.state.session {
        Some(known) if known.writer == writer && known.id == got => Ok(None),
        Some(known) if known.writer == writer => {
            Err(LogError::OtherSession { session: known.id.clone(), got: got.to_owned() })
        }
        _ => Ok(Some(Session { id: got.to_owned(), writer })),
    }
}

/// Why no decoder was found.
pub(crate) enum Undecided {
    /// The whole append is refused.
    Refused(LogError),
    /// A frame cannot be parsed.
    Fault(AppendFault),
}

/// Returns the decoder of a producer's frames: its own, that of the named dialect, or of the detected one.
///
/// There is none where there are no frames.
pub(crate) fn decoder_for(
    producer: &ProducerHead,
    append: &Append,
    skip: usize,
) -> Result<Option<Decoder>, Undecided> {
    // The anonymous writers of a tenant are many, each with a dialect of its own.
    let is_anyone = append.stamp.is_none() && matches!(append.target, Target::Tenant(_));
    let pinned = producer.state.decoder.as_ref().filter(|_| !is_anyone);
    match (pinned, append.dialect) {
        (Some(decoder), None) => Ok(Some(decoder.clone())),
        (Some(decoder), Some(named)) => {
            let pinned = decoder.dialect();
            let became = named.refinement() == Some(pinned);
            if pinned == named || became {
                return Ok(Some(decoder.clone()));
            }
            Err(Undecided::Refused(LogError::DialectPinned { pinned, named }))
        }
        (None, Some(named)) => Ok(Some(Decoder::new(named))),
        (None, None) => detect_among(append, skip),
    }
}

fn detect_among(append: &Append, skip: usize) -> Result<Option<Decoder>, Undecided> {
    let mut undecided = None;
    let frames = append.frames.iter().enumerate().skip(skip);
    for (index, frame) in frames.take(DETECTED_FROM) {
        match Object::parse(frame.data) {
            Ok(object) => match detect(&object) {
                Ok(dialect) => return Ok(Some(Decoder::new(dialect))),
                Err(ambiguous) => undecided = undecided.or(Some(ambiguous)),
            },
            Err(fault) if undecided.is_none() => {
                let problem = FrameProblem::Decode(DecodeError::Frame(fault));
                return Err(Undecided::Fault(AppendFault::new(index, frame.line, problem)));
            }
            Err(_) => break,
        }
    }
    match undecided {
        Some(ambiguous) => Err(Undecided::Refused(ambiguous.into())),
        None => Ok(None),
    }
}

/// Stores the head of a producer, if it has changed.
pub(crate) fn keep(producers: &mut HashMap<String, ProducerHead>, name: &str, mut producer: ProducerHead) {
    let nobody = ProducerHead::default();
    let before = producers.get(name).unwrap_or(&nobody);
    let place = |producer: &ProducerHead| (producer.epoch, producer.next);
    let has_new_state = before.state != producer.state;
    if place(before) == place(&producer) && !has_new_state {
        return;
    }
    (producer.dirty, producer.snapshot_dirty) = (true, true);
    producer.state_dirty |= has_new_state;
    match producers.get_mut(name) {
        Some(known) => *known = producer,
        None => drop(producers.insert(name.to_owned(), ProducerHead { state_dirty: true, ..producer })),
    }
}
