//! The files of the repository in memory, so that rules are pure functions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::command::TaskError;

/// Folders that are never committed.
const NOT_OURS: [&str; 4] = ["target", "node_modules", "fuzz/corpus", "fuzz/artifacts"];

/// Hidden folders of the repository; others belong to editors and git.
const HIDDEN_BUT_OURS: [&str; 4] = [".cargo", ".ci", ".config", ".github"];

/// Every file by its path from the root, written with `/`.
#[derive(Default)]
pub(super) struct SourceTree {
    files: BTreeMap<String, String>,
}

impl SourceTree {
    pub(super) fn read(root: &Path) -> Result<SourceTree, TaskError> {
        let mut tree = SourceTree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<(), TaskError> {
        let failed = |error| TaskError::new(format!("`{folder}` could not be read: {error}"));
        for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && is_ours(&path, &name) {
                self.read_folder(root, &path)?;
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).map_err(failed)?;
                // A binary file has no lines to check, but links may point at it.
                self.files.insert(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns true if `path` is a file or a folder that is not empty.
    pub(super) fn contains(&self, path: &str) -> bool {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }
}

fn is_ours(path: &str, name: &str) -> bool {
    let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&path);
    !hidden && !NOT_OURS.contains(&name) && !NOT_OURS.contains(&path)
}

#[cfg(test)]
impl<'a> FromIterator<(&'a str, &'a str)> for SourceTree {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(files: I) -> SourceTree {
        SourceTree {
            files: files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect(),
        }
    }
}
