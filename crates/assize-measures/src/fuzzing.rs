//! Bodies that property tests and fuzz targets share: whatever checks and rubrics a scenario has and whatever a judge answers, there is a result and
//! no panic.

use assize_contracts::BaseScenario;
use serde_json::Value;

/// Reads the first part as a scenario's `checks`, `rubric` and `outputSchema`, and the second as a judge's answer.
pub fn checks(rules: &[u8], answer: &[u8]) {
    let Ok(mut rules) = serde_json::from_slice::<Value>(rules) else {
        return;
    };
    let mut scenario = BaseScenario::new("fuzzed", "prompt");
    let mut part = |key: &str| rules.get_mut(key).map(Value::take);
    if let Some(Value::Array(checks)) = part("checks") {
        scenario.checks = checks;
    }
    scenario.rubric = part("rubric");
    scenario.output_schema = part("outputSchema");
    if let Err(error) = crate::checks::compile(&scenario) {
        assert!(!error.message.is_empty());
    }
    crate::judge::count_vote(&scenario, &String::from_utf8_lossy(answer));
}
