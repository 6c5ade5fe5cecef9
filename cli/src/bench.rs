//! `rcc bench`: a range of sizes, in the columns and with the meanings of nccl-tests.
//!
//! In: targets (or a collective), sizes, the options of a call. Out: a row per algorithm and size, out of place and in place.

use plan::display::plural;
use runtime::launch::StopSignals;

use crate::args;
use crate::call::{Row, Runnable, Source, stop_signals};
use crate::chosen;
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::said;
use crate::shape;

/// Runs the command.
pub(crate) fn run(args: &args::Bench, output: &mut Output) -> Result<(), Failure> {
    let sizes = sizes(args)?;
    let call = &args.call;
    let mut source = call.source(&args.targets, true, sizes.first().copied(), output)?;
    let stop = stop_signals()?;
    let mut rows: Vec<Row> = Vec::new();
    if !call.json {
        titles(args, output)?;
    }
    let measured = measure_all(args, &sizes, &mut source, &stop, &mut rows, output);
    if call.json {
        // What was measured before it failed is still a result.
        if measured.is_ok() || !rows.is_empty() {
            output.json(&rows)?;
        }
    } else if measured.is_ok() {
        summary(&rows, output)?;
    }
    measured?;
    if rows.iter().any(|row| row.wrong > 0) { Err(Failure::Wrong) } else { Ok(()) }
}

/// Measures every size of every algorithm.
fn measure_all(
    args: &args::Bench,
    sizes: &[u64],
    source: &mut Source,
    stop: &StopSignals,
    rows: &mut Vec<Row>,
    output: &mut Output,
) -> Result<(), Failure> {
    let call = &args.call;
    match source {
        Source::Selected(_) => {
            let mut said = None;
            for &bytes in sizes {
                let plans = source.plans(bytes, output)?;
                for runnable in &plans {
                    chosen(runnable, args, &mut said, output)?;
                    measure(args, runnable, bytes, true, stop, rows, output)?;
                }
                if plans.iter().all(|runnable| runnable.convention.grain(call.dtype) == 0) {
                    break;
                }
            }
        }
        Source::Named(subjects) => {
            for subject in subjects.iter_mut() {
                let convention = subject.last().convention;
                // A barrier moves nothing, whatever the size.
                let sizes = if convention.grain(call.dtype) == 0 { &sizes[..1] } else { sizes };
                let mut shown = None;
                let mut said = None;
                for &bytes in sizes {
                    // By whole elements of every block; a schedule may choose another plan for them.
                    let whole = convention.bytes(convention.count(bytes, call.dtype), call.dtype);
                    let runnable = subject.at(whole.unwrap_or(bytes), output)?;
                    if !call.json && shown.as_ref() != Some(&runnable.choice.when) {
                        shown = Some(runnable.choice.when);
                        heading(&runnable, output)?;
                    }
                    chosen(&runnable, args, &mut said, output)?;
                    measure(args, &runnable, bytes, false, stop, rows, output)?;
                }
            }
        }
    }
    Ok(())
}

/// From the first to the last size by the factor.
fn sizes(args: &args::Bench) -> Result<Vec<u64>, Failure> {
    if args.begin > args.end {
        return Err(Failure::usage_help(
            format!("the first size, {}, is more than the last, {}", args.begin, args.end),
            "give both, as in -b 8 -e 64MiB",
        ));
    }
    let next = |&size: &u64| size.max(1).checked_mul(args.factor.into());
    Ok(std::iter::successors(Some(args.begin), next).take_while(|&size| size <= args.end).collect())
}

/// Measures one size in every form, and prints its row.
fn measure(
    args: &args::Bench,
    runnable: &Runnable,
    bytes: u64,
    named: bool,
    stop: &StopSignals,
    rows: &mut Vec<Row>,
    output: &mut Output,
) -> Result<(), Failure> {
    let call = &args.call;
    let count = runnable.convention.count(bytes, call.dtype);
    let mut forms: [Option<Row>; 2] = [None, None];
    for in_place in call.forms(&runnable.plan)? {
        let busy = output.busy("measuring");
        let measured = call.measure(runnable, count, in_place, stop);
        drop(busy);
        let (row, report) = measured?;
        if let Some(first) = &report.first_wrong {
            output.note(&format!(
                "wrong: {} of {} bytes: rank {}, {}[{}], element {}: got {}, expected {}",
                row.algorithm,
                row.bytes,
                first.rank,
                first.buffer,
                first.block,
                first.index,
                first.got,
                first.expected
            ));
        }
        forms[usize::from(in_place)] = Some(row);
    }
    if !call.json {
        let Some(any) = forms.iter().flatten().next() else { return Ok(()) };
        let reduces = matches!(any.collective.as_str(), "allreduce" | "reduce" | "reducescatter");
        let redop = if reduces { &any.op } else { "none" };
        let mut text = format!("{:>12} {:>13} {:>6} {redop:>6}", any.bytes, any.count, any.dtype);
        for form in &forms {
            text += &match form {
                Some(row) => format!(
                    "  {:>9} {:>7.2} {:>7.2} {:>7}",
                    show_time(row.time_us),
                    row.algbw_gbps,
                    row.busbw_gbps,
                    row.wrong
                ),
                None => format!("  {:>9} {:>7} {:>7} {:>7}", "N/A", "N/A", "N/A", "N/A"),
            };
        }
        if named {
            text += &format!("  {}", any.algorithm);
        }
        output.line(&text)?;
        output.flush()?;
    }
    rows.extend(forms.into_iter().flatten());
    Ok(())
}

fn titles(args: &args::Bench, output: &mut Output) -> Result<(), Failure> {
    let call = &args.call;
    output.line(&format!(
        "# {} measured after {}; sizes {} to {} bytes by a factor of {}; random data, every element compared",
        plural(call.iterations.into(), "call", "calls"),
        call.warmup,
        args.begin,
        args.end,
        args.factor
    ))?;
    let form = format!("  {:>9} {:>7} {:>7} {:>7}", "time", "algbw", "busbw", "#wrong");
    let unit = format!("  {:>9} {:>7} {:>7} {:>7}", "(us)", "(GB/s)", "(GB/s)", "");
    let forms = format!("#{:>40}  {:^33}  {:^33}", "", "out-of-place", "in-place");
    let heads = format!("#{:>11} {:>13} {:>6} {:>6}{form}{form}", "size", "count", "type", "redop");
    let units = format!("#{:>11} {:>13} {:>6} {:>6}{unit}{unit}", "(B)", "(elements)", "", "");
    for text in [forms, heads, units] {
        output.line(&output.paint(text.trim_end(), Paint::Dim))?;
    }
    Ok(())
}

fn heading(runnable: &Runnable, output: &mut Output) -> Result<(), Failure> {
    let plan = runnable.plan.plan();
    let header = &plan.header;
    let params: String = header.params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
    let hash = plan.content_hash().to_string();
    let schedule = said::schedule(&runnable.choice).map(|line| format!("; {line}")).unwrap_or_default();
    let text = format!(
        "# {} ({}) on {}{params}, plan {}{schedule}",
        header.algorithm,
        header.collective,
        shape::show_ranks(&header.shape),
        &hash[..12]
    );
    output.line(&output.paint(&text, Paint::Bold))
}

/// What was chosen for the rows that follow, where it is not what it was for those before.
fn chosen(
    runnable: &Runnable,
    args: &args::Bench,
    said: &mut Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let how = chosen::how_alone(&runnable.chosen);
    if args.call.json || said.as_ref() == Some(&how) {
        return Ok(());
    }
    output.line(&output.paint(&format!("#   chosen on {}: {how}", runnable.chosen.topology), Paint::Dim))?;
    *said = Some(how);
    Ok(())
}

fn summary(rows: &[Row], output: &mut Output) -> Result<(), Failure> {
    let wrong: u64 = rows.iter().map(|row| row.wrong).sum();
    let verdict = if wrong == 0 { ("OK", Paint::Green) } else { ("FAILED", Paint::Red) };
    let average = rows.iter().map(|row| row.busbw_gbps).sum::<f64>() / rows.len().max(1) as f64;
    output.line(&format!("# Out of bounds values : {wrong} {}", output.paint(verdict.0, verdict.1)))?;
    output.line(&format!("# Avg bus bandwidth    : {average:.4}"))
}

fn show_time(us: f64) -> String {
    if us < 100.0 {
        format!("{us:.2}")
    } else if us < 10_000.0 {
        format!("{us:.1}")
    } else {
        format!("{us:.0}")
    }
}
