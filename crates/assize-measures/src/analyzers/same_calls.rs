//! Finds equal tool calls. Inputs can be long and are rarely equal, so calls are first compared by their looks, and
//! only those that look alike are compared as a whole.

use super::grouped::FastMap;
use super::trace_view::Call;
use serde_json::Value;

/// For each call the position of the first one with the same tool and input, which may be its own.
pub(super) fn first_equals(calls: &[Call<'_>]) -> Vec<usize> {
    let mut looks: Vec<(u64, usize)> = calls
        .iter()
        .enumerate()
        .map(|(position, call)| (look_of(call), position))
        .collect();
    looks.sort_unstable();
    let mut firsts: Vec<usize> = (0..calls.len()).collect();
    for alike in looks
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|alike| alike.len() > 1)
    {
        let mut seen: FastMap<(&str, &Value), usize> = FastMap::default();
        for &(_, position) in alike {
            let call = &calls[position];
            firsts[position] = *seen.entry((call.name, call.input)).or_insert(position);
        }
    }
    firsts
}

/// The number of calls that repeat an earlier one.
pub(super) fn duplicates(calls: &[Call<'_>]) -> usize {
    let firsts = first_equals(calls).into_iter().enumerate();
    firsts.filter(|(position, first)| position != first).count()
}

/// Equal for equal calls. Of long texts only the length and both ends are looked at.
fn look_of(call: &Call<'_>) -> u64 {
    look_of_value(call.input, look_of_text(call.name, 0))
}

fn look_of_value(value: &Value, look: u64) -> u64 {
    match value {
        Value::Null => mixed(look, 1),
        Value::Bool(value) => mixed(look, 2 + u64::from(*value)),
        Value::Number(number) => mixed(look, number.as_f64().unwrap_or(0.0).to_bits()),
        Value::String(text) => look_of_text(text, look),
        Value::Array(items) => items
            .iter()
            .fold(mixed(look, items.len() as u64), |look, item| {
                look_of_value(item, look)
            }),
        // Calls of one tool have the same keys more often than not: their values distinguish them.
        Value::Object(map) => map
            .values()
            .fold(mixed(look, map.len() as u64), |look, value| {
                look_of_value(value, look)
            }),
    }
}

fn look_of_text(text: &str, look: u64) -> u64 {
    let bytes = text.as_bytes();
    let (chunks, rest) = bytes.as_chunks::<16>();
    let head = chunks.iter().take(3);
    let look = head.fold(mixed(look, bytes.len() as u64), |look, chunk| {
        mixed_wide(look, *chunk)
    });
    match bytes.last_chunk() {
        Some(tail) => mixed_wide(look, *tail),
        None => rest
            .iter()
            .fold(look, |look, byte| mixed(look, u64::from(*byte))),
    }
}

/// A collision costs a comparison, no more, so this may be weak and quick.
fn mixed_wide(look: u64, chunk: [u8; 16]) -> u64 {
    let chunk = u128::from_le_bytes(chunk);
    let (low, high) = (chunk as u64, (chunk >> 64) as u64);
    let product = u128::from(low ^ look) * u128::from(high ^ 0x517c_c1b7_2722_0a95);
    (product as u64) ^ (product >> 64) as u64 ^ look.rotate_left(5)
}

fn mixed(look: u64, word: u64) -> u64 {
    (look.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}
