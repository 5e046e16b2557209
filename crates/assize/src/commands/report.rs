//! `assize report`: the pages and tables of runs, or of rows from elsewhere.

use crate::cli::{ReportArguments, ReportFormat};
use crate::commands::baseline;
use crate::commands::open_page::open_page;
use crate::commands::pages::{Pages, PagesDraft};
use crate::commands::verdict::{self, Source, Wanted};
use crate::commands::{Obstructed, UsageError, results_of_suite};
use crate::exit::Exit;
use crate::private;
use crate::terminal::{plain, print, print_cautions, print_gates};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::store::RunFile;
use assize_report::{
    Analysis, CsvWriter, JsonArrayWriter, ReportError, Row, SeenCells, Summary, closing_line,
    read_rows, render_benchmark, render_junit, render_markdown,
};
use assize_stats::Direction;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn report(arguments: &ReportArguments, plugins: &Plugins) -> Result<Exit> {
    let sources = sources(arguments, plugins)?;
    let baseline = baseline::find(&arguments.against, &arguments.place, plugins)?;
    let wanted = Wanted {
        family: arguments.family.into(),
        ..Wanted::default()
    };
    let mut summary = match &sources[..] {
        [source] => verdict::judge(source, &source.gates()?, baseline.as_ref(), wanted)?,
        _ => verdict::summarize(
            &sources,
            &Analysis {
                family: wanted.family,
                not_judged: sources.iter().all(|source| source.analysis.not_judged),
                ..sources[0].analysis.clone()
            },
        )?,
    };
    add_standing_cautions(&mut summary, &sources);
    let out = match (&arguments.out, &sources[..]) {
        (Some(out), _) => out.clone(),
        (None, [Source { run: Some(run), .. }]) => RunFile::Report.within(run),
        (None, _) => PathBuf::from("report"),
    };
    let formats = Formats::asked(&arguments.format);
    let written = write(&summary, &sources, &out, formats)?;
    for pair in summary.decisive_pairs() {
        let line = closing_line(pair);
        line.into_iter().for_each(|line| print(plain(&line)));
    }
    print_gates(&summary.gates);
    print_cautions([&summary]);
    for path in &written {
        print(plain(&path.display().to_string()));
    }
    if arguments.open {
        let page = written.iter().find(|path| path.ends_with("report.html"));
        let page = page.ok_or_else(|| UsageError {
            message: "no page was written that could be opened".to_owned(),
            hint: Some("leave `--format` out, or add `--format html`".to_owned()),
        })?;
        open_page(page);
    }
    Ok(Exit::Done)
}

/// Runs with fewer trials get `results.csv` and `results.json` without being asked: both repeat what is in `rows.jsonl`. Their
/// `summary.json` is indented.
const SMALL_RUN: u64 = 10_000;

/// The formats to write.
#[derive(Debug, Clone, Copy)]
struct Formats {
    md: bool,
    html: bool,
    csv: bool,
    rows_json: bool,
    summary_json: bool,
    junit: bool,
    benchmark: bool,
    /// The summary is for people to look at, too, and not only for programs.
    is_indented: bool,
}

impl Formats {
    fn asked(formats: &[ReportFormat]) -> Self {
        let wants = |format| formats.contains(&ReportFormat::All) || formats.contains(&format);
        Self {
            md: wants(ReportFormat::Md),
            html: wants(ReportFormat::Html),
            csv: wants(ReportFormat::Csv),
            rows_json: wants(ReportFormat::Json),
            summary_json: wants(ReportFormat::Json),
            junit: wants(ReportFormat::Junit),
            benchmark: formats.contains(&ReportFormat::Benchmark),
            is_indented: true,
        }
    }

    /// The formats at the end of a run of so many trials.
    fn closing(trials: u64) -> Self {
        Self {
            csv: trials < SMALL_RUN,
            rows_json: trials < SMALL_RUN,
            is_indented: trials < SMALL_RUN,
            ..Self::asked(&[ReportFormat::All])
        }
    }
}

/// Writes what a run ends with into its `report` directory.
pub(crate) fn write_beside(summary: &Summary, sources: &[Source]) -> Result<()> {
    let Some(run) = sources.first().and_then(|source| source.run.as_ref()) else {
        return Ok(());
    };
    let trials = summary.modes.iter().map(|(_, mode)| mode.runs).sum();
    let formats = Formats::closing(trials);
    let out = RunFile::Report.within(run);
    if !formats.csv {
        // They would hold less than the run has by now.
        for name in ["data/results.csv", "data/results.json"] {
            let _ = std::fs::remove_file(out.join(name));
        }
    }
    write(summary, sources, &out, formats)?;
    Ok(())
}

fn sources(arguments: &ReportArguments, plugins: &Plugins) -> Result<Vec<Source>> {
    let last = ["last".to_owned()];
    let names = match arguments.sources.is_empty() {
        true => &last[..],
        false => &arguments.sources,
    };
    let find = |name: &String| {
        #[cfg(feature = "sessions")]
        if let Some(source) = crate::commands::imported::source(name, arguments)? {
            return Ok(source);
        }
        let source = Source::find(name, &arguments.place, plugins);
        source
            .map_err(|error| about_directory(name, error))?
            .looked_at("report")
    };
    names.iter().map(find).collect()
}

/// The error for a name that is no run: if it is a directory, logs of agents were meant.
fn about_directory(name: &str, error: anyhow::Error) -> anyhow::Error {
    let is_missing_run = error.downcast_ref::<Obstructed>().is_some();
    let is_suite = results_of_suite(name).is_some();
    match Path::new(name).is_dir() && is_missing_run && !is_suite {
        true => Obstructed {
            message: format!("there is no session log in `{name}`, and it is no run"),
            hint: "name a run, a file of rows, or logs of agents; `assize sessions` finds those of this machine".to_owned(),
        }
        .into(),
        false => error,
    }
}

/// Sessions that people had anyway were not put into groups by chance, whatever the numbers say.
#[cfg(feature = "sessions")]
fn add_standing_cautions(summary: &mut Summary, sources: &[Source]) {
    if sources.iter().any(|source| source.logs.is_some()) {
        if sources.iter().all(|source| source.logs.is_some()) {
            let is_about_checks = |caution: &assize_contracts::Caution| {
                caution.code == assize_contracts::CautionCode::NothingChecked
            };
            summary.cautions.retain(|caution| !is_about_checks(caution));
            summary
                .cautions
                .insert(0, crate::commands::imported::not_judged());
        }
        summary
            .cautions
            .insert(0, crate::commands::imported::not_randomised());
    }
}

#[cfg(not(feature = "sessions"))]
fn add_standing_cautions(_: &mut Summary, _: &[Source]) {}

/// All files from one pass over the rows.
fn write(
    summary: &Summary,
    sources: &[Source],
    out: &Path,
    formats: Formats,
) -> Result<Vec<PathBuf>> {
    let title = title(sources);
    let mut written = Vec::new();
    let text = |name: &str, text: String| replace(&out.join(name), text.as_bytes());
    if formats.md {
        written.push(text("report.md", render_markdown(summary, &title))?);
    }
    let Passed { pages, tables } = pass(summary, sources, out, formats)?;
    if let Some(page) = pages.findings.filter(|page| !page.is_empty()) {
        written.push(text("analysis.md", page.render(&title))?);
    }
    if let Some(page) = pages.html {
        let mut file = Replacement::create(out.join("report.html"))?;
        let filled = page.write(&mut file, &title);
        filled.with_context(|| file.cannot_write())?;
        written.push(file.commit()?);
    }
    for table in tables {
        written.push(table.commit()?);
    }
    if formats.summary_json {
        let mut json = match formats.is_indented {
            true => serde_json::to_string_pretty(summary)?,
            false => serde_json::to_string(summary)?,
        };
        json.push('\n');
        written.push(text("data/summary.json", json)?);
    }
    if formats.junit {
        written.push(text("junit.xml", render_junit(summary, &title))?);
    }
    if formats.benchmark {
        for (name, direction) in [("smaller", Direction::Lower), ("bigger", Direction::Higher)] {
            let points = render_benchmark(summary, &title, direction);
            written.push(text(&format!("data/benchmark-{name}.json"), points)?);
        }
    }
    Ok(written)
}

/// The results of the pass over the rows.
struct Passed<'a> {
    pages: Pages<'a>,
    /// Complete files that are not in their places yet.
    tables: Vec<Replacement>,
}

/// Gives every row to the pages and tables that are wanted. Without any of them nothing is read.
fn pass<'a>(
    summary: &'a Summary,
    sources: &'a [Source],
    out: &Path,
    formats: Formats,
) -> Result<Passed<'a>> {
    let mut draft = PagesDraft::new(summary, sources, formats.html, formats.md)?;
    let table = |name: &str| Replacement::create(out.join("data").join(name));
    let mut csv = match formats.csv {
        true => {
            let file = table("results.csv")?;
            let columns = (&summary.extensions, &summary.catalog);
            Some(CsvWriter::new(file, columns.0, columns.1)?)
        }
        false => None,
    };
    let mut json = match formats.rows_json {
        true => Some(JsonArrayWriter::new(table("results.json")?)?),
        false => None,
    };
    if draft.wants_rows() || csv.is_some() || json.is_some() {
        each_row(sources, |source, row, text| {
            draft.add(source, row, text);
            if let Some(table) = &mut csv {
                table.write(row)?;
            }
            match &mut json {
                Some(array) => array.write(text),
                None => Ok(()),
            }
        })
        .with_context(|| format!("cannot write into `{}`", out.display()))?;
    }
    let csv = csv.map(CsvWriter::finish).transpose()?;
    let json = json.map(JsonArrayWriter::finish).transpose()?;
    Ok(Passed {
        pages: draft.finish()?,
        tables: csv.into_iter().chain(json).collect(),
    })
}

/// Every trial once, with the place of its source and its text.
fn each_row(
    sources: &[Source],
    mut visit: impl FnMut(usize, &Row<'_>, &[u8]) -> Result<(), ReportError>,
) -> Result<()> {
    let mut seen = SeenCells::default();
    for (place, source) in sources.iter().enumerate() {
        let Some(reader) = source.open()? else {
            continue;
        };
        read_rows(reader, |bytes| match Row::parse(bytes.json) {
            Ok(row) if seen.is_new(&row, source.suite.as_deref()) => visit(place, &row, bytes.json),
            // The summary has counted repeated and torn rows, and refused broken ones.
            _ => Ok(()),
        })?;
    }
    Ok(())
}

pub(super) fn title(sources: &[Source]) -> String {
    let mut names: Vec<String> = Vec::new();
    for source in sources {
        let file = || {
            let name = source.rows.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let name = source.suite.clone().unwrap_or_else(file);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Replaces a file by a text.
fn replace(path: &Path, text: &[u8]) -> Result<PathBuf> {
    let mut file = Replacement::create(path.to_owned())?;
    let written = file.write_all(text);
    written.with_context(|| file.cannot_write())?;
    file.commit()
}

/// A file that is written beside its place and then moved there, so that a reader never sees half of it.
struct Replacement {
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
}

impl Replacement {
    fn create(path: PathBuf) -> Result<Self> {
        let cannot = || format!("cannot write `{}`", path.display());
        let directory = path.parent().unwrap_or(Path::new("."));
        // Elsewhere reports are for others to read, too.
        let is_private = private::is_in_run(&path);
        let made = match is_private {
            true => private::directory(directory),
            false => std::fs::create_dir_all(directory),
        };
        made.with_context(cannot)?;
        // Two files may differ only in their extensions.
        let mut name = path.clone().into_os_string();
        name.push(".unfinished");
        let unfinished = PathBuf::from(name);
        let file = match is_private {
            true => private::file(&unfinished),
            false => File::create(&unfinished),
        };
        let file = BufWriter::new(file.with_context(cannot)?);
        Ok(Self {
            path,
            unfinished,
            file,
        })
    }

    fn cannot_write(&self) -> String {
        format!("cannot write `{}`", self.path.display())
    }

    fn commit(mut self) -> Result<PathBuf> {
        let flushed = self.file.flush();
        flushed
            .and_then(|()| std::fs::rename(&self.unfinished, &self.path))
            .with_context(|| self.cannot_write())?;
        Ok(self.path)
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_repeat_the_rows_are_written_for_small_runs_or_when_asked() {
        let tables = |formats: Formats| (formats.csv, formats.rows_json, formats.summary_json);
        assert_eq!(tables(Formats::closing(9_999)), (true, true, true));
        assert_eq!(tables(Formats::closing(10_000)), (false, false, true));
        let asked = Formats::asked(&[ReportFormat::All]);
        assert_eq!(tables(asked), (true, true, true));
        let only = Formats::asked(&[ReportFormat::Csv]);
        assert_eq!(tables(only), (true, false, false));
    }
}
