//! The cells of an arm, as compact as a million of them need to be.
//!
//! In large suites most cells hold one trial. Such cells share their counts with all others that look the same, and their
//! measurements are in columns of the arm. A cell of several trials has counts and columns of its own.

use super::column::Column;
use super::{AllNames, BoundedColumn, Tallies};
use crate::reason::Tally;
use crate::row::Row;
use assize_contracts::{MetricKind, RowField};
use foldhash::fast::FixedState;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;

/// Counts of one trial that are shared; cells that look otherwise have counts of their own.
const MOST_SHARED: usize = 4096;

/// No position: the trial passed, or its row names none.
const NO_POSITION: u32 = u32::MAX;

/// Cells by the place of their scenario, in that order.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// By scenario: one more than the cell's number; 0 where the arm has no trial.
    numbers: Vec<u32>,
    /// By cell: the place of its tallies.
    places: Vec<u32>,
    /// By cell: the position of its trial, where that did not pass and the tallies are shared.
    positions: Vec<u32>,
    tallies: Vec<Tallies>,
    /// Places of tallies that are shared, by a hash of them.
    shared: HashMap<u64, u32, FixedState>,
    /// By metric: the measurements of cells of one judged trial.
    columns: Vec<Column>,
}

/// The trials of one arm on one scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    cells: &'a Cells,
    number: u32,
}

impl Deref for Cell<'_> {
    type Target = Tallies;

    fn deref(&self) -> &Tallies {
        self.tallies()
    }
}

impl Cells {
    pub(crate) fn get(&self, scenario: usize) -> Option<Cell<'_>> {
        let number = self.numbers.get(scenario)?.checked_sub(1)?;
        Some(Cell {
            cells: self,
            number,
        })
    }

    /// Adds a trial on a scenario.
    pub(crate) fn add(&mut self, scenario: usize, row: &Row<'_>, names: &mut AllNames) {
        if self.numbers.len() <= scenario {
            self.numbers.resize(scenario + 1, 0);
        }
        match self.numbers[scenario].checked_sub(1) {
            None => {
                self.add_first(row, names);
                self.numbers[scenario] = self.places.len() as u32;
            }
            Some(cell) => self.add_further(cell as usize, row, names),
        }
    }

    /// Scenarios and their cells, in the order of scenarios.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Cell<'_>)> {
        let scenarios = 0..self.numbers.len();
        scenarios.filter_map(|scenario| Some((scenario, self.get(scenario)?)))
    }

    /// The cells in the order of scenarios.
    pub(crate) fn values(&self) -> impl Iterator<Item = Cell<'_>> {
        self.iter().map(|(_, cell)| cell)
    }

    /// Tools that were seen, none of which is of a category: that is zero calls, not an unknown number.
    pub(crate) fn fill_categories(&mut self, names: &AllNames) {
        let metrics = &names.metrics;
        let Some(total) = metrics.find(names.catalog.name_of(RowField::ToolCalls)) else {
            return;
        };
        let is_category = |name: &str| {
            let kind = &names.catalog.metric(name).kind;
            matches!(kind, MetricKind::ToolCategory(_))
        };
        let categories = metrics.names.iter().enumerate();
        let categories: Vec<usize> = categories
            .filter(|(_, name)| is_category(name))
            .map(|(place, _)| place)
            .collect();
        for place in categories {
            self.change(place, |cell, trial| {
                let is_unknown = || cell.value(place, trial).is_nan();
                (cell.value(total, trial).is_finite() && is_unknown()).then_some(0.0)
            });
        }
    }

    /// Forgets a metric of the trials that are meant.
    pub(crate) fn forget(&mut self, place: usize, is_meant: fn(bool) -> bool) {
        self.change(place, |cell, trial| {
            let is_known = || cell.value(place, trial).is_finite();
            (is_meant(cell.marks[trial].old) && is_known()).then_some(f64::NAN)
        });
    }

    /// Forgets which trial measured what, and where nothing was measured.
    pub(crate) fn keep_measurements(&mut self, is_limited: &[bool]) {
        for number in 0..self.places.len() {
            let columns = self.cell(number).bounded_columns(is_limited);
            if !columns.is_empty() {
                let bounds = &mut self.own(number).bounds;
                bounds.get_or_insert_default().columns = columns;
            }
        }
        let own = self.tallies.iter_mut();
        for columns in own.filter_map(|tallies| tallies.columns.as_mut()) {
            for column in columns.iter_mut() {
                column.retain(|value| value.is_finite());
            }
        }
    }

    fn cell(&self, number: usize) -> Cell<'_> {
        Cell {
            cells: self,
            number: number as u32,
        }
    }

    fn add_first(&mut self, row: &Row<'_>, names: &mut AllNames) {
        let cell = self.places.len();
        let mut tallies = Tallies::default();
        tallies.add(row, names);
        let place = self.share(tallies);
        self.places.push(place);
        for (place, value) in names.found.iter().enumerate() {
            if value.is_finite() {
                self.set(place, cell, 0, *value);
            }
        }
    }

    fn add_further(&mut self, cell: usize, row: &Row<'_>, names: &mut AllNames) {
        self.separate(cell);
        let tallies = self.own(cell);
        let trial = tallies.trials();
        tallies.add(row, names);
        for (place, value) in names.found.iter().enumerate() {
            if value.is_finite() {
                self.set(place, cell, trial, *value);
            }
        }
    }

    /// The place of the tallies of a new cell: those of another one that looks the same, if there is one.
    fn share(&mut self, mut tallies: Tallies) -> u32 {
        let positions = tallies.reasons.iter().find_map(|(_, tally)| tally.position);
        let place = self.tallies.len() as u32;
        if tallies.bounds.is_none() {
            for (_, tally) in &mut tallies.reasons {
                tally.position = None;
            }
            let hash = tallies.look();
            let known = self.shared.get(&hash).copied();
            let is_known = known.is_some_and(|known| self.tallies[known as usize] == tallies);
            if let Some(known) = known.filter(|_| is_known) {
                self.positions.push(positions.unwrap_or(NO_POSITION));
                return known;
            }
            if known.is_none() && self.shared.len() < MOST_SHARED {
                self.positions.push(positions.unwrap_or(NO_POSITION));
                self.shared.insert(hash, place);
                self.tallies.push(tallies);
                return place;
            }
            for (_, tally) in &mut tallies.reasons {
                tally.position = positions;
            }
        }
        tallies.is_own = true;
        self.positions.push(NO_POSITION);
        self.tallies.push(tallies);
        place
    }

    /// Gives a cell columns of its own, for more than one trial.
    fn separate(&mut self, cell: usize) {
        if self.cell(cell).columns.is_some() {
            return;
        }
        let values = self.columns.iter().map(|column| *column.get(cell));
        let mut columns: Vec<Vec<f64>> = values
            .map(|value| match value.is_finite() {
                true => vec![value],
                false => Vec::new(),
            })
            .collect();
        let last = columns.iter().rposition(|column| !column.is_empty());
        columns.truncate(last.map_or(0, |last| last + 1));
        self.own(cell).columns = Some(columns);
    }

    /// The tallies of a cell, to be changed: no other cell shares them.
    fn own(&mut self, cell: usize) -> &mut Tallies {
        if !self.cell(cell).is_own {
            let shared = self.cell(cell);
            let tallies = Tallies {
                is_own: true,
                reasons: shared.reasons().collect(),
                ..shared.tallies().clone()
            };
            self.positions[cell] = NO_POSITION;
            self.places[cell] = self.tallies.len() as u32;
            self.tallies.push(tallies);
        }
        let place = self.places[cell] as usize;
        &mut self.tallies[place]
    }

    fn set(&mut self, place: usize, cell: usize, trial: usize, value: f64) {
        let tallies = self.places[cell] as usize;
        if let Some(columns) = &mut self.tallies[tallies].columns {
            if columns.len() <= place {
                columns.resize_with(place + 1, Vec::new);
            }
            super::put(&mut columns[place], trial, value);
            return;
        }
        if self.columns.len() <= place {
            self.columns.resize_with(place + 1, Column::default);
        }
        self.columns[place].set(cell, value);
    }

    /// Changes a metric in the trials for which there is a new value.
    fn change(&mut self, place: usize, new: impl Fn(Cell<'_>, usize) -> Option<f64>) {
        for number in 0..self.places.len() {
            for trial in 0..self.cell(number).trials() {
                if let Some(value) = new(self.cell(number), trial) {
                    self.set(place, number, trial, value);
                }
            }
        }
    }
}

impl Tallies {
    /// A hash of everything in which shared tallies differ.
    fn look(&self) -> u64 {
        let mut hasher = FixedState::default().build_hasher();
        let counts = [
            self.passed,
            self.failed,
            self.void,
            self.void_unrelated,
            self.unmeasured,
            self.unpriced,
            self.retried,
            self.not_captured,
            self.subscription,
            self.unchecked,
            self.failed_unchecked,
        ];
        counts.hash(&mut hasher);
        for (check, tally) in &self.checks {
            [*check, tally.passed, tally.made].hash(&mut hasher);
        }
        for (reason, _) in &self.reasons {
            reason.hash(&mut hasher);
        }
        for marks in &self.marks {
            (marks.success, marks.censored, marks.old).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl<'a> Cell<'a> {
    pub(crate) fn tallies(self) -> &'a Tallies {
        let place = self.cells.places[self.number as usize];
        &self.cells.tallies[place as usize]
    }

    /// Failed and void trials, by index into the reasons.
    pub(crate) fn reasons(self) -> impl Iterator<Item = (u32, Tally)> + 'a {
        let position = self.cells.positions[self.number as usize];
        let position = Some(position).filter(|position| *position != NO_POSITION);
        let reasons = self.tallies().reasons.iter();
        reasons.map(move |(reason, tally)| {
            let mut tally = *tally;
            tally.meet(position);
            (*reason, tally)
        })
    }

    /// The measurement of one trial; NaN when it has none.
    pub(crate) fn value(self, place: usize, trial: usize) -> f64 {
        let value = match &self.tallies().columns {
            Some(columns) => columns.get(place).and_then(|column| column.get(trial)),
            None => self.only(place).filter(|_| trial == 0),
        };
        value.copied().unwrap_or(f64::NAN)
    }

    /// The measurements of a metric.
    pub(crate) fn known(self, place: usize) -> Cow<'a, [f64]> {
        match &self.tallies().columns {
            Some(columns) => {
                let values = columns.get(place).into_iter().flatten().copied();
                values.filter(|value| value.is_finite()).collect()
            }
            None => self.measurements(place).into(),
        }
    }

    /// The values that comparisons of a metric use, once only measurements are kept: measurements, and lower bounds marked by `cut`.
    pub(crate) fn comparable(self, place: usize) -> &'a [f64] {
        match self.tallies().bounded(place) {
            Some(column) => &column.values,
            None => self.measurements(place),
        }
    }

    /// The measurements of a metric, once only they are kept.
    pub(crate) fn measurements(self, place: usize) -> &'a [f64] {
        match &self.tallies().columns {
            Some(columns) => columns.get(place).map_or(&[], Vec::as_slice),
            None => self.only(place).map_or(&[], std::slice::from_ref),
        }
    }

    /// The values of a metric trial by trial, and whether each is a lower bound: known only as such, or of a trial that was
    /// cut off by a limit that bounds the metric.
    pub(crate) fn bounded_values(
        self,
        place: usize,
        is_limited: bool,
    ) -> impl Iterator<Item = (f64, bool)> + 'a {
        let tallies = self.tallies();
        (0..tallies.trials()).filter_map(move |trial| {
            let measured = self.value(place, trial);
            // Bounds are in the order of their trials.
            let bounds = tallies.lower_bounds();
            let first = bounds.partition_point(|bound| bound.trial < trial);
            let bounds = bounds[first..]
                .iter()
                .take_while(|bound| bound.trial == trial);
            let bound = bounds.into_iter().find(|bound| bound.place == place);
            match (measured.is_finite(), bound) {
                (true, _) => Some((measured, is_limited && tallies.is_censored(trial))),
                (false, bound) => bound.map(|bound| (bound.value, true)),
            }
        })
    }

    /// The measurement of the only trial.
    fn only(self, place: usize) -> Option<&'a f64> {
        let column = self.cells.columns.get(place)?;
        let value = column.get(self.number as usize);
        Some(value).filter(|value| value.is_finite())
    }

    fn bounded_columns(self, is_limited: &[bool]) -> Vec<BoundedColumn> {
        if self.lower_bounds().is_empty() && self.censored() == 0 {
            return Vec::new();
        }
        let columns = is_limited.iter().enumerate();
        let columns = columns.filter(|(_, is_limited)| **is_limited);
        columns
            .map(|(place, _)| self.bounded_column(place))
            .filter(|column| column.cut.contains(&true))
            .collect()
    }

    fn bounded_column(self, place: usize) -> BoundedColumn {
        let (values, cut) = self.bounded_values(place, true).unzip();
        BoundedColumn { place, values, cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(scenario: usize, rest: &str) -> String {
        format!(
            "{{\"scenarioId\":\"s{scenario}\",\"mode\":\"m\",\"iteration\":0,\"schemaVersion\":2,{rest}}}"
        )
    }

    fn add(cells: &mut Cells, names: &mut AllNames, scenario: usize, rest: &str) {
        let json = row(scenario, rest);
        cells.add(scenario, &Row::parse(json.as_bytes()).unwrap(), names);
    }

    const PASSED: &str = r#""success":true,"tokens":{"total":7}"#;
    const FAILED: &str = r#""success":false,"position":9,"tokens":{"total":8}"#;
    const VOID: &str = r#""success":false,"outcome":"void","position":4"#;

    #[test]
    fn cells_come_in_the_order_of_scenarios_whatever_the_order_of_trials() {
        let (mut cells, mut names) = (Cells::default(), AllNames::default());
        for scenario in [7, 2, 900, 2, 0] {
            add(&mut cells, &mut names, scenario, PASSED);
        }
        let found: Vec<(usize, u32)> = cells
            .iter()
            .map(|(scenario, cell)| (scenario, cell.passed))
            .collect();
        assert_eq!(found, [(0, 1), (2, 2), (7, 1), (900, 1)]);
        assert!(cells.get(1).is_none() && cells.get(901).is_none());
    }

    #[test]
    fn cells_that_look_the_same_share_counts_until_another_trial_comes() {
        let (mut cells, mut names) = (Cells::default(), AllNames::default());
        for scenario in 0..3 {
            add(&mut cells, &mut names, scenario, FAILED);
        }
        assert_eq!(cells.tallies.len(), 1);
        add(&mut cells, &mut names, 1, VOID);
        add(&mut cells, &mut names, 1, PASSED);
        let counts = |scenario: usize| {
            let cell = cells.get(scenario).unwrap();
            (cell.passed, cell.failed, cell.void)
        };
        assert_eq!(
            (counts(0), counts(1), counts(2)),
            ((0, 1, 0), (1, 1, 1), (0, 1, 0))
        );
        let cell = cells.get(1).unwrap();
        assert_eq!((cell.value(0, 0), cell.value(0, 1)), (8.0, 7.0));
        let positions: Vec<Option<u32>> = cell.reasons().map(|(_, tally)| tally.position).collect();
        assert_eq!(positions, [Some(9), Some(4)]);
        let other = cells.get(2).unwrap();
        assert_eq!(other.reasons().next().unwrap().1.position, Some(9));
    }

    #[test]
    fn a_void_trial_before_the_first_judged_one_leaves_no_gap() {
        let (mut cells, mut names) = (Cells::default(), AllNames::default());
        for rest in [VOID, PASSED, FAILED] {
            add(&mut cells, &mut names, 0, rest);
        }
        let cell = cells.get(0).unwrap();
        assert_eq!((cell.trials(), cell.all_trials()), (2, 3));
        assert_eq!((cell.value(0, 0), cell.value(0, 1)), (7.0, 8.0));
        cells.keep_measurements(&[false]);
        assert_eq!(cells.get(0).unwrap().measurements(0), [7.0, 8.0]);
    }
}
