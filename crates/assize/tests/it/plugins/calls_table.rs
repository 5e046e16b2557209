//! The table of calls in docs/plugins.md, held against the code and against what plugins see.

use super::promises::{notes, suite_of};
use assize_plugins::{CALL_KINDS, CallLimits};
use serde_json::Value;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../../docs/plugins.md");

const PROTOCOL: &str = include_str!("../../../../../schemas/plugin-protocol.schema.json");

struct Line {
    method: &'static str,
    called: &'static str,
    takes: &'static str,
    at_once: &'static str,
}

fn table() -> Vec<Line> {
    let start = PAGE.find("| method | called |").unwrap();
    let lines = PAGE[start..].lines().skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let line = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [method, called, _, takes, at_once] = cells[..] else {
            panic!("{line}");
        };
        Line {
            method: method.trim_matches('`'),
            called,
            takes,
            at_once,
        }
    };
    lines.map(line).collect()
}

#[test]
fn every_method_stands_in_the_table_with_the_limit_that_it_has() {
    let protocol: Value = serde_json::from_str(PROTOCOL).unwrap();
    let methods = protocol["x-methods"].as_object().unwrap().keys();
    let mut methods: Vec<&str> = methods
        .map(String::as_str)
        .filter(|method| !method.starts_with('$'))
        .collect();
    let mut told: Vec<&str> = table().iter().map(|line| line.method).collect();
    methods.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, methods);
    for Line { method, takes, .. } in table() {
        let kind = CALL_KINDS.iter().find(|kind| {
            let mut names = kind.methods.iter();
            names.any(|name| method == *name || name.ends_with('/') && method.starts_with(name))
        });
        let limit = kind.map(|kind| {
            let limit = CallLimits::default().of(method).unwrap().as_secs();
            let limit = match limit % 60 == 0 && limit > 60 {
                true => format!("{} min", limit / 60),
                false => format!("{limit} s"),
            };
            format!("{limit} (`{}`)", kind.key)
        });
        let limit = limit.as_deref().unwrap_or("the time limit of the trial");
        assert_eq!(takes, limit, "{method}");
    }
}

/// Notes the beginning and the end of every call, and lets it last a while.
const SEEN: &str = "
import contextlib

@contextlib.contextmanager
def seen(method, seconds=0.3):
    note('begin ' + method)
    time.sleep(seconds)
    yield
    note('end ' + method)
";

const ALL: &str = "
class Watched(Mine):
    concurrency = 'any'

    def init(self, config):
        with seen('provider/init'): pass

    def create_session(self, params):
        with seen('provider/createSession'): return super().create_session(params)

    def prompt(self, handle, text, timeout_ms):
        with seen('provider/prompt'): return super().prompt(handle, text, timeout_ms)

    def export_session(self, handle):
        with seen('provider/exportSession'): return super().export_session(handle)

    def destroy_session(self, handle):
        with seen('provider/destroySession'): pass

    def shutdown(self):
        with seen('provider/shutdown'): pass

plugin.add(Watched())

@plugin.collector('counting')
def count(result, scenario, mode, trace):
    with seen('collector/collect'): return []

@plugin.analyzer('looking')
def look(trace, scenario, mode):
    with seen('analyzer/analyze'): return {'analyzer': 'looking', 'findings': {}, 'summary': ''}

@plugin.scorer('judging')
def judge(scenario, context):
    with seen('scorer/evaluate'):
        return {'success': True, 'passed': 1, 'total': 1, 'details': [], 'outputValid': True}

@plugin.mode_resolver
def resolve(mode):
    with seen('modeResolver/resolve'):
        return {'environment': {}, 'systemInstructions': '', 'providerOverrides': {}}

def hook(event):
    def hooked(context):
        with seen('hooks/' + event, 0.05): pass
    plugin.hook(event)(hooked)

for event in ['beforeRun', 'beforeMode', 'beforeScenario', 'afterScenario', 'afterMode', 'afterRun']:
    hook(event)
";

const LAB: &str = "
class Shout(Runner):
    id, type, version = 'shout', 'shout', '1'

    def execute(self, task, config):
        with seen('runner/execute'): pass
        now = '2026-01-01T00:00:00Z'
        return {'id': '', 'taskId': task['id'], 'taskType': 'atomic', 'status': 'completed', 'output': 'x',
                'metrics': {'latency': 1}, 'trace': [], 'startedAt': now,
                'provenance': {'runnerId': 'shout', 'runnerVersion': '1', 'config': {}}}

class Look(Evaluator):
    id, metrics = 'look', ['seen']

    def evaluate(self, run, task):
        with seen('evaluator/evaluate'): return []

    def evaluate_scenario(self, run, task):
        with seen('evaluator/evaluateScenario'): return []

plugin.add(Shout(), Look())
";

/// The number of calls of each method, and the most that were under way at once.
fn counted(notes: &[String], calls: &mut BTreeMap<String, (usize, i32)>) {
    let mut open = BTreeMap::<&str, i32>::new();
    for note in notes {
        let Some((what, method)) = note.split_once(' ').filter(|(_, name)| name.contains('/'))
        else {
            continue;
        };
        let now = open.entry(method).or_default();
        *now += if what == "begin" { 1 } else { -1 };
        let (count, most) = calls.entry(method.to_owned()).or_default();
        *count += usize::from(what == "begin");
        *most = (*most).max(*now);
    }
}

#[test]
fn plugins_are_called_as_often_and_as_many_at_once_as_the_table_says() {
    let mut calls = BTreeMap::new();
    let suite = suite_of(
        &format!("{SEEN}{ALL}"),
        "",
        "modes: [plain, other]\nmode_resolver: plug\nhooks: plug\ncollectors: [counting]\nanalyzers: [looking]\n\
         scorer: { uses: judging }\nexecution: { repetitions: 2, warmup: false, concurrency: 4 }",
    );
    suite.done(&["run", "-q"]);
    assert_eq!(suite.rows().len(), 8);
    counted(&notes(&suite), &mut calls);

    let lab = suite_of(
        &format!("{SEEN}{LAB}"),
        "",
        "modes: { plain: {} }\ntasks: { paths: [chains.json] }\nrunners: [{ id: loud, uses: shout, type: shout }]\n\
         evaluators: [{ id: look, uses: look }]\nexecution: { repetitions: 2, warmup: false, concurrency: 4 }",
    );
    let text = std::fs::read_to_string(lab.path().join("assize.yaml")).unwrap();
    let without_sessions = text
        .lines()
        .filter(|line| !line.starts_with("provider:") && !line.starts_with("scenarios:"))
        .collect::<Vec<_>>();
    lab.write("assize.yaml", without_sessions.join("\n"));
    let step = |id: &str| serde_json::json!({"id": id, "name": id, "type": "shout", "input": "x", "metadata": {}});
    let chain = |id: &str| {
        serde_json::json!({"id": id, "name": id, "description": "", "metadata": {}, "input_map": {},
        "steps": [step("one"), step("two")]})
    };
    let chains = serde_json::json!([chain("a"), chain("b"), chain("c")]);
    lab.write("chains.json", chains.to_string());
    lab.done(&["run", "-q"]);
    assert_eq!(lab.rows().len(), 6);
    counted(&notes(&lab), &mut calls);

    for Line {
        method,
        called,
        at_once,
        ..
    } in table()
    {
        let times = match called {
            "once per run" => 1,
            "once per mode" => 2,
            "once per attempt" => 8,
            "once per step" => 12,
            "once per chain" => 6,
            "once per start" => continue,
            other => panic!("{method}: {other}"),
        };
        let (count, most) = calls.get(method).copied().unwrap_or_default();
        assert_eq!(count, times, "{method}");
        match at_once {
            "1" => assert_eq!(most, 1, "{method}"),
            "sessions" | "trials" => assert!((2..=4).contains(&most), "{method}: {most} at once"),
            other => panic!("{method}: {other}"),
        }
    }
}
