//! Every call and every event once, however many files hold a copy of it. Resumed and forked sessions copy lines of others, side questions
//! replay answers of the main agent.

use crate::digest::{Digest, DigestWhat};
use crate::draft::{CallMarks, Identity};
use foldhash::HashMap;

/// The place of a call: which digest, and which of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSpot {
    pub(crate) part: u32,
    pub(crate) call: u32,
}

/// The digest that owns each call and event.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    /// For every digest and call: nothing if the call is another's copy, else where its usage is taken from.
    calls: Vec<Vec<Option<CallSpot>>>,
    /// The digest that an event belongs to, where several hold it.
    items: HashMap<Identity, u32>,
}

impl Ownership {
    /// Earlier digests own what later ones copy, so they must come in order.
    pub(crate) fn of(parts: &[&Digest]) -> Self {
        let mut ownership = Self::default();
        let mut owners: HashMap<Identity, CallSpot> = HashMap::default();
        let mut best: HashMap<Identity, (i64, CallSpot)> = HashMap::default();
        for (part, digest) in (0_u32..).zip(parts) {
            let mut fates = Vec::with_capacity(digest.calls.len());
            for (call, brief) in (0_u32..).zip(&digest.calls) {
                let spot = CallSpot { part, call };
                fates.push(Some(spot));
                let CallMarks {
                    request, output, ..
                } = brief.marks;
                if request == 0 {
                    continue;
                }
                let owner = *owners.entry(request).or_insert(spot);
                if owner != spot {
                    fates[call as usize] = None;
                }
                // The later one among equals.
                let known = best.entry(request).or_insert((output, spot));
                if output >= known.0 {
                    *known = (output, spot);
                }
            }
            ownership.calls.push(fates);
            for item in &digest.items {
                if item.identity != 0 && !matches!(item.what, DigestWhat::Error) {
                    ownership.items.entry(item.identity).or_insert(part);
                }
            }
        }
        for (request, owner) in &owners {
            if let Some((_, spot)) = best.get(request) {
                ownership.calls[owner.part as usize][owner.call as usize] = Some(*spot);
            }
        }
        ownership.drop_replayed(parts);
        ownership
    }

    /// An answer that a side chain or a fork repeats under another request id belongs to the agent that had it.
    fn drop_replayed(&mut self, parts: &[&Digest]) {
        let mut of_main: foldhash::HashSet<Identity> = foldhash::HashSet::default();
        let calls = || parts.iter().flat_map(|digest| &digest.calls);
        for call in calls() {
            if call.marks.message != 0 && !call.marks.may_repeat {
                of_main.insert(call.marks.message);
            }
        }
        for (digest, fates) in parts.iter().zip(&mut self.calls) {
            for (call, fate) in digest.calls.iter().zip(fates) {
                if call.marks.may_repeat && of_main.contains(&call.marks.message) {
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
