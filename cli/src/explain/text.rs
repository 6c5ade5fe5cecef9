//! Costs for people: for each size a table of all plans of a collective, then each on its own.
//!
//! In: reports. Out: lines; the same reports, the same lines. Times have four digits, ratios three.

use std::collections::BTreeSet;

use plan::display::plural;

use super::measure::{Measured, agreement, tied};
use super::report::{Leg, Report};
use crate::chosen::time;
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::size;

/// Lines of the critical path that are shown of each plan, where there are several.
const FEW: usize = 4;

/// All plans at one size, a table for each collective and world.
pub(super) fn size(reports: &[Report], output: &mut Output) -> Result<(), Failure> {
    let mut groups: Vec<Vec<&Report>> = Vec::new();
    for report in reports {
        let beside = |group: &&mut Vec<&Report>| told_together(group[0], report);
        match groups.iter_mut().find(beside) {
            Some(group) => group.push(report),
            None => groups.push(vec![report]),
        }
    }
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        heading(group[0], output)?;
        table(group, output)?;
    }
    for report in reports {
        output.line("")?;
        alone(report, reports.len() == 1, output)?;
    }
    let measured: Vec<Measured> = reports.iter().filter_map(|report| report.measured).collect();
    if let Some(first) = measured.first() {
        let pairs: Vec<(f64, f64)> =
            reports.iter().map(|report| report.time_us).zip(tied(&measured)).collect();
        let best = measured.iter().map(|measured| measured.us).fold(f64::INFINITY, f64::min);
        let groups = pairs.iter().map(|pair| pair.1.to_bits()).collect::<BTreeSet<_>>().len();
        output.line("")?;
        let spearman = agreement(&pairs).map_or("-".to_string(), |value| format!("{value:.3}"));
        output.line(&format!(
            "order predicted and order measured ({groups} times that can be told apart): Spearman {spearman}; what is predicted best takes {:.2}x the best measured",
            first.us / best
        ))?;
    }
    Ok(())
}

/// Whether two plans do the same thing on the same machine, so that their times say which is better.
fn told_together(one: &Report, other: &Report) -> bool {
    let of = |report: &Report| (report.collective.clone(), report.ranks, report.topology.clone());
    of(one) == of(other)
}

/// What the words mean; once, at the end.
pub(super) fn legend(reports: &[Report], output: &mut Output) -> Result<(), Failure> {
    output.line("")?;
    output.text(
        "Times are the cost model's (docs/cost.md): what a launch takes is not in them. \"At least\" follows from the promise\n\
         alone: no algorithm for it can do with less. A round is one in which every rank sends at most one message and receives at\n\
         most one; an algorithm that sends to many at once can take fewer hops than rounds.\n",
    )?;
    if reports.iter().any(|report| !report.exact) {
        output.line(
            "~ before a time: the mean of many slices stands for the rest, since none came back alike.",
        )?;
    }
    Ok(())
}

/// `8 ranks`, `2x4 ranks`, `1 rank`.
fn world(report: &Report) -> String {
    let one = report.shape.split('x').all(|size| size == "1");
    format!("{} {}", report.shape, if one { "rank" } else { "ranks" })
}

fn heading(report: &Report, output: &mut Output) -> Result<(), Failure> {
    let what = format!(
        "{} of {} on {} of {}",
        report.collective,
        bytes(report.bytes),
        world(report),
        report.topology
    );
    output.line(&format!("{} ({})", output.paint(&what, Paint::Bold), report.about))?;
    output.line(&format!(
        "  {} x {} per block; at least {} by bandwidth, {} by latency",
        report.count,
        report.dtype,
        time(report.bandwidth_bound_us),
        time(report.latency_bound_us)
    ))?;
    output.line("")
}

fn table(reports: &[&Report], output: &mut Output) -> Result<(), Failure> {
    let names = reports.iter().map(|report| report.algorithm.chars().count()).max().unwrap_or(0).max(9);
    let measured = reports.iter().any(|report| report.measured.is_some());
    let with = |text: &str| if measured { format!(" {text:>17}") } else { String::new() };
    let titles = [
        format!(
            "  {:<names$} {:>10}{} {:>7} {:>7} {:>9} {:>8} {:>6} {:>5} {:>10}  {}",
            "",
            "time",
            with("measured"),
            "algbw",
            "busbw",
            "bandwidth",
            "latency",
            "rounds",
            "steps",
            "busiest",
            "how"
        ),
        format!(
            "  {:<names$} {:>10}{} {:>7} {:>7} {:>9} {:>8} {:>6} {:>5} {:>10}",
            "",
            "",
            with(""),
            "(GB/s)",
            "(GB/s)",
            "(ratio)",
            "(ratio)",
            "",
            "",
            "link"
        ),
    ];
    for title in titles {
        output.line(&output.paint(title.trim_end(), Paint::Dim))?;
    }
    for report in reports {
        let link = report.counts.busiest_link.as_ref().map_or("-".to_string(), |link| bytes(link.bytes));
        let line = format!(
            "  {:<names$} {:>10}{} {:>7.2} {:>7.2} {:>9} {:>8} {:>6} {:>5} {:>10}  {}",
            report.algorithm,
            predicted(report),
            with(&report.measured.map_or(String::new(), found)),
            report.algbw_gbps,
            report.busbw_gbps,
            ratio(report.bandwidth_ratio),
            ratio(report.latency_ratio),
            report.counts.rounds,
            report.counts.steps[1],
            link,
            how(report)
        );
        output.line(line.trim_end())?;
    }
    Ok(())
}

/// Copies, slices and protocol in a few words.
fn how(report: &Report) -> String {
    let chosen = &report.chosen;
    let copies = if chosen.copies == 1 { "1 copy".to_string() } else { format!("{} copies", chosen.copies) };
    let slices = if chosen.slices == 1 { "1 slice".to_string() } else { format!("{} slices", chosen.slices) };
    format!("{copies}, {slices} of {}, {}", size::show(chosen.slice_bytes.into()), chosen.protocol)
}

/// One plan: what was chosen, what was counted, and where the time goes.
fn alone(report: &Report, whole: bool, output: &mut Output) -> Result<(), Failure> {
    let name = output.paint(&report.algorithm, Paint::Bold);
    output.line(&format!("{name}: {} on {}, {}", report.collective, world(report), predicted(report)))?;
    if whole {
        least(report, output)?;
    }
    let range = |[low, high]: [u64; 2]| match low == high {
        true => low.to_string(),
        false => format!("{low} to {high}"),
    };
    let (counts, plan, chosen) = (&report.counts, &report.plan, &report.chosen);
    let mut rows: Vec<(&str, String)> = Vec::new();
    let copies = if chosen.copies > 1 { format!(", times {} copies", chosen.copies) } else { String::new() };
    rows.push((
        "steps per rank",
        format!("{} in {}{copies}", range(counts.steps), plural(plan.blocks.into(), "block", "blocks")),
    ));
    rows.push((
        "channels",
        format!(
            "{} out of a rank, {} (at least {})",
            plan.channels,
            plural(chosen.slots.into(), "slot", "slots"),
            plan.k_min
        ),
    ));
    if whole {
        rows.push(("longest chain of steps", counts.chain.to_string()));
        rows.push((
            "messages",
            format!(
                "{} in all, {} sent by each rank, over {} links",
                counts.messages,
                range(counts.sends),
                counts.links
            ),
        ));
        if counts.tokens > 0 {
            rows.push(("tokens (no data)", counts.tokens.to_string()));
        }
        if let Some(link) = &counts.busiest_link {
            let amount = bytes(link.bytes);
            rows.push((
                "busiest link",
                format!("{} -> {}: {amount} in {} messages", link.from, link.to, link.messages),
            ));
        }
        if plan.scratch_cells > 0 {
            let scratch = format!("{} cells, each 1/{} of a block", plan.scratch_cells, plan.cells);
            rows.push(("scratch, most of a rank", scratch));
        }
    }
    rows.push(("proved", plan.proof.to_string()));
    if let Some(schedule) = &plan.schedule {
        rows.push(("schedule", schedule.clone()));
        let others = plan.whens.iter().filter(|when| when.verdict != "holds");
        rows.extend(others.map(|when| ("", format!("{} {}", when.text, when.verdict))));
    }
    rows.push(("chosen", report.chosen.why.clone()));
    for (what, found) in rows {
        output.line(format!("  {what:<24}  {found}").trim_end())?;
    }
    path(report, whole, output)
}

/// The plan beside the least possible.
fn least(report: &Report, output: &mut Output) -> Result<(), Failure> {
    let titles = format!("  {:<26}{:>16}{:>16}{:>9}", "", "this plan", "at least", "ratio");
    output.line(&output.paint(&titles, Paint::Dim))?;
    let counts = &report.counts;
    let least_rounds = u64::from(counts.rounds_least);
    let mut row = |what: &str, found: String, least: String, ratio: f64| {
        let ratio = if ratio.is_finite() { self::ratio(Some(ratio)) } else { String::new() };
        output.line(format!("  {what:<26}{found:>16}{least:>16}{ratio:>9}").trim_end())
    };
    let of = |a: u64, b: u64| a as f64 / b as f64;
    row("rounds", counts.rounds.to_string(), least_rounds.to_string(), of(counts.rounds, least_rounds))?;
    for (what, found, least) in [
        ("bytes sent, busiest rank", counts.bytes_sent, counts.bytes_sent_least),
        ("bytes received, busiest", counts.bytes_received, counts.bytes_received_least),
        ("bytes sent, all ranks", counts.bytes_total, counts.bytes_total_least),
    ] {
        row(what, bytes(found), bytes(least), of(found, least))?;
    }
    for (what, bound, ratio) in [
        ("time, by bandwidth", report.bandwidth_bound_us, report.bandwidth_ratio),
        ("time, by latency", report.latency_bound_us, report.latency_ratio),
    ] {
        row(what, predicted(report), time(bound), ratio.unwrap_or(f64::NAN))?;
    }
    output.line("")
}

/// The critical path, longest lines only where there are several plans.
fn path(report: &Report, whole: bool, output: &mut Output) -> Result<(), Failure> {
    let path = &report.path;
    let parts = [
        (path.moving_us, "moving data"),
        (path.latency_us, "latency"),
        (path.queueing_us, "waiting for ports"),
        (path.cores_us, "waiting for cores"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|part| part.0 > 0.0).map(|(us, what)| format!("{} {what}", time(*us))).collect();
    let hops = plural(path.hops, "hop", "hops");
    output.line(&format!("  {:<24}  {hops}: {}", "critical path", parts.join(", ")))?;
    let mut shown: Vec<&Leg> = path.lines.iter().collect();
    if !whole && shown.len() > FEW {
        let mut longest: Vec<f64> = shown.iter().map(|leg| leg.us).collect();
        longest.sort_by(|a, b| b.total_cmp(a));
        let least = longest[FEW - 1];
        shown.retain(|leg| leg.us >= least);
        shown.truncate(FEW);
    }
    let left_out = path.lines.len() - shown.len();
    for leg in shown {
        let file = leg.file.strip_prefix("std/").unwrap_or(&leg.file).escape_debug().to_string();
        let place = format!("{file}:{} x{}", leg.line, leg.events);
        output.line(&format!(
            "    {place:<32} {:>10}, {:<10} {}",
            time(leg.us),
            bytes(leg.bytes),
            leg.text.escape_debug()
        ))?;
    }
    if left_out > 0 {
        output.line(&format!("    and {left_out} shorter"))?;
    }
    Ok(())
}

fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_string(),
        Some(ratio) if ratio < 100.0 => format!("{ratio:.2}x"),
        Some(ratio) if ratio < 1000.0 => format!("{ratio:.0}x"),
        Some(_) => ">999x".to_string(),
    }
}

fn predicted(report: &Report) -> String {
    let mark = if report.exact { "" } else { "~" };
    format!("{mark}{}", time(report.time_us))
}

/// A time with its uncertainty.
fn found(measured: Measured) -> String {
    format!("{} ± {:.1} %", time(measured.us), 100.0 * measured.spread / measured.us.max(f64::MIN_POSITIVE))
}

/// Exact if it is round, else to three digits.
fn bytes(bytes: u64) -> String {
    let shown = size::show(bytes);
    if shown.len() <= 8 {
        return shown;
    }
    let (unit, shift) = match bytes {
        0..0x10_0000 => ("KiB", 10),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        _ => ("GiB", 30),
    };
    format!("{:.2} {unit}", bytes as f64 / f64::from(1u32 << shift))
}
