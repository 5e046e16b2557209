//! Many logs together: found, read on all cores, every call counted once, sub-agents with the session that started them.

use crate::assemble::{Part, assemble};
use crate::dedupe::Ownership;
use crate::digest::Digest;
use crate::draft::{Detail, Draft};
use crate::formats::{FORMATS, Head, LogFormat};
use crate::hidden::{self, HiddenCalls};
use crate::index::{Index, Stamp};
use crate::log::{LogFile, ReadError};
use crate::session::Session;
use foldhash::HashMap;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// So much of a file is looked at to recognize its form; more only if that is not enough.
const HEADS: [usize; 2] = [16 << 10, 1 << 20];

/// Logs that were read, as far as totals need it. Sessions are loaded from them one by one.
#[derive(Default)]
pub struct Library {
    files: Vec<KnownFile>,
    /// In the order of time.
    places: Vec<Place>,
    ownership: Ownership,
    roots: Vec<Root>,
    hidden: Vec<HiddenCalls>,
    unreadable: Vec<ReadError>,
}

pub(crate) struct KnownFile {
    log: LogFile,
    format: &'static dyn LogFormat,
    digests: Vec<Digest>,
    /// The first moment of each digest. The last of all where a digest has no times.
    started: Vec<i64>,
    /// The creation time of the file, in nanoseconds since 1970; 0 where the system does not report it.
    created: u64,
}

/// A file, and whether the index lacks it.
struct ReadFile {
    file: KnownFile,
    stamp: Stamp,
    is_new: bool,
}

/// A digest: its file, and its number there.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    number: usize,
}

/// A session with everything that belongs to it, as places in the order of time.
#[derive(Debug)]
struct Root {
    id: String,
    places: Vec<u32>,
}

/// The progress of reading.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Files that are done.
    pub files: usize,
    pub all_files: usize,
}

impl Library {
    /// Reads logs. Files that are known to the index and did not change are not opened.
    pub fn read(
        paths: Vec<PathBuf>,
        index: &mut Index,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Self {
        let done = AtomicUsize::new(0);
        let all_files = paths.len();
        let known = &*index;
        let read: Vec<Result<ReadFile, ReadError>> = paths
            .into_par_iter()
            // One file at a time: large ones must not wait behind each other.
            .with_max_len(1)
            .map(|path| {
                let file = KnownFile::read(path, known);
                let files = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress(Progress { files, all_files });
                file
            })
            .collect();
        let mut library = Self::default();
        for file in read {
            match file {
                Ok(ReadFile {
                    file,
                    stamp,
                    is_new,
                }) => {
                    if is_new {
                        index.keep(file.log.path(), file.format.agent(), stamp, &file.digests);
                    }
                    library.files.push(file);
                }
                Err(error) => library.unreadable.push(error),
            }
        }
        library.put_in_order();
        library
    }

    fn put_in_order(&mut self) {
        let mut places: Vec<(i64, u64, &Path, Place)> = Vec::new();
        for (file, known) in self.files.iter().enumerate() {
            for (number, started) in known.started.iter().enumerate() {
                // A fork begins with the same lines as its original, which is the older file.
                places.push((
                    *started,
                    known.created,
                    known.log.path(),
                    Place { file, number },
                ));
            }
        }
        places.sort_by(|a, b| (a.0, a.1, a.2, a.3.number).cmp(&(b.0, b.1, b.2, b.3.number)));
        self.places = places.into_iter().map(|(.., place)| place).collect();
        self.ownership = Ownership::of(&self.digests());
        self.roots = self.find_roots();
        let roots = self.roots.iter().map(|root| root.places.as_slice());
        self.hidden = hidden::find(&self.digests(), &self.ownership, roots);
    }

    pub(crate) fn hidden(&self) -> &[HiddenCalls] {
        &self.hidden
    }

    pub(crate) fn digests(&self) -> Vec<&Digest> {
        self.places
            .iter()
            .map(|place| self.digest(*place))
            .collect()
    }

    fn digest(&self, place: Place) -> &Digest {
        &self.files[place.file].digests[place.number]
    }

    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// For every digest the number of the session it belongs to.
    pub(crate) fn roots_of_digests(&self) -> Vec<usize> {
        let mut roots = vec![0; self.places.len()];
        for (number, root) in self.roots.iter().enumerate() {
            for place in &root.places {
                roots[*place as usize] = number;
            }
        }
        roots
    }

    pub(crate) fn root_id(&self, root: usize) -> &str {
        &self.roots[root].id
    }

    pub(crate) fn path_of_digest(&self, place: usize) -> &Path {
        self.files[self.places[place].file].log.path()
    }

    /// Sub-agents belong to the session at the top. Parents that form a circle, or are unknown here, end the way up.
    fn find_roots(&self) -> Vec<Root> {
        let digests = self.digests();
        let mut parents: Parents<'_> = HashMap::default();
        for digest in &digests {
            let parent = parents
                .entry((&digest.origin.agent, &digest.id))
                .or_default();
            *parent = parent.or(digest.parent.as_deref());
        }
        let mut roots: HashMap<(&str, &str), usize> = HashMap::default();
        let mut found: Vec<Root> = Vec::new();
        for (place, digest) in (0_u32..).zip(&digests) {
            let agent = digest.origin.agent.as_str();
            let id = root_of(agent, &digest.id, &parents);
            let root = *roots.entry((agent, id)).or_insert_with(|| {
                found.push(Root {
                    id: id.to_owned(),
                    places: Vec::new(),
                });
                found.len() - 1
            });
            found[root].places.push(place);
        }
        found
    }

    /// Ends the use of a library at the end of a program: temporary copies are removed, but memory is not given back piece by piece, which
    /// takes a part of the time that people wait for.
    pub fn leave(self) {
        for file in self.files {
            std::mem::forget(file.digests);
        }
    }

    /// The number of sessions.
    pub fn len(&self) -> usize {
        self.roots.len()
    }

    /// True if there is no session.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// A session's earliest file, and its id where the file holds several.
    pub fn name_of(&self, session: usize) -> String {
        let Some(root) = self.roots.get(session) else {
            return String::new();
        };
        let own = root
            .places
            .iter()
            .find(|place| self.digest(self.places[**place as usize]).id == root.id);
        let place = self.places[*own.unwrap_or(&root.places[0]) as usize];
        let file = &self.files[place.file];
        let path = file.log.path().display();
        match file.digests.len() {
            1 => path.to_string(),
            _ => format!("{path}: {}", root.id),
        }
    }

    /// Files that could not be read.
    pub fn unreadable(&self) -> &[ReadError] {
        &self.unreadable
    }

    /// The reason why a file could not be read.
    pub(crate) fn take_error_of(&mut self, path: &Path) -> Option<ReadError> {
        let place = self
            .unreadable
            .iter()
            .position(|error| error.path() == path)?;
        Some(self.unreadable.remove(place))
    }

    /// Loads a session with all its texts. Absent where nothing of it counts, because other sessions own all of it.
    pub fn load(&self, session: usize) -> Result<Option<Session>, ReadError> {
        let Some(root) = self.roots.get(session) else {
            return Ok(None);
        };
        let mut parts = Vec::new();
        let mut files: BTreeSet<&Path> = BTreeSet::new();
        for place in &root.places {
            let Place { file, number } = self.places[*place as usize];
            let known = &self.files[file];
            let wanted = &known.digests[number].id;
            files.insert(known.log.path());
            let drafts = known.format.read_session(&known.log, wanted)?;
            let drafts = named(drafts, known.log.path());
            let draft = drafts.into_iter().find(|draft| draft.id == *wanted);
            if let Some(draft) = draft {
                parts.push(Part {
                    draft,
                    place: *place,
                });
            }
        }
        let hidden: Vec<&HiddenCalls> = self
            .hidden
            .iter()
            .filter(|hidden| root.places.contains(&hidden.part))
            .collect();
        let session = assemble(&root.id, parts, &hidden, &self.digests(), &self.ownership);
        Ok(session.map(|mut session| {
            session.origin.files = files.into_iter().map(Path::to_owned).collect();
            session
        }))
    }
}

/// The parents of sessions, by agent and id.
type Parents<'a> = HashMap<(&'a str, &'a str), Option<&'a str>>;

fn root_of<'a>(agent: &'a str, id: &'a str, parents: &Parents<'a>) -> &'a str {
    let mut seen = BTreeSet::new();
    let mut at = id;
    while seen.insert(at) {
        match parents.get(&(agent, at)).copied().flatten() {
            Some(parent) if parents.contains_key(&(agent, parent)) => at = parent,
            _ => return at,
        }
    }
    // A circle: its smallest id stands for all of it, wherever the way began.
    seen.into_iter().min().unwrap_or(id)
}

impl KnownFile {
    /// Reads a file, or takes what the index knows of it.
    fn read(path: PathBuf, index: &Index) -> Result<ReadFile, ReadError> {
        if let Some(record) = index.find(&path) {
            let stamp = Stamp::of_log(&path, record.format);
            if stamp == record.stamp
                && let Some(digests) = index.digests(record)
            {
                return Ok(ReadFile {
                    file: Self::of(LogFile::new(path), record.format, digests, &stamp),
                    stamp,
                    is_new: false,
                });
            }
        }
        let log = LogFile::new(path);
        let format = recognize(&log)?;
        // Before reading: what changes meanwhile is read again the next time.
        let stamp = Stamp::of_log(log.path(), format);
        let mut drafts = named(format.read(&log, Detail::Totals)?, log.path());
        let digests = drafts.iter_mut().map(Digest::of).collect();
        Ok(ReadFile {
            file: Self::of(log, format, digests, &stamp),
            stamp,
            is_new: true,
        })
    }

    fn of(
        log: LogFile,
        format: &'static dyn LogFormat,
        digests: Vec<Digest>,
        stamp: &Stamp,
    ) -> Self {
        let started = |digest: &Digest| digest.started().unwrap_or(i64::MAX);
        Self {
            started: digests.iter().map(started).collect(),
            created: stamp.created(),
            log,
            format,
            digests,
        }
    }
}

/// A log that does not say which session it is, is one of its own.
fn named(mut drafts: Vec<Draft>, path: &Path) -> Vec<Draft> {
    for draft in &mut drafts {
        if draft.id.is_empty() {
            draft.id = path.display().to_string();
        }
    }
    drafts
}

/// The agent whose log a file is. Absent for other files, and for those that cannot be read.
pub fn agent_of(path: &Path) -> Option<&'static str> {
    let format = recognize(&LogFile::new(path.to_owned())).ok()?;
    Some(format.agent())
}

/// The form of a file, by what is in it.
pub(crate) fn recognize(log: &LogFile) -> Result<&'static dyn LogFormat, ReadError> {
    let unknown = || ReadError::Unknown {
        path: log.path().to_owned(),
    };
    // To open a pipe may take forever.
    if !log.is_regular() {
        return Err(unknown());
    }
    for length in HEADS {
        let bytes = log.head(length)?;
        let head = Head { bytes: &bytes };
        if head.is_sqlite() {
            let found = log.with_database(|database| {
                let mut formats = FORMATS.iter();
                Ok(formats.find(|format| format.recognizes_database(database)))
            })?;
            return found.copied().ok_or_else(unknown);
        }
        if let Some(format) = format_of(&head) {
            return Ok(format);
        }
        if bytes.len() < length {
            return Err(unknown());
        }
    }
    // A document shows its form at its beginning or not at all.
    if log.is_document() {
        return Err(unknown());
    }
    let bytes = log.first_short_lines()?;
    format_of(&Head { bytes: &bytes }).ok_or_else(unknown)
}

fn format_of(head: &Head<'_>) -> Option<&'static dyn LogFormat> {
    FORMATS
        .iter()
        .find(|format| format.recognizes(head))
        .copied()
}
