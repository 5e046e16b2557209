//! Calls that no line of a log shows, such as the summary that a compaction asks for. An agent that keeps the sums of its
//! session gives them
//! away: they are what its sums grew by and no call explains.

use crate::dedupe::Ownership;
use crate::digest::{Counts, Digest, DigestClaim};
use std::collections::BTreeMap;

/// The usage of calls without a line between two sums.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HiddenCalls {
    /// The digest whose sums show them.
    pub(crate) part: u32,
    pub(crate) at: i64,
    pub(crate) model: String,
    pub(crate) counts: Counts,
}

/// Input, output, cache reads, cache writes.
type Classes = [u64; 4];

/// The hidden calls of all sessions, each given by the places of its digests.
pub(crate) fn find<'a>(
    digests: &[&Digest],
    ownership: &Ownership,
    sessions: impl Iterator<Item = &'a [u32]>,
) -> Vec<HiddenCalls> {
    let mut found = Vec::new();
    for places in sessions {
        for part in places {
            if !digests[*part as usize].claims.is_empty() {
                in_part(*part, places, digests, ownership, &mut found);
            }
        }
    }
    found
}

fn in_part(
    part: u32,
    places: &[u32],
    digests: &[&Digest],
    ownership: &Ownership,
    found: &mut Vec<HiddenCalls>,
) {
    let digest = digests[part as usize];
    let moments = by_moment(&digest.claims);
    // The sums of a fork begin with those of its original, which are not known here.
    let is_copy = (0_u32..)
        .zip(&digest.calls)
        .any(|(call, _)| ownership.usage_of(part, call).is_none());
    let mut previous: Option<(i64, BTreeMap<&str, Classes>)> =
        (!is_copy).then(|| (i64::MIN, BTreeMap::new()));
    for (at, claims) in moments {
        let claimed: BTreeMap<&str, Classes> = claims
            .iter()
            .map(|claim| (digest.name(claim.model), classes(&claim.counts)))
            .collect();
        if let Some((since, earlier)) = &previous
            && let Some((model, counts)) = unexplained(&claimed, earlier, || {
                known(*since, at, places, digests, ownership)
            })
        {
            found.push(HiddenCalls {
                part,
                at,
                model,
                counts,
            });
        }
        previous = Some((at, claimed));
    }
}

/// Sums of one moment together. A later sum of the same moment replaces an earlier one.
fn by_moment(claims: &[DigestClaim]) -> BTreeMap<i64, Vec<DigestClaim>> {
    let mut moments: BTreeMap<i64, Vec<DigestClaim>> = BTreeMap::new();
    for claim in claims {
        let of_moment = moments.entry(claim.at).or_default();
        of_moment.retain(|known| known.model != claim.model);
        of_moment.push(*claim);
    }
    moments
}

fn classes(counts: &Counts) -> Classes {
    [
        counts.input,
        counts.output,
        counts.cache_read,
        counts.cache_write,
    ]
    .map(|count| count.unwrap_or(0))
}

/// The usage of the session's calls in a span of time. `None` if one of them is unknown.
fn known(
    since: i64,
    until: i64,
    places: &[u32],
    digests: &[&Digest],
    ownership: &Ownership,
) -> Option<Classes> {
    let mut sum = [0_u64; 4];
    for part in places {
        for (number, call) in (0_u32..).zip(&digests[*part as usize].calls) {
            let is_within = call.at.is_some_and(|at| since < at && at <= until);
            let Some(spot) = ownership.usage_of(*part, number).filter(|_| is_within) else {
                continue;
            };
            let counts = &digests[spot.part as usize].calls[spot.call as usize].counts;
            counts.output?;
            for (sum, count) in sum.iter_mut().zip(classes(counts)) {
                *sum = sum.saturating_add(count);
            }
        }
    }
    Some(sum)
}

/// The growth that no call explains, and the model it is mostly of. Sums that shrank, or calls beyond them, say nothing.
fn unexplained(
    claimed: &BTreeMap<&str, Classes>,
    earlier: &BTreeMap<&str, Classes>,
    known: impl FnOnce() -> Option<Classes>,
) -> Option<(String, Counts)> {
    let mut growth = [0_u64; 4];
    let mut largest = ("", 0_u64);
    for (model, classes) in claimed {
        let before = earlier.get(model).copied().unwrap_or_default();
        let mut of_model = 0_u64;
        for ((growth, now), before) in growth.iter_mut().zip(classes).zip(before) {
            let grown = now.checked_sub(before)?;
            *growth = growth.saturating_add(grown);
            of_model = of_model.saturating_add(grown);
        }
        if of_model >= largest.1 {
            largest = (model, of_model);
        }
    }
    let known = known()?;
    let mut rest = [0_u64; 4];
    for ((rest, grown), known) in rest.iter_mut().zip(growth).zip(known) {
        *rest = grown.checked_sub(known)?;
    }
    let [input, output, cache_read, cache_write] = rest;
    let counts = Counts {
        input: Some(input),
        output: Some(output),
        reasoning: None,
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
    };
    (rest != [0; 4]).then(|| (largest.0.to_owned(), counts))
}
