//! The measurements of one metric in cells of one trial, in as few bytes as their variety allows.

use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Values by the number of the cell; NaN where nothing was measured.
#[derive(Debug)]
pub(super) enum Column {
    /// All cells measured the same, as most metrics of most suites of tasks do.
    Same {
        value: f64,
        cells: usize,
    },
    /// Few different values.
    Few(Few),
    Many(Vec<f64>),
}

#[derive(Debug, Default)]
pub(super) struct Few {
    values: Vec<f64>,
    /// The place of a value, by its bits.
    places: HashMap<u64, u16, FixedState>,
    cells: Vec<u16>,
}

/// More different values than this are kept one by one.
const MOST_VALUES: usize = 1 << 14;

impl Default for Column {
    fn default() -> Self {
        Self::Same {
            value: f64::NAN,
            cells: 0,
        }
    }
}

impl Column {
    /// The value of a cell.
    pub(super) fn get(&self, cell: usize) -> &f64 {
        let value = match self {
            Self::Same { value, cells } => Some(value).filter(|_| cell < *cells),
            Self::Few(few) => few.cells.get(cell).map(|at| &few.values[usize::from(*at)]),
            Self::Many(values) => values.get(cell),
        };
        value.unwrap_or(&f64::NAN)
    }

    /// Puts a value in its place; cells before it that are not there yet measured nothing.
    pub(super) fn set(&mut self, cell: usize, value: f64) {
        if self.is_missing_only() {
            *self = Self::Same {
                value: f64::NAN,
                cells: cell,
            };
        }
        while self.len() < cell {
            self.put(self.len(), f64::NAN);
        }
        self.put(cell, value);
    }

    fn is_missing_only(&self) -> bool {
        matches!(self, Self::Same { value, .. } if value.is_nan())
    }

    fn len(&self) -> usize {
        match self {
            Self::Same { cells, .. } => *cells,
            Self::Few(few) => few.cells.len(),
            Self::Many(values) => values.len(),
        }
    }

    /// Sets the value of a cell that is there or comes next.
    fn put(&mut self, cell: usize, value: f64) {
        match self {
            Self::Same {
                value: known,
                cells,
            } => {
                let is_same = known.to_bits() == value.to_bits();
                if *cells == 0 || is_same {
                    *known = value;
                    *cells = (*cells).max(cell + 1);
                    return;
                }
                let mut few = Few::default();
                let place = few.place(*known).unwrap_or_default();
                few.cells = vec![place; *cells];
                *self = Self::Few(few);
                self.put(cell, value);
            }
            Self::Few(few) => match few.place(value) {
                Some(place) if cell < few.cells.len() => few.cells[cell] = place,
                Some(place) => few.cells.push(place),
                None => {
                    let values = few.cells.iter().map(|at| few.values[usize::from(*at)]);
                    *self = Self::Many(values.collect());
                    self.put(cell, value);
                }
            },
            Self::Many(values) if cell < values.len() => values[cell] = value,
            Self::Many(values) => values.push(value),
        }
    }
}

impl Few {
    /// The place of a value. Absent when there are too many.
    fn place(&mut self, value: f64) -> Option<u16> {
        if let Some(place) = self.places.get(&value.to_bits()) {
            return Some(*place);
        }
        if self.values.len() >= MOST_VALUES {
            return None;
        }
        let place = self.values.len() as u16;
        self.values.push(value);
        self.places.insert(value.to_bits(), place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets values in cells and compares with a plain list.
    fn check(values: impl Iterator<Item = (usize, f64)>) {
        let (mut column, mut plain) = (Column::default(), Vec::new());
        for (cell, value) in values {
            column.set(cell, value);
            super::super::put(&mut plain, cell, value);
        }
        for (cell, value) in plain.iter().enumerate() {
            assert_eq!(column.get(cell).to_bits(), value.to_bits(), "{cell}");
        }
        assert!(column.get(plain.len()).is_nan());
    }

    #[test]
    fn values_come_back_however_many_differ() {
        let most = MOST_VALUES + 10;
        check((0..100).map(|cell| (cell, 7.0)));
        check((5..100).map(|cell| (cell, 7.0)));
        check((0..100).map(|cell| (cell, [0.0, -0.0, f64::NAN, 3.5][cell % 4])));
        check((0..most).map(|cell| (cell, cell as f64)));
        check((0..most).map(|cell| (most - cell, cell as f64)));
        check((0..3 * most).map(|cell| (cell / 2 * 2, (cell % 20_000) as f64)));
        // A value that is forgotten, and one that is filled in.
        check([(0, 1.0), (1, 1.0), (0, f64::NAN), (4, 1.0), (1, 0.0)].into_iter());
        check([(0, 1.0), (0, 2.0)].into_iter());
    }
}
