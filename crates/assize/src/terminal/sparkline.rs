//! A row of numbers as a small picture.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One character per number, from the smallest to the largest of them; `·` where there is none.
pub(crate) fn sparkline(values: &[Option<f64>]) -> String {
    let known = || values.iter().flatten().copied();
    let (low, high) = (
        known().fold(f64::INFINITY, f64::min),
        known().fold(f64::NEG_INFINITY, f64::max),
    );
    let level = |value: f64| match high > low {
        true => LEVELS[((value - low) / (high - low) * 7.0).round() as usize],
        false => LEVELS[3],
    };
    values
        .iter()
        .map(|value| value.map_or('·', level))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_low_and_the_largest_high() {
        assert_eq!(sparkline(&[Some(1.0), Some(4.5), None, Some(8.0)]), "▁▅·█");
        assert_eq!(sparkline(&[Some(5.0), Some(5.0)]), "▄▄");
        assert_eq!(sparkline(&[]), "");
    }
}
