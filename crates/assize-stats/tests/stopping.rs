//! Simulated experiments with known truth: error rates over all looks, power, savings, and the ranges of plans. The fixed seed makes
//! every number the same everywhere; `cargo run --release -p assize-stats --example stopping` runs more of them.

#[path = "../examples/stopping/simulate.rs"]
mod simulate;

use simulate::{Rule, Setting, need_in_range, sequential};

const SETTING: Setting = Setting {
    scenarios: 8,
    looks: 5,
    most: 10,
    delta: 0.0,
    omega: 0.0,
    sigma: 0.4,
};

#[test]
fn no_difference_is_rarely_called_one_over_all_looks() {
    for (rule, omega) in [
        (Rule::ObrienFleming, 0.0),
        (Rule::ObrienFleming, 0.2),
        (Rule::Anytime, 0.1),
    ] {
        let setting = Setting { omega, ..SETTING };
        let found = sequential(&setting, rule, 600, 11);
        assert!(found.decided <= 0.07, "{rule:?} {omega}: {found:?}");
    }
    // Looking as often without any rule is what must not be done.
    let naive = sequential(&SETTING, Rule::None, 600, 11);
    assert!(naive.decided > 0.09, "{naive:?}");
}

#[test]
fn a_difference_is_found_almost_as_often_as_by_one_look_and_with_fewer_trials() {
    let setting = Setting {
        delta: 0.2,
        ..SETTING
    };
    let fixed = sequential(
        &Setting {
            looks: 1,
            ..setting
        },
        Rule::None,
        600,
        5,
    );
    let found = sequential(&setting, Rule::ObrienFleming, 300, 5);
    assert!(found.decided > fixed.decided - 0.06, "{found:?} {fixed:?}");
    assert!(found.mean_rounds < 0.95 * fixed.mean_rounds, "{found:?}");
}

#[test]
fn ranges_of_plans_hold_the_true_need_in_four_of_five_cases() {
    for (scenarios, omega) in [(8, 0.2), (12, 0.3)] {
        let setting = Setting {
            scenarios,
            omega,
            ..SETTING
        };
        let share = need_in_range(&setting, 0.22, 5, 200, 3);
        assert!(share > 0.74, "{scenarios} {omega}: {share}");
    }
}
