//! Arguments about the design of an experiment: `assize plan`, and what `assize run` takes of it.

use assize_contracts::Budget;
use assize_report::{Detect, PlanBudget};
use assize_stats::Level;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  assize plan                          what the suite's trials cost and can show, by its last run
  assize plan --detect 15%             what it takes to see a difference of 15 %
  assize plan --detect success=10pp --budget 20usd
                                       the best split of 20 dollars for 10 points of success
  assize plan --pilot                  run a few blocks first, and plan from them

More repetitions make scenarios known better; more scenarios say more about new tasks. Ranges hold the truth in
4 of 5 cases; they are wide where few scenarios were seen.")]
pub(crate) struct PlanArguments {
    /// Suite file, or a directory with an assize.yaml, .toml or .json [default: this directory]
    pub(crate) path: Option<PathBuf>,
    /// Plan from this run, named baseline or file of rows [default: the suite's last run]
    #[arg(long, value_name = "RUN|NAME|FILE", conflicts_with = "pilot")]
    pub(crate) from: Option<String>,
    /// A difference to be shown, such as 15%, success=10pp or tokens_active=15% (may be repeated)
    #[arg(long, value_name = "DIFFERENCE")]
    pub(crate) detect: Vec<Detect>,
    /// Amount to spend, such as 20usd, 500000tokens or 90min: shows how to split it best
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<PlanBudget>,
    /// Cost of making one more scenario, in dollars [default: 0]
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) scenario_cost: Option<f64>,
    /// Chance of showing a difference that is there [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) power: Option<Level>,
    /// Run so many blocks first, and plan from them [default with the flag: 12]
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, default_missing_value = "12",
          value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) pilot: Option<u32>,
    /// Run one mode against itself: what would be called different by chance
    #[arg(long, conflicts_with_all = ["pilot", "from"])]
    pub(crate) aa: bool,
    /// Repetitions of each scenario in each mode
    #[arg(short = 'n', long, value_name = "N", env = "ASSIZE_REPETITIONS",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repetitions: Option<u32>,
    /// Only this mode (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Vec<String>,
    /// Only this scenario (may be repeated)
    #[arg(long, value_name = "ID")]
    pub(crate) scenario: Vec<String>,
    /// Directory of runs, instead of the suite's `results_dir`
    #[arg(long, value_name = "DIR", env = "ASSIZE_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not ask before a pilot that can cost money
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl PlanArguments {
    /// The words of the run of one mode against itself.
    pub(crate) fn as_aa_run(&self) -> Vec<String> {
        let mut words = vec!["--aa".to_owned()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        for mode in &self.mode {
            option("--mode", mode.clone());
        }
        for scenario in &self.scenario {
            option("--scenario", scenario.clone());
        }
        if let Some(repetitions) = self.repetitions {
            option("--repetitions", repetitions.to_string());
        }
        if let Some(output) = &self.output {
            option("--output", output.display().to_string());
        }
        for (is_set, flag) in [(self.json, "--json"), (self.yes, "--yes")] {
            words.extend(is_set.then(|| flag.to_owned()));
        }
        words.extend(self.path.as_ref().map(|path| path.display().to_string()));
        words
    }
}

/// The limits of a run's spending, and running a mode against itself.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct DesignArguments {
    /// Run one mode against itself (the first, or --mode): what would be called different by chance
    #[arg(long, help_heading = "How to run")]
    pub(crate) aa: bool,
    /// Spend at most so many dollars, the judge's included; stops at whole blocks
    #[arg(long, value_name = "USD", env = "ASSIZE_MAX_COST", help_heading = "How to run", value_parser = amount)]
    pub(crate) max_cost: Option<f64>,
    /// Spend at most so many tokens
    #[arg(
        long,
        value_name = "N",
        env = "ASSIZE_MAX_TOKENS",
        help_heading = "How to run"
    )]
    pub(crate) max_tokens: Option<u64>,
    /// Run for at most so many minutes
    #[arg(long, value_name = "MINUTES", env = "ASSIZE_MAX_TIME", help_heading = "How to run", value_parser = amount)]
    pub(crate) max_time: Option<f64>,
}

impl DesignArguments {
    /// The budget that the flags name.
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            usd: self.max_cost,
            tokens: self.max_tokens,
            minutes: self.max_time,
        }
    }
}

fn amount(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_start_matches('$').trim_end_matches("usd");
    match number.trim().parse::<f64>() {
        Ok(amount) if amount >= 0.0 && amount.is_finite() => Ok(amount),
        _ => Err("expected a number of at least 0, such as 20 or 2.50".to_owned()),
    }
}

fn share(text: &str) -> Result<Level, String> {
    let number = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse(),
    };
    let level = number.ok().and_then(|number| Level::new(number).ok());
    level.ok_or_else(|| "expected a share between 0 and 1, such as 0.8".to_owned())
}
