//! The table: what was measured, beside what, and whether it is within its budget.

use std::fmt::Write as _;
use std::process::{Command, exit};

/// A check fails beyond so many times the budget.
const LENIENCY: f64 = 2.0;

/// One thing that was measured.
pub(crate) struct Line {
    name: String,
    fixture: String,
    cells: Vec<Cell>,
}

struct Cell {
    text: String,
    /// Measured, as a share of the budget. Absent where there is none.
    share: Option<f64>,
    /// The same however the program was built and whoever else uses the machine.
    is_portable: bool,
}

impl Line {
    pub(crate) fn new(name: &str, fixture: &str) -> Self {
        Self {
            name: name.to_owned(),
            fixture: fixture.to_owned(),
            cells: Vec::new(),
        }
    }

    /// Seconds of processor time.
    pub(crate) fn cpu(self, measured: f64, budget: f64) -> Self {
        let text = format!("{} of {}", seconds(measured), seconds(budget));
        self.with(text, Some(measured / budget), false)
    }

    pub(crate) fn memory(self, measured: f64, budget: f64) -> Self {
        let text = format!("{measured:.0} MB of {budget:.0} MB");
        self.with(text, Some(measured / budget), true)
    }

    pub(crate) fn bytes(self, measured: f64, budget: f64) -> Self {
        let text = format!("{measured:.0} bytes of {budget:.0}");
        self.with(text, Some(measured / budget), true)
    }

    /// A ratio to a plain way of doing it.
    pub(crate) fn beside(self, reference: &str, ratio: f64, budget: f64) -> Self {
        let text = format!("{ratio:.2} × {reference} (of {budget:.2})");
        self.with(text, Some(ratio / budget), true)
    }

    /// The same, for people to see.
    pub(crate) fn shown_beside(self, reference: &str, ratio: f64) -> Self {
        self.with(format!("{ratio:.2} × {reference}"), None, true)
    }

    fn with(mut self, text: String, share: Option<f64>, is_portable: bool) -> Self {
        self.cells.push(Cell {
            text,
            share,
            is_portable,
        });
        self
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

pub(crate) struct Table {
    /// Small fixtures, and only what holds on any machine counts.
    pub(crate) is_check: bool,
    words: Vec<String>,
    lines: Vec<Line>,
}

impl Table {
    pub(crate) fn new(is_check: bool, words: Vec<String>) -> Self {
        Self {
            is_check,
            words,
            lines: Vec::new(),
        }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    pub(crate) fn add(&mut self, line: Line) {
        println!("{}", self.shown(&line));
        self.lines.push(line);
    }

    /// Prints what is over, and keeps the table where it is wanted.
    pub(crate) fn finish(self, is_kept: bool) {
        if is_kept {
            self.keep();
        }
        let failed: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| line.cells.iter().any(|cell| self.fails(cell)))
            .map(|line| line.name.as_str())
            .collect();
        if self.is_check && !failed.is_empty() {
            println!("over twice the budget: {}", failed.join(", "));
            exit(1);
        }
    }

    fn fails(&self, cell: &Cell) -> bool {
        let counts = cell.is_portable || !self.is_check;
        counts && cell.share.is_some_and(|share| share > LENIENCY)
    }

    fn shown(&self, line: &Line) -> String {
        let cell = |cell: &Cell| match cell.share {
            Some(share) if share > 1.0 && (cell.is_portable || !self.is_check) => {
                format!("{} (over)", cell.text)
            }
            _ => cell.text.clone(),
        };
        let cells: Vec<String> = line.cells.iter().map(cell).collect();
        format!(
            "| {} | {} | {} |",
            line.name,
            line.fixture,
            cells.join("; ")
        )
    }

    /// Puts the table into docs/performance.md, with the commit it was measured at.
    fn keep(&self) {
        const MARKS: [&str; 2] = ["<!-- measured -->\n", "<!-- end -->"];
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/performance.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(MARKS[0]).unwrap();
        let (_, after) = rest.split_once(MARKS[1]).unwrap();
        let git = Command::new("git")
            .args(["rev-parse", "--short=12", "HEAD"])
            .output()
            .unwrap();
        let commit = String::from_utf8(git.stdout).unwrap();
        let mut text = format!("Measured at commit `{}`.\n\n", commit.trim());
        text.push_str("| what | fixture | measured |\n| --- | --- | --- |\n");
        for line in &self.lines {
            let _ = writeln!(text, "{}", self.shown(line));
        }
        let page = format!("{before}{}{text}{}{after}", MARKS[0], MARKS[1]);
        std::fs::write(path, page).unwrap();
    }
}
