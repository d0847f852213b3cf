//! Splits the body of an import into lines, limited in length.

use runwire_model::ErrorCode;

use crate::limits;
use crate::problem::Problem;

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct ImportLines {
    bytes: Vec<u8>,
    /// Start of the bytes that were not returned.
    from: usize,
    /// Number of bytes after `from` that have no line end.
    scanned: usize,
    number: u64,
    ended: bool,
}

impl ImportLines {
    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.from));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes that were not returned as lines.
    pub(crate) fn buffered(&self) -> usize {
        self.bytes.len() - self.from
    }

    /// Marks the end of the body: remaining bytes are a line, too.
    pub(crate) fn finish(&mut self) {
        self.ended = true;
    }

    /// Returns the next line that is not blank, with its number from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Problem> {
        loop {
            let rest = &self.bytes[self.from..];
            let end = memchr::memchr(b'\n', &rest[self.scanned..]);
            let (length, taken) = match end {
                Some(at) => (self.scanned + at, self.scanned + at + 1),
                None if self.ended && !rest.is_empty() => (rest.len(), rest.len()),
                None => (rest.len(), 0),
            };
            if length > limits::RECORD_LINE_BYTES {
                let detail = format!("the line has more than {} bytes", limits::RECORD_LINE_BYTES);
                return Err(Problem::new(ErrorCode::BadRecord, detail).with("line", self.number + 1));
            }
            if taken == 0 {
                self.scanned = length;
                return Ok(None);
            }
            let begin = self.from;
            (self.from, self.scanned) = (self.from + taken, 0);
            self.number += 1;
            if !self.bytes[begin..begin + length].trim_ascii().is_empty() {
                return Ok(Some((self.number, self.bytes[begin..begin + length].trim_ascii())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_cut() {
        let text = b"one\r\n\n two \nthree";
        for cut in 0..text.len() {
            let mut lines = ImportLines::default();
            let mut found = Vec::new();
            for bytes in [&text[..cut], &text[cut..]] {
                lines.push(bytes);
                while let Some((number, line)) = lines.next().unwrap() {
                    found.push((number, line.to_vec()));
                }
            }
            lines.finish();
            found.extend(lines.next().unwrap().map(|(number, line)| (number, line.to_vec())));
            assert_eq!(found, [(1, b"one".to_vec()), (3, b"two".to_vec()), (4, b"three".to_vec())]);
            assert!(lines.next().unwrap().is_none());
        }
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_limit() {
        let mut lines = ImportLines::default();
        lines.push(b"\n");
        lines.push(&vec![b'x'; limits::RECORD_LINE_BYTES]);
        assert!(lines.next().unwrap().is_none());
        lines.push(b"x");
        assert_eq!(lines.next().unwrap_err().into_members()["line"], 2);
    }
}
