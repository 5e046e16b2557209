//! Arguments about the design of an experiment: `assize plan`, and what `assize run` takes of it.

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
    /// What may be spent, such as 20usd, 500000tokens or 90min: says how to split it best
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<PlanBudget>,
    /// What one more scenario costs to make, in dollars [default: 0]
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) scenario_cost: Option<f64>,
    /// Chance of showing a difference that is there [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) power: Option<Level>,
    /// Run so many blocks first, and plan from them [default with the flag: 12]
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, default_missing_value = "12",
          value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) pilot: Option<u32>,
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
