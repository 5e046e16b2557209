//! Runs tests one after another and says why some cannot run. Understands a filter, `--list` and `--all`.

use crate::offline;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// The agents' programs.
    pub(crate) needs: Needs,
    pub(crate) speed: Speed,
    pub(crate) body: fn(),
}

#[derive(PartialEq, Eq)]
pub(crate) enum Speed {
    /// Always run.
    Quick,
    /// Run with `--all`.
    Slow,
}

type Needs = &'static [&'static str];

pub(crate) const fn quick(name: &'static str, needs: Needs, body: fn()) -> Test {
    Test {
        name,
        needs,
        speed: Speed::Quick,
        body,
    }
}

pub(crate) const fn slow(name: &'static str, needs: Needs, body: fn()) -> Test {
    Test {
        name,
        needs,
        speed: Speed::Slow,
        body,
    }
}

pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_wanted = |test: &&Test| {
        filters.is_empty() || filters.iter().any(|filter| test.name.contains(*filter))
    };
    let wanted: Vec<&Test> = tests.iter().filter(is_wanted).collect();
    if has("--list") {
        wanted
            .iter()
            .for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", wanted.len());
    let (mut passed, mut ignored, mut failed) = (0, 0, Vec::new());
    let started = Instant::now();
    for test in &wanted {
        if let Some(reason) = why_not(test, has("--all")) {
            println!("test {} ... ignored, {reason}", test.name);
            ignored += 1;
            continue;
        }
        let began = Instant::now();
        let is_fine = catch_unwind(test.body).is_ok();
        let seconds = began.elapsed().as_secs_f64();
        if is_fine {
            println!("test {} ... ok ({seconds:.1} s)", test.name);
            passed += 1;
        } else {
            println!("test {} ... FAILED ({seconds:.1} s)", test.name);
            failed.push(test.name);
        }
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        failed.len(),
        tests.len() - wanted.len(),
        started.elapsed().as_secs_f64()
    );
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn why_not(test: &Test, all: bool) -> Option<String> {
    if test.speed == Speed::Slow && !all {
        return Some("`make test-agents` runs it".to_owned());
    }
    let missing = test
        .needs
        .iter()
        .find(|name| !offline::program(name).exists());
    if let Some(name) = missing {
        return Some(format!("`{name}` is not installed, `make agents` does it"));
    }
    offline::why_no_namespace()
}
