//! Input of a command: reads a file or standard input in chunks, and splits them into frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use runwire_model::framing::{Frame, Framing, FramingError, Unframer};

use crate::failure::Failure;

/// Size of a chunk.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// A file, or standard input.
pub(crate) struct InputSource {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) name: String,
    /// The file's size; `None` for a pipe or a terminal.
    pub(crate) size: Option<u64>,
}

impl InputSource {
    /// Opens a file; standard input for `None` or `-`.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        match file.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| Failure::Read { name: name.clone(), error })?;
                let size = size_of(&file);
                Ok(Self { reader: Box::new(file), name, size })
            }
            None => {
                let (reader, size) = standard_input();
                Ok(Self { reader, name: "standard input".to_owned(), size })
            }
        }
    }

    /// Reads a chunk; 0 means the end.
    pub(crate) fn read(&mut self, chunk: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.reader.read(chunk) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Read { name: self.name.clone(), error }),
            }
        }
    }
}

pub(crate) struct FrameInput {
    source: InputSource,
    read: u64,
    chunk: Box<[u8]>,
    framing_state: FramingState,
    ended: bool,
}

enum FramingState {
    /// The first bytes, until the framing is detected.
    Undecided(Vec<u8>),
    Decided(Unframer),
}

impl FrameInput {
    /// Opens a file or standard input; the framing is detected from the first bytes unless given.
    pub(crate) fn open(file: Option<&Path>, framing: Option<Framing>) -> Result<Self, Failure> {
        let source = InputSource::open(file)?;
        let framing_state = match framing {
            Some(framing) => FramingState::Decided(Unframer::new(framing)),
            None => FramingState::Undecided(Vec::new()),
        };
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Ok(Self { source, read: 0, chunk, framing_state, ended: false })
    }

    /// Returns the file's size; `None` if the input is live.
    pub(crate) fn size(&self) -> Option<u64> {
        self.source.size
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Returns the next frame of the chunks read so far.
    pub(crate) fn next(&mut self) -> Option<Result<Frame<'_>, FramingError>> {
        match &mut self.framing_state {
            FramingState::Undecided(_) => None,
            FramingState::Decided(unframer) => unframer.next(),
        }
    }

    /// Reads the next chunk; false at the end.
    pub(crate) fn fill(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        let count = self.source.read(&mut self.chunk)?;
        self.read += count as u64;
        self.ended = count == 0;
        self.unframe(count);
        Ok(true)
    }

    fn unframe(&mut self, count: usize) {
        let chunk = &self.chunk[..count];
        if let FramingState::Undecided(first) = &mut self.framing_state {
            first.extend_from_slice(chunk);
            // No framing was detected in a whole chunk: assume NDJSON.
            let give_up = self.ended || first.len() > CHUNK_BYTES;
            let framing = Framing::detect(first).or(give_up.then_some(Framing::Ndjson));
            let Some(framing) = framing else { return };
            let mut unframer = Unframer::new(framing);
            unframer.push(first);
            self.framing_state = FramingState::Decided(unframer);
        } else if let FramingState::Decided(unframer) = &mut self.framing_state {
            unframer.push(chunk);
        }
        if let (true, FramingState::Decided(unframer)) = (self.ended, &mut self.framing_state) {
            unframer.finish();
        }
    }
}

fn size_of(file: &File) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// Opens standard input without the standard library's buffer, and returns its size if it is a file.
#[cfg(unix)]
fn standard_input() -> (Box<dyn Read + Send>, Option<u64>) {
    use std::os::fd::AsFd;
    match io::stdin().as_fd().try_clone_to_owned() {
        Ok(fd) => {
            let file = File::from(fd);
            let size = size_of(&file);
            (Box::new(file), size)
        }
        Err(_) => (Box::new(io::stdin()), None),
    }
}

#[cfg(not(unix))]
fn standard_input() -> (Box<dyn Read + Send>, Option<u64>) {
    (Box::new(io::stdin()), None)
}
