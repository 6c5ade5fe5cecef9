//! `rcc explain`: an error code at length, or what a plan costs.
//!
//! In: a code, or a target and a shape. Out: the code's page, or counts beside the least that is possible.

use compiler::diagnostics::explain as pages;
use plan::verify::VerifiedPlan;

use crate::args;
use crate::convention::Convention;
use crate::cost::{self, Bound, Cost, Traffic};
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::shape;
use crate::size;
use crate::target::{self, Target};
use crate::worlds;

/// Runs the command.
pub(crate) fn run(args: &args::Explain, output: &mut Output) -> Result<(), Failure> {
    if args.list {
        for code in pages::codes() {
            output.line(code)?;
        }
        return Ok(());
    }
    let Some(subject) = &args.subject else { return Err(Failure::usage("nothing to explain")) };
    let text = subject.to_string_lossy();
    if let Some(page) = pages::explain(&text).or_else(|| pages::explain(&format!("coll::{text}"))) {
        return output.text(&plain(page));
    }
    // A code is two words joined by `::`, a bare word that no file is called; everything else is a file.
    let looks_like_code = text.starts_with("coll::") || text.starts_with("plan::");
    let bare = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') && !subject.exists();
    if looks_like_code || (bare && !(text == "std" || text.starts_with("std::"))) {
        let near = pages::nearest(&text).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| "`rcc explain --list` lists all codes".to_string());
        return Err(Failure::usage_help(format!("there is no error code or file `{text}`"), help));
    }
    let plan = plan(args, output)?;
    explain_plan(&plan, args, output)
}

/// The plan that the target stands for.
fn plan(args: &args::Explain, output: &mut Output) -> Result<VerifiedPlan, Failure> {
    let Some(subject) = &args.subject else { return Err(Failure::usage("nothing to explain")) };
    let limits = args.choice.within.limits()?;
    let target = Target::new(subject);
    if let Target::Plan(path) = &target {
        if args.ranks.is_some() {
            return Err(Failure::usage("a plan is for one world shape; --ranks is for source files"));
        }
        args.choice.refuse_for_plan()?;
        return target::read_plan(path, &limits, output);
    }
    let (loaded, id) = target.load_one(args.choice.algorithm.as_deref(), &limits, output)?;
    let algorithm = loaded.program.algorithm(id);
    worlds::known_params(&[algorithm], &args.choice.params)?;
    let default = match algorithm.levels {
        1 => vec![8],
        2 => vec![2, 4],
        levels => vec![2; levels],
    };
    let shape = worlds::one_shape(algorithm, args.ranks.as_deref().unwrap_or(&default))?;
    let given = worlds::given(algorithm, &args.choice.params)?;
    let request = worlds::one_root(&loaded.program, id, &shape, &given)?;
    let compiled = compiler::pipeline::compile(
        &loaded,
        &request,
        &compiler::options::Options::default(),
        &limits,
        &mut |_| {},
    );
    match compiled {
        Ok(compiled) => Ok(compiled.plan),
        Err(failure) => Err(crate::compile::explain(failure, &loaded, output)),
    }
}

fn explain_plan(plan: &VerifiedPlan, args: &args::Explain, output: &mut Output) -> Result<(), Failure> {
    let plan = plan.plan();
    let header = &plan.header;
    let convention = Convention::of(plan);
    let count = convention.count(args.bytes, args.dtype);
    let cost = cost::cost(plan, count, args.dtype).map_err(Failure::Machine)?;
    let bound = cost::bound(&plan.promise, header.ranks);

    let params: String = header.params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
    let name = output.paint(&header.algorithm, Paint::Bold);
    output.line(&format!(
        "{name} ({}) on {} ranks{params}",
        header.collective,
        shape::show(&header.shape)
    ))?;
    let bytes = convention.bytes(count, args.dtype).unwrap_or(0);
    output.line(&format!(
        "  {}: {count} x {} per block, {} cells per block",
        size::show(bytes),
        args.dtype,
        header.cells
    ))?;
    output.line("")?;
    compared(&cost, &bound, count * u64::from(args.dtype.size()), output)?;
    output.line("")?;
    counted(plan, &cost, output)?;
    output.line("")?;
    output.text(
        "This is a counting model: it knows no links, no latencies and no bandwidths. A round is one in which every rank sends at\n\
         most one message and receives at most one. \"At least\" follows from the promise alone: no algorithm for it can do\n\
         with less. What a plan costs in time depends on the machine; `rcc bench` measures that.\n",
    )
}

/// The plan beside the least possible.
fn compared(cost: &Cost, bound: &Bound, block: u64, output: &mut Output) -> Result<(), Failure> {
    let titles = format!("  {:<26}{:>16}{:>16}{:>9}", "", "this plan", "at least", "ratio");
    output.line(&output.paint(&titles, Paint::Dim))?;
    let most = |of: fn(&cost::RankCost) -> u64| cost.ranks.iter().map(of).max().unwrap_or(0);
    let total: u64 = cost.ranks.iter().map(|rank| rank.sent.bytes).sum();
    let blocks = |blocks: f64| (blocks * block as f64).ceil();
    let bytes = [
        ("bytes sent, busiest rank", most(|rank| rank.sent.bytes), bound.sent),
        ("bytes received, busiest", most(|rank| rank.received.bytes), bound.received),
        ("bytes sent, all ranks", total, bound.total),
    ];
    row(
        "rounds",
        &cost.rounds.to_string(),
        &bound.rounds.to_string(),
        cost.rounds as f64,
        f64::from(bound.rounds),
        output,
    )?;
    for (what, found, least) in bytes {
        let least = blocks(least);
        row(what, &show_bytes(found), &show_bytes(least as u64), found as f64, least, output)?;
    }
    Ok(())
}

fn row(what: &str, found: &str, least: &str, a: f64, b: f64, output: &mut Output) -> Result<(), Failure> {
    let ratio = if b > 0.0 { format!("{:.2}x", a / b) } else { String::new() };
    output.line(format!("  {what:<26}{found:>16}{least:>16}{ratio:>9}").trim_end())
}

/// What else was counted.
fn counted(plan: &plan::plan::Plan, cost: &Cost, output: &mut Output) -> Result<(), Failure> {
    let range = |of: fn(&cost::RankCost) -> u64| {
        let values = || cost.ranks.iter().map(of);
        match (values().min().unwrap_or(0), values().max().unwrap_or(0)) {
            (least, most) if least == most => most.to_string(),
            (least, most) => format!("{least} to {most}"),
        }
    };
    let messages: u64 = cost.links.values().map(|traffic| traffic.messages).sum();
    let mut lines = vec![
        ("steps per rank", range(|rank| rank.steps)),
        ("longest chain of steps", cost.chain.to_string()),
        ("messages", format!("{messages} in all, {} sent by each rank", range(|rank| rank.sent.messages))),
        ("links used", cost.links.len().to_string()),
    ];
    if cost.tokens > 0 {
        lines.push(("tokens (no data)", cost.tokens.to_string()));
    }
    let busiest = cost.links.iter().max_by_key(|&(link, traffic)| (traffic.bytes, std::cmp::Reverse(*link)));
    if let Some(((from, to), Traffic { messages, bytes })) = busiest {
        let bytes = show_bytes(*bytes);
        lines.push(("busiest link", format!("{from} -> {to}: {bytes} in {messages} messages")));
    }
    let scratch = plan.header.scratch_cells.iter().max().copied().unwrap_or(0);
    if scratch > 0 {
        let of = plan.header.cells;
        lines.push(("scratch, most of a rank", format!("{scratch} cells, each 1/{of} of a block")));
    }
    lines.push(("slots per channel", format!("at least {}", plan.header.k_min)));
    for (what, found) in lines {
        output.line(&format!("  {what:<26}{found}"))?;
    }
    Ok(())
}

/// Exact if it is round, else to three digits.
fn show_bytes(bytes: u64) -> String {
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

/// A page without the fences of its programs, which are indented instead.
fn plain(page: &str) -> String {
    let mut inside = false;
    let mut text = String::with_capacity(page.len());
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !inside;
            continue;
        }
        let indent = if inside && !line.is_empty() { "    " } else { "" };
        text += indent;
        text += line.strip_prefix("# ").unwrap_or(line);
        text.push('\n');
    }
    text
}
