//! The compact encoding of a run's progress, which is written many thousand times a second: without field names.
//!
//! Interactions, error and warnings, which most runs do not have, are JSON beside it, followed by the state of the
//! frame check. The user message is not in it: the first record writes it to the run's row, where it stays.

use postcard::ser_flavors::Flavor;
use runwire_model::run::RunState;
use serde::{Deserialize, Serialize};

use super::heads::RunProgress;
use crate::info::{InteractionInfo, RunError, RunSummary, Warnings};

/// Progress cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgressError {
    #[error("the progress of a run is damaged: {0}")]
    Form(#[from] postcard::Error),
    #[error("the progress of a run has trailing bytes")]
    TooLong,
    #[error("the progress of a run is damaged: {0}")]
    Json(#[from] serde_json::Error),
}

/// Decodes a value that must use up all bytes: more were written by a newer version.
pub(crate) fn decode_all<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ProgressError> {
    match postcard::take_from_bytes(bytes)? {
        (value, []) => Ok(value),
        _ => Err(ProgressError::TooLong),
    }
}

#[derive(Serialize, Deserialize)]
struct EncodedProgress<S> {
    state: S,
    counters: [u64; 8],
    counted: bool,
    cancel_requested: bool,
    rare: Option<String>,
}

/// What most runs do not have; it is a JSON array, without names.
#[derive(Default, Deserialize)]
struct Rare {
    interactions: Vec<InteractionInfo>,
    error: Option<RunError>,
    warnings: Warnings,
}

/// Appends to a vector; what postcard has for it writes each byte through an iterator or a writer.
struct Appending<'a>(&'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl RunProgress {
    /// Appends the encoded progress.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProgressError> {
        let RunSummary {
            records,
            events,
            messages,
            tool_calls,
            steps,
            prompt_tokens,
            completion_tokens,
            total_tokens,
            counted,
            message: _,
            cancel_requested,
            interactions,
            error,
            warnings,
        } = &self.summary;
        let rare = match (interactions.is_empty(), error, warnings.is_empty()) {
            (true, None, true) => None,
            _ => Some(serde_json::to_string(&(interactions, error, warnings))?),
        };
        let encoded = EncodedProgress {
            state: &self.state,
            counters: [
                *records,
                *events,
                *messages,
                *tool_calls,
                *steps,
                *prompt_tokens,
                *completion_tokens,
                *total_tokens,
            ],
            counted: *counted,
            cancel_requested: *cancel_requested,
            rare,
        };
        postcard::serialize_with_flavor(&encoded, Appending(out))?;
        postcard::serialize_with_flavor(&self.check, Appending(out))?;
        Ok(())
    }

    /// Decodes progress; the user message is not in it.
    pub(crate) fn decode(encoded: &[u8]) -> Result<Self, ProgressError> {
        let (encoded, rest): (EncodedProgress<RunState>, _) = postcard::take_from_bytes(encoded)?;
        let check = decode_all(rest)?;
        let Rare { interactions, error, warnings } = match encoded.rare {
            Some(rare) => serde_json::from_str(&rare)?,
            None => Rare::default(),
        };
        let [records, events, messages, tool_calls, steps, prompt_tokens, completion_tokens, total_tokens] =
            encoded.counters;
        let summary = RunSummary {
            records,
            events,
            messages,
            tool_calls,
            steps,
            prompt_tokens,
            completion_tokens,
            total_tokens,
            counted: encoded.counted,
            message: None,
            cancel_requested: encoded.cancel_requested,
            interactions,
            error,
            warnings,
        };
        Ok(Self { state: encoded.state, summary, check })
    }
}

#[cfg(test)]
mod tests {
    use runwire_check::CheckState;
    use runwire_model::dialect::Dialect;

    use super::*;

    #[test]
    fn progress_is_the_same_after_decoding() {
        let mut head = RunProgress { state: RunState::new("t", "r"), ..RunProgress::default() };
        let round = |head: &RunProgress| {
            let mut encoded = Vec::new();
            head.encode(&mut encoded).unwrap();
            let back = RunProgress::decode(&encoded).unwrap();
            assert_eq!((&back.state, &back.summary), (&head.state, &head.summary));
            assert_eq!(back.check, head.check);
        };
        round(&head);
        head.check = Some(Box::new(CheckState::new(Dialect::AgUi)));
        round(&head);
        head.summary = serde_json::from_str(
            r#"{"records":1,"events":2,"messages":3,"tool_calls":4,"steps":5,"prompt_tokens":6,
                "completion_tokens":7,"total_tokens":8,"counted":true,"cancel_requested":true,
                "interactions":[{"interaction_id":"i","kind":"form","status":"open","expires_at":9}],
                "error":{"message":"m"},"warnings":{"count":9,"first":[
                    {"seq":1,"times":2,"dialect":"loom","code":"bad_value","field":"a","message":"m"}]}}"#,
        )
        .unwrap();
        round(&head);
    }

    #[test]
    fn damaged_progress_is_an_error() {
        let mut encoded = Vec::new();
        RunProgress::default().encode(&mut encoded).unwrap();
        for end in 0..encoded.len() {
            assert!(RunProgress::decode(&encoded[..end]).is_err(), "{end}");
        }
    }
}
