//! Mistakes that people make, and the sentence each of them ends in. The output stands in `mistakes.md`;
//! `UPDATE_MISTAKES=1` writes it anew.

use crate::support::{Suite, assize};
use std::fmt::Write;
use std::process::Command;

/// One mistake: what is written and typed.
struct Mistake {
    title: &'static str,
    /// Files besides the usual suite.
    files: &'static [(&'static str, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    /// The directory in which the command is typed, below the suite.
    directory: &'static str,
    /// Commands that go well, to have something to be wrong about.
    before: &'static [&'static [&'static str]],
    arguments: &'static [&'static str],
    code: i32,
    /// Of a long output only lines with one of these words.
    only: &'static [&'static str],
}

const DEFAULT: Mistake = Mistake {
    title: "",
    files: &[],
    environment: &[],
    directory: "",
    before: &[],
    arguments: &["check"],
    code: 2,
    only: &[],
};

const RUN: &[&[&str]] = &[&["run", "-q"]];

const SIMULATED: &str =
    "provider: { uses: simulated, latency_ms: 0 }\nmodes: { plain: {}, careful: {} }\n";

const MISTAKES: &[Mistake] = &[
    Mistake {
        title: "1 a key that is misspelt",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution:\n  repetitons: 3\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "1b a time limit beside the scenarios",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\ntimeout_ms: 60000\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "1c a workspace beside the scenarios",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nworkspace: { from: fixtures }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "2 a suite that is not there",
        arguments: &["run", "nosuch"],
        ..DEFAULT
    },
    Mistake {
        title: "3 a pattern that fits no file",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenario/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "3b a pattern in a directory without such files",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "4 a provider that is misspelt, in two modes",
        files: &[(
            "assize.yaml",
            "provider: { uses: claud-code }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "5 a line that is indented wrongly",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes:\n    a: {}\n  b: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "6 a tab",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes:\n\ta: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "7 a baseline mode that is misspelt",
        before: RUN,
        arguments: &["compare", "--baseline", "plaain"],
        ..DEFAULT
    },
    Mistake {
        title: "8 a gate on `sucess`",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\ngates: ['sucess >= 0.9']\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "8a the same on the command line",
        before: RUN,
        arguments: &["gate", "--gate", "sucess >= 0.9"],
        ..DEFAULT
    },
    Mistake {
        title: "8b a gate with `=>`",
        before: RUN,
        arguments: &["gate", "--gate", "success => 0.9"],
        ..DEFAULT
    },
    Mistake {
        title: "8c a gate with a percentage",
        before: RUN,
        arguments: &["gate", "--gate", "success >= 90%"],
        ..DEFAULT
    },
    Mistake {
        title: "8d a gate with `==`",
        before: RUN,
        arguments: &["gate", "--gate", "success == 0.9"],
        ..DEFAULT
    },
    Mistake {
        title: "9 a scenario file that is empty",
        files: &[("scenarios/one.yaml", "")],
        ..DEFAULT
    },
    Mistake {
        title: "9b a suite file that is empty",
        files: &[("assize.yaml", "# nothing yet\n")],
        ..DEFAULT
    },
    Mistake {
        title: "9c a scenario file with a text in it",
        files: &[("scenarios/one.yaml", "fix the bug\n")],
        ..DEFAULT
    },
    Mistake {
        title: "10 a scenario without a prompt",
        files: &[("scenarios/one.yaml", "id: one\n")],
        ..DEFAULT
    },
    Mistake {
        title: "11 two scenarios with one id",
        files: &[("scenarios/two.yaml", "id: one\nprompt: hi\n")],
        ..DEFAULT
    },
    Mistake {
        title: "12 a key in a check that is misspelt",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: hi\nchecks:\n  - output: { contain: x }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "13 a file check without a workspace",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: hi\nchecks:\n  - file: { path: a.txt, exists: true }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "14 a pattern that is no regular expression",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: hi\nchecks:\n  - output: { matches: '(' }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "15 a mode that is misspelt",
        arguments: &["run", "--mode", "plian"],
        ..DEFAULT
    },
    Mistake {
        title: "16 a scenario that is misspelt",
        arguments: &["run", "--scenario", "tow"],
        ..DEFAULT
    },
    Mistake {
        title: "17 a trial that is not there",
        before: RUN,
        arguments: &["show", "last/99"],
        ..DEFAULT
    },
    Mistake {
        title: "18 a run that is not there",
        before: RUN,
        arguments: &["compare", "2020", "--suite", "assize.yaml"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "18b no run at all",
        arguments: &["compare"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "19 resuming a run that is complete",
        before: RUN,
        arguments: &["run", "--resume", "last"],
        code: 0,
        only: &["missing"],
        ..DEFAULT
    },
    Mistake {
        title: "21 a variable that is not set",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes:\n  a: { environment: { T: '${env:ASSIZE_NOT_SET}' } }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "22 no repetitions by a flag",
        arguments: &["run", "-n", "0"],
        ..DEFAULT
    },
    Mistake {
        title: "22b no repetitions in the suite",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution: { repetitions: 0 }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "23 recording a program that is not there",
        arguments: &["record", "--", "nosuchprogram"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "24 recording without `--`",
        arguments: &["record", "claude", "-p", "fix it"],
        ..DEFAULT
    },
    Mistake {
        title: "25 a format that there is not",
        before: RUN,
        arguments: &["report", "--format", "pdf"],
        ..DEFAULT
    },
    Mistake {
        title: "26 a baseline that there is not",
        before: RUN,
        arguments: &["gate", "--baseline", "main"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "27 running a scenario",
        arguments: &["run", "scenarios/one.yaml"],
        ..DEFAULT
    },
    Mistake {
        title: "28 a variable with a value that is no number",
        environment: &[("ASSIZE_REPETITIONS", "abc")],
        arguments: &["run"],
        ..DEFAULT
    },
    Mistake {
        title: "29 a provider that is only a name",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "29b a provider that is a number",
        files: &[(
            "assize.yaml",
            "provider: 3\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "30 running in a directory without a suite",
        files: &[("empty/note.txt", "")],
        arguments: &["run", "empty"],
        ..DEFAULT
    },
    Mistake {
        title: "30b the same without naming it",
        files: &[("empty/note.txt", "")],
        directory: "empty",
        arguments: &["run"],
        ..DEFAULT
    },
    Mistake {
        title: "31 a name in a prompt that nothing fills",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: Write it in {lang}.\n",
        )],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "32 an agent that is not installed",
        files: &[(
            "assize.yaml",
            "provider: { uses: claude-code, program: nosuchagent }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        environment: &[("ANTHROPIC_API_KEY", "sk-ant-not-a-key")],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "32b and running it",
        files: &[(
            "assize.yaml",
            "provider: { uses: claude-code, program: nosuchagent }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        environment: &[("ANTHROPIC_API_KEY", "sk-ant-not-a-key")],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "33 an agent without a key",
        files: &[(
            "assize.yaml",
            "provider: { uses: claude-code, program: sh }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "33b and running it",
        files: &[(
            "assize.yaml",
            "provider: { uses: claude-code, program: sh }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "33c a model without a key",
        files: &[(
            "assize.yaml",
            "provider: { uses: chat, api: anthropic, model: m }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "34 a set-up command that fails",
        files: &[
            (
                "assize.yaml",
                "provider: { uses: command, command: [echo, done], free: true }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nworkspace: { setup: ['echo no network >&2; exit 7'] }\n",
            ),
        ],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "35 a judge without a key",
        files: &[
            (
                "assize.yaml",
                "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\nscorer: { uses: judge }\njudge: { api: anthropic, model: claude-sonnet-4-5 }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nrubric: { instructions: look, criteria: [ { id: clear, description: It is clear. } ] }\n",
            ),
        ],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "35b a judge whose key is in a variable that is not set",
        files: &[
            (
                "assize.yaml",
                "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\nscorer: { uses: judge }\njudge: { api: anthropic, model: claude-sonnet-4-5, key_env: ASSIZE_NOT_SET }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nrubric: { instructions: look, criteria: [ { id: clear, description: It is clear. } ] }\n",
            ),
        ],

        ..DEFAULT
    },
    Mistake {
        title: "35c a judge that cannot be reached",
        files: &[
            (
                "assize.yaml",
                "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\nscorer: { uses: judge }\njudge: { api: openai, model: m, base_url: 'http://127.0.0.1:1/v1' }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nrubric: { instructions: look, criteria: [ { id: clear, description: It is clear. } ] }\n",
            ),
        ],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "35d a judge among several scorers, without a key",
        files: &[
            (
                "assize.yaml",
                "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\nscorer: { composite: [ { uses: checks }, { uses: judge, api: anthropic, model: m } ] }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nrubric: { instructions: look, criteria: [ { id: clear, description: It is clear. } ] }\n",
            ),
        ],
        arguments: &["run"],
        code: 1,
        ..DEFAULT
    },
    Mistake {
        title: "36 a check of tools of a program that tells none",
        files: &[
            (
                "assize.yaml",
                "provider: { uses: command, command: [echo, done], free: true }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/one.yaml'] }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: hi\nchecks:\n  - tool: { called: Bash }\n",
            ),
        ],
        code: 0,
        ..DEFAULT
    },
    Mistake {
        title: "37 a program that always fails, and one whose answer is wrong",
        files: &[
            (
                "assize.yaml",
                "modes:\n  broken: { provider: { uses: command, command: [sh, -c, 'echo out of cheese >&2; exit 3'], free: true } }\n  wrong: { provider: { uses: command, command: [echo, five], free: true } }\nscenarios: { paths: ['scenarios/one.yaml'] }\nexecution: { repetitions: 3 }\n",
            ),
            (
                "scenarios/one.yaml",
                "id: one\nprompt: two and two?\nchecks:\n  - output: { contains: four }\n",
            ),
        ],
        arguments: &["run"],
        code: 0,
        only: &["why", " × "],
        ..DEFAULT
    },
    Mistake {
        title: "37b two programs that fail in ways of their own",
        files: &[
            (
                "assize.yaml",
                "modes:\n  three: { provider: { uses: command, command: [sh, -c, 'exit 3'], free: true } }\n  four: { provider: { uses: command, command: [sh, -c, 'exit 4'], free: true } }\nscenarios: { paths: ['scenarios/one.yaml'] }\nexecution: { repetitions: 2 }\n",
            ),
            ("scenarios/one.yaml", "id: one\nprompt: hi\n"),
        ],
        arguments: &["run"],
        code: 0,
        only: &["why", " × "],
        ..DEFAULT
    },
    Mistake {
        title: "38 a scenario to show that is misspelt",
        before: RUN,
        arguments: &["show", "oen"],
        ..DEFAULT
    },
    Mistake {
        title: "40 a command of other tools",
        arguments: &["eval"],
        ..DEFAULT
    },
    Mistake {
        title: "40b a suite where a command is expected",
        arguments: &["assize.yaml"],
        ..DEFAULT
    },
    Mistake {
        title: "40c two letters in the wrong order",
        arguments: &["rnu"],
        ..DEFAULT
    },
    Mistake {
        title: "40d a flag of other tools",
        arguments: &["run", "--reps", "3"],
        ..DEFAULT
    },
    Mistake {
        title: "40e a flag in front of the command",
        arguments: &["-n", "3", "run"],
        ..DEFAULT
    },
    Mistake {
        title: "40f a suite behind a flag",
        arguments: &["run", "--suite", "assize.yaml"],
        ..DEFAULT
    },
    Mistake {
        title: "40g a negative number",
        arguments: &["run", "-n", "-1"],
        ..DEFAULT
    },
    Mistake {
        title: "40h two modes in one flag",
        arguments: &["run", "--mode", "plain,careful"],
        ..DEFAULT
    },
    Mistake {
        title: "41 a key outside its section",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nrepetitions: 5\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "41b a model in a mode",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: { model: x } }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "41c a text where a file is expected",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: { instructions: be brief } }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42 scenarios as a list",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: [scenarios/one.yaml]\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42b scenarios as a text",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: scenarios/*.yaml\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42c a command as a text",
        files: &[(
            "assize.yaml",
            "provider: { uses: command, command: 'echo hi' }\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42d a number in quotes",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution: { repetitions: '5' }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42e a fraction",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\nexecution: { repetitions: 5.5 }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "42f no modes",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "43 a mode that is given twice",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes:\n  a: {}\n  a: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "43b a brace that is never closed",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes: { a: {}\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "43c an apostrophe",
        files: &[(
            "assize.yaml",
            "provider: simulated\nmodes:\n  a: { system_instructions: 'It's }\nscenarios: { paths: ['scenarios/*.yaml'] }\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "44 two scenarios in one file",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: hi\n---\nid: three\nprompt: ho\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "44b a list of scenarios",
        files: &[("scenarios/one.yaml", "- id: one\n  prompt: hi\n")],
        ..DEFAULT
    },
    Mistake {
        title: "44c a workspace as a text",
        files: &[(
            "scenarios/one.yaml",
            "id: one\nprompt: hi\nworkspace: project\n",
        )],
        ..DEFAULT
    },
    Mistake {
        title: "45 a JSON file with a comma too many",
        files: &[("other.json", "{\"modes\": {\"a\": {}},}")],
        arguments: &["check", "other.json"],
        ..DEFAULT
    },
    Mistake {
        title: "45b YAML in a file for JSON",
        files: &[("other.json", "modes: { a: {} }\n")],
        arguments: &["check", "other.json"],
        ..DEFAULT
    },
    Mistake {
        title: "46 a suite that is misspelt",
        files: &[("demo/assize.yaml", "modes: {}\n")],
        arguments: &["run", "dmeo"],
        ..DEFAULT
    },
    Mistake {
        title: "46b a program to try that is not there",
        arguments: &["try", "-m", "nosuchprogram", "-m", "cat", "--prompt", "hi"],
        ..DEFAULT
    },
    Mistake {
        title: "46c a workspace that is not there",
        arguments: &[
            "try",
            "-m",
            "cat",
            "-m",
            "tac",
            "--prompt",
            "hi",
            "--workspace",
            "nosuch",
        ],
        ..DEFAULT
    },
    Mistake {
        title: "46d commands to try without -m",
        arguments: &["try", "cat", "tac"],
        ..DEFAULT
    },
    Mistake {
        title: "46e an agent that is misspelt",
        arguments: &["init", "new", "--agent", "cluade"],
        ..DEFAULT
    },
    Mistake {
        title: "46f a file where a directory is expected",
        arguments: &["init", "assize.yaml"],
        ..DEFAULT
    },
];

/// The output of a mistake, without what differs from run to run.
fn printed(mistake: &Mistake) -> String {
    let suite = Suite::of(&format!(
        "{SIMULATED}scenarios: {{ paths: ['scenarios/*.yaml'] }}\nexecution: {{ repetitions: 3 }}\n"
    ));
    for (name, content) in mistake.files {
        suite.write(name, content);
    }
    let command = |arguments: &[&str]| -> Command {
        let mut command = assize(suite.path());
        for key in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ] {
            command.env_remove(key);
        }
        command
            .args(arguments)
            .envs(mistake.environment.iter().copied());
        command
    };
    for arguments in mistake.before {
        let output = command(arguments).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", mistake.title);
    }
    let place = suite.path().join(mistake.directory);
    let output = command(mistake.arguments)
        .current_dir(place)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let text = text.concat();
    assert_eq!(
        output.status.code(),
        Some(mistake.code),
        "{}\n{text}",
        mistake.title
    );
    let place = suite.path().canonicalize().unwrap();
    let text = text
        .replace(&place.display().to_string(), "DIR")
        .replace(&suite.path().display().to_string(), "DIR");
    let is_shown = |line: &&str| {
        mistake.only.is_empty() || mistake.only.iter().any(|word| line.contains(word))
    };
    let lines = text.lines().filter(is_shown).map(without_ids);
    lines.collect::<Vec<_>>().join("\n")
}

/// `20261117-194416-5a16` is another one every time.
fn without_ids(line: &str) -> String {
    let is_id = |word: &str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 3 && [8, 6, 4] == [parts[0].len(), parts[1].len(), parts[2].len()]
    };
    let separate = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let ids: Vec<&str> = line.split(separate).filter(|word| is_id(word)).collect();
    ids.iter()
        .fold(line.to_owned(), |line, id| line.replace(id, "RUN"))
}

#[test]
fn every_mistake_ends_in_the_sentence_it_deserves() {
    let mut page = String::from("# Mistakes, and what is printed\n");
    for mistake in MISTAKES {
        let files = mistake.files.iter();
        let files: Vec<String> = files
            .map(|(name, text)| format!("{name}:\n{text}"))
            .collect();
        let typed = mistake
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value} "));
        writeln!(
            page,
            "\n## {}\n\n```\n{}{}{}$ {}assize {}\n{}\n```",
            mistake.title,
            files.join("\n").replace('\t', "→"),
            if files.is_empty() { "" } else { "\n" },
            mistake.directory,
            typed.collect::<String>(),
            mistake.arguments.join(" "),
            printed(mistake),
        )
        .unwrap();
    }
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mistakes.md");
    if std::env::var_os("UPDATE_MISTAKES").is_some() {
        std::fs::write(place, &page).unwrap();
    }
    let expected = std::fs::read_to_string(place).unwrap_or_default();
    for (now, then) in page.split("\n## ").zip(expected.split("\n## ")) {
        assert_eq!(now, then);
    }
    assert_eq!(page.len(), expected.len());
}

#[test]
fn no_name_of_a_type_reaches_anybody() {
    let page = include_str!("mistakes.md");
    for word in [
        "struct ",
        "enum ",
        "u32",
        "u64",
        "usize",
        "Spec",
        "File`",
        "variant",
        "..=",
        "invalid digit",
    ] {
        assert!(!page.contains(word), "`{word}`");
    }
}

#[test]
fn a_port_that_is_taken_has_a_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = Suite::new().assize(&["proxy", "--port", &port]);
    assert_eq!(outcome.code, Some(1));
    let hint =
        format!("hint: another program listens on port {port}; name another one with `--port`");
    assert!(outcome.stderr.contains(&hint), "{}", outcome.stderr);
}
