//! A metric is a value: a run whose metrics have other names, with the same entries in its catalog, is read the same.

use crate::stored_runs::stored;
use crate::support::Suite;
use assize_contracts::{Catalog, Metric, RowField};
use assize_engine::store::RunDirectory;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// New names by old ones.
type Names = BTreeMap<String, String>;

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The metrics of the stored run: those of its catalog, of the fields of rows, and of the categories of tools.
fn catalog(run: &Path, rows: &[Value]) -> Catalog {
    let mut catalog = RunDirectory::open(run).unwrap().manifest().catalog();
    let fields = RowField::ALL.map(|field| Metric::built_in(field.name()).unwrap().clone());
    let categories = rows
        .iter()
        .filter_map(|row| row["toolCalls"]["byCategory"].as_object())
        .flat_map(Map::keys)
        .map(|category| Metric::tool_category(category));
    let extensions = rows
        .iter()
        .filter_map(|row| row["extensions"].as_object())
        .flat_map(Map::keys)
        .map(|name| catalog.metric(name).into_owned())
        .collect::<Vec<_>>();
    catalog.merge(
        &fields
            .into_iter()
            .chain(categories)
            .chain(extensions)
            .collect(),
    );
    catalog
}

/// Random names in the same order and of the same length, so that nothing but the names differs in a table.
fn names(catalog: &Catalog, letters: &str) -> Names {
    let mut letters = letters.chars().cycle();
    let known: BTreeSet<&str> = catalog.iter().map(|metric| &*metric.name).collect();
    let mut names = Names::new();
    for (number, name) in known.iter().enumerate() {
        // A label and the expected one belong together by their names.
        let of = known
            .iter()
            .find(|label| Metric::expected_name(label) == **name);
        let new = match of {
            Some(label) => Metric::expected_name(&names[*label]),
            None => {
                let place = [b'a' + (number / 26) as u8, b'a' + (number % 26) as u8];
                let place = place.map(char::from).into_iter();
                place.chain(&mut letters).take(name.len()).collect()
            }
        };
        names.insert((*name).to_owned(), new);
    }
    names
}

/// Every whole word that is a name, changed.
fn rename_text(text: &str, names: &Names) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let mut renamed = String::with_capacity(text.len());
    let mut word = String::new();
    for letter in text.chars().chain(['\0']) {
        if is_part(letter) {
            word.push(letter);
            continue;
        }
        let name = word.trim_end_matches('.');
        renamed.push_str(names.get(name).map_or(name, String::as_str));
        renamed.push_str(&word[name.len()..]);
        word.clear();
        if letter != '\0' {
            renamed.push(letter);
        }
    }
    renamed
}

/// Changes names in a value, as keys and as words.
fn rename_value(value: &Value, names: &Names) -> Value {
    match value {
        Value::String(text) => Value::String(rename_text(text, names)),
        Value::Array(items) => items.iter().map(|item| rename_value(item, names)).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, item)| (rename_text(key, names), rename_value(item, names)))
            .collect(),
        other => other.clone(),
    }
}

/// A stored run as it was.
struct Stored {
    manifest: Value,
    rows: Vec<Value>,
    catalog: Catalog,
}

impl Stored {
    fn of(suite: &Suite) -> Self {
        let (run, rows) = (suite.run_directory(), suite.rows());
        Self {
            manifest: read(&run.join("manifest.json")),
            catalog: catalog(&run, &rows),
            rows,
        }
    }
}

/// Writes the run again with its catalog, under these names.
fn rename(suite: &Suite, stored: &Stored, names: &Names) {
    let run = suite.run_directory();
    let mut manifest = stored.manifest.clone();
    let renamed: Catalog = stored
        .catalog
        .iter()
        .map(|metric| Metric {
            name: names[&*metric.name].clone().into(),
            ..metric.clone()
        })
        .collect();
    manifest["metrics"] = serde_json::to_value(&renamed).unwrap();
    manifest["metricUnits"] = Value::Object(Map::new());
    for part in ["analysis", "gates"] {
        let renamed = rename_value(&manifest["provenance"][part], names);
        manifest["provenance"][part] = renamed;
    }
    std::fs::write(run.join("manifest.json"), manifest.to_string()).unwrap();
    let row = |row: &Value| {
        let mut row = row.clone();
        row["extensions"] = rename_value(&row["extensions"], names);
        row.to_string() + "\n"
    };
    let rows: String = stored.rows.iter().map(row).collect();
    std::fs::write(run.join("rows.jsonl"), rows).unwrap();
}

/// All output about a run: tables, verdicts, gates, and the pages with their charts.
fn said(suite: &Suite) -> Vec<(&'static str, String)> {
    let run = suite.run_directory();
    let formats = ["report", "last", "--format", "all", "--format", "benchmark"];
    let told = suite.done(&formats);
    let mut said = vec![("report", told)];
    said.push(("runs show", suite.done(&["runs", "show", "last"])));
    said.push(("compare", suite.done(&["compare", "last", "--verbose"])));
    said.push(("compare json", suite.done(&["compare", "last", "--json"])));
    let gates = ["gate", "last", "--json", "--gate", "success >= 0.5"];
    said.push(("gate", suite.assize(&gates).stdout));
    said.push(("gates of the suite", suite.assize(&["gate", "last"]).stdout));
    for file in [
        "report.md",
        "report.html",
        "data/summary.json",
        "data/results.csv",
        "data/benchmark-smaller.json",
        "data/benchmark-bigger.json",
    ] {
        let text = std::fs::read_to_string(run.join("report").join(file)).unwrap();
        said.push((file, text.replace(suite.path().to_str().unwrap(), "")));
    }
    said
}

fn letters() -> impl Strategy<Value = String> {
    "[a-z0-9]{40,60}"
}

#[test]
fn a_run_with_renamed_metrics_is_read_the_same() {
    let mut runner = TestRunner::deterministic();
    for run in ["complete", "plugin", "lab", "limits"] {
        let suite = stored(run);
        let before = said(&suite);
        let stored = Stored::of(&suite);
        for _ in 0..2 {
            let letters = letters().new_tree(&mut runner).unwrap().current();
            let names = names(&stored.catalog, &letters);
            let back: Names = names
                .iter()
                .map(|(old, new)| (new.clone(), old.clone()))
                .collect();
            rename(&suite, &stored, &names);
            for ((what, before), (_, after)) in before.iter().zip(said(&suite)) {
                assert_same(before, &rename_text(&after, &back), run, what);
            }
        }
    }
}

fn assert_same(before: &str, after: &str, run: &str, what: &str) {
    if before == after {
        return;
    }
    let difference = before
        .lines()
        .zip(after.lines())
        .find(|(before, after)| before != after);
    panic!("{run}, {what}: {difference:#?}");
}
