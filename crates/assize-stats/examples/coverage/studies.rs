//! The simulated studies. The naive methods treat every run as independent, as most tools do.

use crate::latency::*;
use crate::outcomes::*;
use crate::world::{Design, EFFECT_SPREAD, World};

/// The claim of a method.
#[derive(Clone, Copy)]
pub(crate) enum Claim {
    /// The interval holds the truth.
    Coverage,
    /// A difference is announced, or a gate passes, although it must not.
    FalseAlarm,
}

pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) claim: Claim,
}

pub(crate) struct Study {
    pub(crate) data: &'static str,
    pub(crate) methods: &'static [Named],
    /// For each method, whether it came out as claimed in one simulation.
    pub(crate) simulate: fn(&mut World, Design) -> Vec<bool>,
}

const fn covers(name: &'static str) -> Named {
    Named {
        name,
        claim: Claim::Coverage,
    }
}

const fn alarms(name: &'static str) -> Named {
    Named {
        name,
        claim: Claim::FalseAlarm,
    }
}

pub(crate) const STUDIES: &[Study] = &[
    Study {
        data: "log-normal latency, one mode",
        methods: &[
            covers("naive: pooled bootstrap of the median"),
            covers("`scenario_typical_ci`"),
        ],
        simulate: typical,
    },
    Study {
        data: "log-normal latency, one mode, mean",
        methods: &[
            covers("naive: pooled bootstrap of the mean"),
            covers("`cluster_mean_ci` (caution: `skewed-mean`)"),
        ],
        simulate: skewed_mean,
    },
    Study {
        data: "log-normal latency, A 20 % below B",
        methods: &[
            covers("naive: pooled `bootstrap_reduction_ci`"),
            covers("naive: every run an independent pair"),
            covers("`paired_log_ratio`"),
        ],
        simulate: |world, design| {
            reduction(
                world,
                design,
                |world| EFFECT_SPREAD * world.normal(),
                |_, planned| planned,
            )
        },
    },
    Study {
        data: "the same, half to all of the planned runs",
        methods: &[
            covers("naive: pooled `bootstrap_reduction_ci`"),
            covers("naive: every run an independent pair"),
            covers("`paired_log_ratio`"),
        ],
        simulate: |world, design| {
            reduction(
                world,
                design,
                |world| EFFECT_SPREAD * world.normal(),
                World::some_lost,
            )
        },
    },
    Study {
        data: "the same, skewed effects",
        methods: &[
            covers("naive: pooled `bootstrap_reduction_ci`"),
            covers("naive: every run an independent pair"),
            covers("`paired_log_ratio`"),
        ],
        simulate: |world, design| {
            reduction(
                world,
                design,
                |world| EFFECT_SPREAD * world.skewed(),
                |_, planned| planned,
            )
        },
    },
    Study {
        data: "A/A: the modes are the same",
        methods: &[
            alarms("naive: pooled `permutation_test`"),
            alarms("`stratified_permutation_test`"),
            alarms("`paired_log_ratio`"),
        ],
        simulate: |world, design| false_alarms(world, design, 0.0),
    },
    Study {
        data: "A/A on average: better on some scenarios, worse on others",
        methods: &[
            alarms("naive: pooled `permutation_test`"),
            alarms("`stratified_permutation_test` (its null is false here)"),
            alarms("`paired_log_ratio`"),
        ],
        simulate: |world, design| false_alarms(world, design, 0.4),
    },
    Study {
        data: "success of 80 %, repeats correlated by 0.3",
        methods: &[
            covers("naive: Wilson on pooled runs"),
            covers("`success_rate`"),
        ],
        simulate: |world, design| success_rate(world, design, 0.3, |_, planned| planned),
    },
    Study {
        data: "success of 80 %, repeats correlated by 0.6 (hard)",
        methods: &[
            covers("naive: Wilson on pooled runs"),
            covers("`success_rate`"),
        ],
        simulate: |world, design| success_rate(world, design, 0.6, |_, planned| planned),
    },
    Study {
        data: "the same, half to all of the planned trials",
        methods: &[
            covers("naive: Wilson on pooled runs"),
            covers("`success_rate`"),
        ],
        simulate: |world, design| success_rate(world, design, 0.6, World::some_lost),
    },
    Study {
        data: "the same, 2 to 2R - 2 trials",
        methods: &[
            covers("naive: Wilson on pooled runs"),
            covers("`success_rate`"),
        ],
        simulate: |world, design| success_rate(world, design, 0.6, World::very_unequal),
    },
    Study {
        data: "success of 80 % against 65 %, same hard scenarios",
        methods: &[
            covers("naive: Newcombe on pooled runs"),
            covers("`success_difference`"),
        ],
        simulate: |world, design| success_difference(world, design, 0.65),
    },
    Study {
        data: "A/A: success of 80 % in both modes",
        methods: &[
            alarms("naive: Newcombe on pooled runs"),
            alarms("`success_difference`"),
        ],
        simulate: |world, design| success_false_alarms(world, design, same_scenarios),
    },
    Study {
        data: "success equal on average, own hard scenarios",
        methods: &[
            alarms("naive: Newcombe on pooled runs"),
            alarms("`success_difference`"),
        ],
        simulate: |world, design| {
            success_false_alarms(world, design, |world| (world.unit(), world.unit()))
        },
    },
    Study {
        data: "pass^3, success rate of 80 %",
        methods: &[
            covers("naive: Wilson on pooled runs, cubed"),
            covers("`pass_k_suite`"),
        ],
        simulate: pass_hat,
    },
    Study {
        data: "gate, true cost exactly at the margin of 10 %",
        methods: &[
            alarms("naive: the estimate is within the margin"),
            alarms("`noninferiority_gate`, population"),
            alarms("`noninferiority_gate`, suite"),
        ],
        simulate: cost_gate,
    },
    Study {
        data: "gate, true success exactly at the margin of 10 points",
        methods: &[
            alarms("naive: the estimate is within the margin"),
            alarms("`success_margin`, suite"),
        ],
        simulate: gated_success,
    },
    Study {
        data: "A/A with a look after every round, 40 rounds",
        methods: &[
            alarms("naive: t test at every look"),
            alarms("`betting_cs` at every look"),
        ],
        simulate: optional_stopping,
    },
];
