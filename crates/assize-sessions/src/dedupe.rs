//! Every call and every event once, however many files hold a copy of it. Resumed and forked sessions copy lines of others, side questions
//! replay answers of the main agent.

use crate::digest::{Digest, DigestWhat};
use crate::draft::{CallMarks, Identity};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// The place of a call: which digest, and which of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSpot {
    pub(crate) part: u32,
    pub(crate) call: u32,
}

/// A call that was met, and where its usage is largest.
struct Known {
    owner: CallSpot,
    output: i64,
    best: CallSpot,
}

/// The digest that owns each call and event.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    /// For every digest and call: nothing if the call is another's copy, else where its usage is taken from.
    calls: Vec<Vec<Option<CallSpot>>>,
    /// The digest that an event belongs to, for those that several hold.
    items: HashMap<Identity, u32>,
}

impl Ownership {
    /// Earlier digests own what later ones copy, so they must come in order.
    pub(crate) fn of(parts: &[&Digest]) -> Self {
        let (calls, items) = rayon::join(|| calls(parts), || items(parts));
        let mut ownership = Self { calls, items };
        ownership.drop_replayed(parts);
        ownership
    }

    /// An answer that a side chain or a fork repeats under another request id belongs to the agent that had it.
    fn drop_replayed(&mut self, parts: &[&Digest]) {
        let calls = || parts.iter().flat_map(|digest| &digest.calls);
        let mut of_main: HashMap<Identity, bool> = HashMap::default();
        let repeated = calls().filter(|call| call.marks.may_repeat);
        of_main.extend(repeated.map(|call| (call.marks.message, false)));
        if of_main.is_empty() {
            return;
        }
        for call in calls() {
            if call.marks.message != 0
                && !call.marks.may_repeat
                && let Some(is_of_main) = of_main.get_mut(&call.marks.message)
            {
                *is_of_main = true;
            }
        }
        for (digest, fates) in parts.iter().zip(&mut self.calls) {
            for (call, fate) in digest.calls.iter().zip(fates) {
                if call.marks.may_repeat && of_main.get(&call.marks.message) == Some(&true) {
                    *fate = None;
                }
            }
        }
    }

    /// The place of a call's usage, if the call counts here.
    pub(crate) fn usage_of(&self, part: u32, call: u32) -> Option<CallSpot> {
        *self.calls.get(part as usize)?.get(call as usize)?
    }

    /// True if an event counts here.
    pub(crate) fn has_item(&self, part: u32, identity: Identity) -> bool {
        identity == 0 || self.items.get(&identity).is_none_or(|owner| *owner == part)
    }
}

/// For every digest and call: nothing if the call is another's copy, else where its usage is taken from.
fn calls(parts: &[&Digest]) -> Vec<Vec<Option<CallSpot>>> {
    let count = parts.iter().map(|digest| digest.calls.len()).sum();
    let mut known: HashMap<Identity, Known> =
        HashMap::with_capacity_and_hasher(count, <_>::default());
    let mut copied: Vec<Identity> = Vec::new();
    let mut calls: Vec<Vec<Option<CallSpot>>> = Vec::with_capacity(parts.len());
    for (part, digest) in (0_u32..).zip(parts) {
        let mut fates = Vec::with_capacity(digest.calls.len());
        for (call, brief) in (0_u32..).zip(&digest.calls) {
            let spot = CallSpot { part, call };
            let CallMarks {
                request, output, ..
            } = brief.marks;
            let fate = match known.entry(request) {
                _ if request == 0 => Some(spot),
                Entry::Vacant(place) => {
                    place.insert(Known {
                        owner: spot,
                        output,
                        best: spot,
                    });
                    Some(spot)
                }
                Entry::Occupied(mut place) => {
                    let known = place.get_mut();
                    // The later one among equals.
                    if output >= known.output {
                        (known.output, known.best) = (output, spot);
                    }
                    copied.push(request);
                    None
                }
            };
            fates.push(fate);
        }
        calls.push(fates);
    }
    for request in copied {
        if let Some(Known { owner, best, .. }) = known.get(&request) {
            calls[owner.part as usize][owner.call as usize] = Some(*best);
        }
    }
    calls
}

/// The digest that an event belongs to, for those that several hold.
fn items(parts: &[&Digest]) -> HashMap<Identity, u32> {
    let count = parts.iter().map(|digest| digest.items.len()).sum();
    let mut first: HashMap<Identity, u32> =
        HashMap::with_capacity_and_hasher(count, <_>::default());
    let mut items = HashMap::default();
    for (part, digest) in (0_u32..).zip(parts) {
        for item in &digest.items {
            if item.identity != 0 && !matches!(item.what, DigestWhat::Error) {
                let owner = *first.entry(item.identity).or_insert(part);
                if owner != part {
                    items.insert(item.identity, owner);
                }
            }
        }
    }
    items
}
