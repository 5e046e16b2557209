//! Workspaces by every method: the agent finds the same, the same changes are reported, and nothing is left behind.

use crate::sandbox::{Sandbox, await_true};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// An agent's view of its workspace. Directories on overlays have one link and a size of their own.
const LOOK: &str = r"find . -path ./.git -prune -o -type d -printf '%p %y %m %U:%G %T@\n' -o -printf '%p %y %m %U:%G %T@ %s %n %l\n' | sort; \
                     command -v getfattr > /dev/null && getfattr -Rhdm user . | sort; git status --porcelain; git diff-index HEAD; git log --oneline | wc -l";

/// Everything that can be done to files, some of it twice.
const WORK: &str = "echo more >> dir/modified; rm dir/deleted; touch dir/touched; chmod 600 dir/mode; mv moved renamed; \
                    rm -r replaced; mkdir replaced; echo new > replaced/new; rm -r emptied/*; ln -sfn elsewhere link; \
                    rm kind; mkdir kind; echo x > kind/x; echo a > $(printf 'odd\\377name'); mkfifo pipe; \
                    echo same > dir/same; mkdir -p deep/er/est; echo x > deep/er/est/x; rm -r deep/er; chmod 700 locked; \
                    { chown 77:78 dir locked/file; setfattr -n user.work -v 1 . ; setfattr -n user.work -v 1 emptied; } 2> /dev/null";

/// Beyond what a copy of the source can have. Without root or these programs some of it is not there.
const ONCE: &str = "ln dir/mode linked; { chown 5:6 locked locked/file; chown -h 5:6 link; chmod 2775 locked; \
                    setfattr -n user.once -v 1 dir; setfattr -n user.once -v 1 dir/mode; } 2> /dev/null; true";

fn fill(sandbox: &Sandbox) {
    let files = [
        "dir/modified",
        "dir/deleted",
        "dir/touched",
        "dir/mode",
        "moved/a/file",
        "replaced/old",
        "emptied/one",
        "emptied/two/three",
        "kind",
        "locked/file",
        "dir/.hidden",
    ];
    for file in files {
        sandbox.write(&format!("source/{file}"), file);
    }
    sandbox.write("source/dir/same", "same\n");
    std::os::unix::fs::symlink("dir/same", sandbox.path("source/link")).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(sandbox.path("source"));
        assert!(command.status().unwrap().success());
    };
    run(
        "touch",
        &[
            "-d",
            "2020-02-02 02:02:02.123456789",
            "dir/same",
            "dir",
            "replaced",
        ],
    );
    run("chmod", &["755", "dir/mode"]);
    run("git", &["init", "-q"]);
    run("git", &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    run("git", &[&who[..], &["commit", "-qm", "one"]].concat());
}

/// The abilities of this machine, by `doctor`.
fn available(sandbox: &Sandbox) -> BTreeMap<String, Value> {
    let said = sandbox.done(&["doctor", "--json", "--quick"]);
    let line = said.lines().find(|line| line.contains("\"workspaces\""));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    let methods = line["workspaces"].as_array().unwrap().iter();
    methods
        .map(|found| {
            (
                found["method"].as_str().unwrap().to_owned(),
                found["works"].clone(),
            )
        })
        .collect()
}

struct Seen {
    /// The files that each repetition found and left.
    listings: Vec<String>,
    /// The changes in the row.
    rows: Vec<Value>,
    archives: Vec<String>,
    methods: Value,
}

fn see(source: &str, method: &str, keep: &str) -> Option<Seen> {
    let script = format!(
        "({LOOK}) > $OUT/before-$$; {WORK}; ({LOOK}) | sed -E 's/ [0-9]+\\.[0-9]+( |$)/ /' > $OUT/left-$$; echo done"
    );
    let suite = format!(
        "sandbox: none\nexecution: {{ repetitions: 3, warmup: false }}\noutput: {{ keep_workspace: {keep} }}"
    );
    let scenario = format!(
        "workspace: {{ {source}, method: {method}, setup_once: ['{ONCE}'], setup: ['echo set > up; rm dir/.hidden'] }}\n\
         checks: [ {{ file: {{ path: renamed/a/file, exists: true }} }}, {{ command: {{ run: 'test ! -e moved' }} }} ]"
    );
    let sandbox = Sandbox::of(&script, &suite, &scenario);
    let place = sandbox.path("out").display().to_string();
    let text = sandbox.read("assize.yaml").replace("$OUT", &place);
    sandbox.write("assize.yaml", &text);
    sandbox.write("out/none", "");
    fill(&sandbox);
    if available(&sandbox).get(method) == Some(&json!(false)) {
        let output = sandbox.assize(&["run", "-q", "-y"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(&format!("cannot be made by `{method}` here")),
            "{said}"
        );
        assert!(said.contains("\nhint: `workspace.method: auto`"), "{said}");
        return None;
    }
    let rows = sandbox.run(&[]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    assert!(sandbox.left_workspaces().is_empty());
    let run = sandbox.last_run();
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    Some(Seen {
        listings: contents(&sandbox.path("out")),
        rows: rows.iter().map(told).collect(),
        archives: archives(&run.join("workspaces")),
        methods: manifest["provenance"]["workspaceMethods"].clone(),
    })
}

fn told(row: &Value) -> Value {
    let names = ["files_added", "files_modified", "files_deleted"];
    json!(names.map(|name| row["extensions"][name].clone()))
}

/// Of all files, in an order that does not depend on their names.
fn contents(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap();
    let mut contents: Vec<_> = files
        .map(|file| {
            String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned()
        })
        .collect();
    contents.sort();
    contents
}

/// The changes and content of an archive, without what git wrote for itself.
fn archives(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap();
    let mut shown: Vec<String> = files.map(|file| archive(&file.unwrap().path())).collect();
    shown.sort();
    shown
}

fn archive(path: &Path) -> String {
    let tar = |arguments: &[&str]| {
        let mut command = Command::new("tar");
        let output = command.arg("--zstd").args(arguments).arg(path);
        output.args(["--", "changes.json"]).output().unwrap().stdout
    };
    let changes: Value = serde_json::from_slice(&tar(&["-xOf"])).unwrap();
    let changes = changes["changes"].as_array().unwrap().iter();
    let changes = changes.filter(|change| !change["path"].as_str().unwrap().starts_with(".git"));
    let held = Command::new("tar")
        .args(["--zstd", "-tvf"])
        .arg(path)
        .output()
        .unwrap();
    let held = String::from_utf8_lossy(&held.stdout).into_owned();
    let held = held
        .lines()
        .filter(|line| !line.contains(".git") && !line.contains("changes.json"));
    // Mode, size and name, not owner and time.
    let held = held.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {} {}", words[0], words[2], words[5..].join(" "))
    });
    let changes: Vec<&Value> = changes.collect();
    format!("{changes:#?}{:#?}", held.collect::<Vec<_>>())
}

fn all_methods_agree_on(source: &str, keep: &str) {
    let reference = see(source, "copy", keep).unwrap();
    assert_eq!(reference.methods, json!({"copy": "copy"}));
    // Every repetition finds the same, and leaves the same.
    assert_eq!(reference.listings.len(), 7, "{:#?}", reference.listings);
    for method in ["overlay", "reflink", "recycle", "auto"] {
        let Some(seen) = see(source, method, keep) else {
            continue;
        };
        assert!(seen.methods[method].is_string(), "{}", seen.methods);
        for (seen, reference) in seen.listings.iter().zip(&reference.listings) {
            assert_eq!(normal(seen), normal(reference), "{method}");
        }
        assert_eq!(seen.rows, reference.rows, "{method}");
        assert_eq!(seen.archives, reference.archives, "{method}");
    }
}

/// Times of a checkout and of the set-up are those of the run.
fn normal(listing: &str) -> String {
    let line = |line: &str| {
        let words = line
            .split(' ')
            .filter(|word| !word.starts_with("17") && !word.starts_with("18"));
        words.collect::<Vec<_>>().join(" ")
    };
    listing.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_method_gives_the_same_copy_of_a_directory() {
    all_methods_agree_on("from: source", "changed");
}

#[test]
fn every_method_gives_the_same_commit() {
    all_methods_agree_on("git: { repo: source, ref: HEAD }", "changed");
}

#[test]
fn every_method_keeps_the_same_whole_workspace() {
    all_methods_agree_on("from: source", "all");
}

#[test]
fn what_is_set_up_once_is_there_for_everybody() {
    let scenario = "workspace: { from: source, setup_once: ['echo once >> $COUNT', 'mkdir made; echo x > made/x'], environment: { COUNT: PLACE } }\n\
                    checks: [ { output: { equals: x } }, { changed: { only: [] } } ]";
    let sandbox = Sandbox::of("cat made/x", "execution: { repetitions: 4 }", scenario);
    let place = sandbox.path("count").display().to_string();
    sandbox.write("s.yaml", &sandbox.read("s.yaml").replace("PLACE", &place));
    sandbox.write("source/f", "");
    let rows = sandbox.run(&[]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    assert_eq!(sandbox.read("count"), "once\n");
}

#[test]
fn what_remembers_its_place_is_set_up_in_every_workspace() {
    let scenario = "workspace: { from: source, setup_once: ['pwd > place'] }\n\
                    checks: [ { output: { equals: same } }, { changed: { only: [] } } ]";
    let script = "test \"$(cat place)\" = \"$(pwd)\" && echo same";
    let sandbox = Sandbox::of(script, "execution: { repetitions: 2 }", scenario);
    sandbox.write("source/f", "");
    let rows = sandbox.run(&[]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
}

#[test]
fn a_suite_that_runs_containers_gets_directories_that_they_see() {
    let sandbox = Sandbox::of(
        ": docker run -v $PWD:/w; cat f",
        "execution: { repetitions: 1 }",
        "workspace: { from: source }",
    );
    sandbox.write("source/f", "x");
    sandbox.run(&[]);
    let manifest = std::fs::read(sandbox.last_run().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_ne!(
        manifest["provenance"]["workspaceMethods"]["auto"],
        "overlay"
    );
}

#[test]
fn kill_9_leaves_no_mount_and_the_next_run_sweeps() {
    let sandbox = Sandbox::of(
        "touch $OUT/started; while sleep 0.1; do :; done",
        "sandbox: none\nexecution: { repetitions: 1 }",
        "workspace: { from: source }",
    );
    let place = sandbox.path("").display().to_string();
    let text = sandbox.read("assize.yaml").replace("$OUT/", &place);
    sandbox.write("assize.yaml", &text);
    sandbox.write("source/f", "x");
    let mut child = sandbox
        .assize(&["run", "-q", "-y"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_true("the agent", || sandbox.path("started").exists());
    let seen_outside = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!seen_outside.contains(&place), "{seen_outside}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!sandbox.left_workspaces().is_empty());
    await_true("the end of all programs", || sandbox.living() == 0);
    let held = |process: std::fs::DirEntry| {
        let mounts = std::fs::read_to_string(process.path().join("mountinfo"));
        mounts.is_ok_and(|mounts| mounts.contains(&place))
    };
    await_true("the end of every mount", || {
        !std::fs::read_dir("/proc").unwrap().flatten().any(held)
    });
    let text = sandbox.read("assize.yaml");
    sandbox.write(
        "assize.yaml",
        &text.replace("while sleep 0.1; do :; done", "true"),
    );
    assert_eq!(sandbox.run(&[])[0]["outcome"], "pass");
    assert!(sandbox.left_workspaces().is_empty());
}
