//! Finds many values in much text at once.
//!
//! Every fourth position of the text is looked up among the four-byte blocks with which values begin and end. A value of seven or
//! more bytes covers one of these positions with each of its ends, so that whole values are found, and also what is left of one
//! where a text was cut. Shorter values, and the beginnings of what looks like a key, are few and found by `aho-corasick`.

use aho_corasick::{AhoCorasick, MatchKind};
use foldhash::fast::FixedState;
use regex::bytes::Regex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

const BLOCK: usize = 4;

/// The shortest part of base64 or hexadecimal that is recognized where a line ends; the six bytes before it may remain.
const SHORTEST_ON_A_LINE: usize = 9;

/// The shortest part of a value that is recognized where a text was cut, and the shortest value that blocks find.
pub(crate) const SHORTEST_PART: usize = 2 * BLOCK - 1;

/// Blocks are looked up in so many bits first.
const BITS: u32 = 16;

/// Marks of a cut, besides the two ends of a text. Quotes count, since what was cut may have been quoted afterwards. `[9 bytes cut]` is a line of its own.
const CUTS: [&[u8]; 10] = [
    "…".as_bytes(),
    b"...",
    b"\\u2026",
    b"\"",
    b"`",
    b"'",
    b"\n[",
    b"\\n[",
    b"cut]\n",
    b"cut]\\n",
];

/// No key of a service is longer. A private key in its armour is, and has a limit of its own in `KEY`.
const LONGEST_KEY: usize = 17 << 10;

/// The most bytes that are compared while a text is searched. Text may be made to be compared with everything, everywhere; whoever does
/// that loses more of it than the values.
struct Work(usize);

impl Work {
    fn on(text: &[u8]) -> Self {
        Self((text.len().saturating_mul(32)).saturating_add(1 << 20))
    }

    /// `false`: there is no more.
    fn spend(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_sub(bytes + 1);
        self.0 > 0
    }
}

/// A value to find, and its number.
#[derive(Clone, Debug)]
pub(crate) struct Needle {
    pub(crate) text: Vec<u8>,
    pub(crate) number: usize,
    /// Base64 and hexadecimal: it may stand on several lines.
    pub(crate) is_wrapped: bool,
}

/// A place in a text to be replaced. Without a number it only looks like a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) range: Range<usize>,
    pub(crate) number: Option<usize>,
}

pub(crate) struct Matcher {
    needles: Vec<Needle>,
    /// A bit for every block in `places`.
    seen: Vec<u64>,
    places: HashMap<u32, Vec<Place>, FixedState>,
    /// Finds the needles that are too short for blocks.
    short: Option<AhoCorasick>,
    /// The needle of each pattern of `short`.
    short_needles: Vec<usize>,
}

/// The position of a block in a needle.
#[derive(Clone, Copy)]
enum Place {
    /// So far behind its beginning.
    Head { needle: usize, offset: usize },
    /// So far before its end.
    Tail { needle: usize, offset: usize },
}

impl Matcher {
    pub(crate) fn new(needles: Vec<Needle>) -> Self {
        let is_short = |needle: &Needle| needle.text.len() < SHORTEST_PART;
        let numbered = || needles.iter().enumerate();
        let short_needles: Vec<usize> = numbered()
            .filter(|(_, needle)| is_short(needle))
            .map(|(number, _)| number)
            .collect();
        let patterns = short_needles.iter().map(|&needle| &needles[needle].text);
        let short = (!short_needles.is_empty())
            .then(|| AhoCorasick::new(patterns).expect("few and short patterns"));
        let mut places: HashMap<u32, Vec<Place>, FixedState> = HashMap::default();
        let mut seen = vec![0; 1 << (BITS - 6)];
        for (needle, Needle { text, .. }) in numbered().filter(|(_, needle)| !is_short(needle)) {
            for offset in 0..BLOCK {
                let from_end = text.len() - BLOCK - offset;
                for (start, place) in [
                    (offset, Place::Head { needle, offset }),
                    (
                        from_end,
                        Place::Tail {
                            needle,
                            offset: offset + BLOCK,
                        },
                    ),
                ] {
                    let block = block_at(text, start);
                    seen[slot(block) >> 6] |= 1 << (slot(block) & 63);
                    places.entry(block).or_default().push(place);
                }
            }
        }
        Self {
            needles,
            seen,
            places,
            short,
            short_needles,
        }
    }

    /// True when there is anything to replace.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        let mut is_in = false;
        self.search(text, &mut |_| {
            is_in = true;
            false
        });
        is_in
    }

    /// All places to replace, in order and apart from each other.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Found> {
        let mut all = Vec::new();
        self.search(text, &mut |found| {
            all.push(found);
            true
        });
        joined(all)
    }

    /// Calls `on_found` until it returns `false`.
    fn search(&self, text: &[u8], on_found: &mut dyn FnMut(Found) -> bool) {
        let mut work = Work::on(text);
        if !self.places.is_empty() && !self.search_blocks(text, &mut work, on_found) {
            return;
        }
        let short = self.short.iter();
        let short = short.flat_map(|short| short.find_overlapping_iter(text));
        let short = short.map(|hit| Found {
            range: hit.range(),
            number: Some(self.needles[self.short_needles[hit.pattern()]].number),
        });
        for found in short {
            if !on_found(found) {
                return;
            }
        }
        let mut work = Work::on(text);
        let mut done = 0;
        for hit in KEY_BEGINNINGS.find_iter(text) {
            // Within a key nothing else begins.
            let found = (hit.start() >= done).then(|| key_at(text, hit.start(), &mut work));
            if let Some(found) = found.flatten() {
                done = found.range.end;
                if !on_found(found) {
                    return;
                }
            }
        }
    }

    fn search_blocks(
        &self,
        text: &[u8],
        work: &mut Work,
        on_found: &mut dyn FnMut(Found) -> bool,
    ) -> bool {
        for (number, bytes) in text.chunks_exact(BLOCK).enumerate() {
            let block = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let slot = slot(block);
            if self.seen[slot >> 6] >> (slot & 63) & 1 == 0 {
                continue;
            }
            let Some(places) = self.places.get(&block) else {
                continue;
            };
            let at = number * BLOCK;
            for place in places {
                let found = match work.spend(0) {
                    true => self.found(text, at, *place, work),
                    false => Some(Found {
                        range: at..at + BLOCK,
                        number: None,
                    }),
                };
                if found.is_some_and(|found| !on_found(found)) {
                    return false;
                }
                if !work.spend(0) {
                    break;
                }
            }
        }
        true
    }

    /// The value, or the part of it, to which a block at this place belongs.
    fn found(&self, text: &[u8], at: usize, place: Place, work: &mut Work) -> Option<Found> {
        let (needle, range) = match place {
            Place::Head { needle, offset } if self.needles[needle].is_wrapped => {
                (needle, self.on_lines(text, at, needle, offset, work)?)
            }
            Place::Tail { needle, offset } if self.needles[needle].is_wrapped => {
                let offset = self.needles[needle].text.len() - offset;
                (needle, self.on_lines(text, at, needle, offset, work)?)
            }
            Place::Head { needle, offset } => {
                let start = at.checked_sub(offset)?;
                let value = &self.needles[needle].text;
                let pairs = text[start..].iter().zip(value);
                let same = pairs.take_while(|(a, b)| a == b).count();
                work.spend(same);
                let is_end =
                    |length: &usize| *length == value.len() || is_cut_behind(text, start + length);
                (needle, start..start + parts(same).find(is_end)?)
            }
            Place::Tail { needle, offset } => {
                let end = at + offset;
                let value = &self.needles[needle].text;
                let pairs = text.get(..end)?.iter().rev().zip(value.iter().rev());
                let same = pairs.take_while(|(a, b)| a == b).count();
                work.spend(same);
                let is_start =
                    |length: &usize| *length == value.len() || is_cut_before(text, end - length);
                (needle, end - parts(same).find(is_start)?..end)
            }
        };
        Some(Found {
            range,
            number: Some(self.needles[needle].number),
        })
    }

    /// A value of which a block stands at this place, whatever line breaks it has; or its beginning or end, where the rest of it does not follow.
    fn on_lines(
        &self,
        text: &[u8],
        at: usize,
        needle: usize,
        offset: usize,
        work: &mut Work,
    ) -> Option<Range<usize>> {
        let value = &self.needles[needle].text;
        let (before, start) = same_before(text, at, &value[..offset]);
        let (behind, end) = same_behind(text, at + BLOCK, &value[offset + BLOCK..]);
        let same = before + BLOCK + behind;
        work.spend(same);
        let (is_begun, is_ended) = (before == offset, offset + BLOCK + behind == value.len());
        let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let is_part = |is_cut: bool, is_at_end: bool| {
            is_cut && same >= SHORTEST_PART || is_at_end && same >= SHORTEST_ON_A_LINE
        };
        let is_found = match (is_begun, is_ended) {
            (true, true) => true,
            (true, false) => is_part(is_cut_behind(text, end), !is_letter(end)),
            (false, true) => is_part(
                is_cut_before(text, start),
                start == 0 || !is_letter(start - 1),
            ),
            (false, false) => false,
        };
        is_found.then_some(start..end)
    }
}

/// The number of bytes of a value that are here, and the place where they end. Line breaks within do not count.
fn same_behind(text: &[u8], from: usize, value: &[u8]) -> (usize, usize) {
    let (mut same, mut end, mut at) = (0, from, from);
    while same < value.len() {
        if text.get(at) == Some(&value[same]) {
            (same, at) = (same + 1, at + 1);
            end = at;
            continue;
        }
        match break_behind(&text[at.min(text.len())..]) {
            0 => break,
            length => at += length,
        }
    }
    (same, end)
}

/// The number of bytes of a value that are before this place, and the place where they begin.
fn same_before(text: &[u8], to: usize, value: &[u8]) -> (usize, usize) {
    let (mut same, mut start, mut at) = (0, to, to);
    while same < value.len() {
        if at > 0 && text[at - 1] == value[value.len() - 1 - same] {
            (same, at) = (same + 1, at - 1);
            start = at;
            continue;
        }
        match break_before(&text[..at]) {
            0 => break,
            length => at -= length,
        }
    }
    (same, start)
}

/// The length of a line break with the blanks around it, as a character or as its escape in JSON in JSON. 0: there is none.
fn break_behind(text: &[u8]) -> usize {
    let (mut at, mut breaks) = (0, 0);
    while let Some(byte) = text.get(at) {
        let backslashes = text[at..].iter().take_while(|byte| **byte == b'\\').count();
        match byte {
            b'\n' | b'\r' => (at, breaks) = (at + 1, breaks + 1),
            b' ' | b'\t' => at += 1,
            _ if (1..=LONGEST_ESCAPE).contains(&backslashes)
                && matches!(text.get(at + backslashes), Some(b'n' | b'r')) =>
            {
                (at, breaks) = (at + backslashes + 1, breaks + 1);
            }
            _ => break,
        }
        if at > LONGEST_BREAK {
            return 0;
        }
    }
    if breaks > 0 { at } else { 0 }
}

/// The same at the end of a text.
fn break_before(text: &[u8]) -> usize {
    let (mut at, mut breaks) = (text.len(), 0);
    while let Some(byte) = text[..at].last() {
        let rest = &text[..at - 1];
        let backslashes = rest.iter().rev().take_while(|byte| **byte == b'\\').count();
        match byte {
            b'\n' | b'\r' => (at, breaks) = (at - 1, breaks + 1),
            b' ' | b'\t' => at -= 1,
            b'n' | b'r' if (1..=LONGEST_ESCAPE).contains(&backslashes) => {
                (at, breaks) = (at - 1 - backslashes, breaks + 1);
            }
            _ => break,
        }
        if text.len() - at > LONGEST_BREAK {
            return 0;
        }
    }
    if breaks > 0 { text.len() - at } else { 0 }
}

/// A longer gap is none within a value.
const LONGEST_BREAK: usize = 64;

/// The backslashes of a line break in JSON, three levels deep.
const LONGEST_ESCAPE: usize = 4;

/// Lengths that a part may have when so many bytes are the same: a mark of a cut may begin as the value goes on.
fn parts(same: usize) -> impl Iterator<Item = usize> {
    let shortest = SHORTEST_PART.max(same.saturating_sub(3));
    (shortest..=same).rev()
}

fn block_at(text: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]])
}

fn slot(block: u32) -> usize {
    (block.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

fn is_cut_behind(text: &[u8], at: usize) -> bool {
    at == text.len() || CUTS.iter().any(|cut| text[at..].starts_with(cut))
}

fn is_cut_before(text: &[u8], at: usize) -> bool {
    at == 0 || CUTS.iter().any(|cut| text[..at].ends_with(cut))
}

/// Places that overlap become one, with the number of the longest.
fn joined(mut all: Vec<Found>) -> Vec<Found> {
    all.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut joined: Vec<(Found, usize)> = Vec::new();
    for found in all {
        let length = found.range.len();
        match joined.last_mut() {
            Some((last, longest)) if found.range.start < last.range.end => {
                last.range.end = last.range.end.max(found.range.end);
                if length > *longest || last.number.is_none() && found.number.is_some() {
                    (last.number, *longest) = (found.number.or(last.number), length);
                }
            }
            _ => joined.push((found, length)),
        }
    }
    joined.into_iter().map(|(found, _)| found).collect()
}

/// Finds the beginnings of keys of the usual services.
static KEY_BEGINNINGS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    const ALL: [&str; 17] = [
        "sk-",
        "sk_live_",
        "sk_test_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "AIza",
        "hf_",
        "npm_",
        "eyJ",
        "-----BEGIN ",
    ];
    // This kind of match is the one that searches with vectors.
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostFirst);
    builder.build(ALL).expect("few and short patterns")
});

static KEY: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"sk-[A-Za-z0-9_-]{20,}",
        r"sk_(?:live|test)_[A-Za-z0-9]{16,}",
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        r"github_pat_[A-Za-z0-9_]{30,}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"xox[abprs]-[A-Za-z0-9-]{10,}",
        r"AKIA[A-Z0-9]{16}",
        r"AIza[A-Za-z0-9_-]{30,}",
        r"hf_[A-Za-z0-9]{30,}",
        r"npm_[A-Za-z0-9]{30,}",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s-u:.){0,16384}?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    ];
    let whole = format!(r"\A(?:{})", forms.join("|"));
    Regex::new(&whole).expect("a pattern that does not change")
});

/// Something that looks like a key. Not in the middle of a word: `task-…` is none.
fn key_at(text: &[u8], at: usize, work: &mut Work) -> Option<Found> {
    if at > 0 && text[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let text = &text[at..text.len().min(at + LONGEST_KEY)];
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let length = match text.starts_with(b"-----BEGIN ") {
        true => text.len(),
        false => text.iter().take_while(is_part).count(),
    };
    let end = match work.spend(length) {
        true => KEY.find(&text[..length])?.end(),
        // The word that it begins, whatever it is.
        false => text.iter().take_while(is_part).count(),
    };
    Some(Found {
        range: at..at + end,
        number: None,
    })
}
