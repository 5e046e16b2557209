//! Modes side by side, and compared with each other.

use super::Written;
use super::table::{Table, name_cell, number, section};
use super::verdict::{bar, look};
use crate::cells::{comparison_cells, shown};
use crate::comparison::level_percent;
use crate::efficiency;
use crate::html::HtmlReport;
use crate::html::charts::{Worth, cost_against_success, rate_bar};
use crate::html::escape::html;
use crate::{Comparison, ModeSummary, Summary, money, percent};
use assize_stats::Verdict;
use std::fmt::Write;

pub(super) fn glance(page: &mut String, report: &HtmlReport<'_>) -> Written {
    let summary = report.summary;
    section(page, "glance", "At a glance")?;
    let level = format!(
        "Success with {} interval",
        level_percent(summary.confidence)
    );
    let heading = [
        "Mode",
        &level,
        "Time",
        "p90",
        "Tokens",
        "Active",
        "Cost",
        "Per success",
        "Tool calls",
    ];
    let mut table = Table::new(
        "Results at a glance; numbers are medians of trials",
        &heading,
    );
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        let of = |metric: &str| mode.metrics.find(metric);
        let median = |metric: &str| shown(metric, of(metric), |found| found.median);
        let price = mode.cost_per_success.as_ref().and_then(|cost| cost.value);
        let p90 = shown("latency_wall_ms", of("latency_wall_ms"), |found| found.p90);
        table.row(vec![
            name_cell(place, label),
            format!(
                "<span class=\"number\">{}</span>{}",
                html(&success_words(mode)),
                success_bar(place, label, mode)
            ),
            number(&median("latency_wall_ms")),
            number(&p90),
            number(&median("tokens_total")),
            number(&median("tokens_active")),
            number(&median("cost_total_usd")),
            number(&price.map_or_else(|| "unknown".to_owned(), money)),
            number(&median("tool_calls_total")),
        ]);
    }
    table.write(page)?;
    writeln!(page, "<div class=\"figures\">")?;
    worth(page, summary)?;
    several_tries(page, summary)?;
    writeln!(page, "</div>")?;
    if !summary.modes.is_empty() {
        efficiency_figure(page, summary)?;
    }
    writeln!(page, "</section>")
}

pub(super) fn success_words(mode: &ModeSummary) -> String {
    let success = &mode.success;
    let Some(rate) = success.rate else {
        return format!("unknown, {} void", success.void);
    };
    let interval = success
        .ci95
        .map(|[low, high]| format!(", {} to {}", percent(low), percent(high)));
    let void = match success.void {
        0 => String::new(),
        void => format!("; {void} void"),
    };
    format!(
        "{} of {} ({}{}){void}",
        success.passed,
        success.trials,
        percent(rate),
        interval.unwrap_or_default()
    )
}

fn success_bar(place: usize, label: &str, mode: &ModeSummary) -> String {
    let success = &mode.success;
    let name = format!("{label}: success {}", success_words(mode));
    success.rate.map_or_else(String::new, |rate| {
        rate_bar(place, rate, success.ci95, success.void_bounds, &name)
    })
}

fn worth(page: &mut String, summary: &Summary) -> Written {
    let known = |metric: &str| {
        summary
            .modes
            .iter()
            .any(|(_, mode)| mode.metrics.find(metric).is_some())
    };
    let (metric, axis, title) = match ["cost_total_usd", "tokens_active", "tokens_total"]
        .into_iter()
        .find(|metric| known(metric))
    {
        Some("cost_total_usd") => (
            "cost_total_usd",
            "cost of a trial (median)",
            "Cost against success",
        ),
        Some("tokens_active") => (
            "tokens_active",
            "active tokens of a trial (median)",
            "Tokens against success",
        ),
        Some(metric) => (
            metric,
            "tokens of a trial (median)",
            "Tokens against success",
        ),
        None => return Ok(()),
    };
    let point = |(mode, (name, found)): (usize, (&'_ str, &ModeSummary))| {
        let price = found.metrics.find(metric)?.median?;
        Some((
            mode,
            name.to_owned(),
            price,
            found.success.rate?,
            found.success.ci95,
        ))
    };
    let points: Vec<_> = summary.modes.iter().enumerate().filter_map(point).collect();
    if points.is_empty() {
        return Ok(());
    }
    let worths: Vec<Worth<'_>> = points
        .iter()
        .map(|(mode, name, price, rate, interval)| Worth {
            mode: *mode,
            name,
            price: *price,
            rate: *rate,
            interval: *interval,
        })
        .collect();
    let stand_in = match metric {
        "cost_total_usd" => "",
        _ => "The cost is unknown, so tokens stand in for it. ",
    };
    let names: Vec<String> = worths
        .iter()
        .map(|worth| format!("{} {}", worth.mode + 1, name_cell(worth.mode, worth.name)))
        .collect();
    writeln!(
        page,
        "<figure><figcaption>{title}</figcaption>{}<p class=\"legend\">{}</p><p class=\"legend\">{stand_in}Up and to the left is \
         better. Lines are intervals of the rate.</p></figure>",
        cost_against_success(metric, axis, &worths),
        names.join(" · ")
    )
}

fn efficiency_figure(page: &mut String, summary: &Summary) -> Written {
    let mut table = Table::new("What one success takes", &efficiency::HEADING);
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        let cells = efficiency::cells(mode).map(|cell| number(&cell));
        table.row(
            std::iter::once(name_cell(place, label))
                .chain(cells)
                .collect(),
        );
    }
    writeln!(
        page,
        "<figure class=\"wide\"><figcaption>Efficiency: what one success takes, failures included</figcaption>"
    )?;
    table.write(page)?;
    writeln!(page, "</figure>")
}

fn several_tries(page: &mut String, summary: &Summary) -> Written {
    let mut table = Table::new(
        "Several tries",
        &["Mode", "k", "pass@k", "pass^k", "Scenarios"],
    );
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        for chances in &mode.pass_k {
            let share =
                |share: Option<f64>| number(&share.map_or_else(|| "n/a".to_owned(), percent));
            let found = &chances.chances;
            table.row(vec![
                name_cell(place, label),
                number(&chances.k.to_string()),
                share(found.pass_at_k),
                share(found.pass_hat_k),
                number(&found.scenarios_used.to_string()),
            ]);
        }
    }
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "<figure class=\"wide\"><figcaption>Several tries</figcaption>"
    )?;
    table.write(page)?;
    writeln!(
        page,
        "<p class=\"legend\">pass@k: at least one of k tries succeeds; pass^k: all do.</p></figure>"
    )
}

pub(super) fn comparisons(page: &mut String, summary: &Summary) -> Written {
    if summary.comparisons.is_empty() {
        return Ok(());
    }
    section(page, "comparison", "Comparison")?;
    for pair in summary.pairs() {
        let (judged, other): (Vec<&Comparison>, Vec<&Comparison>) = pair
            .iter()
            .partition(|found| found.verdict() != Verdict::NotComparable);
        writeln!(
            page,
            "<h3>{} <span class=\"against\">against {}</span></h3>",
            html(pair[0].mode_a()),
            html(pair[0].mode_b())
        )?;
        let (decisive, further): (Vec<&Comparison>, Vec<&Comparison>) = judged
            .iter()
            .partition(|found| summary.primary.iter().any(|name| name == found.metric()));
        comparison_table(page, summary, &decisive)?;
        folded(page, summary, "Further metrics", &further)?;
        folded(page, summary, "Metrics without a verdict", &other)?;
    }
    writeln!(page, "</section>")
}

fn folded(
    page: &mut String,
    summary: &Summary,
    title: &str,
    comparisons: &[&Comparison],
) -> Written {
    if comparisons.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "<details><summary>{title} ({})</summary>",
        comparisons.len()
    )?;
    comparison_table(page, summary, comparisons)?;
    writeln!(page, "</details>")
}

fn comparison_table(page: &mut String, summary: &Summary, comparisons: &[&Comparison]) -> Written {
    let Some(first) = comparisons.first() else {
        return Ok(());
    };
    let (a, b) = (html(first.mode_a()), html(first.mode_b()));
    let caption = format!("{} compared with {}", first.mode_a(), first.mode_b());
    let heading = [
        "Metric",
        &a,
        &b,
        "",
        "Difference",
        "Effect",
        "p (adjusted)",
        "n",
        "Verdict",
    ];
    let mut table = Table::new(&caption, &heading);
    for comparison in comparisons {
        let cells = comparison_cells(comparison, summary);
        let [
            metric,
            a,
            b,
            difference,
            interval,
            effect,
            p,
            adjusted,
            n,
            verdict,
        ] = &cells[..]
        else {
            continue;
        };
        let look = look(comparison.verdict());
        table.row(vec![
            html(metric),
            number(a),
            number(b),
            bar(comparison),
            format!("{}<br><small>{}</small>", html(difference), html(interval)),
            html(effect),
            format!("{} <small>({})</small>", html(p), html(adjusted)),
            html(n),
            format!(
                "<span class=\"{}\"><span class=\"glyph\" aria-hidden=\"true\">{}</span> {}</span>",
                look.class,
                look.glyph,
                html(verdict)
            ),
        ]);
    }
    table.write(page)
}
