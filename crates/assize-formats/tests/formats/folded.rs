//! Folded stacks: tokens, time and cost, and the difference of two modes.

use crate::sample::{session, trial};
use assize_formats::folded::{Stacks, Weight, difference};

fn fold(weight: Weight) -> Stacks {
    let mut stacks = Stacks::default();
    stacks.add(&trial(), weight, true).unwrap();
    stacks
}

#[test]
fn tokens_are_folded_by_class_and_unknown_calls_are_counted() {
    let stacks = fold(Weight::Tokens);
    let lines = stacks.lines();
    for line in [
        "list-files;turn 1;chat claude-x;cache read 12000\n",
        "list-files;turn 1;chat claude-x;reasoning 10\n",
        "list-files;turn 1;chat small-x;input 50\n",
        "list-files;turn 1;tool:Task;subagent;chat claude-x;output 8\n",
    ] {
        assert!(lines.contains(line), "{line} in\n{lines}");
    }
    assert_eq!(stacks.unknown, 1);
    // Every token of the known calls, once.
    let known: u64 = trial()
        .trace
        .model_calls
        .iter()
        .filter_map(|call| call.tokens.total)
        .sum();
    assert_eq!(stacks.weights.values().sum::<u64>(), known);
}

#[test]
fn time_is_each_frames_own() {
    let lines = fold(Weight::Time).lines();
    for line in [
        "list-files;turn 1;chat claude-x 900\n",
        "list-files;turn 1;tool:Bash 400\n",
        // 2000 ms of which the subagent's call and tool take 1400 and 100.
        "list-files;turn 1;tool:Task;subagent;chat claude-x 1400\n",
        "list-files;turn 1;tool:Task;subagent;tool:Read 100\n",
    ] {
        assert!(lines.contains(line), "{line} in\n{lines}");
    }
    assert!(
        !lines.contains('\r')
            && lines
                .lines()
                .all(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().is_ok())
    );
}

#[test]
fn cost_is_in_millionths_of_a_dollar() {
    let lines = fold(Weight::Cost).lines();
    assert!(
        lines.contains("list-files;turn 1;chat claude-x 9000\n"),
        "{lines}"
    );
    assert!(
        lines.contains("list-files;turn 1;chat small-x 100\n"),
        "{lines}"
    );
}

#[test]
fn names_cannot_break_the_lines() {
    let mut session = session();
    session.trace.session_id = "a;b\nc".to_owned();
    let mut stacks = Stacks::default();
    stacks.add(&session, Weight::Cost, true).unwrap();
    assert!(
        stacks.lines().starts_with("session a,b c;turn 1;"),
        "{}",
        stacks.lines()
    );
}

#[test]
fn a_difference_is_of_means_per_session() {
    let fold = |sessions: usize, cost: f64| {
        let mut stacks = Stacks::default();
        for _ in 0..sessions {
            let mut session = trial();
            session.trace.model_calls.truncate(1);
            session.trace.model_calls[0].cost_usd = assize_contracts::Usd::new(cost);
            stacks.add(&session, Weight::Cost, false).unwrap();
        }
        stacks
    };
    assert_eq!(
        difference(&fold(1, 0.004), &fold(3, 0.002)),
        "list-files;chat claude-x 4000 2000\n"
    );
}

#[test]
fn a_session_of_which_nothing_is_known_is_none_in_a_mean() {
    let with_costs = |costs: &[Option<f64>]| {
        let mut stacks = Stacks::default();
        for cost in costs {
            let mut session = trial();
            session.trace.model_calls.truncate(1);
            session.trace.model_calls[0].cost_usd = cost.and_then(assize_contracts::Usd::new);
            stacks.add(&session, Weight::Cost, false).unwrap();
        }
        stacks
    };
    let half = with_costs(&[Some(0.004), None]);
    assert_eq!((half.sessions, half.unknown), (1, 1));
    assert_eq!(
        difference(&half, &half),
        "list-files;chat claude-x 4000 4000\n"
    );
    assert_eq!(with_costs(&[None, None]).sessions, 0);
}
