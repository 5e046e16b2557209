//! From values to places on an axis.

/// Beyond this, differences of values are no numbers any more.
const LARGEST: f64 = 1e300;

/// From this ratio of the largest value to the smallest, an axis is logarithmic.
const WIDE: f64 = 60.0;

/// An axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    pub(crate) is_log: bool,
}

impl Scale {
    /// An axis between two places that shows all the values, with a little room at the ends.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in finite {
            low = low.min(value.clamp(-LARGEST, LARGEST));
            high = high.max(value.clamp(-LARGEST, LARGEST));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if low > 0.0 && high / low > WIDE {
            let scale = Self::between(low / 1.15, high * 1.15, from, to);
            return Self {
                is_log: true,
                ..scale
            };
        }
        let room = match (high - low) * 0.05 {
            0.0 => (low.abs() * 0.1).max(0.5),
            room => room,
        };
        // A count begins at zero if it comes near.
        let bottom = match low >= 0.0 && low - room < (high - low) * 0.5 {
            true => 0.0,
            false => low - room,
        };
        Self::between(bottom, high + room, from, to)
    }

    /// An axis with these ends.
    pub(crate) fn between(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self {
            low,
            high,
            from,
            to,
            is_log: false,
        }
    }

    /// The position of a value. Always between the ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = (self.position(value) - self.position(self.low))
            / (self.position(self.high) - self.position(self.low));
        let share = if share.is_nan() { 0.5 } else { share };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values to mark, from low to high.
    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        match self.is_log {
            true => self.powers(about),
            false => self.steps(about),
        }
    }

    fn position(&self, value: f64) -> f64 {
        let value = value.clamp(-LARGEST, LARGEST);
        match self.is_log {
            true => value.max(self.low).ln(),
            false => value,
        }
    }

    fn steps(&self, about: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / about.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, 20.0) as u32;
        (0..=count)
            .map(|number| (first + f64::from(number)) * step)
            .filter(|value| value.is_finite() && (self.low..=self.high).contains(value))
            .collect()
    }

    fn powers(&self, about: usize) -> Vec<f64> {
        let (first, last) = (
            self.low.log10().ceil() as i32,
            self.high.log10().floor() as i32,
        );
        let stride = ((last - first) as usize / about.max(1) + 1) as i32;
        let powers = (first..=last).step_by(stride as usize);
        powers.map(|power| 10f64.powi(power)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64]) {
        let scale = Scale::over(values.iter().copied(), 10.0, 90.0);
        for value in values {
            let place = scale.place(*value);
            assert!(
                (10.0..=90.0).contains(&place),
                "{value} at {place} of {values:?}"
            );
        }
        for tick in scale.ticks(5) {
            assert!((10.0..=90.0).contains(&scale.place(tick)), "{tick}");
        }
        assert!(scale.ticks(5).len() <= 21);
    }

    #[test]
    fn every_value_has_a_place() {
        check(&[]);
        check(&[0.0]);
        check(&[7.0, 7.0]);
        check(&[-3.0, 5.0]);
        check(&[f64::MIN, f64::MAX]);
        check(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0]);
        check(&[5e-324, 1.0]);
        check(&[1.0, f64::MAX]);
        check(&[-0.0, 1e-300]);
    }

    #[test]
    fn larger_values_stand_further_on() {
        for values in [[1.0, 2.0, 3.0], [1.0, 40.0, 9000.0], [-1e9, 0.0, 1e12]] {
            let scale = Scale::over(values, 0.0, 100.0);
            let places = values.map(|value| scale.place(value));
            assert!(places[0] < places[1] && places[1] < places[2], "{places:?}");
        }
        assert!(Scale::over([1.0, 9000.0], 0.0, 1.0).is_log);
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(
            Scale::between(0.0, 10.0, 0.0, 1.0).ticks(5),
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        );
        let scale = Scale::over([3.0, 9000.0], 0.0, 1.0);
        assert_eq!(scale.ticks(5), [10.0, 100.0, 1000.0, 10000.0]);
    }
}
