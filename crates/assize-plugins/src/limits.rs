//! Time limits of calls to a plugin.

use assize_contracts::{LONG_CALL_LIMIT, QUICK_CALL_LIMIT};
use std::collections::BTreeMap;
use std::time::Duration;

/// Calls that share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKind {
    /// Its name in suites.
    pub key: &'static str,
    /// The limit of a suite that sets none.
    pub default: Duration,
    /// The methods that it covers; `hooks/` means all of them.
    pub methods: &'static [&'static str],
}

/// Every kind of call that has a limit of its own. `provider/prompt` and `runner/execute` have the trial's.
pub const CALL_KINDS: &[CallKind] = &[
    long("init", &["provider/init"]),
    long("create_session", &["provider/createSession"]),
    quick("export_session", &["provider/exportSession"]),
    quick("destroy_session", &["provider/destroySession"]),
    quick("shutdown", &["provider/shutdown"]),
    long("scorer", &["scorer/evaluate"]),
    quick("collector", &["collector/collect"]),
    quick("analyzer", &["analyzer/analyze"]),
    long("mode_resolver", &["modeResolver/resolve"]),
    long("hooks", &["hooks/"]),
    long(
        "evaluator",
        &["evaluator/evaluate", "evaluator/evaluateScenario"],
    ),
    quick("initialize", &["initialize"]),
];

const fn long(key: &'static str, methods: &'static [&'static str]) -> CallKind {
    CallKind {
        key,
        default: LONG_CALL_LIMIT,
        methods,
    }
}

const fn quick(key: &'static str, methods: &'static [&'static str]) -> CallKind {
    CallKind {
        key,
        default: QUICK_CALL_LIMIT,
        methods,
    }
}

/// The limits of one plugin. Zero means that there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// For every kind of call that is not listed.
    pub all: Option<Duration>,
    /// By the key of the kind.
    pub by_kind: BTreeMap<&'static str, Duration>,
}

impl CallLimits {
    /// The same limit for every call.
    pub fn same(limit: Duration) -> Self {
        Self {
            all: Some(limit),
            by_kind: BTreeMap::new(),
        }
    }

    /// The time limit of a call of this method. Absent: no limit.
    pub fn of(&self, method: &str) -> Option<Duration> {
        let serves = |name: &&str| match name.ends_with('/') {
            true => method.starts_with(*name),
            false => method == *name,
        };
        let kind = CALL_KINDS
            .iter()
            .find(|kind| kind.methods.iter().any(serves));
        let own = kind.and_then(|kind| self.by_kind.get(kind.key).copied());
        let default = kind.map_or(LONG_CALL_LIMIT, |kind| kind.default);
        let limit = own.or(self.all).unwrap_or(default);
        (!limit.is_zero()).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_may_take_ten_minutes_and_quick_ones_one() {
        let limits = CallLimits::default();
        let seconds = |method: &str| limits.of(method).unwrap().as_secs();
        for method in [
            "hooks/beforeScenario",
            "hooks/afterRun",
            "scorer/evaluate",
            "evaluator/evaluate",
            "provider/init",
            "provider/createSession",
        ] {
            assert_eq!(seconds(method), 600, "{method}");
        }
        for method in [
            "collector/collect",
            "analyzer/analyze",
            "provider/exportSession",
        ] {
            assert_eq!(seconds(method), 60, "{method}");
        }
    }

    #[test]
    fn a_plugin_has_its_own_limits_and_zero_is_none() {
        let limits = CallLimits {
            all: Some(Duration::from_secs(5)),
            by_kind: BTreeMap::from([
                ("hooks", Duration::ZERO),
                ("scorer", Duration::from_secs(7)),
            ]),
        };
        assert_eq!(limits.of("hooks/beforeMode"), None);
        assert_eq!(limits.of("scorer/evaluate"), Some(Duration::from_secs(7)));
        assert_eq!(limits.of("collector/collect"), Some(Duration::from_secs(5)));
    }

    #[test]
    #[cfg(feature = "schema")]
    fn every_method_has_a_limit_or_the_trials() {
        let is_limited = |method: &str| {
            let kinds = CALL_KINDS.iter().flat_map(|kind| kind.methods);
            kinds.into_iter().any(|name| method.starts_with(name))
        };
        let others: Vec<&str> = crate::protocol::METHODS
            .iter()
            .map(|method| method.name)
            .filter(|name| !name.starts_with('$') && !is_limited(name))
            .collect();
        assert_eq!(others, ["provider/prompt", "runner/execute"]);
    }
}
