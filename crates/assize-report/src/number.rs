//! Numbers as people read them, the same in every output.

use assize_contracts::Metric;

/// From here on numbers are written with an exponent: their digits would not be read.
const HUGE: f64 = 1e15;

/// Milliseconds in a fitting unit: `340 ms`, `2.4 s`, `3 min 05 s`.
pub fn duration(milliseconds: f64) -> String {
    let seconds = milliseconds / 1e3;
    if milliseconds.abs() >= HUGE {
        format!("{seconds:.1e} s")
    } else if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 1e3 {
        format!("{milliseconds:.0} ms")
    } else if seconds < 10.0 {
        format!("{seconds:.2} s")
    } else if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        let whole = seconds.round() as u64;
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
        match hours {
            0 => format!("{minutes} min {seconds:02} s"),
            _ => format!("{hours} h {minutes:02} min"),
        }
    }
}

/// A count with a unit prefix where it is long: `980`, `24.1k`, `3.2M`.
pub fn quantity(value: f64) -> String {
    match value.abs() {
        size if size >= HUGE => format!("{value:.1e}"),
        size if size >= 1e9 => format!("{:.1}G", value / 1e9),
        size if size >= 1e6 => format!("{:.1}M", value / 1e6),
        size if size >= 1e4 => format!("{:.1}k", value / 1e3),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        size if size < 1.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// Dollars with as many digits as matter.
pub fn money(usd: f64) -> String {
    match usd.abs() {
        size if size >= HUGE => format!("${usd:.1e}"),
        size if size == 0.0 || size >= 1.0 => format!("${usd:.2}"),
        size if size >= 0.01 => format!("${usd:.3}"),
        _ => format!("${usd:.5}"),
    }
}

/// A value of a metric in its unit. Fields of rows have the unit in their heading.
pub fn amount(metric: &Metric, value: f64) -> String {
    match &*metric.unit {
        "ms" => duration(value),
        "USD" => money(value),
        "ratio" => percent(value),
        "" | "count" => quantity(value),
        _ if metric.field().is_some() => quantity(value),
        unit => format!("{} {unit}", quantity(value)),
    }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    match share.abs() >= HUGE {
        true => format!("{share:.1e}"),
        false => format!("{:.0} %", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_fitting_units() {
        let durations = [0.44, 340.0, 2_400.0, 45_000.0, 185_000.0, 7_500_000.0].map(duration);
        assert_eq!(
            durations,
            [
                "0.4 ms",
                "340 ms",
                "2.40 s",
                "45.0 s",
                "3 min 05 s",
                "2 h 05 min"
            ]
        );
        assert_eq!(
            [3.0, 12.5, 24_100.0, 3.2e6].map(quantity),
            ["3", "12.5", "24.1k", "3.2M"]
        );
        assert_eq!(quantity(f64::MAX), "1.8e308");
        assert_eq!(
            [0.0, 0.00012, 0.034, 12.0].map(money),
            ["$0.00", "$0.00012", "$0.034", "$12.00"]
        );
    }
}
