//! Limits for looking at a directory: a hostile or careless program must not cause long waits by what it leaves behind.

use std::cell::{Cell, RefCell};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Paths beyond this are not looked at.
const MOST_PATHS: usize = 1_000_000;

/// A file that holds more is not read.
const MOST_OF_FILE: u64 = 1 << 30;

/// Files that hold more than this together are not read.
const MOST_OF_ALL: u64 = 16 << 30;

/// A larger file with holes is read without them.
const SPARSE: u64 = 64 << 20;

/// One look takes no longer.
const LONGEST: Duration = Duration::from_secs(120);

const PIECE: usize = 1 << 20;

/// Files that were not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Files that were not read because they are too large, or because it took too long: changes of size or time are known.
    pub unread: u64,
    /// One of them.
    pub such_as: Option<PathBuf>,
    /// Directories lie so deep in each other that their paths cannot be named. Only a program that tries to makes such.
    pub too_deep: bool,
    /// Why not everything was found. Absent when it was.
    pub stopped: Option<&'static str>,
}

impl LeftOut {
    /// The omissions, as a sentence without its end. Absent when there are none.
    pub fn in_words(&self) -> Option<String> {
        let unread = self.such_as.as_ref().map(|path| {
            let (count, path) = (self.unread, path.display());
            format!("{count} files are too large to be read, such as `{path}`: their changes are detected by size and time")
        });
        let stopped = self
            .stopped
            .map(|reason| format!("not all files were looked at: {reason}"));
        let too_deep = self
            .too_deep
            .then(|| "what lies deeper than a path can be long was not looked at".to_owned());
        let parts = [unread, too_deep, stopped];
        let all: Vec<String> = parts.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// A look at a directory, and what is left of it.
pub(super) struct Look<'a> {
    until: Instant,
    paths: Cell<usize>,
    bytes: Cell<u64>,
    stop: &'a dyn Fn() -> bool,
    left_out: RefCell<LeftOut>,
}

impl Default for Look<'_> {
    fn default() -> Self {
        Self::until(&|| false)
    }
}

impl<'a> Look<'a> {
    /// A look that ends early once `stop` returns true.
    pub(super) fn until(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            until: Instant::now() + LONGEST,
            paths: Cell::new(MOST_PATHS),
            bytes: Cell::new(MOST_OF_ALL),
            stop,
            left_out: RefCell::default(),
        }
    }

    pub(super) fn left_out(&self) -> LeftOut {
        self.left_out.borrow().clone()
    }

    /// True when everything was found. Contents may still be unknown.
    pub(super) fn is_whole(&self) -> bool {
        self.left_out.borrow().stopped.is_none()
    }

    /// Takes one more path. `false`: it is time to stop.
    pub(super) fn goes_on(&self) -> bool {
        let left = self.paths.get();
        if left == 0 {
            self.stop_for("there are too many");
            return false;
        }
        self.paths.set(left - 1);
        // Asking for the time costs more than a path does.
        !left.is_multiple_of(64) || self.has_time()
    }

    fn has_time(&self) -> bool {
        if (self.stop)() {
            self.stop_for("the run was stopped");
        } else if Instant::now() > self.until {
            self.stop_for("it took too long");
        }
        self.is_whole()
    }

    fn stop_for(&self, reason: &'static str) {
        self.left_out.borrow_mut().stopped.get_or_insert(reason);
    }

    /// The hash of what a file holds. Absent for what cannot be read, and for what is too much.
    pub(super) fn hash(&self, path: &Path, metadata: &Metadata) -> Option<blake3::Hash> {
        let held = (metadata.blocks() * 512).min(metadata.len());
        if held > MOST_OF_FILE.min(self.bytes.get()) || !self.is_whole() {
            self.leave_out(path);
            return None;
        }
        self.bytes.set(self.bytes.get() - held);
        let file = open(path).ok()?;
        let mut hasher = blake3::Hasher::new();
        let is_sparse = metadata.len() > SPARSE && held < metadata.len();
        let read = match is_sparse {
            true => self.read_data(file, metadata.len(), &mut hasher),
            false => self.read(file, metadata.len(), &mut hasher),
        };
        match read.ok()? {
            true => Some(hasher.finalize()),
            false => {
                self.leave_out(path);
                None
            }
        }
    }

    /// Takes note of a path that could not be read.
    pub(super) fn note_failure(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidFilename {
            self.left_out.borrow_mut().too_deep = true;
        }
    }

    fn leave_out(&self, path: &Path) {
        let mut left_out = self.left_out.borrow_mut();
        left_out.unread += 1;
        left_out.such_as.get_or_insert_with(|| path.to_owned());
    }

    /// Reads so many bytes. `false`: it took too long.
    fn read(&self, file: impl Read, length: u64, hasher: &mut blake3::Hasher) -> io::Result<bool> {
        let mut file = file.take(length);
        let mut piece = vec![0; PIECE.min(length as usize + 1)];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(true),
                count => drop(hasher.update(&piece[..count])),
            }
            if file.limit() > 0 && !self.has_time() {
                return Ok(false);
            }
        }
    }

    /// Reads where there is data, with the places of it.
    fn read_data(
        &self,
        mut file: File,
        length: u64,
        hasher: &mut blake3::Hasher,
    ) -> io::Result<bool> {
        hasher.update(b"sparse").update(&length.to_le_bytes());
        let (mut at, mut left) = (0, MOST_OF_FILE);
        while let Some((from, to)) = next_data(&file, at)? {
            let size = (to - from).min(left);
            hasher
                .update(&from.to_le_bytes())
                .update(&size.to_le_bytes());
            file.seek(SeekFrom::Start(from))?;
            if left == 0 || !self.read(&file, size, hasher)? || !self.has_time() {
                return Ok(false);
            }
            (at, left) = (to, left - size);
        }
        Ok(true)
    }
}

/// The next piece of a file that is not a hole.
pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::{SeekFrom, seek};
    let from = match seek(file, SeekFrom::Data(at)) {
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        found => found?,
    };
    Ok(Some((from, seek(file, SeekFrom::Hole(from))?)))
}

/// Opens a regular file. Anything put in its place meanwhile is not followed and not waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Copies what a file holds, holes staying holes. Mode bits come with it, as with `fs::copy`.
pub(super) fn copy_sparse(source: &Path, target: &Path) -> io::Result<u64> {
    let from = open(source)?;
    let metadata = from.metadata()?;
    let to = File::create_new(target)?;
    to.set_len(metadata.len())?;
    let (mut at, mut copied) = (0, 0);
    while let Some((start, end)) = next_data(&from, at)? {
        let (mut reader, mut writer) = (&from, &to);
        reader.seek(SeekFrom::Start(start))?;
        writer.seek(SeekFrom::Start(start))?;
        copied += io::copy(&mut reader.take(end - start), &mut writer)?;
        at = end;
    }
    to.set_permissions(metadata.permissions())?;
    Ok(copied)
}

/// True when a file is mostly holes, and large enough for that to matter.
pub(super) fn is_sparse(metadata: &Metadata) -> bool {
    metadata.len() > SPARSE && metadata.blocks() * 512 < metadata.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Snapshot;
    use std::io::Write;

    /// A file of a terabyte that holds a few bytes.
    fn huge(path: &Path, text: &str) {
        let mut file = File::create(path).unwrap();
        file.set_len(1 << 40).unwrap();
        file.seek(SeekFrom::Start(1 << 39)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn holes_are_not_read_and_changes_between_them_are_found() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("big");
        huge(&path, "one");
        let before = Snapshot::of(root.path()).unwrap();
        assert!(before.changes(root.path()).unwrap().is_empty());
        huge(&path, "two");
        assert_eq!(before.changes(root.path()).unwrap().len(), 1);
        let copy = root.path().join("copy");
        assert!(copy_sparse(&path, &copy).unwrap() < 1 << 20);
        let look = Look::default();
        let hash = |path: &Path| look.hash(path, &std::fs::metadata(path).unwrap());
        assert_eq!(hash(&copy), hash(&path));
    }

    #[test]
    fn a_look_ends_when_it_is_told_to() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..200 {
            File::create(root.path().join(number.to_string())).unwrap();
        }
        let looked = Snapshot::empty().look(root.path(), &|| true).unwrap();
        assert!(looked.changes.len() < 200);
        let words = looked.left_out.in_words().unwrap();
        assert_eq!(words, "not all files were looked at: the run was stopped");
    }
}
