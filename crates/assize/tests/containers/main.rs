//! Agents in real containers, and Harbor tasks. `tests/containers/install.sh` installs podman and makes a small image.
//!
//! A harness of its own, because whether a test can run is known only here: there may be no podman, no memory controller, or no
//! statically linked `assize` (`ASSIZE_TEST_STATIC` names one). Such tests count as ignored, with the reason. The long ones run
//! with `ASSIZE_TEST_LONG=1` only.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod place;

use libtest_mimic::{Arguments, Completion, Trial};
use place::{IMAGE, Place, containers, eventually, podman};
use serde_json::Value;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Requirements of a test besides podman and the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A statically linked `assize`.
    Static,
    /// The dynamically linked one that cargo builds.
    Dynamic,
    /// The memory controller of cgroups.
    Memory,
    /// The client of docker, to talk to podman's socket.
    Docker,
    /// npm, to fetch agents.
    Npm,
    /// npm, Python for the scripted LLM, and a statically linked `assize`.
    Agent,
}

struct Test {
    name: &'static str,
    is_long: bool,
    needs: Needs,
    run: fn(),
}

macro_rules! tests {
    ($($speed:ident $needs:ident: $($test:ident),+;)+) => {
        [$($(Test { name: stringify!($test), is_long: stringify!($speed) == "long", needs: Needs::$needs, run: $test }),+),+]
    };
}

fn main() -> ExitCode {
    let tests = tests! {
        short Nothing: an_agent_works_in_a_container_and_sees_nothing_of_the_suite, time_that_is_over_ends_what_runs_inside,
            a_killed_run_leaves_no_container, another_user_works_inside, a_program_that_is_missing_is_no_verdict_and_is_named;
        short Dynamic: a_dynamic_program_cannot_lead_to_the_model;
        short Static: an_agent_reaches_its_model_and_nothing_else;
        long Nothing: harbor_tasks_run_as_they_are, the_oracle_proves_tasks, twenty_at_once, what_a_killed_keeper_leaves_is_swept,
            files_of_the_suite_are_mounted_one_by_one, acp_agents_work_inside;
        long Memory: memory_that_is_used_up_is_named;
        long Docker: docker_by_the_compatible_socket, an_engine_elsewhere_gets_copies;
        long Agent: codex_works_with_nothing_but_its_model;
        long Npm: a_static_agent_is_added_to_an_image, an_npm_agent_is_added_to_an_image;
    };
    let arguments = Arguments::from_args();
    let trials = tests.into_iter().map(|test| {
        Trial::ignorable_test(test.name, move || match obstacle(&test) {
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => {
                (test.run)();
                Ok(Completion::Completed)
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn obstacle(test: &Test) -> Option<String> {
    let has = |program: &str| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .output();
        found.is_ok_and(|output| output.status.success())
    };
    if !has("podman") || podman(&["image", "exists", IMAGE]).is_none() {
        return Some(
            "podman or its test image is missing; tests/containers/install.sh installs them"
                .to_owned(),
        );
    }
    if test.is_long && std::env::var_os("ASSIZE_TEST_LONG").is_none() {
        return Some("takes long; `make test-containers` runs it".to_owned());
    }
    let is_static = std::env::var_os("ASSIZE_TEST_STATIC").is_some();
    let reason = match test.needs {
        Needs::Static if !is_static => {
            "needs a statically linked assize; `make test-containers` builds one"
        }
        Needs::Dynamic if is_static => "needs the dynamically linked assize that cargo builds",
        Needs::Memory if !has_memory_controller() => {
            "this machine has no memory controller of cgroups"
        }
        Needs::Docker if !has("docker") => "there is no client of docker",
        Needs::Npm if !has("npm") => "there is no npm",
        Needs::Agent if !has("npm") || !has("python3") => "there is no npm or no python3",
        Needs::Agent if !is_static => {
            "needs a statically linked assize; `make test-containers` builds one"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

fn has_memory_controller() -> bool {
    let controllers =
        std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    std::path::Path::new("/sys/fs/cgroup/memory").is_dir() || controllers.contains("memory")
}

const CONTAINER: &str =
    "sandbox: { container: { image: \"localhost/assize-test:1\", network: none } }";

/// The fields of a row's metrics.
fn metric(row: &Value, name: &str) -> Option<f64> {
    row["extensions"][name].as_f64()
}

fn an_agent_works_in_a_container_and_sees_nothing_of_the_suite() {
    let place = Place::of(
        "cat a.txt; echo done > out.txt; ls {suite} >&2 || true; ls -d /usr/lib >&2 || echo alone; echo key=$SOME_KEY; exit 0",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 2, concurrency: 2 }}"),
        "workspace: { from: fixture }\n\
         checks:\n\
         - output: { contains: alone }\n\
         - output: { contains: hello }\n\
         - output: { contains: key=abc }\n\
         - file: { path: out.txt, contains: done }\n\
         - command: { run: \"test -f out.txt && test -f hidden.txt && test ! -e /usr/lib\", files: { hidden.txt: secret.txt } }\n\
         - command: { run: \"test -e /usr/lib && test -f hidden.txt\", in: host }\n\
         - not: { output: { contains: assize.yaml } }",
    );
    place.write("fixture/a.txt", "hello\n");
    place.write("secret.txt", "answer\n");
    let rows = place.run(&[]);
    for row in &rows {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        assert!(
            metric(row, "program_peak_memory_bytes").is_some_and(|bytes| bytes > 0.0),
            "{row:#}"
        );
        assert!(metric(row, "program_cpu_ms").is_some_and(|ms| ms > 0.0));
        assert_eq!(metric(row, "program_oom_kills"), Some(0.0));
    }
    let wall = &place.manifest()["provenance"]["sandbox"][0];
    assert_eq!(wall["words"], "container, no network", "{wall:#}");
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn time_that_is_over_ends_what_runs_inside() {
    let place = Place::of(
        "trap 'echo asked; exit 3' INT; echo begun; sleep 60 & wait",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 1, timeout_default_ms: 1500 }}"),
        "",
    );
    place.replace(
        "assize.yaml",
        "uses: command",
        "uses: command, polite_signal: INT, grace_ms: 3000",
    );
    let began = Instant::now();
    let row = &place.run(&[])[0];
    assert_eq!(row["completionReason"], "timeout", "{row:#}");
    // It was asked politely inside, and what it used is known.
    assert_eq!(metric(row, "program_exit_code"), Some(3.0), "{row:#}");
    assert!(metric(row, "program_cpu_ms").is_some());
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn a_killed_run_leaves_no_container() {
    let place = Place::of(
        "sleep 60",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 1 }}"),
        "",
    );
    let mut run = place
        .assize(&["run", "-q", "--skip-warmup"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a container runs", || {
        place.has_run() && !containers(&place.run_id()).is_empty()
    });
    run.kill().unwrap();
    run.wait().unwrap();
    eventually("the container is removed", || {
        containers(&place.run_id()).is_empty()
    });
}

fn a_program_that_is_missing_is_no_verdict_and_is_named() {
    let place = Place::of(
        "true",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 1 }}"),
        "",
    );
    place.replace("assize.yaml", "\"sh\",\"-c\",\"true\"", "\"no-such-agent\"");
    let row = &place.run(&[])[0];
    assert_eq!(row["outcome"], "void", "{row:#}");
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("not in the image") && error.contains("assize image build"),
        "{error}"
    );
}

fn a_dynamic_program_cannot_lead_to_the_model() {
    let place = Place::of(
        "true",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: model } }",
        "",
    );
    let output = place.assize(&["run", "--skip-warmup"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        said.contains("dynamically linked") && said.contains("crt-static"),
        "{said}"
    );
}

fn an_agent_reaches_its_model_and_nothing_else() {
    let llm = place::Llm::start();
    let place = Place::of(
        "wget -q -O - --header 'content-type: application/json' \
         --post-data '{\"model\":\"m\",\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"ping\"}]}' $ANTHROPIC_BASE_URL/v1/messages; echo; \
         (echo; sleep 1) | nc -w 2 127.0.0.1 PORT >/dev/null 2>&1 && echo reached-the-host; \
         ip link | grep -c ': e' ; echo end",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: model } }\nexecution: { repetitions: 2, concurrency: 2 }",
        "checks:\n- output: { contains: pong }\n- not: { output: { contains: reached-the-host } }\n- output: { contains: end }",
    );
    place.replace("assize.yaml", "PORT", &llm.port().to_string());
    place.append(
        "assize.yaml",
        &format!(
            "capture: {{ upstream: {{ anthropic: \"http://127.0.0.1:{}\" }} }}\n",
            llm.port()
        ),
    );
    for row in place.run(&[]) {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        // In our books, although the agent reports nothing.
        assert_eq!(row["tokens"]["total"], 18, "{row:#}");
    }
    let manifest = place.manifest();
    assert!(
        manifest.to_string().contains("\"network\":\"model\""),
        "{manifest:#}"
    );
}

fn harbor_place(agent: &str) -> Place {
    let place = Place::of(agent, "execution: { repetitions: 1, concurrency: 3 }", "");
    place.replace(
        "assize.yaml",
        "scenarios: { paths: [s.yaml] }",
        "scenarios: { harbor: [tasks] }",
    );
    place.replace(
        "assize.yaml",
        "uses: command",
        "uses: command, success_exit: any",
    );
    place.copy_tasks();
    place
}

const SOLVER: &str = "case \\\"$0\\\" in *GREETING*) echo $GREETING > /app/greeting.txt;; \
     *sum*) mkdir -p /app/out; touch /app/agent-was-here; echo 42 > /app/out/sum.txt;; \
     *) echo 1 > /logs/verifier/reward.txt; mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh;; esac; ls /tests /solution";

fn harbor_tasks_run_as_they_are() {
    let place = harbor_place("true");
    place.replace(
        "assize.yaml",
        "\"sh\",\"-c\",\"true\"",
        &format!("\"sh\",\"-c\",\"{SOLVER}\",\"{{prompt}}\""),
    );
    // No proxy is needed by an agent that asks no model.
    place.append("assize.yaml", "sandbox: { container: { network: none } }\n");
    let rows = place.run(&[]);
    let outcome = |id: &str| {
        let row = rows.iter().find(|row| row["scenarioId"] == id).unwrap();
        (
            row["outcome"].as_str().unwrap().to_owned(),
            row["extensions"].clone(),
        )
    };
    let (healthy, metrics) = outcome("healthy-file");
    assert_eq!(
        (healthy.as_str(), &metrics["reward"]),
        ("pass", &Value::from(1))
    );
    let (separate, metrics) = outcome("separate-sum");
    assert_eq!(
        (separate.as_str(), &metrics["reward_clean"]),
        ("pass", &Value::from(1))
    );
    // An agent that writes its own reward and its own tests earns nothing by it.
    let (cheated, metrics) = outcome("broken-oracle");
    assert_eq!(
        (cheated.as_str(), &metrics["reward"]),
        ("fail", &Value::from(0))
    );
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn the_oracle_proves_tasks() {
    let place = harbor_place("true");
    let output = place.assize(&["check", "--oracle"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        "healthy-file is proved",
        "separate-sum is proved",
        "broken-oracle is NOT PROVED",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(containers("oracle"), Vec::<String>::new());
}

fn twenty_at_once() {
    let place = Place::of(
        "sleep 2; echo ok",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 20, concurrency: 20 }}"),
        "checks: [{ output: { contains: ok } }]",
    );
    let began = Instant::now();
    let rows = place.run(&[]);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    assert_eq!(rows.len(), 20);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn memory_that_is_used_up_is_named() {
    let place = Place::of(
        "x=$(head -c 300000000 /dev/zero | tr '\\0' a); echo ${#x}",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: none, memory_mb: 64 } }\nexecution: { repetitions: 1 }",
        "",
    );
    let row = &place.run(&[])[0];
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert_eq!(row["errorCode"], "out_of_memory", "{row:#}");
    assert!(metric(row, "program_oom_kills").is_some_and(|kills| kills >= 1.0));
    assert!(metric(row, "program_peak_memory_bytes").is_some_and(|bytes| bytes <= 67_108_864.0));
}

fn what_a_killed_keeper_leaves_is_swept() {
    let place = Place::of(
        "true",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 1 }}"),
        "",
    );
    // As a run whose owner and keepers were all killed leaves it: labelled, with an owner that is no more.
    let owner = place::dead_owner();
    let abandoned = format!("assize-test-abandoned-{}", std::process::id());
    let label = format!("assize.owner={owner}");
    podman(&[
        "run",
        "-d",
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
        "--network",
        "none",
        "--name",
        &abandoned,
        "--label",
        &label,
        IMAGE,
        "sleep",
        "600",
    ])
    .unwrap();
    let strangers = format!("assize-test-stranger-{}", std::process::id());
    podman(&[
        "run",
        "-d",
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
        "--network",
        "none",
        "--name",
        &strangers,
        "--label",
        "assize.owner=x:y:1:2:3",
        IMAGE,
        "sleep",
        "600",
    ])
    .unwrap();
    let said = place.done(&["runs", "prune"]);
    let exists = |name: &str| podman(&["container", "exists", name]).is_some();
    let (abandoned_is_there, strangers_is_there) = (exists(&abandoned), exists(&strangers));
    podman(&["rm", "-f", "-t", "0", &strangers]);
    assert!(!abandoned_is_there, "{said}");
    assert!(strangers_is_there, "{said}");
}

fn files_of_the_suite_are_mounted_one_by_one() {
    let place = Place::of(
        "true",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 1 }}"),
        "checks: [{ output: { contains: from-the-suite } }, { not: { output: { contains: assize.yaml } } }]",
    );
    place.write(
        "agent.sh",
        "#!/bin/sh\necho from-the-suite; ls $(dirname $0)\n",
    );
    place.make_executable("agent.sh");
    place.replace("assize.yaml", "\"sh\",\"-c\",\"true\"", "\"./agent.sh\"");
    let row = &place.run(&[])[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    // The suite itself cannot be mounted.
    place.replace(
        "assize.yaml",
        "network: none",
        "network: none, mounts: [\".:/suite\"]",
    );
    let said = place.refused(&["check"]);
    assert!(said.contains("would show agents the suite"), "{said}");
}

/// An agent that speaks ACP, for the small shell of the image.
const ACP_AGENT: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
  case "$line" in
  *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
  *'"session/new"'*) answer '{"sessionId":"s1"}' ;;
  *'"session/prompt"'*)
    ls -d /usr/lib 2> /dev/null || echo alone >> where.txt
    echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"from inside"}}}}'
    answer '{"stopReason":"end_turn"}' ;;
  esac
done
"#;

fn acp_agents_work_inside() {
    let place = Place::of(
        "true",
        &format!("{CONTAINER}\nexecution: {{ repetitions: 2, concurrency: 2 }}"),
        "workspace: {}\nturns: [again]\nchecks: [{ output: { contains: from inside } }, { file: { path: where.txt, contains: alone } }]",
    );
    place.write("agent.sh", ACP_AGENT);
    place.make_executable("agent.sh");
    place.replace("assize.yaml", "\"sh\",\"-c\",\"true\"", "\"./agent.sh\"");
    place.replace("assize.yaml", "uses: command", "uses: acp");
    for row in place.run(&[]) {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        assert!(metric(&row, "program_peak_memory_bytes").is_some_and(|bytes| bytes > 0.0));
        assert_eq!(metric(&row, "program_oom_kills"), Some(0.0));
    }
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn docker_by_the_compatible_socket() {
    let service = place::Service::start("unix");
    let place = Place::of(
        "echo ok > out.txt; echo ok",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: none, engine: docker } }\nexecution: { repetitions: 1 }",
        "workspace: {}\nchecks: [{ file: { path: out.txt, contains: ok } }, { command: { run: \"test -f out.txt\" } }]",
    );
    let rows = place.run_with("DOCKER_HOST", &service.address);
    assert_eq!(rows[0]["outcome"], "pass", "{:#}", rows[0]);
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn an_engine_elsewhere_gets_copies() {
    let service = place::Service::start("tcp");
    let place = Place::of(
        "cat a.txt; rm a.txt; mkdir -p d; echo ok > d/out.txt",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: none, engine: docker } }\nexecution: { repetitions: 1 }",
        "workspace: { from: fixture }\nchecks: [{ output: { contains: hello } }, { file: { path: d/out.txt, contains: ok } }, { changed: { only: [a.txt, d/out.txt] } }, { command: { run: \"test -f d/out.txt && test ! -e a.txt\" } }]",
    );
    place.write("fixture/a.txt", "hello\n");
    let rows = place.run_with("DOCKER_HOST", &service.address);
    assert_eq!(rows[0]["outcome"], "pass", "{:#}", rows[0]);
    // What cannot be mounted there is refused by name.
    place.replace("assize.yaml", "network: none", "network: model");
    let output = place
        .assize(&["run", "-q", "--skip-warmup"])
        .env("DOCKER_HOST", &service.address)
        .output()
        .unwrap();
    assert!(!output.status.success());
}

fn a_static_agent_is_added_to_an_image() {
    let place = Place::of("true", CONTAINER, "");
    let image = place.done(&["image", "build", "--agent", "codex", "--from", IMAGE]);
    let image = image.trim();
    let version = podman(&[
        "run",
        "--rm",
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
        "--network",
        "none",
        image,
        "codex",
        "--version",
    ])
    .unwrap();
    assert!(version.contains("codex"), "{version}");
    let again = Instant::now();
    assert_eq!(
        place
            .done(&["image", "build", "--agent", "codex", "--from", IMAGE])
            .trim(),
        image
    );
    assert!(again.elapsed() < Duration::from_secs(20));
    podman(&["rmi", "-f", image]);
}

fn an_npm_agent_is_added_to_an_image() {
    let base = place::node_image();
    let place = Place::of("true", CONTAINER, "");
    let mut build = vec![
        "image",
        "build",
        "--agent",
        "qwen",
        "--from",
        &base,
        "--host-network",
    ];
    let variables = place::npm_variables();
    for variable in &variables {
        build.extend(["--env", variable]);
    }
    let image = place.done(&build);
    let image = image.trim();
    let found = podman(&[
        "run",
        "--rm",
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
        "--network",
        "none",
        image,
        "sh",
        "-c",
        "command -v qwen",
    ])
    .unwrap();
    podman(&["rmi", "-f", image, &base]);
    assert!(found.trim().ends_with("/qwen"), "{found}");
}

fn codex_works_with_nothing_but_its_model() {
    let llm = place::ScriptedLlm::start("echo made > made.txt");
    let place = Place::of(
        "true",
        "",
        "workspace: {}\ntimeout_ms: 60000\nchecks: [{ file: { path: made.txt, contains: made } }]",
    );
    place.write(
        "assize.yaml",
        &format!(
            "provider: {{ uses: codex }}\npermissions: {{ auto_approve: true }}\nmodels: [gpt-5.1]\nmodes: {{ plain: {{}} }}\n\
             capture: {{ upstream: {{ openai: \"http://127.0.0.1:{}/v1\" }} }}\n\
             sandbox: {{ container: {{ image: \"{IMAGE}\", network: model, install_agent: true }} }}\n\
             scenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 1 }}\n",
            llm.port
        ),
    );
    let rows = place.run_with("OPENAI_API_KEY", "sk-test-0123456789abcdef");
    assert_eq!(rows[0]["outcome"], "pass", "{:#}", rows[0]);
    assert!(
        rows[0]["tokens"]["total"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{:#}",
        rows[0]
    );
    assert_eq!(containers(&place.run_id()), Vec::<String>::new());
}

fn another_user_works_inside() {
    let place = Place::of(
        "id -u; echo done > out.txt; test -w $HOME/x || touch $HOME/x; echo $?",
        "sandbox: { container: { image: \"localhost/assize-test:1\", network: none, user: agent } }\nexecution: { repetitions: 1 }",
        "workspace: { from: fixture }\nchecks: [{ output: { contains: \"1000\" } }, { file: { path: out.txt, contains: done } }, { command: { run: \"id -u > who.txt && grep -q 1000 who.txt\" } }]",
    );
    place.write("fixture/a.txt", "hello\n");
    let rows = place.run(&[]);
    assert_eq!(rows[0]["outcome"], "pass", "{:#}", rows[0]);
}
