//! `rcc run`: one call on this machine, every result compared with the truth.
//!
//! In: a target, a size, the options of a call. Out: what ran, and for each form its time, bandwidths and wrong elements.

use plan::display::plural;
use runtime::job::Report;

use crate::args;
use crate::call::{Row, Runnable, Source, stop_signals};
use crate::chosen;
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::said;
use crate::shape;
use crate::size;

/// Runs the command.
pub(crate) fn run(args: &args::Run, output: &mut Output) -> Result<(), Failure> {
    let call = &args.call;
    let targets: Vec<_> = args.target.iter().cloned().collect();
    let bytes = args.count.is_none().then_some(args.bytes);
    let mut source = call.source(&targets, false, bytes, output)?;
    // How many bytes a number of elements is, only a plan can tell; all of one collective agree.
    let mut plans = source.plans(args.bytes, output)?;
    if let [any, ..] = &plans[..] {
        let (convention, dtype) = (any.convention, call.dtype);
        let count = args.count.unwrap_or_else(|| convention.count(args.bytes, dtype));
        let bytes = convention.bytes(count, dtype).unwrap_or(u64::MAX);
        plans = source.plans(bytes, output)?;
    }
    let mut rows = Vec::new();
    let selected = matches!(source, Source::Selected(_));
    let measured = plans.iter().try_for_each(|runnable| measure(runnable, args, selected, &mut rows, output));
    // What was measured before it failed is still a result.
    if call.json && (measured.is_ok() || !rows.is_empty()) {
        output.json(&rows)?;
    }
    measured?;
    if rows.iter().any(|row| row.wrong > 0) { Err(Failure::Wrong) } else { Ok(()) }
}

/// Measures every form of a call, and prints what came of it.
fn measure(
    runnable: &Runnable,
    args: &args::Run,
    selected: bool,
    rows: &mut Vec<Row>,
    output: &mut Output,
) -> Result<(), Failure> {
    let call = &args.call;
    let stop = stop_signals()?;
    let count = match args.count {
        Some(count) => count,
        None => count(runnable, args, output),
    };
    let mut first = true;
    for in_place in call.forms(&runnable.plan)? {
        let busy = output.busy("running");
        let measured = call.measure(runnable, count, in_place, &stop);
        drop(busy);
        let (row, report) = measured?;
        if !call.json {
            if std::mem::take(&mut first) {
                head(runnable, &row, args, &report, selected, output)?;
            }
            line(&row, &report, output)?;
            output.flush()?;
        }
        rows.push(row);
    }
    Ok(())
}

/// The elements of a block, and a note if that is less than was asked for.
fn count(runnable: &Runnable, args: &args::Run, output: &mut Output) -> u64 {
    let (convention, dtype) = (runnable.convention, args.call.dtype);
    let count = convention.count(args.bytes, dtype);
    let bytes = convention.bytes(count, dtype).unwrap_or(0);
    if bytes != args.bytes && convention.grain(dtype) > 0 {
        let grain = convention.grain(dtype);
        output.note(&format!(
            "note: {} is rounded down to {}, a multiple of {grain}",
            size::show(args.bytes),
            plural(bytes, "byte", "bytes")
        ));
    }
    count
}

/// What runs.
fn head(
    runnable: &Runnable,
    row: &Row,
    args: &args::Run,
    report: &Report,
    selected: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let plan = runnable.plan.plan();
    let header = &plan.header;
    let params: String = header.params.iter().map(|(name, value)| format!("  {name} = {value}")).collect();
    let selected = if selected { ", selected for this size" } else { "" };
    let name = output.paint(&header.algorithm, Paint::Bold);
    output.line(&format!("{name} ({}{selected}){params}", header.collective))?;
    let shape =
        if header.shape.len() > 1 { format!(" as {}", shape::show(&header.shape)) } else { String::new() };
    output.line(&format!("  ranks  {}{shape}, processes of this machine", header.ranks))?;
    let call = &args.call;
    output.line(&format!(
        "  data   {} ({}): {} x {} per block, {}, random from seed {}",
        size::show(row.bytes),
        plural(row.bytes, "byte", "bytes"),
        row.count,
        call.dtype,
        call.op,
        call.seed
    ))?;
    let hash = plan.content_hash().to_string();
    output.line(&format!(
        "  plan   {}: {} in {}, proved for {}",
        &hash[..12],
        plural(plan.steps.len() as u64, "step", "steps"),
        plural(plan.blocks.len() as u64, "block", "blocks"),
        proof(header.proof)
    ))?;
    if let Some(line) = said::schedule(&runnable.choice) {
        output.line(&format!("  {}", line.replacen("schedule: ", "by     ", 1)))?;
    }
    output.line(&format!("  chosen {}", chosen::line(&runnable.chosen)))?;
    if let Some(algorithms) = chosen::algorithms(&runnable.candidates) {
        output.line(&format!("  of     {algorithms}"))?;
    }
    output.line(&format!(
        "  slots  {} of {} per channel (the plan needs {})",
        report.geometry.slots,
        size::show(report.geometry.slot_bytes.into()),
        header.k_min
    ))?;
    output.line(&format!(
        "  calls  {} measured after {}; mean of the slowest rank's times",
        call.iterations, call.warmup
    ))?;
    output.line("")?;
    let titles =
        format!("  {:<13}{:>12}{:>16}{:>16}{:>10}", "", "time (µs)", "algbw (GB/s)", "busbw (GB/s)", "wrong");
    output.line(&output.paint(&titles, Paint::Dim))
}

fn line(row: &Row, report: &Report, output: &mut Output) -> Result<(), Failure> {
    let form = if row.in_place { "in place" } else { "out of place" };
    let wrong = format!("{:>10}", row.wrong);
    let wrong = output.paint(&wrong, if row.wrong == 0 { Paint::Green } else { Paint::Red });
    output.line(&format!(
        "  {form:<13}{:>12.2}{:>16.3}{:>16.3}{wrong}   of {} compared",
        row.time_us,
        row.algbw_gbps,
        row.busbw_gbps,
        plural(report.checked, "element", "elements")
    ))?;
    if let Some(first) = &report.first_wrong {
        output.line(&format!(
            "  first wrong: rank {}, {}[{}], element {}: got {}, expected {}",
            first.rank, first.buffer, first.block, first.index, first.got, first.expected
        ))?;
    }
    Ok(())
}

/// What was proved of a plan.
pub(crate) fn proof(status: plan::plan::ProofStatus) -> &'static str {
    match status {
        plan::plan::ProofStatus::AllRanks => "all ranks",
        plan::plan::ProofStatus::BySymmetry => "one rank of each symmetric kind",
        plan::plan::ProofStatus::None => "no rank",
    }
}
