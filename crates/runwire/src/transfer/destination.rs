//! The output of an export: standard output, a device, or a file that gets its name only when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Size of the write buffer.
const BATCH: usize = 256 * 1024;

pub(super) struct Destination(To);

enum To {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A device or a named pipe, written in place.
    Device {
        writer: BufWriter<File>,
        path: PathBuf,
    },
    File {
        writer: Option<BufWriter<File>>,
        path: PathBuf,
        part: PathBuf,
    },
}

impl Destination {
    /// Opens a file; standard output for `None` or `-`.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file.filter(|path| *path != Path::new("-")) else {
            return Ok(Self(To::Stdout(BufWriter::with_capacity(BATCH, io::stdout().lock()))));
        };
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let file = File::options().write(true).open(path).map_err(|error| unwritable(path, error))?;
            let writer = BufWriter::with_capacity(BATCH, file);
            return Ok(Self(To::Device { writer, path: path.to_owned() }));
        }
        // Write the target of a symbolic link, so that the link stays.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let part = part_of(&path);
        let file = File::create(&part).map_err(|error| unwritable(&part, error))?;
        let writer = Some(BufWriter::with_capacity(BATCH, file));
        Ok(Self(To::File { writer, path, part }))
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        let write = |writer: &mut dyn Write| writer.write_all(line).and_then(|()| writer.write_all(b"\n"));
        match &mut self.0 {
            To::Stdout(stdout) => write(stdout).map_err(Failure::Write),
            To::Device { writer, path } => write(writer).map_err(|error| unwritable(path, error)),
            To::File { writer, part, .. } => match writer {
                Some(writer) => write(writer).map_err(|error| unwritable(part, error)),
                None => Ok(()),
            },
        }
    }

    /// Flushes and syncs the output, and renames the file to its final name.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let (writer, path, part) = match &mut self.0 {
            To::Stdout(stdout) => return stdout.flush().map_err(Failure::Write),
            To::Device { writer, path } => return writer.flush().map_err(|error| unwritable(path, error)),
            To::File { writer, path, part } => (writer, path, part),
        };
        let Some(buffered) = writer else { return Ok(()) };
        let failed = |error| unwritable(part, error);
        buffered.flush().map_err(failed)?;
        buffered.get_ref().sync_all().map_err(failed)?;
        std::fs::rename(&*part, &*path).map_err(|error| unwritable(path, error))?;
        *writer = None;
        sync_folder(path);
        Ok(())
    }
}

/// Removes an incomplete file.
impl Drop for Destination {
    fn drop(&mut self) {
        if let To::File { writer, part, .. } = &mut self.0
            && let Some(writer) = writer.take()
        {
            // Drop the buffer without writing it.
            drop(writer.into_parts());
            let _ = std::fs::remove_file(part);
        }
    }
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn unwritable(path: &Path, error: io::Error) -> Failure {
    Failure::WriteFile { name: path.display().to_string(), error }
}

/// Syncs the folder, so that the rename is durable.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
