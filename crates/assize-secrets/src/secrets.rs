//! The secrets of a run, as they become known.

use crate::classify::{SHORT, can_be_secret, is_secret_name, looks_random};
use crate::credentials::in_url;
use crate::forms::from_base64;
use crate::redactor::Compiled;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Values beyond this are not learnt from requests: an agent may send any number of keys, and each of them is looked for in many forms.
const MOST_VALUES: usize = 500;

/// Nor are values that are longer than this together.
const MOST_LEARNT: usize = 128 << 10;

/// Things that only look like keys are numbered up to here.
const MOST_NUMBERED: usize = 10_000;

/// A longer value is no key. Values that a suite declares are not limited.
const LONGEST_LEARNT: usize = 8 << 10;

/// The secrets of a run. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// Counts changes.
    version: AtomicU64,
    /// The automaton that finds them, as of some version.
    compiled: RwLock<Option<Arc<Compiled>>>,
}

#[derive(Default)]
struct Known {
    /// All variables that are used, secret or not.
    environment: BTreeMap<String, String>,
    /// The suite's own declarations about values.
    declared: HashMap<String, bool>,
    found: Vec<Secret>,
    /// Bytes of those that were learnt from requests.
    learnt: usize,
    /// Numbers of values, by their hash.
    numbers: HashMap<[u8; 32], usize>,
}

struct Secret {
    name: String,
    value: String,
    reason: Reason,
}

/// The reason why a value is taken for a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The suite declares it.
    Declared,
    /// Its name is that of a secret.
    Name,
    /// It looks like a key.
    Random,
    /// It is a credential in a URL.
    Url,
    /// An agent sent it to a service as its key.
    Request,
}

impl Reason {
    /// The reason in words, after "because".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Declared => "it is declared as a secret",
            Self::Name => "of its name",
            Self::Random => "it looks like a key",
            Self::Url => "it is a credential in a URL",
            Self::Request => "it is sent as a key",
        }
    }
}

/// A value that will be removed, without the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The variable or the place it comes from.
    pub name: String,
    /// The reason why it is removed.
    pub reason: Reason,
    /// It is so short that ordinary text may hold it by chance.
    pub is_short: bool,
}

impl Secrets {
    /// Takes note of a value that a suite uses, and decides whether it is a secret.
    pub fn add(&self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        self.note(&name, &value);
        self.known().environment.insert(name, value);
    }

    /// Takes note of a value that a suite or a plugin writes itself, such as a variable or a header: nothing to compare runs by.
    pub fn note(&self, name: &str, value: &str) {
        self.add_url(name, value);
        if name.eq_ignore_ascii_case("authorization")
            || name.eq_ignore_ascii_case("proxy-authorization")
        {
            self.learn_authorization(value);
        } else if let Some(reason) = reason(name, value) {
            self.find(name, value.to_owned(), reason);
        }
    }

    /// Takes note of what a suite says about a value: a secret, or none whatever it looks like.
    pub fn declare(&self, name: &str, value: &str, is_secret: bool) {
        if value.is_empty() {
            return;
        }
        let previous = self.known().declared.insert(value.to_owned(), is_secret);
        if is_secret && previous != Some(true) {
            self.find(name, value.to_owned(), Reason::Declared);
        }
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Takes note of the password and of other credentials in a URL.
    pub fn add_url(&self, name: &str, url: &str) {
        for found in in_url(url) {
            for value in [found.written, found.value] {
                if can_be_secret(&value) {
                    self.find(name, value, Reason::Url);
                }
            }
        }
    }

    /// Learns a key from a request. `user:password` in base64, as in basic authentication, is two more.
    pub fn learn(&self, name: &str, value: &str) {
        let has_room = {
            let known = self.known();
            known.found.len() < MOST_VALUES && known.learnt + value.len() <= MOST_LEARNT
        };
        if has_room && (SHORT..=LONGEST_LEARNT).contains(&value.len()) {
            self.find(name, value.to_owned(), Reason::Request);
        }
    }

    /// Learns the value of an `Authorization` header, whatever its scheme.
    pub fn learn_authorization(&self, header: &str) {
        let (scheme, value) = header.split_once(' ').unwrap_or(("", header));
        let value = value.trim();
        self.learn("authorization", value);
        if scheme.eq_ignore_ascii_case("basic")
            && let Some(Ok(decoded)) = from_base64(value).map(String::from_utf8)
        {
            let password = decoded.split_once(':').map_or("", |(_, password)| password);
            self.learn("authorization", password);
            self.learn("authorization", &decoded);
        }
    }

    /// Names and hashes of all variables, for comparing runs. A hash does not give the value away unless it can be guessed.
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let hash = |value: &String| {
            let key = blake3::derive_key("assize environment value", value.as_bytes());
            blake3::hash(&key).to_hex()[..16].to_owned()
        };
        let known = self.known();
        let variables = known.environment.iter();
        variables
            .map(|(name, value)| (name.clone(), hash(value)))
            .collect()
    }

    /// The values that will be removed, as far as they are known by now.
    pub fn removed(&self) -> Vec<Removed> {
        let known = self.known();
        let removed = known.removable().map(|(_, secret)| Removed {
            name: secret.name.clone(),
            reason: secret.reason,
            is_short: secret.value.len() < SHORT,
        });
        removed.collect()
    }

    /// The names of secrets that are this id, or long enough to be recognized as a part of it.
    pub fn named_by<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
        let known = self.known();
        let mut clashes = Vec::new();
        for id in ids {
            let is_in = |value: &str| id == value || value.len() >= SHORT && id.contains(value);
            let clash = known.removable().find(|(_, secret)| is_in(&secret.value));
            clashes.extend(clash.map(|(_, secret)| (secret.name.clone(), id.to_owned())));
        }
        clashes
    }

    /// Variables whose names are those of secrets, but whose values are too short to be removed.
    pub fn too_short(&self) -> Vec<String> {
        let known = self.known();
        let is_too_short = |(name, value): &(&String, &String)| {
            is_secret_name(name)
                && !value.is_empty()
                && value.len() < crate::classify::SHORTEST_BY_NAME
        };
        let short = known.environment.iter().filter(is_too_short);
        let undeclared = short.filter(|(_, value)| !known.declared.contains_key(*value));
        undeclared.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn compiled(&self) -> &RwLock<Option<Arc<Compiled>>> {
        &self.0.compiled
    }

    /// Changes whenever a value becomes known.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The values to remove, with their numbers.
    pub(crate) fn values(&self) -> Vec<(usize, String)> {
        let known = self.known();
        let values = known.removable();
        values
            .map(|(number, secret)| (number, secret.value.clone()))
            .collect()
    }

    /// The number of something that looks like a key: the same for the same value. Absent when there are too many.
    pub(crate) fn number_of(&self, value: &[u8]) -> Option<usize> {
        let mut known = self.known();
        let hash = *blake3::hash(value).as_bytes();
        if known.numbers.len() >= MOST_NUMBERED {
            return known.numbers.get(&hash).copied();
        }
        Some(known.number(hash))
    }

    fn find(&self, name: &str, value: String, reason: Reason) {
        let mut known = self.known();
        if known.found.iter().any(|secret| secret.value == value) {
            return;
        }
        known.number(*blake3::hash(value.as_bytes()).as_bytes());
        if reason == Reason::Request {
            known.learnt += value.len();
        }
        known.found.push(Secret {
            name: name.to_owned(),
            value,
            reason,
        });
        self.0.version.fetch_add(1, Ordering::Release);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why a value with this name is a secret, if it is.
fn reason(name: &str, value: &str) -> Option<Reason> {
    match () {
        () if is_secret_name(name) && can_be_secret(value) => Some(Reason::Name),
        () if looks_random(value) => Some(Reason::Random),
        () => None,
    }
}

impl Known {
    fn number(&mut self, hash: [u8; 32]) -> usize {
        let next = self.numbers.len() + 1;
        *self.numbers.entry(hash).or_insert(next)
    }

    fn removable(&self) -> impl Iterator<Item = (usize, &Secret)> {
        let is_kept = |secret: &&Secret| self.declared.get(&secret.value) != Some(&false);
        self.found.iter().filter(is_kept).map(|secret| {
            let hash = blake3::hash(secret.value.as_bytes());
            let number = self.numbers.get(hash.as_bytes()).copied();
            (number.unwrap_or_default(), secret)
        })
    }
}

/// Never shows a value, whoever asks.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.known().environment.keys())
            .finish()
    }
}
