//! SQLite databases of agents. They are never opened in place: a copy with its write-ahead log is made in a private
//! directory and read there.

use rusqlite::{Connection, OpenFlags};
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A database that changes while it is copied is copied again, so often.
const MOST_COPIES: u32 = 20;

/// Its agent gets this much time to finish writing before the second copy, and as much more before each further one.
const PAUSE: Duration = Duration::from_millis(5);

/// Times of files are only so exact: a file that changed within the last moments may change again and show the same time.
const EXACT_AFTER: Duration = Duration::from_secs(2);

/// A database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file or its copy.
    #[error("cannot copy it")]
    Copy(#[from] std::io::Error),
    /// SQLite refused it.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Every copy was outdated when it was made.
    #[error("it changed {MOST_COPIES} times while it was copied")]
    Changing,
    /// The copy disappeared.
    #[error("its copy is gone")]
    Gone,
}

/// A private copy of a database.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    state: State,
    /// Absent for a database in memory.
    _directory: Option<TempDir>,
}

/// Sizes and times by which changes of the files are noticed.
#[derive(Debug, PartialEq, Eq, Clone)]
struct State(Vec<Option<(u64, Option<SystemTime>)>>);

impl State {
    fn of(path: &Path) -> Self {
        let seen = |metadata: Metadata| (metadata.len(), metadata.modified().ok());
        let look = |path: PathBuf| std::fs::metadata(path).ok().map(seen);
        Self(vec![look(path.to_owned()), look(beside(path, "-wal"))])
    }

    /// True if times are enough to notice a change.
    fn is_settled(&self) -> bool {
        let age = |time: Option<SystemTime>| time?.elapsed().ok();
        let mut files = self.0.iter().flatten();
        files.all(|(_, time)| age(*time).is_some_and(|age| age > EXACT_AFTER))
    }
}

/// `sessions.db-wal` beside `sessions.db`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

impl Database {
    /// Copies the database and its log until both are of the same moment.
    pub(crate) fn copy(path: &Path) -> Result<Self, DatabaseError> {
        for attempt in 0..MOST_COPIES {
            std::thread::sleep(PAUSE * attempt);
            let before = State::of(path);
            let directory = assize_secrets::private_directory("assize-sessions-")?;
            let copy = directory.path().join("copy.db");
            copy_file(path, &copy)?;
            let log = beside(path, "-wal");
            if log.exists() {
                copy_file(&log, &beside(&copy, "-wal"))?;
            }
            // Both files are looked at again after both were copied: there was a moment at which they were as the copies are.
            let is_same = before.is_settled()
                || (has_content_of(path, &copy)? && has_content_of(&log, &beside(&copy, "-wal"))?);
            if is_same && State::of(path) == before {
                let connection = open(&copy)?;
                return Ok(Self {
                    connection,
                    state: before,
                    _directory: Some(directory),
                });
            }
        }
        Err(DatabaseError::Changing)
    }

    /// A database that stands in no file, for fuzzing.
    pub(crate) fn in_memory(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self {
            connection: Connection::open_in_memory()?,
            state: State::of(path),
            _directory: None,
        })
    }

    pub(crate) fn is_outdated(&self, path: &Path) -> bool {
        State::of(path) != self.state
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// True if a table has all of these columns.
    pub(crate) fn has_columns(&self, table: &str, wanted: &[&str]) -> bool {
        let columns = self.columns(table).unwrap_or_default();
        let has = |name: &&str| columns.iter().any(|column| column == name);
        wanted.iter().all(has)
    }

    /// The names of a table's columns.
    pub(crate) fn columns(&self, table: &str) -> Result<Vec<String>, DatabaseError> {
        let mut query = self
            .connection
            .prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = query.query_map([table], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }
}

/// Read and write permission for this user alone comes from the directory.
fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create_new(to)?;
    std::io::copy(&mut source, &mut target)?;
    Ok(())
}

/// True if both files hold the same, or neither exists.
fn has_content_of(original: &Path, copy: &Path) -> std::io::Result<bool> {
    if !original.exists() || !copy.exists() {
        return Ok(original.exists() == copy.exists());
    }
    let mut one = BufReader::with_capacity(1 << 16, File::open(original)?);
    let mut other = BufReader::with_capacity(1 << 16, File::open(copy)?);
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] || (length == 0 && left.len() != right.len()) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        other.consume(length);
    }
}

fn open(copy: &Path) -> Result<Connection, rusqlite::Error> {
    // The copy is ours: it is opened for writing so that SQLite can replay the write-ahead log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags)?;
    // A hostile file must not run code or use views that call functions.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(
        rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        false,
    )?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA query_only = ON;")?;
    Ok(connection)
}
