//! The cells of an arm, as compact as a million of them need to be.

use super::Cell;

/// Cells that are allocated together. One list that doubles would take three times its size while it moves.
const PIECE: usize = 4096;

/// Cells by the place of their scenario, in that order.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// By scenario: one more than the cell's number; 0 where the arm has no trial.
    numbers: Vec<u32>,
    pieces: Vec<Vec<Cell>>,
}

impl Cells {
    pub(crate) fn get(&self, scenario: usize) -> Option<&Cell> {
        let number = self.numbers.get(scenario)?.checked_sub(1)? as usize;
        Some(&self.pieces[number / PIECE][number % PIECE])
    }

    /// The cell of a scenario, which begins without trials.
    pub(crate) fn get_or_new(&mut self, scenario: usize) -> &mut Cell {
        if self.numbers.len() <= scenario {
            self.numbers.resize(scenario + 1, 0);
        }
        if self.numbers[scenario] == 0 {
            self.push_new();
            self.numbers[scenario] = self.len() as u32;
        }
        let number = self.numbers[scenario] as usize - 1;
        &mut self.pieces[number / PIECE][number % PIECE]
    }

    /// Scenarios and their cells, in the order of scenarios.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Cell)> {
        let scenarios = 0..self.numbers.len();
        scenarios.filter_map(|scenario| Some((scenario, self.get(scenario)?)))
    }

    /// The cells in the order of scenarios.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Cell> {
        self.iter().map(|(_, cell)| cell)
    }

    /// The cells in the order in which they were added.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.pieces.iter_mut().flatten()
    }

    fn len(&self) -> usize {
        let full = self.pieces.len().saturating_sub(1) * PIECE;
        full + self.pieces.last().map_or(0, Vec::len)
    }

    fn push_new(&mut self) {
        let has_room = |piece: &Vec<Cell>| piece.len() < PIECE;
        if !self.pieces.last().is_some_and(has_room) {
            // A small arm takes no more than it needs; a large one never moves its cells.
            let capacity = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(capacity));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(Cell::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_in_the_order_of_scenarios_whatever_the_order_of_trials() {
        let mut cells = Cells::default();
        let scenarios = [7, 2, 2 * PIECE + 5, 2, 0];
        for scenario in scenarios.into_iter().chain(100..100 + PIECE) {
            cells.get_or_new(scenario).passed += 1;
        }
        let found: Vec<(usize, u32)> = cells
            .iter()
            .map(|(scenario, cell)| (scenario, cell.passed))
            .collect();
        assert_eq!(found.len(), PIECE + 4);
        assert_eq!(found[..4], [(0, 1), (2, 2), (7, 1), (100, 1)]);
        assert_eq!(found.last(), Some(&(2 * PIECE + 5, 1)));
        assert_eq!(cells.values_mut().count(), PIECE + 4);
        assert!(cells.get(1).is_none() && cells.get(3 * PIECE).is_none());
    }
}
