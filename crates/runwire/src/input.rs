//! Where a command reads from: bytes in pieces of bounded size, cut into frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use runwire_model::framing::{Frame, Framing, FramingError, Unframer};

use crate::failure::Failure;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

pub(crate) struct Input {
    reader: Box<dyn Read>,
    name: String,
    /// The file's size; nothing for a pipe or a terminal.
    size: Option<u64>,
    read: u64,
    piece: Box<[u8]>,
    cutting: Cutting,
    ended: bool,
}

enum Cutting {
    /// The first bytes, which do not yet tell the framing.
    Undecided(Vec<u8>),
    Decided(Unframer),
}

impl Input {
    /// Opens a file, or standard input without one; without a framing it is guessed from the first bytes.
    pub(crate) fn open(file: Option<&Path>, framing: Option<Framing>) -> Result<Self, Failure> {
        let (reader, name, size) = match file.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| Failure::Read { name: name.clone(), error })?;
                let size = size_of(&file);
                (Box::new(file) as Box<dyn Read>, name, size)
            }
            None => {
                let (reader, size) = standard_input();
                (reader, "standard input".to_owned(), size)
            }
        };
        let cutting = match framing {
            Some(framing) => Cutting::Decided(Unframer::new(framing)),
            None => Cutting::Undecided(Vec::new()),
        };
        let piece = vec![0; PIECE].into_boxed_slice();
        Ok(Self { reader, name, size, read: 0, piece, cutting, ended: false })
    }

    /// Tells the size of a file, which also means that reading never waits for a producer.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// Counts the bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Takes the next frame of what has been read.
    pub(crate) fn next(&mut self) -> Option<Result<Frame<'_>, FramingError>> {
        match &mut self.cutting {
            Cutting::Undecided(_) => None,
            Cutting::Decided(unframer) => unframer.next(),
        }
    }

    /// Reads more; false means that all frames have been taken and none will follow.
    pub(crate) fn fill(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        let count = loop {
            match self.reader.read(&mut self.piece) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Read { name: self.name.clone(), error }),
            }
        };
        self.read += count as u64;
        self.ended = count == 0;
        self.cut(count);
        Ok(true)
    }

    fn cut(&mut self, count: usize) {
        let piece = &self.piece[..count];
        if let Cutting::Undecided(first) = &mut self.cutting {
            first.extend_from_slice(piece);
            // So much white space that the framing still hides is nobody's stream.
            let give_up = self.ended || first.len() > PIECE;
            let framing = Framing::detect(first).or(give_up.then_some(Framing::Ndjson));
            let Some(framing) = framing else { return };
            let mut unframer = Unframer::new(framing);
            unframer.push(first);
            self.cutting = Cutting::Decided(unframer);
        } else if let Cutting::Decided(unframer) = &mut self.cutting {
            unframer.push(piece);
        }
        if let (true, Cutting::Decided(unframer)) = (self.ended, &mut self.cutting) {
            unframer.finish();
        }
    }
}

fn size_of(file: &File) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// Opens standard input past the standard library's buffer, and tells its size where it is a file.
#[cfg(unix)]
fn standard_input() -> (Box<dyn Read>, Option<u64>) {
    use std::os::fd::AsFd;
    match io::stdin().as_fd().try_clone_to_owned() {
        Ok(fd) => {
            let file = File::from(fd);
            let size = size_of(&file);
            (Box::new(file), size)
        }
        Err(_) => (Box::new(io::stdin().lock()), None),
    }
}

#[cfg(not(unix))]
fn standard_input() -> (Box<dyn Read>, Option<u64>) {
    (Box::new(io::stdin().lock()), None)
}
