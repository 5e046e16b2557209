//! The wall around agents: what suites may ask for, and what an agent meets there.

use crate::sandbox::Sandbox;

#[test]
fn a_wall_that_cannot_be_had_is_refused_where_it_stands() {
    for (suite, scenario, expected) in [
        (
            "sandbox: { container: { image: debian } }",
            "",
            "assize.yaml:3:1: `container` is not available yet",
        ),
        (
            "",
            "sandbox: { container: { image: debian } }",
            "s.yaml:3:1: `container` is not available yet",
        ),
        ("sandbox: gaurd", "", "unknown value `gaurd`"),
        (
            "sandbox: { guard: { hyde: [x] } }",
            "",
            "unknown key `hyde`",
        ),
    ] {
        let said = Sandbox::of("true", suite, scenario).refused(&["check"]);
        assert!(said.contains(expected), "{said}");
    }
}
