//! The results of an ablation, in words and as JSON.

use super::sections::Sections;
use crate::terminal::{plain, print, wrapped};
use anyhow::Result;
use assize_stats::{
    AblationBudget, AblationFinding, ConfirmedEffect, Level, Tally, suite_difference,
};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) struct Findings {
    pub(super) shortlist: Vec<usize>,
    pub(super) confirmed: Vec<ConfirmedEffect>,
    /// Everything that is not on the short list, taken out at once. Absent where all sections are on it.
    pub(super) lean: Option<Lean>,
    /// The sections that are not on the short list.
    pub(super) left: Vec<usize>,
    pub(super) run: PathBuf,
}

/// Success without all sections that the screening passed over.
pub(super) struct Lean {
    /// Success of the whole file minus that of the short list alone.
    loss: Option<f64>,
    /// The largest loss that the data fit.
    most: Option<f64>,
    margin: f64,
}

impl Lean {
    pub(super) fn of(whole: &[Tally], lean: &[Tally], margin: f64) -> Result<Self> {
        // The upper end of a two-sided 90 % interval is a one-sided bound at 95 %.
        let found = suite_difference(whole, lean, Level::new(0.1).unwrap_or(Level::ALPHA_05))?;
        Ok(Self {
            loss: found.estimate,
            most: found.upper,
            margin,
        })
    }

    fn is_shown(&self) -> bool {
        self.most.is_some_and(|most| most < self.margin)
    }
}

impl Findings {
    fn with(&self, wanted: AblationFinding) -> Vec<usize> {
        let found = self.shortlist.iter().zip(&self.confirmed);
        found
            .filter(|(_, found)| found.finding == wanted)
            .map(|(section, _)| *section)
            .collect()
    }

    pub(super) fn print(&self, sections: &Sections) {
        print("confirmation: success with the section minus success without it, in points");
        for (section, found) in self.shortlist.iter().zip(&self.confirmed) {
            let mark = match found.finding {
                AblationFinding::Helps => "✓",
                AblationFinding::Hurts => "✗",
                AblationFinding::Undecided => "?",
            };
            let points = |value: f64| format!("{:+.0}", value * 100.0);
            let effect = found.effect.map_or_else(|| "unknown".to_owned(), points);
            let interval = found.interval.map_or_else(String::new, |[low, high]| {
                format!(" ({} to {})", points(low), points(high))
            });
            let p = found
                .p_adjusted
                .map_or_else(String::new, |p| format!(", p {p:.3} (Holm)"));
            print(plain(&format!(
                "  {mark} {}: {effect}{interval}{p}",
                sections.name(*section)
            )));
        }
        print(plain(&format!("run     {}", self.run.display())));
        print(wrapped(&plain(&self.sentence(sections)), ""));
    }

    /// The conclusion: sections that help, sections that can go, and inconclusive ones.
    pub(super) fn sentence(&self, sections: &Sections) -> String {
        let helps = self.with(AblationFinding::Helps);
        let hurts = self.with(AblationFinding::Hurts);
        let open = self.with(AblationFinding::Undecided);
        let mut parts = Vec::new();
        parts.push(match helps.is_empty() {
            true => "no section is shown to help".to_owned(),
            false => clause(&helps, sections, "helps", "help"),
        });
        let mut can_go = hurts.clone();
        let lean = self.lean.as_ref();
        if lean.is_some_and(Lean::is_shown) {
            can_go.extend(&self.left);
        }
        if !can_go.is_empty() {
            let mut part = clause(&can_go, sections, "can go", "can go");
            if !hurts.is_empty() {
                part.push_str(&format!(
                    " ({} of them: success is higher without)",
                    names(&hurts, sections)
                ));
            }
            parts.push(part);
        }
        if !open.is_empty() {
            parts.push(format!(
                "{} have no effect that this budget could show: {}",
                counted(open.len()),
                names(&open, sections)
            ));
        }
        let mut sentence = format!("{}.", parts.join("; "));
        match lean {
            Some(lean) if lean.is_shown() => sentence.push_str(&format!(
                " Without all {} sections that the screening passed over, success is at most {:.0} points lower.",
                self.left.len(),
                lean.most.unwrap_or(0.0).max(0.0) * 100.0
            )),
            Some(lean) => sentence.push_str(&format!(
                " The {} sections that the screening passed over cannot be taken out all at once on this evidence: success may be {} points lower, more than the margin of {:.0}.",
                self.left.len(),
                lean.most.map_or_else(|| "any number of".to_owned(), |most| format!("{:.0}", most * 100.0)),
                lean.margin * 100.0
            )),
            None => {}
        }
        let mut letters = sentence.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect()
        })
    }

    pub(super) fn json(&self, sections: &Sections, budget: &AblationBudget) -> Value {
        let confirmed: Vec<Value> = self
            .shortlist
            .iter()
            .zip(&self.confirmed)
            .map(|(section, found)| json!({ "section": sections.name(*section), "number": section, "confirmed": found }))
            .collect();
        let left: Vec<&str> = self
            .left
            .iter()
            .map(|section| sections.name(*section))
            .collect();
        json!({
            "budget": budget,
            "trials": budget.trials(),
            "confirmed": confirmed,
            "passedOver": left,
            "lean": self.lean.as_ref().map(|lean| json!({
                "loss": lean.loss, "atMost": lean.most, "margin": lean.margin, "canGo": lean.is_shown(),
            })),
            "run": self.run,
            "sentence": self.sentence(sections),
        })
    }
}

/// `these 3 sections help: A, B, C`.
fn clause(found: &[usize], sections: &Sections, one: &str, several: &str) -> String {
    let verb = if found.len() == 1 { one } else { several };
    format!(
        "{} {verb}: {}",
        counted(found.len()),
        names(found, sections)
    )
}

fn counted(number: usize) -> String {
    match number {
        1 => "this 1 section".to_owned(),
        number => format!("these {number} sections"),
    }
}

/// So many names are read; the rest is counted.
fn names(found: &[usize], sections: &Sections) -> String {
    const MOST: usize = 12;
    let named: Vec<String> = found
        .iter()
        .take(MOST)
        .map(|section| format!("“{}”", sections.name(*section)))
        .collect();
    match found.len() > MOST {
        true => format!("{} and {} more", named.join(", "), found.len() - MOST),
        false => named.join(", "),
    }
}
