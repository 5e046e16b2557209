//! The command line.

mod hints;
mod plan;

pub(crate) use plan::PlanArguments;

use assize_engine::{Order, Shard};
use assize_stats::{Family, Scope, Statistic};
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Puts AI agents on trial: which set-up is better, by how much, at what cost, and is it real or luck?
#[derive(Debug, Parser)]
#[command(name = "assize", version, about, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Log what is done, a run's into its log.jsonl (-vv logs more)
    #[arg(short = 'v', global = true, action = clap::ArgAction::Count)]
    pub(crate) verbosity: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads the command line. Errors are printed with the way out, where there is one.
pub(crate) fn parse() -> Arguments {
    let parsed = command().try_get_matches();
    let parsed = parsed.and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.unwrap_or_else(|mut error| {
        let given: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let hint = hints::hint(&error, &given);
        if hint.is_some() {
            // One way out is enough, and clap guesses by letters only.
            error.remove(ContextKind::SuggestedSubcommand);
            if error.remove(ContextKind::SuggestedArg).is_some() {
                // It shows the flag that clap guessed.
                error.remove(ContextKind::Usage);
            }
            error.remove(ContextKind::Suggested);
        }
        // Without stderr there is no place for a message.
        let _ = error.print();
        if let Some(hint) = hint {
            crate::terminal::print_hint(&hint);
        }
        std::process::exit(error.exit_code())
    })
}

/// The commands by what people want to do; clap would list them all in one.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Commands", &["try", "init", "check", "plan", "run"]),
    (
        "Results",
        &[
            "show", "compare", "report", "gate", "runs", "history", "baseline", "score",
        ],
    ),
    (
        "What agents do",
        &["record", "sessions", "analyze", "export", "proxy", "doctor"],
    ),
    ("Skills and instructions", &["skill", "instructions"]),
    ("Several machines", &["submit", "merge"]),
    (
        "Around it",
        &[
            "import",
            "image",
            "mcp",
            "plugins",
            "schema",
            "completions",
            "help",
        ],
    ),
];

/// The command line with its help in groups.
fn command() -> clap::Command {
    let command = Arguments::command();
    let mut list = String::new();
    for (title, names) in GROUPS {
        list.push_str(&format!("\n{title}:\n"));
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(clap::Command::get_about);
            // clap adds `help` when it parses.
            let about = about.map_or(
                "Print the help of a command".to_owned(),
                ToString::to_string,
            );
            list.push_str(&format!("  {name:<14}{about}\n"));
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// A whole number from 1 on.
fn positive<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let is_long = text.len() > 9 && text.bytes().all(|digit| digit.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| match is_long {
        true => "the number is too large".to_owned(),
        false => "expected a whole number, 1 or more".to_owned(),
    })
}

/// A whole number, 0 or more.
fn whole(text: &str) -> Result<u64, String> {
    let expected = |_| "expected a whole number, 0 to 18446744073709551615".to_owned();
    text.parse().map_err(expected)
}

/// The arguments of `assize run`, from the words of a command line.
pub(crate) fn run_arguments(
    words: impl IntoIterator<Item = String>,
) -> Result<RunArguments, clap::Error> {
    match Arguments::try_parse_from(words)?.command {
        Command::Run(arguments) => Ok(*arguments),
        _ => Err(clap::Error::new(ErrorKind::InvalidSubcommand)),
    }
}

const AFTER_HELP: &str = "\
First steps:
  assize try -m CMD -m CMD --prompt TEXT
                          compare two commands at once, without a file
  assize init demo        write a suite that runs at once, without a key
  assize run demo         run it: two modes, a table at the end
  assize compare          is one mode better, and is it real or luck?
  assize show             every trial, and why it did not pass
  assize show last/0      look at one trial

In your own git repository:
  assize init --agent claude-code
                          write a suite with your tests as the check
  assize check            is the agent there, and its key?
  assize run              asks before it spends money

Exit codes: 0 done, 1 error, 2 usage or a suite that does not check,
3 a gate failed, 4 a gate is inconclusive, 5 incomplete (--resume continues),
130 interrupted twice.";

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare commands on one prompt, without any file
    Try(TryArguments),
    /// Write a suite that runs at once
    Init(InitArguments),
    /// Validate a suite and everything it names, without running
    Check(CheckArguments),
    /// Say before a run what it costs and what it can show
    Plan(PlanArguments),
    /// Run a suite: every scenario in every mode, repeated
    Run(Box<RunArguments>),
    /// List and manage runs
    Runs(RunsArguments),
    /// List the trials of a run, or show one: prompt, answer, checks
    Show(ShowArguments),
    /// Write the report of a run: HTML, Markdown, CSV, JSON
    Report(ReportArguments),
    /// Compare the modes of a run, or two runs: real or luck?
    Compare(CompareArguments),
    /// Show metrics over the runs of a suite, and where they changed
    History(HistoryArguments),
    /// Check a run against its gates, with exit codes for CI
    Gate(GateArguments),
    /// Keep runs under a name, to compare later ones with
    Baseline(BaselineArguments),
    /// Run any agent command and print what it did and took
    Record(Box<RecordArguments>),
    /// Run the capture proxy alone, for agents started elsewhere
    Proxy(ProxyArguments),
    /// Show what the agents of this machine took, from their logs
    Sessions(SessionsArguments),
    /// Explain sessions: reasoning, strategy, efficiency, errors
    Analyze(AnalyzeArguments),
    /// Write sessions and trials in the formats of other tools
    Export(Box<ExportArguments>),
    /// See which agents are installed and work; spends nothing
    Doctor(DoctorArguments),
    /// List everything that suites can name, or test a plugin program
    Plugins(PluginsArguments),
    /// Score a stored run again with changed checks, without any agent
    Score(ScoreArguments),
    /// Put the shards of a run together: every trial once
    Merge(MergeArguments),
    /// Run a suite as shards on Slurm, Kubernetes or Ray
    Submit(Box<SubmitArguments>),
    /// Try a skill: does it trigger, help, and what does it cost?
    Skill(SkillArguments),
    /// Find out which sections of an instruction file earn their place
    Instructions(InstructionsArguments),
    /// Serve suites and runs to coding agents over MCP
    Mcp(McpArguments),
    /// Take over tasks of others: Harbor, promptfoo, evals of skills
    Import(ImportArguments),
    /// Build images for containers: any agent on top of any image
    Image(ImageArguments),
    /// Print the JSON Schema of a file or record
    Schema(SchemaArguments),
    /// Print shell completions
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Command {
    /// The command makes a run, which has a directory for the log.
    pub(crate) fn makes_a_run(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Try(_) | Self::Plan(_) | Self::Skill(_) | Self::Instructions(_)
        )
    }

    /// True when this process is a plugin of another one.
    pub(crate) fn is_to_serve(&self) -> bool {
        matches!(self, Self::Plugins(arguments) if matches!(arguments.action, Some(PluginsAction::Serve)))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize try -m 'claude -p {prompt}' -m 'codex exec {prompt}' --prompt 'Fix the tests' \\
      --workspace ./project --check 'make test' -n 5
  assize try -m ./old -m ./new --prompt hi --save comparison

A command without {prompt} or {prompt_file} gets the prompt on stdin. Every run has a fresh directory of its own. \
Commands get the API keys they need, which are named first; they reach their models through a proxy that counts tokens. \
The trials are kept as a run: `assize show`, `assize report`.")]
pub(crate) struct TryArguments {
    /// A command to try (give at least two; the others are compared with the first)
    #[arg(short = 'm', long = "mode", value_name = "COMMAND", required = true)]
    pub(crate) mode: Vec<String>,
    /// The prompt of every command
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) prompt: String,
    /// A shell command that must succeed afterwards, in the run's directory (may be repeated)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// Runs of each command
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5,
          value_parser = positive::<u32>)]
    pub(crate) repetitions: u32,
    /// Runs of each command beforehand that count for nothing
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warmup: u32,
    /// The directory that every run gets a fresh copy of [default: an empty one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Time limit of every run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 120_000,
          value_parser = positive::<u64>)]
    pub(crate) timeout: u64,
    /// Write the results as JSON, in hyperfine's form
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Write the results as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub(crate) export_markdown: Option<PathBuf>,
    /// Also write the comparison as a suite for `assize run`
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// The result as one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Give the commands this environment variable, too (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Show the report in the browser at the end
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SkillArguments {
    #[command(subcommand)]
    pub(crate) action: SkillAction,
}

/// An action on a skill.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillAction {
    /// Run the tasks of a skill with and without it, and say whether it triggers, helps and what it costs
    Test(SkillTestArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize skill test skills/review                       its own evals, with Claude Code
  assize skill test skills/review --agent codex -n 10
  assize skill test skills/review --neighbour skills/pdf --tasks triggers.json
  assize skill test skills/review --agent simulated     without a key, to see what comes out

Tasks are those of DIR/evals: evals.json, triggers.json, and directories with prompt.md and graders.")]
pub(crate) struct SkillTestArguments {
    /// The directory of the skill, with its SKILL.md
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The agent that is given the skill (may be repeated: a run each)
    #[arg(long, value_name = "NAME", default_value = "claude-code")]
    pub(crate) agent: Vec<String>,
    /// The tasks: evals.json, a trigger file, a directory of cases or a promptfoo configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,
    /// Runs of each task with and without the skill
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repetitions: u32,
    /// The model of the agent
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// A skill beside it, to see which one is chosen (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub(crate) neighbour: Vec<PathBuf>,
    /// Model that judges expectations in words, such as anthropic:claude-sonnet-4-5
    #[arg(long, value_name = "API:MODEL[@URL]")]
    pub(crate) judge: Option<String>,
    /// A setting of the agent, such as `skill_effect=0.3` of `simulated` (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, serde_json::Value)>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Time limit of every task that has none, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Directory to write the suite to [default: .assize/skills/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// The result as one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not ask before spending
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Try nothing out before the first trial
    #[arg(long)]
    pub(crate) no_preflight: bool,
    /// Show the report in the browser at the end
    #[arg(long)]
    pub(crate) open: bool,
}

/// `name=value`, the value as JSON where it is some.
fn setting(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected a name and a value, such as `skill_effect=0.3`")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

#[derive(Debug, Args)]
pub(crate) struct InstructionsArguments {
    #[command(subcommand)]
    pub(crate) action: InstructionsAction,
}

/// An action on an instruction file.
#[derive(Debug, Subcommand)]
pub(crate) enum InstructionsAction {
    /// Take sections out and see what happens to success: a screening of all, then a confirmation of a few
    Ablate(AblateArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize instructions ablate CLAUDE.md --suite evals --dry-run     how many trials it takes
  assize instructions ablate CLAUDE.md --suite evals
  assize instructions ablate CLAUDE.md --suite evals --max-trials 800

Sections begin at headings. The screening leaves each one out of half of the blocks of every scenario; \
at most 8 are confirmed on fresh trials, and only that is claimed (Holm).")]
pub(crate) struct AblateArguments {
    /// The instruction file: CLAUDE.md, AGENTS.md or any other
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The suite whose scenarios show whether a section matters
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) suite: PathBuf,
    /// The mode of the suite that is given the file [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Option<String>,
    /// The model, instead of the suite's
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The difference of success that it is planned for, in points
    #[arg(long, value_name = "POINTS", default_value_t = 20.0, value_parser = points)]
    pub(crate) effect: f64,
    /// The loss of success that is small enough to take sections out, in points
    #[arg(long, value_name = "POINTS", default_value_t = 10.0, value_parser = points)]
    pub(crate) margin: f64,
    /// The most trials; fewer than planned show only larger effects
    #[arg(long, value_name = "N")]
    pub(crate) max_trials: Option<u64>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Trials at once, instead of the suite's
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    pub(crate) concurrency: Option<usize>,
    /// Say how many trials it takes, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The result as one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Do not ask before spending
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Try nothing out before the first trial
    #[arg(long)]
    pub(crate) no_preflight: bool,
}

fn points(text: &str) -> Result<f64, String> {
    let points: f64 = text.parse().map_err(|_| "expected a number of points")?;
    match (1.0..=100.0).contains(&points) {
        true => Ok(points),
        false => Err("expected 1 to 100 points".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize record -- claude -p 'Fix the tests'
  assize record --upstream openai=http://127.0.0.1:8080/v1 -- aider --message 'Fix the tests'
  assize record -- codex exec -c 'model_providers.p.base_url={openai_url}' … 'Fix the tests'
  assize record --cassette fix.jsonl -- claude -p 'Fix the tests'
  assize record --replay fix.jsonl -- claude -p 'Fix the tests'

The command finds the proxy in ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OPENAI_API_BASE and GOOGLE_GEMINI_BASE_URL; one that \
is already set names where requests go. For agents that want the address elsewhere, {anthropic_url}, \
{openai_url} and {gemini_url} in the command are replaced by it.

Ends with the command's own exit code (128 + N after signal N), or 1 if it could not be run.")]
pub(crate) struct RecordArguments {
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    pub(crate) capture: CaptureArguments,
    /// File for the trace [default: .assize/recordings/TIME-PROGRAM.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Time limit in milliseconds
    #[arg(long, value_name = "MS", value_parser = positive::<u64>)]
    pub(crate) timeout: Option<u64>,
    /// The profile as one JSON object on stdout; what the command prints goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// The services that requests go to.
#[derive(Debug, Args)]
pub(crate) struct CaptureArguments {
    /// The base URL of an API: anthropic, openai or gemini [default: from the environment, else the real one]
    #[arg(long, value_name = "API=URL")]
    pub(crate) upstream: Vec<String>,
    /// Record all exchanges to this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) cassette: Option<PathBuf>,
    /// Answer from this file, without any request to a model
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: pass requests on that were not recorded, instead of refusing them
    #[arg(long, requires = "replay")]
    pub(crate) fall_through: bool,
    /// With --replay: the time that answers take
    #[arg(
        long,
        value_name = "TIMING",
        requires = "replay",
        default_value = "fast"
    )]
    pub(crate) timing: TimingArgument,
    /// Prices before the built-in ones, in LiteLLM's or models.dev's form
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TimingArgument {
    /// No time
    Fast,
    /// As long as they took
    Original,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize proxy                     then start the agent in another terminal with the variables that are printed
  assize proxy --port 4000 --json  one JSON object per call and line")]
pub(crate) struct ProxyArguments {
    #[command(flatten)]
    pub(crate) capture: CaptureArguments,
    /// The port to listen on [default: a free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) port: u16,
    /// File for the trace at the end [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// One JSON object per call and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize init demo                    a suite that runs at once, without a key
  assize init --agent claude-code     in a git repository: its tests, two ways to instruct the agent
  assize init --agent claude-code --agent codex   the same with two agents
  assize init evals --from-git v1.0..  tasks from past commits, proved by their tests
  assize init evals --from-session LOG a draft of a task from a session with an agent")]
pub(crate) struct InitArguments {
    /// Directory to write to; created if it is missing
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,
    /// A suite for this agent and the git repository around DIR (give two to compare them)
    #[arg(long, value_name = "AGENT", conflicts_with = "plugin")]
    pub(crate) agent: Vec<String>,
    /// A plugin in this language, with a suite that uses it
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) plugin: Option<PluginLanguage>,
    /// Tasks from commits of the git repository that change code and tests, such as `v1.0..` or `HEAD~50..HEAD`
    #[arg(long, value_name = "RANGE", conflicts_with = "plugin")]
    pub(crate) from_git: Option<String>,
    /// A draft of a task from a session with an agent: its log, a trace, or ATIF
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plugin", "from_git"])]
    pub(crate) from_session: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) history: TaskSearchArguments,
}

/// The search for tasks in a history.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --from-git")]
pub(crate) struct TaskSearchArguments {
    /// The most tasks to make
    #[arg(short = 'n', long = "tasks", value_name = "N", default_value_t = 10, requires = "from_git",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tasks: u32,
    /// The command that runs the tests of a commit; {files} are its test files [default: found in the project]
    #[arg(long, value_name = "COMMAND", requires = "from_git")]
    pub(crate) test: Option<String>,
    /// Time limit of each run of the tests, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300_000, requires = "from_git",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Time for the whole search
    #[arg(long, value_name = "N", default_value_t = 30, requires = "from_git",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) minutes: u64,
    /// Directory with the texts of issues (12.md): a commit that names #12 gets it as its prompt
    #[arg(long, value_name = "DIR", requires = "from_git")]
    pub(crate) issues: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PluginLanguage {
    /// TypeScript.
    Ts,
    /// Python.
    Py,
    /// Rust, as an `assize` of one's own.
    Rust,
}

#[derive(Debug, Args)]
pub(crate) struct PluginsArguments {
    /// The suite whose plugin programs are listed, too [default: the one in this directory, if any]
    #[arg(long, value_name = "PATH")]
    pub(crate) suite: Option<PathBuf>,
    /// One JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<PluginsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsAction {
    /// Serve the plugins that are compiled into this program to another Assize, on stdin and stdout
    #[command(hide = true)]
    Serve,
    /// Try every method of everything a plugin program serves, with good and bad input
    Test(PluginsTestArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize plugins test node plugin.mjs
  assize plugins test --options '{\"model\": \"small\"}' python3 plugin.py")]
pub(crate) struct PluginsTestArguments {
    /// Settings of the plugin, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) options: Option<String>,
    /// A mode that its mode resolver must know (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Vec<String>,
    /// Time limit of each call, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub(crate) timeout: u64,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize check                        is the suite in this directory fine?
  assize check --oracle tasks         also prove its Harbor tasks: the solution earns the full reward, doing nothing does not")]
pub(crate) struct CheckArguments {
    /// Suite file, or a directory with an assize.yaml, .toml or .json
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// Prove Harbor tasks in their containers: the reference solution must pass, an agent that does nothing must fail
    #[arg(long)]
    pub(crate) oracle: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  harbor                directories with a task.toml: what each asks for, and what is not supported
  evals-json            evals/evals.json of a skill, in skill-creator's form
  triggers              [{ \"query\": …, \"should_trigger\": true }]
  claude-plugin-eval    directories with prompt.md or case.yaml and graders
  promptfoo             promptfooconfig.yaml

What has no equivalent is listed, never dropped.

Examples:
  assize import harbor tasks
  assize import harbor tasks --out my-suite               write a suite that runs them
  assize check --oracle my-suite                          prove them before money is spent
  assize import evals-json skills/review --out my-suite   the evals of a skill, with and without it")]
pub(crate) struct ImportArguments {
    /// Format of the files
    #[arg(value_name = "FORMAT")]
    pub(crate) format: String,
    /// A file or directory in that form
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Write a suite into this directory
    #[arg(long = "out", alias = "save", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageArguments {
    #[command(subcommand)]
    pub(crate) action: ImageAction,
}

/// An action on images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageAction {
    /// Add an agent to an image, and print the name of the new one
    Build(ImageBuildArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize image build --agent codex --from debian:12
  assize image build --agent claude-code --from node:22 --tag my/agent:1
  assize image build --agent gemini --from node:22 --env NPM_CONFIG_REGISTRY --host-network

The same agent, version and image are built once. Agents that are npm packages need npm in the image, or apt-get, apk or dnf \
to install it; a statically linked agent needs nothing.")]
pub(crate) struct ImageBuildArguments {
    /// An agent that has a recipe, or the file of one
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    /// The image to add it to
    #[arg(long, value_name = "IMAGE")]
    pub(crate) from: String,
    /// Version of the agent [default: the one its recipe was tested with]
    #[arg(long, value_name = "VERSION")]
    pub(crate) agent_version: Option<String>,
    /// Name of the new image [default: one that follows from agent, version and image]
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    /// The engine to build with [default: the first that answers]
    #[arg(long, value_parser = ["docker", "podman", "nerdctl"])]
    pub(crate) engine: Option<String>,
    /// A variable for the installation, such as the address of a registry
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Let the installation use the network of this machine as it is
    #[arg(long)]
    pub(crate) host_network: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize run                          run the suite in this directory
  assize run suite.yaml --dry-run     see the plan, run nothing
  assize run -n 20 --mode fast        20 repetitions of one mode
  assize run --resume last            resume a run that was interrupted
  assize run --resume last --only void
                                      run void trials again
  assize run --shard 3/40 --resume auto
                                      on one of many machines: a part of the plan, resumed after a restart")]
pub(crate) struct RunArguments {
    /// Suite file, or a directory with an assize.yaml, .toml or .json [default: this directory]
    pub(crate) path: Option<PathBuf>,
    /// Only this mode (may be repeated)
    #[arg(long, value_name = "NAME", help_heading = "What to run")]
    pub(crate) mode: Vec<String>,
    /// This model instead of the suite's (may be repeated)
    #[arg(
        long,
        value_name = "NAME",
        env = "ASSIZE_MODEL",
        help_heading = "What to run"
    )]
    pub(crate) model: Vec<String>,
    /// Only this scenario (may be repeated)
    #[arg(long, value_name = "ID", help_heading = "What to run")]
    pub(crate) scenario: Vec<String>,
    /// Only scenarios with this tag (may be repeated)
    #[arg(long, value_name = "TAG", help_heading = "What to run")]
    pub(crate) tag: Vec<String>,
    /// Only scenarios of this set
    #[arg(long, value_name = "NAME", help_heading = "What to run")]
    pub(crate) scenario_set: Option<String>,
    /// Repetitions of each scenario in each mode
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        env = "ASSIZE_REPETITIONS",
        help_heading = "How to run",
        value_parser = positive::<u32>
    )]
    pub(crate) repetitions: Option<u32>,
    /// Retries of a void trial
    #[arg(
        long,
        value_name = "N",
        env = "ASSIZE_RETRIES",
        help_heading = "How to run"
    )]
    pub(crate) retries: Option<u32>,
    /// No warm-up trial beforehand
    #[arg(long, help_heading = "How to run")]
    pub(crate) skip_warmup: bool,
    /// Order of trials
    #[arg(
        long,
        value_name = "ORDER",
        env = "ASSIZE_ORDER",
        help_heading = "How to run"
    )]
    pub(crate) order: Option<OrderArgument>,
    /// Most trials at once
    #[arg(
        short = 'j',
        long,
        value_name = "N",
        env = "ASSIZE_CONCURRENCY",
        help_heading = "How to run",
        value_parser = positive::<usize>
    )]
    pub(crate) concurrency: Option<usize>,
    /// Seed of all random choices
    #[arg(
        long,
        value_name = "N",
        env = "ASSIZE_SEED",
        help_heading = "How to run",
        value_parser = whole
    )]
    pub(crate) seed: Option<u64>,
    /// Time limit of every trial, in milliseconds
    #[arg(long, value_name = "MS", env = "ASSIZE_TIMEOUT", help_heading = "How to run",
          value_parser = positive::<u64>)]
    pub(crate) timeout: Option<u64>,
    /// Do not look for programs, keys, the judge, MCP servers and set-ups before the first trial
    #[arg(long, help_heading = "How to run")]
    pub(crate) no_preflight: bool,
    /// Start nothing more after the first trial that does not pass
    #[arg(long, help_heading = "How to run")]
    pub(crate) fail_fast: bool,
    #[command(flatten)]
    pub(crate) design: plan::DesignArguments,
    /// Directory of runs, instead of the suite's `results_dir`
    #[arg(
        long,
        value_name = "DIR",
        env = "ASSIZE_OUTPUT",
        help_heading = "Where it goes"
    )]
    pub(crate) output: Option<PathBuf>,
    /// Resume a run: exactly the missing trials; `auto` finds the unfinished run of the same suite, flags and shard, or starts one
    #[arg(long, value_name = "ID|auto", help_heading = "Where it goes")]
    pub(crate) resume: Option<String>,
    /// With --resume: run only these again
    #[arg(
        long,
        value_name = "WHAT",
        requires = "resume",
        help_heading = "Where it goes"
    )]
    pub(crate) only: Option<OnlyArgument>,
    /// Compare with this run, named baseline or file of rows in baseline gates [default: the suite's baseline mode]
    #[arg(long, value_name = "RUN|NAME|FILE", help_heading = "How to run")]
    pub(crate) baseline: Option<String>,
    /// Show the plan and run nothing
    #[arg(long, help_heading = "What to show")]
    pub(crate) dry_run: bool,
    /// One JSON object per line on stdout
    #[arg(long, help_heading = "What to show")]
    pub(crate) json: bool,
    /// No progress, only the result
    #[arg(short, long, help_heading = "What to show")]
    pub(crate) quiet: bool,
    /// Do not ask before spending money
    #[arg(short, long, help_heading = "What to show")]
    pub(crate) yes: bool,
    /// Refuse to start if the plan has more trials than this
    #[arg(long, value_name = "N", help_heading = "How to run")]
    pub(crate) max_trials: Option<u64>,
    /// Show the report in the browser at the end
    #[arg(long, help_heading = "What to show")]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) sharding: ShardArguments,
}

/// A part of a plan, for one of several machines.
#[derive(Debug, Args)]
#[command(next_help_heading = "On several machines")]
pub(crate) struct ShardArguments {
    /// Run only part I of N: whole blocks, the same division on every machine; `assize merge` puts the parts together
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Balance shards by the times of this run, or of a JSON file {"scenario": seconds} [default: by time limits]
    #[arg(long, value_name = "RUN|FILE")]
    pub(crate) shard_costs: Option<String>,
    /// Shards that run at the same time: each gets its part of the suite's limits per provider
    #[arg(long, value_name = "N", requires = "shard", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) running_shards: Option<u32>,
    /// Go on from this merged run (or its round.json): the next round of `execution.until`, and what is left of the budget
    #[arg(long, value_name = "RUN", requires = "shard")]
    pub(crate) after: Option<PathBuf>,
    /// Upload the shard's results to s3://bucket/prefix, gs://, az:// or file:///directory; `merge` reads them from there
    #[arg(long, value_name = "URL", requires = "shard", env = "ASSIZE_RESULTS")]
    pub(crate) results: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize mcp                                        list, check, compare and show what is here
  assize mcp --allow-run --root . --max-trials 40   also run suites, 40 trials in all
  claude mcp add assize -- assize mcp

A call can neither leave the directory nor raise a limit; the limits hold for all calls together. When stdin closes, a run \
that is under way ends with all its processes.")]
pub(crate) struct McpArguments {
    /// Suites and runs must lie in this directory [default: this directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Offer the tool `run` as well; without it nothing is started
    #[arg(long, requires_all = ["root", "max_trials"])]
    pub(crate) allow_run: bool,
    /// Most trials of all runs together
    #[arg(long, value_name = "N", requires = "allow_run", value_parser = positive::<u64>)]
    pub(crate) max_trials: Option<u64>,
    /// Runs end at the latest so many minutes after the server has started
    #[arg(long, value_name = "N", requires = "allow_run", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) max_minutes: Option<u64>,
    /// Most dollars of all runs together; trials of unknown cost end the run
    #[arg(long, value_name = "USD", requires = "allow_run")]
    pub(crate) max_cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OrderArgument {
    /// Compared trials run side by side, balanced
    Blocked,
    /// One mode after another
    Sequential,
    /// All shuffled
    Random,
}

impl From<OrderArgument> for Order {
    fn from(order: OrderArgument) -> Self {
        match order {
            OrderArgument::Blocked => Self::Blocked,
            OrderArgument::Sequential => Self::Sequential,
            OrderArgument::Random => Self::Random,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnlyArgument {
    /// Void trials: a service, a plugin or the scorer failed
    Void,
}

/// The directory in which runs are looked for.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Where {
    /// The suite that the runs belong to [default: this directory]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) suite: Option<PathBuf>,
    /// The directory that holds the runs
    #[arg(long, value_name = "DIR", env = "ASSIZE_OUTPUT", global = true)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    pub(crate) place: Where,
    /// One JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// Show one run: what was run, and the table
    Show {
        /// Its id, a part of it, `last`, or its directory
        #[arg(default_value = "last")]
        id: String,
    },
    /// Remove runs
    Rm {
        /// Their ids, parts of them, `last`, or their directories
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove all but the newest runs
    Prune {
        /// Number of runs to keep
        #[arg(long, default_value_t = 10, value_name = "N")]
        keep: usize,
        /// Show what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize show                 the trials of the last run, with the reason of each that did not pass
  assize show last --failed   only those that failed
  assize show last/7          one trial: prompt, answer, checks, changes, timeline
  assize show fix-bug         all trials of one scenario

A trial is a run and a position in its plan: `last/0`, `20261115-210359-3f9a/12`, or just `12` for the last run.")]
pub(crate) struct ShowArguments {
    /// A run, a trial (RUN/POSITION), or a scenario
    #[arg(default_value = "last", value_name = "RUN|RUN/POSITION|SCENARIO")]
    pub(crate) trial: String,
    #[command(flatten)]
    pub(crate) place: Where,
    /// Only trials that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only trials that are void
    #[arg(long)]
    pub(crate) void: bool,
    /// Only trials of this mode (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Vec<String>,
    /// Only trials of this scenario (may be repeated)
    #[arg(long, value_name = "ID")]
    pub(crate) scenario: Vec<String>,
    /// One trial as one JSON object, or the rows of several, one per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Show everything in full
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize report                       the last run, into its own report/ directory
  assize report rows.jsonl --out r    rows that another profiler wrote
  assize report 3f9a 81c2             two runs of a suite together")]
pub(crate) struct ReportArguments {
    /// Runs (id, part of it, `last`, directory), files of rows (JSON Lines, or a JSON array), or logs of agents [default: last]
    pub(crate) sources: Vec<String>,
    /// Of logs of agents: the groups to be compared
    #[arg(long, value_name = "WHAT", default_value = "week")]
    pub(crate) by: LogGroup,
    /// Of logs of agents: only what happened since: `30d`, `12h`, `2w`, or a date
    #[arg(long, value_name = "SPAN")]
    pub(crate) since: Option<String>,
    /// Of logs of agents: remove what looks like a key, a password or a token
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) against: Against,
    /// Format to write (may be repeated)
    #[arg(long, value_name = "FORMAT", default_value = "all")]
    pub(crate) format: Vec<ReportFormat>,
    /// The comparisons whose p-values are adjusted for each other
    #[arg(long, value_name = "FAMILY", default_value = "report")]
    pub(crate) family: FamilyArgument,
    /// Directory to write to [default: `report` in the run, or here]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Show the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// The groups of sessions that a report over logs compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogGroup {
    /// Weeks, by their Monday
    Week,
    /// The models that answered
    Model,
    /// The directories that sessions worked in
    Project,
    /// The agents
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Everything
    All,
    /// report.md and analysis.md
    Md,
    /// report.html
    Html,
    /// data/results.csv
    Csv,
    /// data/results.json and data/summary.json
    Json,
    /// junit.xml
    Junit,
    /// data/benchmark-smaller.json and data/benchmark-bigger.json, for github-action-benchmark; not part of `all`
    Benchmark,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize compare                      the modes of the last run
  assize compare 3f9a last            two runs, scenario by scenario
  assize compare last --metric tokens_total --statistic mean")]
pub(crate) struct CompareArguments {
    /// A run (id, part of it, `last`, directory), a named baseline or a file of rows
    #[arg(default_value = "last")]
    pub(crate) a: String,
    /// A second one: each of its modes is compared with the same mode of the first
    pub(crate) b: Option<String>,
    #[command(flatten)]
    pub(crate) place: Where,
    /// The mode others are compared with [default: the suite's, else the first]
    #[arg(long, value_name = "MODE", conflicts_with = "b")]
    pub(crate) baseline: Option<String>,
    /// Only this metric (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Statistic that summarizes the runs of one scenario
    #[arg(long, value_name = "STATISTIC")]
    pub(crate) statistic: Option<StatisticArgument>,
    /// Scope of the verdict
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArgument>,
    /// The comparisons whose p-values are adjusted for each other
    #[arg(long, value_name = "FAMILY", default_value = "report")]
    pub(crate) family: FamilyArgument,
    /// Also compare live trials with replayed or simulated ones
    #[arg(long)]
    pub(crate) mixed: bool,
    /// All metrics, as a table
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Every scenario or task: improved, regressed, unchanged, new, gone
    #[arg(long)]
    pub(crate) each: bool,
    /// One JSON object per comparison and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A change is claimed only when the order of the runs could hardly be chance: ranks before and after the likeliest
place, held against random orders of the same numbers, adjusted for all series that are shown.")]
pub(crate) struct HistoryArguments {
    /// The suite [default: this directory, and the suite of the last run]
    pub(crate) suite: Option<PathBuf>,
    /// The directory that holds the runs
    #[arg(long, value_name = "DIR", env = "ASSIZE_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    /// This metric, run by run (may be repeated) [default: the deciding ones]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Number of runs
    #[arg(short = 'n', long = "runs", value_name = "N", default_value_t = 20)]
    pub(crate) runs: usize,
    /// One JSON object per metric, mode and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize gate                                       the last run and its suite's gates
  assize gate last --gate 'success >= 0.9'          another gate
  assize gate last --baseline main --gate 'tokens_total <= baseline + 5%'

Exit codes: 0 all pass, 3 one fails, 4 one is inconclusive: too few trials, or something is missing.")]
pub(crate) struct GateArguments {
    /// A run (id, part of it, `last`, directory) or a file of rows
    #[arg(default_value = "last")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) against: Against,
    /// This gate instead of the suite's (may be repeated)
    #[arg(long, value_name = "GATE")]
    pub(crate) gate: Vec<String>,
    /// Only these modes (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Vec<String>,
    /// Scope of gates on success: exactly these tasks, or new tasks like these
    #[arg(long, value_name = "SCOPE", default_value = "suite")]
    pub(crate) scope: ScopeArgument,
    /// One JSON object per gate, mode and line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The reference of baseline gates.
#[derive(Debug, Args, Clone)]
pub(crate) struct Against {
    /// Compare with this run, named baseline or file of rows in baseline gates [default: the suite's baseline mode]
    #[arg(long, value_name = "RUN|NAME|FILE")]
    pub(crate) baseline: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArguments {
    #[command(flatten)]
    pub(crate) place: Where,
    /// One JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: BaselineAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BaselineAction {
    /// Keep a copy of a run's rows under a name
    Set {
        /// The name
        name: String,
        /// The run (id, part of it, `last`, directory)
        #[arg(default_value = "last")]
        run: String,
    },
    /// List the baselines
    List,
    /// Show one: what was run, and the table
    Show {
        /// Its name
        name: String,
    },
    /// Remove baselines; the runs stay
    Rm {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StatisticArgument {
    /// The middle value
    Median,
    /// The arithmetic mean
    Mean,
    /// The 90th percentile
    P90,
    /// The 95th percentile
    P95,
    /// The smallest value
    Min,
    /// The largest value
    Max,
}

impl From<StatisticArgument> for Statistic {
    fn from(statistic: StatisticArgument) -> Self {
        match statistic {
            StatisticArgument::Median => Self::Median,
            StatisticArgument::Mean => Self::Mean,
            StatisticArgument::P90 => Self::P90,
            StatisticArgument::P95 => Self::P95,
            StatisticArgument::Min => Self::Min,
            StatisticArgument::Max => Self::Max,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArgument {
    /// New tasks like these
    Population,
    /// Exactly these tasks
    Suite,
}

/// The comparisons whose p-values are adjusted for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyArgument {
    /// All of the report: the error rate holds for it as a whole
    Report,
    /// Those of one model: the error rate holds per model
    Model,
}

impl From<FamilyArgument> for Family {
    fn from(family: FamilyArgument) -> Self {
        match family {
            FamilyArgument::Report => Self::Report,
            FamilyArgument::Model => Self::Model,
        }
    }
}

impl From<ScopeArgument> for Scope {
    fn from(scope: ScopeArgument) -> Self {
        match scope {
            ScopeArgument::Population => Self::Population,
            ScopeArgument::Suite => Self::Suite,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize analyze session.json             one session
  assize analyze sessions/                all sessions below a directory
  assize analyze ~/.claude/projects       the logs that an agent keeps, sub-agents included
  assize analyze rollout.jsonl --timeline one log, event by event
  assize analyze last --analyzer loops    every trial of the last run, its findings kept beside the rows")]
pub(crate) struct AnalyzeArguments {
    /// Sessions: traces, logs of agents, directories with them, or runs
    #[arg(required = true, value_name = "SESSION|DIR|RUN")]
    pub(crate) sources: Vec<String>,
    /// Only this analyzer (may be repeated) [default: the five; for logs of agents all]
    #[arg(long, value_name = "NAME")]
    pub(crate) analyzer: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Where,
    /// Show every session event by event
    #[arg(long)]
    pub(crate) timeline: bool,
    /// Of logs of agents: remove what looks like a key, a password or a token
    #[arg(long)]
    pub(crate) redact: bool,
    /// One JSON object per session and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize export                               the formats, and what each of them loses
  assize export atif last/0 --out t.atif.json one trial as a trajectory; `assize analyze` reads it back
  assize export otlp last --out run.otlp.jsonl
  assize export otlp last --endpoint http://127.0.0.1:6006 --dialect openinference
  assize export chrome last/0 --out t.json    for https://ui.perfetto.dev
  assize export folded last --diff plain with-docs --by tokens

Nothing is sent anywhere without --endpoint. OTEL_EXPORTER_OTLP_HEADERS holds headers with keys.")]
pub(crate) struct ExportArguments {
    /// atif, otlp, chrome, speedscope or folded; without it, all formats are listed
    pub(crate) format: Option<String>,
    /// Runs, trials (RUN/POSITION), or files with sessions [default: last]
    #[arg(value_name = "RUN|TRIAL|FILE")]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Where,
    /// File to write to; with several trials in `atif`, a directory [default: stdout]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Only trials of this mode (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) mode: Vec<String>,
    /// Only trials of this scenario (may be repeated)
    #[arg(long, value_name = "ID")]
    pub(crate) scenario: Vec<String>,
    /// Remove what looks like a key, a password or a token from all texts
    #[arg(long)]
    pub(crate) redact: bool,
    /// otlp: send protobuf to the collector at this address instead of writing a file
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    pub(crate) endpoint: Option<String>,
    /// otlp: a header of every request (may be repeated)
    #[arg(long, value_name = "NAME: VALUE", requires = "endpoint")]
    pub(crate) header: Vec<String>,
    /// otlp: names of attributes [default: v1.41]
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectArgument>,
    /// otlp: prompts, answers, thoughts, arguments and results, too
    #[arg(long)]
    pub(crate) content: bool,
    /// folded: the number of a stack [default: tokens]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) by: Option<WeightArgument>,
    /// folded: the means per trial of two modes side by side, for a differential flame graph
    #[arg(long, num_args = 2, value_names = ["MODE", "MODE"])]
    pub(crate) diff: Vec<String>,
    /// The list of formats as JSON lines
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DialectArgument {
    /// The GenAI conventions 1.41, which most viewers read
    #[value(name = "v1.41")]
    V141,
    /// The names of today
    Latest,
    /// OpenInference, for Phoenix
    Openinference,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WeightArgument {
    /// Tokens by class
    Tokens,
    /// Milliseconds
    Time,
    /// Millionths of a dollar
    Cost,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize sessions --since 30d                     the last 30 days, by day, project, agent and model
  assize sessions --by model                      what each model took
  assize sessions --by subagent --agent claude-code
  assize sessions ~/.claude/projects/my-project --by day --json

Logs are found where the agents keep them; every model call counts once, also where resumed and forked sessions copy it. Nothing leaves this \
machine, and no log is written to. An index in the user's cache makes the next call fast.")]
pub(crate) struct SessionsArguments {
    /// Logs, or directories with logs [default: where the agents of this machine keep them]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only this agent (may be repeated): claude-code, codex, opencode, gemini, …
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// Only what happened since: `30d`, `12h`, `2w`, or a date
    #[arg(long, value_name = "SPAN")]
    pub(crate) since: Option<String>,
    /// Only what happened before
    #[arg(long, value_name = "SPAN")]
    pub(crate) until: Option<String>,
    /// Only projects whose path holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) project: Option<String>,
    /// The rows of the table (several with commas) [default: day,project,agent,model]
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) by: Vec<SessionsBy>,
    /// Prices that go before the built-in ones: LiteLLM's or models.dev's JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Read every log again and remember nothing
    #[arg(long)]
    pub(crate) no_index: bool,
    /// One JSON object: rows, total, prices, flaws of the logs
    #[arg(long)]
    pub(crate) json: bool,
}

/// The subject of a row of `assize sessions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum SessionsBy {
    /// The day, in UTC
    Day,
    /// The week, by its Monday
    Week,
    /// The directory that sessions worked in
    Project,
    /// The agent whose log it is
    Agent,
    /// The model that answered
    Model,
    /// The main agent, or the kind of sub-agent
    Subagent,
    /// The skill that was loaded last
    Skill,
    /// The MCP server whose results a call read first
    Mcp,
    /// The session
    Session,
    /// The tool; tokens belong to no tool
    Tool,
}

impl std::fmt::Display for SessionsBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Project => "project",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Subagent => "subagent",
            Self::Skill => "skill",
            Self::Mcp => "mcp",
            Self::Session => "session",
            Self::Tool => "tool",
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The agents to look at: names, a recipe of your own, a suite [default: all that are known]
    pub(crate) agents: Vec<String>,
    /// Do not start any agent to see whether it reaches a model
    #[arg(long)]
    pub(crate) quick: bool,
    /// One JSON object per agent
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sessions are not run again: scores come from the stored traces and from what agents changed in their workspaces. The suite is the one that the
run was started from, as it is now, unless --suite names another. A trial that cannot be scored by the new checks is void.")]
pub(crate) struct ScoreArguments {
    /// The run: its id, a part of it, `last`, or its directory
    #[arg(default_value = "last")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) place: Where,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before a judge may cost money
    #[arg(long)]
    pub(crate) yes: bool,
    /// One JSON object: how many trials, what changed, what could not be scored and why
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assize merge shards/* --out merged        every shard once; then: assize report merged
  assize merge shards --out merged          the same: runs are looked for below a directory

Runs that are not parts of one plan are refused. A trial that was run twice counts once: the first \
that was finished. The other is listed and kept beside the rows. What is missing is listed with the command that runs it. \
Merging again adds to what is there.

Where the suite declares looks (`execution.until`), the merged run is looked at when a round is complete, and the commands of the next \
round are printed.

Exit codes: 0 every planned trial is there, 5 some are missing or another round is next.")]
pub(crate) struct MergeArguments {
    /// Runs to merge: their directories, directories that hold them, or the URL that shards were uploaded to
    #[arg(required = true, value_name = "DIR|URL")]
    pub(crate) sources: Vec<String>,
    /// Directory of the merged run; one that exists is added to
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    /// The result as one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  assize submit suite.yaml --on slurm --shards 40 --dry-run   print the job file, submit nothing
  assize submit suite.yaml --on slurm --shards 40 --at-once 8 -- -n 5
  assize submit suite.yaml --on kubernetes --shards 40 --image registry/suite:1 --claim results
  assize submit suite.yaml --on ray --shards 40 --wait        submit, wait, merge, verdict
  assize submit status                                        how far the last submission is
  assize submit collect                                       merge its shards and give the verdict

Everything of a submission lies in .assize/submissions/ID beside the suite: the job file, logs, shards, in the end the merged run. \
Keys reach shards by a file that only you can read, which `collect` and `cancel` remove; in Kubernetes by a Secret."
)]
pub(crate) struct SubmitArguments {
    #[command(subcommand)]
    pub(crate) action: Option<SubmitAction>,
    /// Suite file, or a directory with an assize.yaml, .toml or .json [default: this directory]
    pub(crate) suite: Option<PathBuf>,
    /// The scheduler
    #[arg(long, value_name = "SCHEDULER", required = true)]
    pub(crate) on: Option<SchedulerArgument>,
    /// Parts of the plan; many more than machines are normal
    #[arg(long, value_name = "N", required = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) shards: Option<u32>,
    /// Print the job file and submit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Wait until all shards have ended, submit unfinished ones again, then collect; round by round where looks are declared
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,
    /// Most shards at once; each gets its part of the suite's limits per provider [default: as many as the scheduler places]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: Option<u32>,
    /// Time limit of a shard, in minutes [default: all its trials to their time limits]
    #[arg(long, value_name = "N", help_heading = "Resources of a shard", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) minutes: Option<u64>,
    /// Memory, in MB [default: 512, and 1024 for each trial at once]
    #[arg(long, value_name = "MB", help_heading = "Resources of a shard", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory: Option<u64>,
    /// Processors [default: the suite's concurrency]
    #[arg(long, value_name = "N", help_heading = "Resources of a shard")]
    pub(crate) cpus: Option<usize>,
    /// Another environment variable that shards need (may be repeated) [default: those of the suite and its agents]
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// A job file of your own; `assize submit template SCHEDULER` prints the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// The assize program on the machines [default: this one; in Kubernetes `assize`]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<String>,
    /// Directory of submissions, which all machines must reach (Slurm) [default: .assize/submissions beside the suite]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Upload results to an object store instead: s3://, gs://, az:// or file://
    #[arg(long, value_name = "URL")]
    pub(crate) results: Option<String>,
    #[command(flatten)]
    pub(crate) kubernetes: KubernetesArguments,
    #[command(flatten)]
    pub(crate) ray: RayArguments,
    /// Flags of `assize run` for every shard, after `--`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) run_flags: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct KubernetesArguments {
    /// The image with assize, the agents and the suite
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// The suite's path in the image [default: as given here]
    #[arg(long, value_name = "PATH")]
    pub(crate) suite_path: Option<String>,
    /// The Secret with the variables that the suite needs [default: one named after the job; the command to make it is printed]
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Option<String>,
    /// The persistent volume claim for results, which all pods can write
    #[arg(long, value_name = "NAME")]
    pub(crate) claim: Option<String>,
    /// The namespace [default: that of kubectl]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Ray")]
pub(crate) struct RayArguments {
    /// The cluster [default: as Ray finds it, else one on this machine]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// A Python that has Ray
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SubmitAction {
    /// Show how far a submission is
    Status(SubmissionArguments),
    /// Merge the shards, write the report, give the verdict; removes the file with keys
    Collect(CollectArguments),
    /// Submit the shards with open trials again, or those of the next round
    #[command(visible_alias = "next")]
    Retry(SubmissionArguments),
    /// End a submission; finished trials are kept, the file with keys is removed
    Cancel(SubmissionArguments),
    /// Print the built-in job file of a scheduler, to be changed and given with --template
    Template {
        /// The scheduler
        scheduler: SchedulerArgument,
    },
}

#[derive(Debug, Args, Clone)]
pub(crate) struct SubmissionArguments {
    /// The submission: its id, a part of it, `last`, or its directory
    #[arg(default_value = "last")]
    pub(crate) submission: String,
    /// The suite that was submitted [default: the one in this directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) suite: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    #[command(flatten)]
    pub(crate) which: SubmissionArguments,
    /// Directory of the merged run [default: `merged` in the submission]
    #[arg(long, value_name = "RUN")]
    pub(crate) out: Option<PathBuf>,
    /// Directory or URL of the shards, if not where they were sent
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) from: Option<String>,
    /// Merge what is there although shards still run
    #[arg(long)]
    pub(crate) partial: bool,
}

impl Default for CollectArguments {
    fn default() -> Self {
        Self {
            which: SubmissionArguments {
                submission: "last".to_owned(),
                suite: None,
                json: false,
            },
            out: None,
            from: None,
            partial: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SchedulerArgument {
    /// An array of jobs
    Slurm,
    /// An Indexed Job
    Kubernetes,
    /// One task per shard, driven by a small Python program
    Ray,
}

impl SchedulerArgument {
    /// The scheduler's word for a job, with its name.
    pub(crate) fn job_word(self) -> &'static str {
        match self {
            Self::Slurm => "Slurm job",
            Self::Kubernetes => "Kubernetes job",
            Self::Ray => "Ray driver, process",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Schema to print; without it, the names of all
    pub(crate) name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_fits_on_a_line() {
        let command = command();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        for found in command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let name = found.get_name();
            let places = listed.iter().filter(|listed| **listed == name).count();
            assert_eq!(places, 1, "{name}");
            let about = found
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                name == "help" || about.chars().count() <= 64,
                "{name}: {about}"
            );
        }
        let is_there = |name: &&str| *name == "help" || command.find_subcommand(name).is_some();
        assert!(listed.iter().all(is_there));
    }
}
