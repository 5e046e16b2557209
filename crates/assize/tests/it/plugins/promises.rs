//! The promises of the specification to plugin authors, tried with plugins written from its words.

use super::{PRELUDE, sdk};
use crate::support::{Outcome, Suite, assize};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A suite whose provider is this plugin. `plugin_keys` and `keys` are more lines for its entry and for the suite.
pub(super) fn suite_of(plugin: &str, plugin_keys: &str, keys: &str) -> Suite {
    let suite = Suite::of(&format!(
        "provider: {{ uses: mine }}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\n{keys}\n\
         plugins:\n  - id: plug\n    command: [python3, plugin.py]\n    environment: {{ PYTHONPATH: '{}' }}\n{plugin_keys}\n",
        sdk("python").display()
    ));
    suite.write(
        "plugin.py",
        format!("{PRELUDE}{PROVIDER}{plugin}\nplugin.serve()\n"),
    );
    suite
}

/// A provider whose steps leave lines in the file `notes`.
const PROVIDER: &str = "
import json, subprocess, time

HOME = os.path.dirname(os.path.abspath(__file__))

def note(text):
    with open(os.path.join(HOME, 'notes'), 'a') as file:
        file.write(text + '\\n')

def summary():
    return {'totalTurns': 0, 'totalToolCalls': 0, 'totalTokens': {}, 'totalDuration': None}

class Mine(Provider):
    id = 'mine'
    may_cost = False

    def create_session(self, params):
        note(f\"create {os.getpid()}\")
        name = f\"{params['mode']}-{params['scenarioId']}-{params['iteration']}\"
        return {'sessionId': name, 'provider': 'mine', 'createdAt': '2026-01-01T00:00:00Z'}

    def prompt(self, handle, text, timeout_ms):
        return {'text': 'done', 'completionReason': 'stop', 'metrics': {}}

    def export_session(self, handle):
        return {'sessionId': handle['sessionId'], 'events': [], 'turns': [], 'summary': summary()}

    def destroy_session(self, handle):
        note(f\"destroy {os.getpid()}\")

plugin.add(Mine())
";

pub(super) fn notes(suite: &Suite) -> Vec<String> {
    let text = std::fs::read_to_string(suite.path().join("notes")).unwrap();
    text.lines().map(str::to_owned).collect()
}

const ONE_TRIAL: &str =
    "modes: { plain: {} }\nexecution: { repetitions: 1, warmup: false }\nhooks: plug";

/// "A slow `beforeScenario` hook delays the start of the iteration."
#[test]
fn no_session_starts_while_a_hook_that_took_too_long_still_runs() {
    let hook = "
@plugin.hook('beforeScenario')
def before(context):
    note('hook begins')
    time.sleep(2.5)
    note('hook ends')
";
    let suite = suite_of(hook, "    timeouts: { hooks: 500 }", ONE_TRIAL);
    suite.done(&["run", "-q", "--scenario", "one"]);
    let notes = notes(&suite);
    assert_eq!(notes[..2], ["hook begins", "hook ends"], "{notes:?}");
    assert!(notes[2].starts_with("create "), "{notes:?}");
    let row = &suite.rows()[0];
    assert_eq!(row["outcome"], "pass");
    let error = row["hookErrors"].to_string();
    assert!(
        error.contains("did not answer `hooks/beforeScenario` within 500 ms"),
        "{error}"
    );
}

#[test]
fn a_hook_that_never_ends_is_ended_with_its_program() {
    let hook = "
@plugin.hook('beforeScenario')
def before(context):
    note('hook begins')
    time.sleep(600)
    note('hook ends')
";
    let suite = suite_of(hook, "    timeouts: { hooks: 300 }", ONE_TRIAL);
    suite.done(&["run", "-q", "--scenario", "one"]);
    assert_eq!(suite.rows()[0]["outcome"], "pass");
    let log = std::fs::read_to_string(suite.run_directory().join("plugins/plug.log")).unwrap();
    assert!(
        log.contains("did not stop `hooks/beforeScenario` and had to be ended"),
        "{log}"
    );
}

#[test]
fn a_limit_of_zero_is_none_and_a_misspelt_one_is_found() {
    let slow = "
@plugin.hook('beforeScenario')
def before(context):
    time.sleep(1.2)
";
    let suite = suite_of(
        slow,
        "    timeout_ms: 800\n    timeouts: { hooks: 0, initialize: 60000 }",
        ONE_TRIAL,
    );
    suite.done(&["run", "-q", "--scenario", "one"]);
    assert!(suite.rows()[0].get("hookErrors").is_none());
    let suite = suite_of("", "    timeouts: { hoks: 1 }", ONE_TRIAL);
    let outcome = suite.assize(&["check"]);
    assert!(outcome.stderr.contains("hooks"), "{outcome:#?}");
}

#[test]
fn a_wait_is_shown_while_it_lasts() {
    let slow = "
@plugin.hook('beforeScenario')
def before(context):
    time.sleep(11)
";
    let suite = suite_of(slow, "", ONE_TRIAL);
    let outcome = suite.assize(&["run", "--scenario", "one"]);
    assert!(
        outcome.stderr.contains("hook beforeScenario: 10 s"),
        "{outcome:#?}"
    );
}

const MANY: &str = "modes: { plain: {}, other: {} }\n\
    execution: { repetitions: 3, warmup: false, concurrency: 8 }";

const SLOW_PROMPT: &str = "
Mine.prompt = lambda self, handle, text, timeout_ms: (
    time.sleep(0.1), {'text': 'done', 'completionReason': 'stop', 'metrics': {}})[1]
";

/// The most sessions that one process had at once, and how many processes there were.
fn sessions(notes: &[String]) -> (i32, usize) {
    let mut open = std::collections::BTreeMap::<&str, i32>::new();
    let mut most = 0;
    for note in notes {
        let (what, process) = note.split_once(' ').unwrap();
        let count = open.entry(process).or_default();
        *count += if what == "create" { 1 } else { -1 };
        most = most.max(*count);
    }
    (most, open.len())
}

/// "The runner calls provider methods in a strict sequence."
#[test]
fn a_provider_that_declares_nothing_gets_one_session_at_a_time_and_that_is_said_once() {
    let suite = suite_of(SLOW_PROMPT, "", MANY);
    let outcome = suite.assize(&["run"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(
        sessions(&notes(&suite)),
        (1, 2),
        "one process for each mode"
    );
    let said = "provider `mine` declares one session at a time per instance, so a concurrency of 8";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{outcome:#?}");
}

#[test]
fn a_provider_gets_as_many_sessions_at_once_as_it_declares() {
    for (declared, most) in [("2", 2), ("'any'", 3)] {
        let plugin = format!("{SLOW_PROMPT}\nMine.concurrency = {declared}\n");
        let suite = suite_of(&plugin, "", MANY);
        let outcome = suite.assize(&["run"]);
        let (found, _) = sessions(&notes(&suite));
        assert!((2..).contains(&found), "{declared}: {found}");
        assert!(found <= most.max(6), "{declared}: {found}");
        assert_eq!(
            outcome.stderr.contains("declares"),
            declared == "2",
            "{outcome:#?}"
        );
    }
    // The whole plugin may say it, too.
    let suite = suite_of(
        &format!("{SLOW_PROMPT}\nplugin.concurrency = 'any'\n"),
        "",
        MANY,
    );
    suite.done(&["run", "-q"]);
    assert!(sessions(&notes(&suite)).0 >= 2);
}

/// "`workdir`: Working directory for the agent", also for a suite that lies elsewhere.
#[test]
fn the_workdir_is_absolute_wherever_the_suite_lies() {
    let plugin = "
Mine.init = lambda self, config: note('init ' + config['workdir'])
Mine.create_session = lambda self, params: (
    note('create ' + params['workdir']),
    {'sessionId': params['scenarioId'], 'provider': 'mine', 'createdAt': '2026-01-01T00:00:00Z'})[1]
";
    let suite = suite_of(
        plugin,
        "",
        "modes: { plain: {} }\nexecution: { repetitions: 1, warmup: false }",
    );
    let home = suite.path().canonicalize().unwrap();
    let (outside, name) = (home.parent().unwrap(), home.file_name().unwrap());
    let output = assize(outside)
        .args(["run", "-q", "--scenario", "one"])
        .arg(name)
        .output()
        .unwrap();
    let outcome = Outcome::from(output);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let expected = home.display().to_string();
    for note in notes(&suite).iter().filter(|note| !note.starts_with("des")) {
        let (_, workdir) = note.split_once(' ').unwrap();
        assert_eq!(workdir, expected, "{note}");
    }
}

/// "`environment` values are set as process-level environment variables for the duration of the mode."
#[test]
fn a_modes_environment_reaches_every_process_started_for_it() {
    let plugin = "
def prompt(self, handle, text, timeout_ms):
    # An agent that inherits the environment of whoever starts it.
    said = subprocess.run(['sh', '-c', 'echo $FLAVOUR'], capture_output=True, text=True).stdout
    return {'text': said, 'completionReason': 'stop', 'metrics': {}}
Mine.prompt = prompt
Mine.scope = plugin_scope
";
    for scope in ["mode", "single"] {
        let plugin = format!("plugin_scope = '{scope}'\n{plugin}");
        let suite = suite_of(
            &plugin,
            "",
            "modes:\n  sweet: { environment: { FLAVOUR: sugar } }\n  plain: {}\n\
             hooks:\n  before_scenario: 'echo \"scenario-$FLAVOUR\" >> hooks'\n  after_mode: 'echo \"mode-$FLAVOUR\" >> hooks'\n\
             execution: { repetitions: 1, warmup: false }",
        );
        suite.write("fixture/empty.txt", "");
        suite.write(
            "scenarios/one.yaml",
            "id: one\nprompt: taste\nworkspace: { from: fixture, setup: ['echo $FLAVOUR > setup.txt'] }\n\
             checks:\n- output: { matches: '^sugar\\n$' }\n- file: { path: setup.txt, contains: sugar }\n\
             - command: { run: 'test \"$FLAVOUR\" = sugar' }\n",
        );
        suite.done(&["run", "-q", "--scenario", "one"]);
        let rows = suite.rows();
        let passed = |mode: &str| {
            let row = rows.iter().find(|row| row["mode"] == mode).unwrap();
            row["checkpointsPassed"].as_u64().unwrap()
        };
        assert_eq!((passed("sweet"), passed("plain")), (3, 0), "{rows:#?}");
        let hooks = std::fs::read_to_string(suite.path().join("hooks")).unwrap();
        assert_eq!(
            hooks.lines().collect::<Vec<_>>(),
            ["scenario-sugar", "mode-sugar", "scenario-", "mode-"],
            "{scope}"
        );
    }
}

#[test]
fn what_a_provider_puts_into_a_handle_comes_back() {
    let plugin = "
def create_session(self, params):
    return {'sessionId': 's', 'provider': 'mine', 'createdAt': '2026-01-01T00:00:00Z', 'token': {'deep': [7]}}
Mine.create_session = create_session
Mine.prompt = lambda self, handle, text, timeout_ms: (
    {'text': json.dumps(handle['token']), 'completionReason': 'stop', 'metrics': {}})
Mine.destroy_session = lambda self, handle: note('destroy ' + json.dumps(handle['token']))
";
    let suite = suite_of(
        plugin,
        "",
        "modes: { plain: {} }\nexecution: { repetitions: 1, warmup: false }",
    );
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: x\nchecks: [ { output: { equals: '{\"deep\": [7]}' } } ]\n",
    );
    suite.done(&["run", "-q", "--scenario", "one"]);
    assert_eq!(suite.rows()[0]["outcome"], "pass", "{}", suite.rows()[0]);
    assert_eq!(notes(&suite), ["destroy {\"deep\": [7]}"]);
}

/// "When called during execution: … once per iteration."
#[test]
fn the_scorer_runs_also_after_a_tool_limit() {
    let plugin = "
Mine.prompt = lambda self, handle, text, timeout_ms: (
    {'text': 'half', 'completionReason': 'tool_limit', 'metrics': {}})
@plugin.scorer('half')
def half(scenario, context):
    note('scored ' + context['agentOutput'])
    details = [{'id': 'a', 'description': 'first half', 'passed': True},
               {'id': 'b', 'description': 'second half', 'passed': False}]
    return {'success': False, 'passed': 1, 'total': 2, 'details': details, 'outputValid': True}
";
    let suite = suite_of(
        plugin,
        "",
        "modes: { plain: {} }\nscorer: { uses: half }\nexecution: { repetitions: 1, warmup: false }",
    );
    suite.done(&["run", "-q", "--scenario", "one"]);
    let row: Value = suite.rows().remove(0);
    assert_eq!(row["outcome"], "fail");
    assert_eq!(row["errorCode"], "tool_limit");
    assert_eq!(
        (
            row["checkpointsPassed"].as_u64(),
            row["checkpointsTotal"].as_u64()
        ),
        (Some(1), Some(2))
    );
    assert_eq!(
        notes(&suite)
            .iter()
            .filter(|note| *note == "scored half")
            .count(),
        1
    );
}

/// "Duplicate names cause the last-written value to win": its unit and direction are kept with it.
#[test]
fn the_unit_of_a_duplicated_metric_is_that_of_the_value_that_is_kept() {
    let plugin = "
@plugin.collector('first')
def first(result, scenario, mode, trace):
    return [{'name': 'size', 'value': 2, 'unit': 'pages', 'better': 'higher'}]

@plugin.collector('second')
def second(result, scenario, mode, trace):
    return [{'name': 'size', 'value': 4096, 'unit': 'bytes'}]
";
    let suite = suite_of(
        plugin,
        "",
        "modes: { plain: {} }\ncollectors: [first, second]\nexecution: { repetitions: 2, warmup: false }",
    );
    let outcome = suite.assize(&["run"]);
    assert_eq!(suite.rows()[0]["extensions"]["size"], 4096);
    let manifest = std::fs::read(suite.run_directory().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["metricUnits"]["size"], "bytes", "{manifest:#}");
    let metrics = manifest["metrics"].as_array().unwrap();
    let size = metrics.iter().find(|metric| metric["name"] == "size");
    assert_eq!(size.unwrap().get("better"), None, "{manifest:#}");
    let said = "two measurements give the metric `size`; the value of `second` is kept";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{outcome:#?}");
    assert!(suite.done(&["show", "last/0"]).contains("4096 bytes"));
}

/// "Every record carries `schemaVersion`."
#[test]
fn stored_traces_carry_their_schema_version() {
    let suite = suite_of(
        "",
        "",
        "modes: { plain: {} }\nexecution: { repetitions: 1, warmup: false }",
    );
    suite.done(&["run", "-q", "--scenario", "one"]);
    let shown: Value = serde_json::from_str(&suite.done(&["show", "last/0", "--json"])).unwrap();
    assert!(shown["trace"]["schemaVersion"].is_u64(), "{shown:#}");
    assert_eq!(
        shown["trace"]["schemaVersion"],
        shown["row"]["schemaVersion"]
    );
}

/// A suite of tasks that a plugin executes and scores.
fn lab(plugin: &str, tasks: &Value) -> Suite {
    let suite = Suite::of(&format!(
        "modes: {{ plain: {{}} }}\ntasks: {{ paths: [tasks.json] }}\n\
         runners: [{{ id: loud, uses: upper, type: shout }}]\nevaluators: [{{ id: look, uses: look }}]\n\
         execution: {{ repetitions: 1, warmup: false }}\n\
         plugins:\n  - id: plug\n    command: [python3, plugin.py]\n    environment: {{ PYTHONPATH: '{}' }}\n",
        sdk("python").display()
    ));
    suite.write(
        "plugin.py",
        format!("{PRELUDE}{UPPER}{plugin}\nplugin.serve()\n"),
    );
    suite.write("tasks.json", tasks.to_string());
    suite
}

/// A runner whose clock is an hour ahead.
const UPPER: &str = "
from datetime import datetime, timedelta, timezone

@plugin.runner('upper', type='shout', version='7.1')
def upper(task, config):
    later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
    event = lambda name: {'timestamp': later, 'level': 'info', 'event': name}
    return {'id': '', 'taskId': task['id'], 'taskType': 'atomic', 'status': 'completed', 'output': task['input'].upper(),
            'metrics': {'latency': 1}, 'trace': [event('started'), event('completed')], 'startedAt': later,
            'provenance': {'runnerId': 'upper', 'runnerVersion': '7.1', 'config': {}}}

def score(run, metric, value, target):
    return {'id': '', 'runId': run['id'], 'metric': metric, 'value': value, 'target': target,
            'evaluatorId': 'look', 'createdAt': '2026-01-01T00:00:00Z'}
";

fn atomic(id: &str) -> Value {
    serde_json::json!({"id": id, "name": id, "type": "shout", "input": "x", "metadata": {}})
}

fn chain() -> Value {
    serde_json::json!({"id": "chain", "name": "chain", "description": "", "metadata": {},
        "steps": [atomic("one"), atomic("two")],
        "input_map": {"two": [{"from": "step:one.output", "to": "input"}]}})
}

/// "支持的指标列表", the list of metrics that an evaluator supports.
#[test]
fn a_metric_that_an_evaluator_does_not_declare_is_an_error_in_the_row() {
    let plugin = "
@plugin.evaluator('look', metrics=['accuracy'])
def look(run, task):
    return [score(run, 'accuracy', 1, 'final'), score(run, 'tone', 0.5, 'final')]
";
    let suite = lab(plugin, &atomic("a"));
    suite.done(&["run", "-q"]);
    let row = &suite.rows()[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let error = &row["hookErrors"][0];
    assert_eq!(error["hook"], "metrics:look");
    let said = error["message"].as_str().unwrap();
    assert!(
        said.contains("`tone`") && said.contains("(declared: accuracy)"),
        "{said}"
    );
    // What it measured is kept.
    assert_eq!(row["extensions"]["tone"], 0.5);
}

/// "step:xxx: 评估特定步骤", about a certain step.
#[test]
fn a_target_that_names_no_step_is_an_error_in_the_row() {
    let plugin = "
@plugin.evaluator('look', metrics=['accuracy'])
def look(run, task):
    if 'steps' in task:
        return [score(run, 'accuracy', 1, 'step:two'), score(run, 'accuracy', 0, 'step:three')]
    return [score(run, 'accuracy', 1, 'step:none' if task['id'] == 'alone' else 'final')]
";
    let suite = lab(plugin, &serde_json::json!([chain(), atomic("alone")]));
    suite.assize(&["run", "-q"]);
    for row in suite.rows() {
        let (target, known) = match row["scenarioId"].as_str() {
            Some("chain") => ("`step:three`", "(steps: one, two)"),
            _ => ("`step:none`", "(the task has no steps)"),
        };
        let error = &row["hookErrors"][0];
        assert_eq!(error["hook"], "evaluator:look", "{row:#}");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(target) && said.contains(known), "{said}");
        // The score might have decided, so nothing is known.
        assert_eq!(row["errorCode"], "evaluator_error", "{row:#}");
    }
    let scores = std::fs::read_to_string(suite.run_directory().join("scores.jsonl")).unwrap();
    assert!(
        !scores.contains("step:three") && !scores.contains("step:none"),
        "{scores}"
    );
}

/// "provenance: runnerId, runnerVersion": those of the runner itself, not the suite's name for it.
#[test]
fn provenance_names_the_plugins_runner_and_mapping_never_precedes_its_source() {
    let plugin = "
@plugin.evaluator('look', metrics=[])
def look(run, task):
    return []
";
    let suite = lab(plugin, &serde_json::json!([atomic("alone"), chain()]));
    suite.done(&["run", "-q"]);
    let records = std::fs::read_to_string(suite.run_directory().join("runs.jsonl")).unwrap();
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |id: &str| records.iter().find(|run| run["taskId"] == id).unwrap();
    let alone = &of("alone")["provenance"];
    assert_eq!(alone["runnerId"], "upper", "{alone:#}");
    assert_eq!(alone["runnerVersion"], "7.1");
    assert_eq!(
        of("chain")["provenance"]["config"]["steps"]["one"]["runnerId"],
        "upper"
    );
    let time = |event: &Value| {
        let text = event["timestamp"].as_str().unwrap().to_owned();
        assize_contracts::Timestamp::from(text).unix_ms().unwrap()
    };
    let trace = of("chain")["trace"].as_array().unwrap();
    let mapped = trace
        .iter()
        .position(|event| event["event"] == "input_mapped")
        .unwrap();
    for earlier in trace[..mapped]
        .iter()
        .filter(|event| event["step"] == "one")
    {
        assert!(time(earlier) <= time(&trace[mapped]), "{trace:#?}");
    }
    assert_eq!(trace.last().unwrap()["event"], "completed");
}

/// "`afterScenario` is called even when the scenario fails", and tasks are no exception when a run is stopped.
#[test]
fn after_scenario_of_a_cancelled_task_says_cancelled() {
    let plugin = "
import json, os, time
HOME = os.path.dirname(os.path.abspath(__file__))

def note(text):
    with open(os.path.join(HOME, 'notes'), 'a') as file:
        file.write(text + '\\n')

@plugin.hook('afterScenario')
def after(context):
    result = context['result']
    note(json.dumps([result['outcome'], result['errorCode'], result['scenarioId']]))

@plugin.runner('slow', type='shout', version='1')
def slow(task, config):
    note('begun')
    time.sleep(60)

@plugin.evaluator('look', metrics=[])
def look(run, task):
    return []
";
    let suite = lab(plugin, &serde_json::json!([atomic("alone")]));
    let text = std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap();
    suite.write(
        "assize.yaml",
        format!("hooks: plug\n{}", text.replace("uses: upper", "uses: slow")),
    );
    let mut run = assize(suite.path()).args(["run", "-q"]).spawn().unwrap();
    crate::sandbox::await_true("the task to begin", || suite.path().join("notes").exists());
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    run.wait().unwrap();
    assert_eq!(
        notes(&suite),
        ["begun", "[\"void\", \"cancelled\", \"alone\"]"]
    );
}

/// "When omitted, the provider should apply the global `DEFAULT_TIMEOUT_MS` (120,000 ms)": the engine passes it itself.
#[test]
fn a_prompt_is_told_the_limit_of_its_scenario_to_the_millisecond() {
    let plugin = "
Mine.prompt = lambda self, handle, text, timeout_ms: (
    {'text': str(timeout_ms), 'completionReason': 'stop', 'metrics': {}})
";
    let suite = suite_of(
        plugin,
        "",
        "modes: { plain: {} }\nexecution: { repetitions: 1, warmup: false }",
    );
    let checked = |id: &str, more: &str, told: u32| {
        suite.write(
            &format!("scenarios/{id}.yaml"),
            format!(
                "id: {id}\nprompt: x\n{more}checks: [ {{ output: {{ equals: '{told}' }} }} ]\n"
            ),
        );
    };
    checked("one", "", 120_000);
    checked("two", "timeout_ms: 7000\n", 7_000);
    suite.done(&["run", "-q"]);
    for row in suite.rows() {
        assert_eq!(row["outcome"], "pass", "{row:#}");
    }
}

const FINDINGS: &str = "
@plugin.analyzer('all')
def look(trace, scenario, mode):
    return {'analyzer': 'all', 'summary': 'One sentence.', 'findings': {
        'all_number': {'type': 'number', 'value': 3, 'unit': 'count'},
        'all_string': {'type': 'string', 'value': 'top-down'},
        'all_list': {'type': 'list', 'values': ['first item', 'second item']},
        'all_table': {'type': 'table', 'headers': ['tool', 'calls'], 'rows': [['bash', '17']]},
        'all_ratio': {'type': 'ratio', 'value': 0.25, 'label': 'share'}}}
";

/// The five kinds of `AnalysisFinding` are all to be read, also where modes do not differ.
#[test]
fn every_kind_of_finding_is_told_with_its_value() {
    for modes in ["{ plain: {} }", "{ plain: {}, other: {} }"] {
        let keys = format!(
            "modes: {modes}\nanalyzers: [all]\nexecution: {{ repetitions: 1, warmup: false }}"
        );
        let suite = suite_of(FINDINGS, "", &keys);
        suite.done(&["run", "-q"]);
        let page = suite.run_directory().join("report/analysis.md");
        let page = std::fs::read_to_string(page).unwrap();
        for value in [
            "3 count",
            "top-down",
            "first item",
            "second item",
            "bash",
            "17",
            "25 %",
        ] {
            assert!(page.contains(value), "{value} is not in\n{page}");
        }
    }
}
