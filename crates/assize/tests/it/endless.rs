//! A trial ends whatever its agent leaves in the workspace.

use crate::sandbox::{Sandbox, await_true, words};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Makes a terabyte of a file that was there, of a new one, and of a set-up command's.
const HUGE: &str = "truncate -s 1T seen; truncate -s 1T big; echo x >> seen; echo done";

fn sandbox(script: &str, method: &str) -> Sandbox {
    let suite = "output: { keep_workspace: all }\nexecution: { repetitions: 2 }";
    let scenario = format!(
        "workspace: {{ from: source, method: {method}, setup: ['truncate -s 1T made'] }}\n\
         checks:\n  - file: {{ path: big, exists: true }}"
    );
    let sandbox = Sandbox::of(script, suite, &scenario);
    sandbox.write("source/seen", "text\n");
    sandbox
}

#[test]
fn a_terabyte_of_nothing_holds_up_nobody() {
    for method in ["copy", "recycle", "overlay", "reflink"] {
        let sandbox = sandbox(HUGE, method);
        let check = sandbox.assize(&["check"]).output().unwrap();
        let began = Instant::now();
        let output = sandbox
            .assize(&["run", "-q", "--skip-warmup"])
            .output()
            .unwrap();
        if !output.status.success() && words(&output).contains(method) && method != "copy" {
            // The system cannot do it, and reports it.
            assert!(check.status.code().is_some());
            continue;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{method}");
        let rows = sandbox.rows();
        assert_eq!(rows.len(), 2, "{method}: {}", words(&output));
        for row in rows {
            assert_eq!(row["outcome"], "pass", "{method}: {row:#}");
            assert_eq!(row["extensions"]["files_added"], 1, "{method}: {row:#}");
            assert_eq!(row["extensions"]["files_modified"], 1, "{method}: {row:#}");
            let said = said_about_workspace(&row);
            assert!(said.contains("not in the archive"), "{method}: {row:#}");
        }
    }
}

/// Deeper than paths can be named, and than files can be open.
const DEEP: &str = "echo x > ok; python3 -c 'import os\nfor n in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'; echo done";

#[test]
fn directories_of_any_depth_hold_up_nobody() {
    for method in ["copy", "recycle", "overlay"] {
        let sandbox = sandbox(DEEP, method);
        let rows = sandbox.run(&[]);
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row["outcome"], "fail", "{method}: {row:#}");
            let said = said_about_workspace(&row);
            assert!(said.contains("deeper than a path"), "{method}: {row:#}");
        }
        assert_eq!(sandbox.left_workspaces().len(), 0, "{method}");
    }
}

#[test]
fn texts_that_are_hard_to_compare_hold_up_nobody() {
    // Keys that begin everywhere, and a file in the order that takes longest to compare.
    let script = "tac seen > new; mv new seen; python3 -c 'print(\"sk-\" * 300000)'; echo done";
    let suite = "output: { keep_workspace: all }\nexecution: { repetitions: 1 }";
    let checks = "workspace: { from: source }\nchecks:\n  - output: { contains: done }";
    let sandbox = Sandbox::of(script, suite, checks);
    let lines: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    sandbox.write("source/seen", &lines);
    let began = Instant::now();
    assert_eq!(sandbox.run(&[])[0]["outcome"], "pass");
    sandbox.done(&["show", "last/0"]);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn pipes_devices_and_circles_of_links_are_judged_and_not_read() {
    let script = "mkfifo pipe; ln -s pipe link; ln -s b a; ln -s a b; ln -s /dev/zero zero; ln -s . c; echo x > ok; echo done";
    let checks = "workspace: {}\nchecks:\n  - file: { path: pipe, contains: x }\n  - file: { path: link, equals: x }\n  \
                  - file: { path: a, exists: true }\n  - file: { path: zero, matches: x }\n  - file: { path: c/c/c/ok, contains: x }\n";
    let sandbox = Sandbox::of(script, "output: { keep_workspace: all }", checks);
    let rows = sandbox.run(&["-n", "1"]);
    assert_eq!(rows[0]["outcome"], "fail", "{:#}", rows[0]);
    let details = rows[0]["checkpointDetails"].as_array().unwrap();
    let passed: Vec<bool> = details
        .iter()
        .map(|check| check["passed"] == true)
        .collect();
    assert_eq!(passed, [false, false, false, false, true], "{:#}", rows[0]);
}

#[test]
fn a_run_with_a_flood_of_files_can_be_stopped() {
    let sandbox = sandbox(
        "echo begun > ../begun; i=0; while :; do mkdir d$i; (cd d$i; seq 1 2000 | xargs touch); i=$((i+1)); [ $i -gt 60 ] && break; done; echo done",
        "copy",
    );
    let mut child = sandbox
        .assize(&["run", "-q", "--skip-warmup"])
        .spawn()
        .unwrap();
    await_true("the agent", || {
        sandbox
            .left_workspaces()
            .iter()
            .any(|path| path.join("begun").exists())
            || child_is_over(&sandbox)
    });
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let began = Instant::now();
    child.wait().unwrap();
    assert!(began.elapsed() < Duration::from_secs(40));
}

fn child_is_over(sandbox: &Sandbox) -> bool {
    sandbox.path(".assize/runs").exists() && !sandbox.left_workspaces().is_empty()
}

fn said_about_workspace(row: &Value) -> String {
    let errors = row["hookErrors"].as_array().cloned().unwrap_or_default();
    let about = errors.iter().filter(|error| error["hook"] == "workspace");
    about.map(|error| error["message"].to_string()).collect()
}
