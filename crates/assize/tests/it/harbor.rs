//! Harbor tasks as far as no container is needed: what they ask for, and what of it is refused by name.

use crate::sandbox::{Sandbox, words};
use serde_json::Value;

const TASK: &str = "schema_version = \"1.4\"\n[agent]\ntimeout_sec = 90.0\n[environment]\ndocker_image = \"debian:12\"\n\
    cpus = 2\nmemory_mb = 512\nnetwork_mode = \"no-network\"\nstorage_mb = 10\n[verifier]\nenvironment_mode = \"separate\"\n";

/// A suite of Harbor tasks with one good one and another of this `task.toml`.
fn tasks(other: &str) -> Sandbox {
    let sandbox = Sandbox::of("true", "", "");
    let suite = sandbox.read("assize.yaml");
    let suite = suite.replace(
        "scenarios: { paths: [s.yaml] }",
        "scenarios: { harbor: [tasks] }",
    );
    sandbox.write("assize.yaml", &suite);
    for (name, task) in [("good", TASK), ("other", other)] {
        sandbox.write(&format!("tasks/{name}/task.toml"), task);
        sandbox.write(&format!("tasks/{name}/instruction.md"), "Do it.\n");
        sandbox.write(&format!("tasks/{name}/tests/test.sh"), "#!/bin/sh\n");
    }
    sandbox
}

#[test]
fn tasks_are_listed_with_what_they_ask_for() {
    let sandbox = tasks(TASK);
    let listed = sandbox.done(&["import", "harbor", "tasks", "--json"]);
    let tasks: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(tasks.len(), 2);
    let good = &tasks[0];
    assert_eq!(good["id"], "good");
    assert_eq!(good["agentTimeoutMs"], 90_000);
    assert_eq!(
        (&good["image"], &good["network"], &good["verifier"]),
        (&"debian:12".into(), &"model".into(), &"separate".into())
    );
    assert_eq!(
        (good["cpus"].as_f64(), good["memoryMb"].as_u64()),
        (Some(2.0), Some(512))
    );
    assert!(good["remarks"][0].as_str().unwrap().contains("storage_mb"));
    let table = sandbox.done(&["import", "harbor", "tasks"]);
    assert!(
        table.contains("good") && table.contains("512 MB"),
        "{table}"
    );
}

#[test]
fn a_suite_of_tasks_checks_and_plans_them_as_scenarios() {
    let sandbox = tasks(TASK);
    let said = sandbox.done(&["check"]);
    assert!(said.contains("2 scenarios in 1 mode"), "{said}");
    let plan = sandbox.done(&["run", "--dry-run", "--scenario", "good"]);
    assert!(plan.contains("good") && !plan.contains("other"), "{plan}");
}

#[test]
fn what_cannot_be_had_is_refused_by_name_with_its_place() {
    for (task, expected) in [
        (
            "[environment]\ndocker_image = \"x\"\ngpus = 1\n",
            "tasks/other/task.toml:3:1: tasks that need a GPU cannot be run",
        ),
        (
            "[environment]\ndocker_image = \"x\"\n[environment.tpu]\ntype = \"v6e\"\n",
            "TPU",
        ),
        (
            "[environment]\ndocker_image = \"x\"\nnetwork_mode = \"allowlist\"\n",
            "`allowlist` is not supported",
        ),
        (
            "[[steps]]\nname = \"a\"\n[environment]\ndocker_image = \"x\"\n",
            "several steps",
        ),
        (
            "[environment]\n",
            "found neither `docker_image` nor `environment/Dockerfile`",
        ),
        ("[environment]\ndocker_image = 3\n", "task.toml:2"),
    ] {
        let sandbox = tasks(task);
        let said = sandbox.refused(&["check"]);
        assert!(said.contains(expected), "{said}");
        let output = sandbox
            .assize(&["import", "harbor", "tasks"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("good"));
    }
    let sandbox = tasks(TASK);
    sandbox.write(
        "tasks/other/environment/docker-compose.yaml",
        "services: {}\n",
    );
    let said = sandbox.refused(&["check"]);
    assert!(said.contains("compose file of several services"), "{said}");
}

#[test]
fn a_suite_of_tasks_is_written_once() {
    let sandbox = tasks(TASK);
    sandbox.done(&["import", "harbor", "tasks", "--save", "mine"]);
    let suite = sandbox.read("mine/assize.yaml");
    assert!(
        suite.contains("harbor: [") && suite.contains("claude-code"),
        "{suite}"
    );
    let said = sandbox.refused(&["import", "harbor", "tasks", "--save", "mine"]);
    assert!(said.contains("exists already"), "{said}");
    let said = sandbox.refused(&["import", "harber", "tasks"]);
    assert!(said.contains("did you mean `harbor`?"), "{said}");
    let said = sandbox.refused(&["import", "harbor", "mine"]);
    assert!(said.contains("no Harbor task"), "{said}");
}

#[test]
fn an_oracle_has_nothing_to_prove_without_tasks() {
    let sandbox = Sandbox::of("true", "", "");
    let output = sandbox.assize(&["check", "--oracle"]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert!(words(&output).contains("no Harbor tasks"));
}
