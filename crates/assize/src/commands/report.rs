//! `assize report`: the pages and tables of runs, or of rows from elsewhere.

use crate::cli::{ReportArguments, ReportFormat};
use crate::commands::baseline;
use crate::commands::pages;
use crate::commands::verdict::{self, Source, Wanted};
use crate::exit::Exit;
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
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn report(arguments: &ReportArguments, plugins: &Plugins) -> Result<Exit> {
    let sources = sources(arguments, plugins)?;
    let baseline = baseline::find(&arguments.against, &arguments.place, plugins)?;
    let wanted = Wanted {
        family: arguments.family.into(),
        ..Wanted::default()
    };
    let summary = match &sources[..] {
        [source] => verdict::judge(source, &source.gates()?, baseline.as_ref(), wanted)?,
        _ => verdict::summarize(
            &sources,
            &Analysis {
                family: wanted.family,
                ..sources[0].analysis.clone()
            },
        )?,
    };
    let out = match (&arguments.out, &sources[..]) {
        (Some(out), _) => out.clone(),
        (None, [Source { run: Some(run), .. }]) => RunFile::Report.within(run),
        (None, _) => PathBuf::from("report"),
    };
    let written = write(&summary, &sources, &out, &arguments.format)?;
    for pair in summary.decisive_pairs() {
        let line = closing_line(pair);
        line.into_iter().for_each(|line| print(plain(&line)));
    }
    print_gates(&summary.gates);
    print_cautions([&summary]);
    for path in written {
        print(plain(&path.display().to_string()));
    }
    Ok(Exit::Done)
}

/// Writes everything into the `report` directory of a run.
pub(crate) fn write_beside(summary: &Summary, sources: &[Source]) -> Result<()> {
    let Some(run) = sources.first().and_then(|source| source.run.as_ref()) else {
        return Ok(());
    };
    write(
        summary,
        sources,
        &RunFile::Report.within(run),
        &[ReportFormat::All],
    )?;
    Ok(())
}

fn sources(arguments: &ReportArguments, plugins: &Plugins) -> Result<Vec<Source>> {
    let last = ["last".to_owned()];
    let names = match arguments.sources.is_empty() {
        true => &last[..],
        false => &arguments.sources,
    };
    let find = |name: &String| Source::find(name, &arguments.place, plugins);
    names.iter().map(find).collect()
}

fn write(
    summary: &Summary,
    sources: &[Source],
    out: &Path,
    formats: &[ReportFormat],
) -> Result<Vec<PathBuf>> {
    let wants = |format| formats.contains(&ReportFormat::All) || formats.contains(&format);
    let mut written = Vec::new();
    if wants(ReportFormat::Md) {
        let page = render_markdown(summary, &title(sources));
        written.push(replace(&out.join("report.md"), |file| {
            Ok(file.write_all(page.as_bytes())?)
        })?);
    }
    if wants(ReportFormat::Md) {
        let page = pages::findings_page(summary, sources)?;
        if !page.is_empty() {
            let text = page.render(&title(sources));
            written.push(replace(&out.join("analysis.md"), |file| {
                Ok(file.write_all(text.as_bytes())?)
            })?);
        }
    }
    if wants(ReportFormat::Html) {
        written.push(replace(&out.join("report.html"), |file| {
            let page = pages::html_page(summary, sources)?;
            Ok(page.write(file, &title(sources))?)
        })?);
    }
    if wants(ReportFormat::Csv) {
        written.push(replace(&out.join("data/results.csv"), |file| {
            let mut table = CsvWriter::new(file, &summary.extensions, &summary.catalog)?;
            each_row(sources, |_, row, json| table.write(row, json))?;
            table.finish()?;
            Ok(())
        })?);
    }
    if wants(ReportFormat::Json) {
        written.push(replace(&out.join("data/results.json"), |file| {
            let mut array = JsonArrayWriter::new(file)?;
            each_row(sources, |_, _, json| array.write(json))?;
            array.finish()?;
            Ok(())
        })?);
        written.push(replace(&out.join("data/summary.json"), |file| {
            serde_json::to_writer_pretty(&mut *file, summary)?;
            Ok(file.write_all(b"\n")?)
        })?);
    }
    if wants(ReportFormat::Junit) {
        let text = render_junit(summary, &title(sources));
        written.push(replace(&out.join("junit.xml"), |file| {
            Ok(file.write_all(text.as_bytes())?)
        })?);
    }
    if formats.contains(&ReportFormat::Benchmark) {
        for (name, direction) in [("smaller", Direction::Lower), ("bigger", Direction::Higher)] {
            let text = render_benchmark(summary, &title(sources), direction);
            let path = out.join(format!("data/benchmark-{name}.json"));
            written.push(replace(&path, |file| Ok(file.write_all(text.as_bytes())?))?);
        }
    }
    Ok(written)
}

/// Every trial once, with the place of its source and the text it stands in.
pub(super) fn each_row(
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

/// Writes a file beside its place and moves it there, so that a reader never sees half of it.
fn replace(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<PathBuf> {
    let cannot = || format!("cannot write `{}`", path.display());
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).with_context(cannot)?;
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished).with_context(cannot)?);
    fill(&mut file).with_context(cannot)?;
    file.flush().with_context(cannot)?;
    std::fs::rename(&unfinished, path).with_context(cannot)?;
    Ok(path.to_owned())
}
