use super::*;
use crate::suite::file::SampleSpec;
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self
    }

    fn read(&self, names: &[&str], spec: &TasksSpec) -> Result<DataSet, Vec<FileError>> {
        self.read_chosen(names, spec, &TaskSelection::default())
    }

    fn read_chosen(
        &self,
        names: &[&str],
        spec: &TasksSpec,
        chosen: &TaskSelection,
    ) -> Result<DataSet, Vec<FileError>> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
        let reading = Reading {
            spec,
            chosen,
            taken: Vec::new(),
            seed: 1,
            only_type: Some("intent"),
        };
        DataSet::read(&paths, &reading, |_| Vec::new())
    }
}

fn ids(set: &DataSet) -> Vec<String> {
    let ids = (0..set.len()).map(|number| set.load(number).unwrap().id().to_owned());
    ids.collect()
}

fn spec(json: serde_json::Value) -> TasksSpec {
    serde_json::from_value(json).unwrap()
}

const LINES: &str = "{\"id\":\"a\",\"input\":\"x\"}\n\n{\"id\":\"b\",\"input\":{\"t\":1},\"metadata\":{\"tags\":[\"hot\"],\"priority\":3}}\n{\"id\":\"c\",\"input\":\"z\"}";

#[test]
fn the_same_tasks_in_any_format_have_the_same_content() {
    let files = Files::new()
        .with("t.jsonl", LINES)
        .with(
            "t.yaml",
            "- { id: a, input: x }\n- { id: b, input: { t: 1 }, metadata: { tags: [hot], priority: 3 } }\n- { id: c, input: z }\n",
        )
        .with(
            "t.json",
            r#"{"tasks":[{"id":"a","input":"x"},{"id":"b","input":{"t":1},"metadata":{"tags":["hot"],"priority":3}},{"id":"c","input":"z"}]}"#,
        );
    let all: Vec<DataSet> = ["t.jsonl", "t.yaml", "t.json"]
        .map(|name| files.read(&[name], &TasksSpec::default()).unwrap())
        .into();
    for set in &all {
        assert_eq!(ids(set), ["a", "b", "c"]);
        assert_eq!(set.priorities(), [0, 3, 0]);
        assert_eq!(set.hash(), all[0].hash());
    }
}

#[test]
fn columns_go_where_the_mapping_says() {
    let files = Files::new().with(
        "t.csv",
        "ticket,body,label,sure,urgent\nT-1,\"two\nlines, quoted\",book,0.9,7\nT-2,short,cancel,,\n",
    );
    let mapping = spec(serde_json::json!({"mapping": {
        "id": "ticket", "input.text": "body", "expected.intent": "label",
        "expected.confidence": {"column": "sure", "as": "number"}, "metadata.priority": "urgent",
    }}));
    let set = files.read(&["t.csv"], &mapping).unwrap();
    assert_eq!(ids(&set), ["T-1", "T-2"]);
    let Task::Atomic(first) = (*set.load(0).unwrap()).clone() else {
        panic!("an atomic task")
    };
    assert_eq!(
        first.input,
        serde_json::json!({"text": "two\nlines, quoted"})
    );
    assert_eq!(
        first.expected,
        Some(serde_json::json!({"intent": "book", "confidence": 0.9}))
    );
    assert_eq!(
        (first.r#type.as_str(), first.metadata.priority),
        ("intent", Some(7))
    );
}

#[test]
fn a_task_without_an_id_gets_one_from_its_content() {
    let files = Files::new()
        .with("t.csv", "input,expected\nx,1\ny,2\n")
        .with("u.csv", "input,expected\ny,2\nx,1\n");
    let set = |name| files.read(&[name], &TasksSpec::default()).unwrap();
    let (t, u) = (ids(&set("t.csv")), ids(&set("u.csv")));
    assert!(t[0].starts_with("t-") && t[0] != t[1], "{t:?}");
    let tail = |id: &String| id[1..].to_owned();
    assert_eq!(
        t.iter().map(tail).collect::<Vec<_>>(),
        [tail(&u[1]), tail(&u[0])]
    );
}

#[test]
fn a_sample_depends_on_ids_and_seed_not_on_the_order() {
    let line = |number: usize| format!("{{\"id\":\"t{number}\",\"input\":{number}}}\n");
    let forward: String = (0..500).map(line).collect();
    let backward: String = (0..500).rev().map(line).collect();
    let files = Files::new()
        .with("f.jsonl", &forward)
        .with("b.jsonl", &backward);
    let sampled = |name: &str, seed| {
        let sample = Some(SampleSpec {
            n: 20,
            seed: Some(seed),
        });
        let spec = TasksSpec {
            sample,
            ..TasksSpec::default()
        };
        let mut ids = ids(&files.read(&[name], &spec).unwrap());
        ids.sort();
        ids
    };
    assert_eq!(sampled("f.jsonl", 7).len(), 20);
    assert_eq!(sampled("f.jsonl", 7), sampled("b.jsonl", 7));
    assert_ne!(sampled("f.jsonl", 7), sampled("f.jsonl", 8));
}

#[test]
fn tags_and_ids_choose() {
    let files = Files::new().with("t.jsonl", LINES);
    let chosen = |ids: &[&str], tags: &[&str]| TaskSelection {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    };
    let read = |chosen| files.read_chosen(&["t.jsonl"], &TasksSpec::default(), &chosen);
    assert_eq!(ids(&read(chosen(&[], &["hot"])).unwrap()), ["b"]);
    assert_eq!(ids(&read(chosen(&["c", "a"], &[])).unwrap()), ["a", "c"]);
    let errors = read(chosen(&["d"], &[])).err().unwrap();
    assert_eq!(errors[0].message, "unknown task or scenario `d`");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let check = |text: &str, expected: &str| {
        let files = Files::new().with("t.jsonl", text);
        let errors = files
            .read(&["t.jsonl"], &TasksSpec::default())
            .err()
            .unwrap();
        let shown: Vec<String> = errors
            .iter()
            .map(|error| {
                format!(
                    "{}: {} {:?}",
                    error.place.unwrap().line,
                    error.message,
                    error.hint
                )
            })
            .collect();
        assert!(shown[0].contains(expected), "{shown:?}");
    };
    check(
        "{\"id\":\"a\",\"input\":1}\n{\"id\":\"a\",\"input\":2}\n",
        "2: the task id `a` is given twice",
    );
    check("\n{\"id\":\"a\"}\n", "2: missing field `input`");
    check("{oops}\n", "1: not JSON");
    check("{\"id\":\"\",\"input\":1}\n", "1: `id`: found the id \"\"");
    check("[1]\n", "1: expected a task");
    check(
        "{\"id\":\"a\",\"input\":1,\"expectd\":2}\n",
        "unknown field `expectd` Some(\"did you mean `expected`? fields of a module's own belong into `extensions`\")",
    );
}

proptest::proptest! {
    #[test]
    fn any_file_is_read_or_refused(text in "[\\[\\]{}\",:a-z0-9\\n -]{0,200}", name in "t\\.(jsonl|csv|yaml|json|toml)") {
        let files = Files::new().with(&name, &text);
        if let Ok(set) = files.read(&[&name], &TasksSpec::default()) {
            for number in 0..set.len() {
                let _ = set.load(number);
            }
        }
    }
}
