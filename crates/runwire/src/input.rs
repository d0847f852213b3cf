//! Where a command reads from: bytes in pieces of bounded size, cut into frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use runwire_model::framing::{Frame, Framing, FramingError, Unframer};

use crate::failure::Failure;

/// Bytes that are read at once.
pub(crate) const PIECE: usize = 64 * 1024;

/// A file, or standard input.
pub(crate) struct Source {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) name: String,
    /// The file's size; nothing for a pipe or a terminal.
    pub(crate) size: Option<u64>,
}

impl Source {
    /// Opens a file, or standard input without one, or with `-`.
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

    /// Reads what is there, and waits where there is nothing yet; 0 means the end.
    pub(crate) fn read(&mut self, piece: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.reader.read(piece) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Read { name: self.name.clone(), error }),
            }
        }
    }
}

pub(crate) struct Input {
    source: Source,
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
        let source = Source::open(file)?;
        let cutting = match framing {
            Some(framing) => Cutting::Decided(Unframer::new(framing)),
            None => Cutting::Undecided(Vec::new()),
        };
        let piece = vec![0; PIECE].into_boxed_slice();
        Ok(Self { source, read: 0, piece, cutting, ended: false })
    }

    /// Tells the size of a file, which also means that reading never waits for a producer.
    pub(crate) fn size(&self) -> Option<u64> {
        self.source.size
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
        let count = self.source.read(&mut self.piece)?;
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
