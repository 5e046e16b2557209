//! The sandbox around agents: settings of suites, an agent's view of it, and the messages about it. Skipped by name
//! where the kernel has no Landlock, or an old one.

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;

/// Says why a test cannot run here.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn is_skipped() -> bool {
    let version = assize_process::GuardVersion::of_this_machine();
    let is_whole = version >= Ok(assize_process::GuardVersion::WHOLE);
    if !is_whole {
        eprintln!("skipped: the guard of this machine is not whole: {version:?}");
    }
    !is_whole
}

/// The answer that the check awaits; it stands in hidden files only.
const ANSWER: &str = "violet-otter-93";

/// A suite whose check awaits the answer, with an agent that follows a script. The script gets the suite's directory.
fn attack(script: &str, settings: &str) -> Sandbox {
    let sandbox = attack_without_workspace(script, settings);
    let scenario = sandbox.read("scenarios/s.yaml");
    sandbox.write(
        "scenarios/s.yaml",
        &format!("{scenario}workspace: {{ from: fixture }}\n"),
    );
    sandbox
}

fn attack_without_workspace(script: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new(&[]);
    let suite = format!(
        "provider: {{ uses: command, command: [sh, '{{suite}}/agent.sh', '{}'] }}\nmodes: {{ plain: {{}} }}\n\
         scenarios: {{ paths: ['scenarios/*.yaml'] }}\nexecution: {{ repetitions: 1, warmup: false }}\n{settings}\n",
        sandbox.path("").display().to_string().trim_end_matches('/')
    );
    let scenario = format!(
        "id: s\nprompt: hello\nchecks:\n  - output: {{ contains: '{ANSWER}' }}\n  \
         - command: {{ run: 'true', files: {{ hidden.txt: checks/hidden.txt }} }}\n"
    );
    sandbox.write("assize.yaml", &suite);
    sandbox.write("scenarios/s.yaml", &scenario);
    sandbox.write("checks/hidden.txt", ANSWER);
    sandbox.write("fixture/file", "x");
    sandbox.write("notes.txt", ANSWER);
    sandbox.write("agent.sh", script);
    sandbox
}

/// The attack fails, and its own words show that it was tried.
fn fails(script: &str, settings: &str) -> Sandbox {
    let sandbox = attack(script, settings);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    let trace = sandbox.trace(0).to_string();
    assert_eq!(row["outcome"], "fail", "{script}: {row:#}");
    assert!(!trace.contains(ANSWER), "{script}: {trace}");
    assert!(!trace.contains("got in"), "{script}: {trace}");
    assert!(trace.contains("tried"), "{script}: {trace}");
    sandbox
}

#[test]
fn the_answers_are_out_of_reach() {
    if is_skipped() {
        return;
    }
    for script in [
        // To where Assize was started, by the parents' directories.
        "for p in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do cat /proc/$p/cwd/scenarios/s.yaml /proc/$p/root$1/scenarios/s.yaml; done",
        "cat $1/scenarios/s.yaml $1/checks/hidden.txt $1/notes.txt",
        "ln -s $1/scenarios/s.yaml link; cat link; ln -s $1 dir; cat dir/scenarios/s.yaml",
        "ln $1/scenarios/s.yaml hard; cat hard; cp -l $1/checks/hidden.txt also; cat also",
        "cat /proc/self/root$1/scenarios/s.yaml /proc/self/cwd/../../../../../..$1/notes.txt",
        "for f in /proc/self/fd/* /dev/fd/*; do test $(readlink -f $f) = /dev/stdin || timeout 1 cat $f </dev/null; done; ls -l /proc/self/fd | grep -c scenarios",
        "cd $1 && cat scenarios/s.yaml; cat ../../../../../../..$1/scenarios/s.yaml",
        "tr '\\0' '\\n' < /proc/$PPID/environ && echo got in; cat /proc/$PPID/maps && echo got in",
        "mv $1/scenarios/s.yaml . && echo got in; mv $1/agent.sh . && echo got in",
        "grep -r violet $1 /tmp /var/tmp 2>/dev/null",
        // By new descriptors, handles and mounts.
        "python3 -c 'import ctypes, os, sys\nc = ctypes.CDLL(None)\nh = ctypes.create_string_buffer(200); h[0] = 128; m = ctypes.c_int()\n\
         c.name_to_handle_at(-100, (sys.argv[1] + \"/notes.txt\").encode(), h, ctypes.byref(m), 0)\n\
         for d in \"/usr\", \".\", \"/dev/shm\":\n  f = c.open_by_handle_at(os.open(d, 0), h, 0); f < 0 or print(os.read(f, 99))\n\
         f = c.syscall(428, -100, sys.argv[1].encode(), 0x8001); f < 0 or print(os.read(os.open(\"notes.txt\", 0, dir_fd=f), 99))' $1",
        "unshare -Urm sh -c 'mount --bind \"$1\" . && cat notes.txt; cat \"$1/notes.txt\"' sh $1; chroot $1 /notes.txt",
        "python3 -c 'import os, sys; f = os.memfd_create(\"x\"); os.write(f, b\"cat $0/notes.txt\"); os.system(\"sh /proc/%d/fd/%d\" % (os.getpid(), f))' $1",
        // A directory that becomes a link to the suite while it is read.
        "mkdir -p x && echo mine > x/notes.txt && ln -s $1 y; for i in 1 2 3 4 5 6 7 8 9; do mv x z; mv -T y x; cat x/notes.txt; mv -T x y; mv z x; done",
        "git init -q r && git -C r worktree add $1/w; git clone -q $1 copy && cat copy/notes.txt; git diff --no-index /dev/null $1/notes.txt",
        "python3 -c 'import ctypes, sys; c = ctypes.CDLL(None)\nfor p in map(int, sys.argv[1:]):\n\
         \x20 d = c.syscall(434, p, 0)\n  [print(\"got in\") for f in range(12) if c.syscall(438, d, f, 0) >= 0]\n\
         \x20 c.ptrace(16, p, 0, 0) == 0 and print(\"got in\")' $PPID $(cut -d' ' -f4 /proc/$PPID/stat)",
        "python3 -c 'import os,sys; d=os.open(sys.argv[1], os.O_PATH); print(os.read(os.open(\"notes.txt\", os.O_RDONLY, dir_fd=d), 99))' $1",
    ] {
        fails(&format!("{script}\necho tried"), "");
    }
}

#[test]
fn history_that_holds_the_answers_is_out_of_reach() {
    if is_skipped() {
        return;
    }
    let script = "git init -q . 2>/dev/null; for d in $1/.git $1/../.git; do echo $d/objects >> .git/objects/info/alternates; done\n\
                  git cat-file --batch-all-objects --batch 2>&1 | grep -a violet\n\
                  git --git-dir=$1/.git log -p 2>&1 | grep -a violet; echo tried";
    let sandbox = attack(script, "");
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = std::process::Command::new("git");
        let status = git.args(who).args(arguments).current_dir(sandbox.path(""));
        assert!(status.status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "all"]);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    assert_eq!(row["outcome"], "fail", "{row:#}");
    let open = sandbox.read("assize.yaml") + "sandbox: none\n";
    sandbox.write("assize.yaml", &open);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    assert_eq!(
        row["outcome"], "pass",
        "the same attack succeeds without a wall: {row:#}"
    );
}

#[test]
fn without_a_wall_the_attack_succeeds_and_the_report_says_so() {
    let script = "cat /proc/$PPID/../self/root$1/scenarios/s.yaml";
    let sandbox = attack(script, "sandbox: none");
    let output = sandbox.assize(&["run", "--no-preflight"]).output().unwrap();
    let said = words(&output);
    assert!(
        said.contains("run without a sandbox, as the suite says"),
        "{said}"
    );
    assert_eq!(sandbox.rows()[0]["outcome"], "pass");
    let run = sandbox.last_run();
    let report = std::fs::read_to_string(run.join("report/report.md")).unwrap();
    assert!(report.contains("\nSandbox: none.\n"), "{report}");
    assert!(
        report.contains("> Agents ran without a sandbox"),
        "{report}"
    );
    let page = std::fs::read_to_string(run.join("report/report.html")).unwrap();
    assert!(page.contains("Sandbox: none."));
    let summary = std::fs::read_to_string(run.join("report/data/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let codes: Vec<&Value> = summary["cautions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|caution| &caution["code"])
        .collect();
    assert!(codes.contains(&&json!("weak-sandbox")), "{codes:?}");
    let manifest = std::fs::read_to_string(run.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["provenance"]["sandbox"][0]["sandbox"], "none");
}

#[test]
fn the_wall_is_told_in_manifest_and_report() {
    if is_skipped() {
        return;
    }
    let sandbox = fails("echo tried", "");
    let run = sandbox.last_run();
    let report = std::fs::read_to_string(run.join("report/report.md")).unwrap();
    assert!(report.contains("\nSandbox: guard.\n"), "{report}");
    assert!(!report.contains("without a sandbox"), "{report}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let wall = &manifest["provenance"]["sandbox"][0];
    assert_eq!(
        (&wall["mode"], &wall["sandbox"]),
        (&json!("plain"), &json!("guard"))
    );
}

#[test]
fn nothing_is_written_outside() {
    if is_skipped() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let script = format!(
        "for d in $1 $1/scenarios $1/.assize/runs {0} $HOME /tmp /var/tmp; do echo x > $d/assize-was-here && echo got in; \
         mkdir $d/assize-directory && echo got in; done\n\
         echo x >> $1/checks/hidden.txt && echo got in; truncate -s0 $1/notes.txt && echo got in; rm -f $1/agent.sh && echo got in\n\
         echo fine > own.txt && echo fine > $TMPDIR/own.txt && cat own.txt $TMPDIR/own.txt && echo tried",
        outside.path().display()
    );
    let sandbox = fails(&script, "");
    assert_eq!(sandbox.read("checks/hidden.txt"), ANSWER);
    assert_eq!(sandbox.read("notes.txt"), ANSWER);
    assert!(sandbox.path("agent.sh").exists());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn another_trial_is_out_of_reach() {
    if is_skipped() {
        return;
    }
    // Two at once: each writes a secret of its own, waits for the other, and looks for it everywhere it could be.
    let script = "echo secret-of-$$ > mine; echo secret-of-$$ > $TMPDIR/mine; sleep 1\n\
                  here=$(pwd -P); up=$(dirname $(dirname $here))\n\
                  for d in $up/*/workspace $up/../*/*/workspace $up/../session-* $up/../*/session-* /proc/[0-9]*/cwd; do cat $d/mine; done 2>/dev/null | grep secret-of | grep -v secret-of-$$ && echo got in\n\
                  ls $up && echo got in; ls $up/.. && echo got in; echo tried";
    let sandbox = attack(script, "");
    let suite = sandbox
        .read("assize.yaml")
        .replace("repetitions: 1", "repetitions: 2, concurrency: 2");
    sandbox.write("assize.yaml", &suite);
    for row in sandbox.run(&["--no-preflight"]) {
        assert_eq!(row["outcome"], "fail", "{row:#}");
    }
    for position in [0, 1] {
        let trace = sandbox.trace(position).to_string();
        assert!(
            trace.contains("tried") && !trace.contains("got in"),
            "{trace}"
        );
    }
}

#[test]
fn assize_can_be_neither_signalled_nor_inspected() {
    if is_skipped() {
        return;
    }
    let script = "for p in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do kill -0 $p && echo got in; kill -STOP $p && echo got in; \
                  readlink /proc/$p/cwd && echo got in; readlink /proc/$p/exe && echo got in; head -c1 /proc/$p/mem && echo got in; done\n\
                  sleep 9 & kill $! && echo tried";
    fails(script, "");
}

#[test]
fn tcp_can_be_limited_to_the_proxy_and_to_servers_that_the_suite_names() {
    if is_skipped() {
        return;
    }
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (named, other) = (listen(), listen());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let script = format!(
        "connect() {{ python3 -c \"import socket; socket.create_connection(('127.0.0.1', $1), 2)\"; }}\n\
         connect {} && echo got in; connect {} && echo named; python3 -c \"import os, urllib.parse, socket; \
         socket.create_connection(('127.0.0.1', urllib.parse.urlparse(os.environ['OPENAI_BASE_URL']).port), 2)\" && echo proxy; echo tried",
        port(&other),
        port(&named),
    );
    let settings = format!(
        "sandbox: {{ guard: {{ network: model }} }}\ncapture: {{ proxy: auto }}\nmodes: {{ plain: {{ environment: {{ DB: 'pg://localhost:{}/x' }} }} }}",
        port(&named)
    );
    let sandbox = attack(&script, &settings);
    let suite = sandbox
        .read("assize.yaml")
        .replacen("modes: { plain: {} }\n", "", 1);
    sandbox.write("assize.yaml", &suite);
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    let trace = sandbox.trace(0).to_string();
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert!(
        trace.contains("named") && trace.contains("proxy"),
        "{trace}"
    );
    assert!(!trace.contains("got in"), "{trace}");
    let report = std::fs::read_to_string(sandbox.last_run().join("report/report.md")).unwrap();
    assert!(
        report.contains("Sandbox: guard, TCP limited to the proxy's port."),
        "{report}"
    );
}

#[test]
fn a_limited_network_needs_a_proxy_and_near_servers() {
    let limited = "sandbox: { guard: { network: model } }";
    let said = attack("true", limited).refused(&["check"]);
    assert!(
        said.contains("does not go through") && said.contains("capture: { proxy: on }"),
        "{said}"
    );
    let sandbox = attack("true", limited);
    let suite = sandbox.read("assize.yaml").replacen(
        "provider: { uses: command,",
        "provider: { uses: claude-code, mcp_servers: { far: { url: 'https://docs.example.org/mcp' } } }\nextensions: { x: { uses: command,",
        1,
    );
    sandbox.write(
        "assize.yaml",
        &suite.replacen("'] }\nmodes", "'] } }\nmodes", 1),
    );
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("cannot let mode `plain` reach the MCP server `docs.example.org`"),
        "{said}"
    );
}

#[test]
fn overlays_and_copies_are_guarded_alike() {
    if is_skipped() {
        return;
    }
    for method in ["auto", "overlay", "recycle", "copy"] {
        let script = "echo more >> file && mkdir -p d/e && mv file d/e/file && ln d/e/file hard && ln -s d link && rm -r link hard\n\
                      cd .. && mv workspace other && mkdir workspace && mv other/d workspace/d && rmdir other && cat workspace/d/e/file && echo tried\n\
                      cat $1/notes.txt";
        let sandbox = attack(script, "");
        let scenario = sandbox.read("scenarios/s.yaml");
        sandbox.write(
            "scenarios/s.yaml",
            &scenario.replace("fixture }", &format!("fixture, method: {method} }}")),
        );
        let output = sandbox
            .assize(&["run", "-q", "--no-preflight"])
            .output()
            .unwrap();
        let said = words(&output);
        if said.contains("does not work") {
            assert_eq!(method, "overlay", "only overlays may be missing: {said}");
            continue;
        }
        assert!(output.status.success(), "{method}: {said}");
        let trace = sandbox.trace(0).to_string();
        assert!(
            trace.contains("tried") && !trace.contains(ANSWER),
            "{method}: {trace}"
        );
        assert_eq!(
            sandbox.rows()[0]["extensions"]["files_deleted"],
            1,
            "{method}"
        );
    }
}

#[test]
fn files_that_a_suite_names_are_shown_one_by_one() {
    if is_skipped() {
        return;
    }
    let sandbox = attack(
        "sh $1/tools/shown.sh; cat $1/tools/other.sh; cat $1/data/x; ls $1; echo tried",
        "",
    );
    sandbox.write("tools/shown.sh", "echo shown tool");
    sandbox.write("tools/other.sh", "echo other tool");
    sandbox.write("data/x", "shown data");
    let suite =
        sandbox
            .read("assize.yaml")
            .replacen("'] }", "', '--config={suite}/tools/shown.sh'] }", 1);
    sandbox.write(
        "assize.yaml",
        &(suite + "sandbox: { guard: { show: [data] } }\n"),
    );
    sandbox.run(&["--no-preflight"]);
    let trace = sandbox.trace(0).to_string();
    assert!(
        trace.contains("shown tool") && trace.contains("shown data"),
        "{trace}"
    );
    assert!(
        !trace.contains("other tool") && !trace.contains("scenarios"),
        "{trace}"
    );
}

#[test]
fn a_suite_can_hide_more() {
    if is_skipped() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("solution");
    std::fs::write(&file, ANSWER).unwrap();
    let script = format!("cat {} && echo got in; echo tried", file.display());
    fails(
        &script,
        &format!(
            "sandbox: {{ guard: {{ hide: ['{}'] }} }}",
            elsewhere.path().display()
        ),
    );
    let sandbox = attack(&script, "");
    assert_eq!(sandbox.run(&["--no-preflight"])[0]["outcome"], "pass");
}

#[test]
fn what_would_hide_nothing_is_said() {
    let said = attack("true", "sandbox: { guard: { hide: ['~/solutions'] } }").refused(&["check"]);
    assert!(
        said.contains("`~` is no home directory in suites")
            && said.contains("${env:HOME}/solutions"),
        "{said}"
    );
    let sandbox = attack("true", "sandbox: { guard: { hide: [../solutionz] } }");
    let output = sandbox.assize(&["check"]).output().unwrap();
    let said = words(&output);
    assert!(
        output.status.success() && said.contains("`hide` names `../solutionz`, which is not there"),
        "{said}"
    );
}

#[test]
fn what_trials_are_judged_by_cannot_be_shown() {
    for shown in [
        ".",
        "scenarios",
        "scenarios/s.yaml",
        "checks",
        "checks/hidden.txt",
        "assize.yaml",
        "..",
    ] {
        let settings = format!("sandbox: {{ guard: {{ show: ['{shown}'] }} }}");
        let said = attack("true", &settings).refused(&["check"]);
        assert!(
            said.contains("what trials are judged by stays hidden"),
            "{shown}: {said}"
        );
    }
    // Schemas of checks and of answers, and links to any of these.
    for shown in [
        "shape.json",
        "data/form.json",
        "data",
        "scenarios/answer.json",
        "link",
    ] {
        let settings = format!("sandbox: {{ guard: {{ show: ['{shown}'] }} }}");
        let sandbox = attack("true", &settings);
        for schema in ["shape.json", "data/form.json", "scenarios/answer.json"] {
            sandbox.write(schema, r#"{"type": "string"}"#);
        }
        std::os::unix::fs::symlink(sandbox.path("scenarios"), sandbox.path("link")).unwrap();
        let scenario = sandbox.read("scenarios/s.yaml").replace(
            "workspace:",
            "  - output: { schema: shape.json }\n  - not: { file: { path: a.json, schema: data/form.json } }\noutput_schema: answer.json\nworkspace:",
        );
        sandbox.write("scenarios/s.yaml", &scenario);
        let said = sandbox.refused(&["check"]);
        assert!(
            said.contains("what trials are judged by stays hidden"),
            "{shown}: {said}"
        );
    }
    let said = attack("true", "sandbox: { guard: { show: [missing] } }").refused(&["check"]);
    assert!(
        said.contains("`show` names `missing`, which is not there"),
        "{said}"
    );
    let sandbox = attack("true", "");
    let suite = sandbox
        .read("assize.yaml")
        .replace("'{suite}/agent.sh'", "'{suite}/scenarios/s.yaml'");
    sandbox.write("assize.yaml", &suite);
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("is given `{suite}/scenarios/s.yaml`, by which its trials are judged"),
        "{said}"
    );
}

#[test]
fn a_mode_and_a_scenario_have_walls_of_their_own() {
    if is_skipped() {
        return;
    }
    let sandbox = attack(
        "cat $1/notes.txt; echo tried",
        "modes: { plain: {}, open: { sandbox: none } }",
    );
    let suite = sandbox
        .read("assize.yaml")
        .replacen("modes: { plain: {} }\n", "", 1);
    sandbox.write("assize.yaml", &suite);
    let outcome = |mode: &str, rows: &[Value]| {
        rows.iter().find(|row| row["mode"] == mode).unwrap()["outcome"].clone()
    };
    let rows = sandbox.run(&["--no-preflight"]);
    assert_eq!(
        [outcome("plain", &rows), outcome("open", &rows)],
        [json!("fail"), json!("pass")]
    );
    let report = std::fs::read_to_string(sandbox.last_run().join("report/report.md")).unwrap();
    assert!(
        report.contains("Sandbox: guard (plain); none (open)."),
        "{report}"
    );
    let scenario = sandbox.read("scenarios/s.yaml") + "sandbox: guard\n";
    sandbox.write("scenarios/s.yaml", &scenario);
    let rows = sandbox.run(&["--no-preflight"]);
    assert_eq!(outcome("open", &rows), "fail");
}

#[test]
fn an_agent_without_a_workspace_starts_where_it_did_and_reads_what_it_is_named() {
    if is_skipped() {
        return;
    }
    let sandbox = attack_without_workspace(
        "pwd; cat notes.txt scenarios/s.yaml; cat named.txt; echo tried",
        "",
    );
    sandbox.write("named.txt", "named file");
    let suite = sandbox
        .read("assize.yaml")
        .replace("[sh, '{suite}/agent.sh',", "[sh, agent.sh, named.txt,");
    sandbox.write("assize.yaml", &suite);
    let scenario = sandbox.read("scenarios/s.yaml");
    let without_command = scenario.lines().filter(|line| !line.contains("command"));
    let scenario: Vec<&str> = without_command.collect();
    sandbox.write("scenarios/s.yaml", &scenario.join("\n"));
    let row = sandbox.run(&["--no-preflight"]).remove(0);
    let trace = sandbox.trace(0).to_string();
    assert_eq!(row["outcome"], "fail", "{trace}");
    assert!(
        trace.contains("named file") && trace.contains("tried"),
        "{trace}"
    );
    let here = sandbox.path("").canonicalize().unwrap();
    assert!(
        trace.contains(here.to_str().unwrap().trim_end_matches('/')),
        "{trace}"
    );
}

#[test]
fn tools_of_the_user_inside_the_suite_are_found_by_path() {
    if is_skipped() {
        return;
    }
    let sandbox = attack("my-tool; cat $1/notes.txt; echo tried", "");
    sandbox.write(
        ".venv/bin/my-tool",
        "#!/bin/sh\ncat $(dirname $0)/../lib/text\n",
    );
    sandbox.write(".venv/lib/text", "tool text");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(
        sandbox.path(".venv/bin/my-tool"),
        PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        sandbox.path(".venv/bin").display(),
        std::env::var("PATH").unwrap()
    );
    let output = sandbox
        .assize(&["run", "-q", "--no-preflight"])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let trace = sandbox.trace(0).to_string();
    assert!(
        trace.contains("tool text") && !trace.contains(ANSWER),
        "{trace}"
    );
}

#[test]
fn checks_hooks_and_set_up_commands_stay_outside() {
    let sandbox = attack(
        "echo violet-otter-93",
        "hooks: { before_scenario: 'cp notes.txt seen-by-hook' }",
    );
    let scenario = sandbox.read("scenarios/s.yaml").replace(
        "fixture }",
        &format!(
            "fixture, setup: ['cp {}/notes.txt copied && rm copied'] }}",
            sandbox.path("").display()
        ),
    );
    let check = format!(
        "  - command: {{ run: 'cp hidden.txt {}/seen-by-check', files: {{ hidden.txt: checks/hidden.txt }} }}\nworkspace",
        sandbox.path("").display()
    );
    sandbox.write(
        "scenarios/s.yaml",
        &scenario.replacen("workspace", &check, 1),
    );
    let row = sandbox.run(&[]).remove(0);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert!(
        Path::new(&sandbox.path("seen-by-check")).exists() && sandbox.path("seen-by-hook").exists()
    );
}

#[test]
fn a_wall_that_cannot_be_had_is_refused_where_it_stands() {
    for (suite, scenario, expected) in [
        (
            "sandbox: { container: {} }",
            "",
            "assize.yaml:3:12: found neither `image` nor `build`",
        ),
        (
            "",
            "sandbox: { container: { image: debian, build: . } }",
            "s.yaml:3:12: found `image` and `build`",
        ),
        (
            "sandbox: { container: { build: nowhere } }",
            "",
            "there is no `Dockerfile` in `nowhere`",
        ),
        (
            "sandbox: { container: { image: debian, memory_mb: 1 } }",
            "",
            "expected at least 8 megabytes",
        ),
        (
            "sandbox: { container: { image: debian, cpus: 0 } }",
            "",
            "expected a number greater than 0",
        ),
        (
            "sandbox: { container: { image: debian, mounts: [data] } }",
            "",
            "expected `HOST:INSIDE`",
        ),
        (
            "sandbox: { container: { image: debian, mounts: [\".:/suite:ro\"] } }",
            "",
            "would show agents the suite",
        ),
        (
            "sandbox: { container: { image: debian, network: model } }\ncapture: { proxy: off }",
            "",
            "through the proxy alone",
        ),
        (
            "provider: { uses: simulated }\nsandbox: { container: { image: debian } }\nmodes: { a: {} }",
            "",
            "cannot be put into a container",
        ),
        ("sandbox: gaurd", "", "unknown value `gaurd`"),
        (
            "sandbox: { guard: { hyde: [x] } }",
            "",
            "unknown key `hyde`",
        ),
        ("sandbox: { guard: { hide: [/] } }", "", "`hide` names `/`"),
    ] {
        let sandbox = Sandbox::of("true", suite, scenario);
        if suite.starts_with("provider") {
            let whole = format!("scenarios: {{ paths: [s.yaml] }}\n{suite}\n");
            sandbox.write("assize.yaml", &whole);
        }
        let said = sandbox.refused(&["check"]);
        assert!(said.contains(expected), "{said}");
    }
}

/// A kernel without Landlock, as programs see it: the system calls are refused.
const OLD_KERNEL: &str = r#"
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)]
rules = b"".join(struct.pack("HBBI", *rule) for rule in code)
buffer = ctypes.create_string_buffer(rules)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
program = Program(len(code), ctypes.cast(buffer, ctypes.c_void_p))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn an_old_kernel_runs_agents_without_a_wall_and_says_so() {
    let sandbox = attack("cat $1/notes.txt; echo tried", "");
    sandbox.write("old-kernel.py", OLD_KERNEL);
    let assize = sandbox.assize(&[]);
    let mut command = std::process::Command::new("python3");
    command
        .arg(sandbox.path("old-kernel.py"))
        .arg(assize.get_program());
    command
        .args(["run", "--no-preflight"])
        .current_dir(sandbox.path(""));
    for (name, value) in assize.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    let said = words(&output);
    assert!(
        said.contains("without a sandbox, because this kernel has no Landlock"),
        "{said}"
    );
    assert_eq!(sandbox.rows()[0]["outcome"], "pass", "{said}");
    let report = std::fs::read_to_string(sandbox.last_run().join("report/report.md")).unwrap();
    assert!(
        report.contains("> Agents ran without a sandbox, because this kernel has no Landlock"),
        "{report}"
    );
}
