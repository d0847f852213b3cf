//! Cursors: positions in a thread, parsed and written as `seq` or `seq-k`.

use std::fmt;
use std::str::FromStr;

use runwire_model::dialect::FRAME_BITS;

/// A position in a thread: after the k-th frame of a record, or after the whole record.
///
/// `12-0` is after the first frame of record 12, `12` after all of its frames, `0` before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedCursor {
    /// The record.
    pub(crate) seq: u64,
    /// The frame, counted from [`runwire_log::ReadFormat::first_frame`] on; [`FeedCursor::WHOLE`] means all of them.
    pub(crate) frame: u32,
}

impl FeedCursor {
    const WHOLE: u32 = u32::MAX;
    /// Before the first record.
    pub(crate) const START: Self = Self::after(0);
    /// After the last record that is stored when the reader starts.
    pub(crate) const END: Self = Self::after(u64::MAX);

    /// Creates the cursor after a whole record.
    pub(crate) const fn after(seq: u64) -> Self {
        Self { seq, frame: Self::WHOLE }
    }

    /// Returns true if the cursor is valid in an encoding whose first frame of a record has this number. Frames are
    /// numbered differently for each choice of dialect options; a cursor after a whole record is valid in all of them.
    pub(crate) fn is_valid_for(self, first_frame: u32) -> bool {
        self.frame == Self::WHOLE || self.frame >> FRAME_BITS == first_frame >> FRAME_BITS
    }

    /// Returns the last record that was read completely.
    pub(crate) fn whole_records(self) -> u64 {
        if self.frame == Self::WHOLE { self.seq } else { self.seq.saturating_sub(1) }
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame {
            Self::WHOLE => write!(f, "{}", self.seq),
            frame => write!(f, "{}-{frame}", self.seq),
        }
    }
}

/// The text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidCursor;

impl FromStr for FeedCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| text.parse::<u64>().ok().filter(|_| digits(text)).ok_or(InvalidCursor);
        let cursor = match text.split_once('-') {
            None => Self::after(number(text)?),
            Some((seq, frame)) => {
                let (seq, frame) = (number(seq)?, number(frame)?);
                // No record has so many frames: the cursor is after all of them.
                let frame = u32::try_from(frame).unwrap_or(Self::WHOLE);
                if seq == 0 { Self::START } else { Self { seq, frame } }
            }
        };
        // No log has so many records: the cursor lies beyond the end, and must not equal `END`.
        Ok(if cursor == Self::END { Self { frame: 0, ..cursor } } else { cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        for text in ["0", "12", "12-0", "12-7"] {
            assert_eq!(text.parse::<FeedCursor>().unwrap().to_string(), text);
        }
        assert_eq!("0-0".parse(), Ok(FeedCursor::START));
        assert_eq!("3-99999999999".parse(), Ok(FeedCursor::after(3)));
        for text in ["18446744073709551615", "18446744073709551615-99999999999"] {
            assert_ne!(text.parse(), Ok(FeedCursor::END));
        }
        for text in ["", "-", "1-", "-1", "a", "1-x", "+1", "1-2-3", " 1", "99999999999999999999"] {
            assert_eq!(text.parse::<FeedCursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn a_bare_seq_lies_after_every_frame_of_its_record() {
        let place = |text: &str| text.parse::<FeedCursor>().unwrap();
        assert!(place("1") < place("2-0") && place("2-0") < place("2-1") && place("2-1") < place("2"));
    }
}
