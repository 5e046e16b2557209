//! A line that shows how far the comparison is and what it looks like so far. Only on a terminal.

use crate::terminal::{one_line, warn};
use assize_contracts::ProfileRow;
use assize_engine::{Event, Listener};
use assize_report::duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(super) struct Live {
    bar: ProgressBar,
    means: Mutex<Vec<Mean>>,
}

struct Mean {
    name: String,
    sum: f64,
    count: u32,
}

impl Live {
    pub(super) fn new(names: &[String]) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}");
        bar.set_style(style.expect("a fixed template"));
        bar.enable_steady_tick(Duration::from_millis(100));
        let mean = |name: &String| Mean {
            name: name.clone(),
            sum: 0.0,
            count: 0,
        };
        Self {
            bar,
            means: Mutex::new(names.iter().map(mean).collect()),
        }
    }

    fn count(&self, row: &ProfileRow) {
        let mut means = self.means.lock().unwrap_or_else(PoisonError::into_inner);
        let mean = means.iter_mut().find(|mean| mean.name == row.mode);
        if let (Some(mean), Some(wall)) = (mean, row.timing.wall_ms) {
            mean.sum += wall.value();
            mean.count += 1;
        }
        let known = means.iter().filter(|mean| mean.count > 0);
        let words: Vec<String> = known
            .map(|mean| {
                let time = duration(mean.sum / f64::from(mean.count));
                format!("{}: {time}", one_line(&mean.name, 30))
            })
            .collect();
        self.bar.set_message(words.join(" · "));
    }
}

impl Listener for Live {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::RunStarted { cells, .. } => self.bar.set_length(*cells),
            Event::TrialFinished { json, .. } => {
                self.bar.inc(1);
                if let Ok(row) = serde_json::from_slice(json) {
                    self.count(&row);
                }
            }
            Event::Caution(caution) => self.bar.suspend(|| warn(&caution.text)),
            Event::RunFinished { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}
