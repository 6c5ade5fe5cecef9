//! `rcc explain --collective`: which plan a call would run, and why the others do not.
//!
//! In: a call. Out: for each size the plan that `rcc::Communicator` would select here, what for, and for each other standard algorithm of the
//! collective why not.

use compiler::limits::Limits;
use compiler::pipeline;
use rcc::collective::Collective;
use rcc::select::{Ask, Because, Other, Selected, Selection, StandardCall, Unselected, Verdict};
use runtime::small::MOST;
use serde::Serialize;

use crate::args;
use crate::compile::not_made;
use crate::failure::Failure;
use crate::machine;
use crate::output::{Output, Paint};
use crate::shape;
use crate::size;

/// What is told of a size, for programs.
#[derive(Debug, Serialize)]
struct Told {
    collective: &'static str,
    ranks: u32,
    bytes: u64,
    /// The size that the plans of all calls of its class are selected for.
    selected_for: u64,
    dtype: &'static str,
    op: String,
    memory: &'static str,
    in_place: bool,
    topology: String,
    /// What became of a tuning file that was measured on another machine.
    remark: Option<String>,
    /// Null: the call goes without a plan.
    algorithm: Option<String>,
    /// The digest of its plan.
    plan: Option<String>,
    slots: Option<u32>,
    slot_bytes: Option<u32>,
    layout: Option<String>,
    because: String,
    /// Of a call, measured or predicted.
    time_us: Option<f64>,
    others: Vec<NotTaken>,
}

#[derive(Debug, Serialize)]
struct NotTaken {
    algorithm: String,
    layout: Option<String>,
    time_us: Option<f64>,
    why: String,
}

/// Tells of every size.
pub(super) fn run(name: &str, args: &args::Explain, output: &mut Output) -> Result<(), Failure> {
    if let Some(option) = args.scheduling.given() {
        let help = "it is selected as programs would, which say nothing of it";
        return Err(Failure::usage_help(format!("{option} is for an algorithm"), help));
    }
    args.choice.refuse_for_call()?;
    let collective = Collective::named(name)?;
    let ranks = args.ranks.as_ref().map_or(8, |shape| shape::ranks(shape));
    let selection = machine::selection(args.topology.as_deref(), args.tuning.as_deref())?;
    machine::large_enough(&selection.topology, ranks)?;
    machine::tell_remark(&selection, output);
    let loaded = pipeline::load(&[], &Limits::default());
    let mut all = Vec::new();
    for &bytes in &args.bytes {
        let call = call(collective, ranks, bytes, args)?;
        let ask = Ask::of(&call, ranks);
        let small = call.is_small(ranks);
        let busy = output.busy("compiling");
        let selected = if small { Ok(None) } else { selection.select(&loaded, &ask).map(Some) };
        drop(busy);
        let selected = selected.map_err(|why| match why {
            Unselected::NotMade(why) => not_made(why, &loaded, output),
            Unselected::Runtime(error) => Failure::Machine(error.to_string()),
        })?;
        let told = Told::new(&call, (bytes, &ask), &selection, selected);
        if !args.json {
            told.print(&ask, !all.is_empty(), output)?;
        }
        all.push(told);
    }
    if args.json { output.json(&all) } else { Ok(()) }
}

/// The call, as a program makes it.
fn call(
    collective: Collective,
    ranks: u32,
    bytes: u64,
    args: &args::Explain,
) -> Result<StandardCall, Failure> {
    let root = args.choice.params.iter().find(|(name, _)| name == "root");
    let root = match root {
        None => 0,
        Some((_, text)) => text.parse().ok().filter(|&root| root < ranks).ok_or_else(|| {
            Failure::usage(format!("--param root={text}: the ranks are 0 to {}", ranks.saturating_sub(1)))
        })?,
    };
    if args.in_place && !collective.runs_in_place() {
        return Err(Failure::usage(format!("--in-place: {collective} does not run in place")));
    }
    Ok(StandardCall {
        op: args.op,
        root: collective.is_rooted().then_some(root),
        // Programs broadcast in place.
        in_place: args.in_place || (collective == Collective::Broadcast && !args.out_of_place),
        registered: args.registered,
        ..StandardCall::of_bytes(collective, ranks, bytes, args.dtype)
    })
}

impl Told {
    fn new(
        call: &StandardCall,
        (bytes, ask): (u64, &Ask),
        selection: &Selection,
        selected: Option<Selected>,
    ) -> Told {
        let plan = selected.as_ref().map(|selected| selected.plan().content_hash().to_string());
        let geometry = selected.as_ref().map(|selected| selected.geometry);
        let (algorithm, layout, because, time_us, others) = match selected.map(|selected| selected.verdict) {
            None => {
                let because = format!("no buffer has more than {MOST} bytes: the call goes without a plan");
                (None, None, because, None, Vec::new())
            }
            Some(Verdict { algorithm, layout, because, others }) => {
                let us = match &because {
                    Because::Measured { us, .. } | Because::Predicted { us, .. } => Some(*us),
                    Because::Table => None,
                };
                (Some(algorithm), layout, because.to_string(), us, others)
            }
        };
        let not_taken =
            |Other { algorithm, layout, us, why }| NotTaken { algorithm, layout, time_us: us, why };
        Told {
            collective: ask.collective.name(),
            ranks: ask.ranks,
            bytes,
            selected_for: ask.bytes,
            dtype: call.dtype.name(),
            op: call.op.to_string(),
            memory: if ask.registered { "registered" } else { "plain" },
            in_place: call.in_place,
            topology: selection.topology.name.clone(),
            remark: selection.remark.clone(),
            algorithm,
            plan,
            slots: geometry.map(|geometry| geometry.slots),
            slot_bytes: geometry.map(|geometry| geometry.slot_bytes),
            layout,
            because,
            time_us,
            others: others.into_iter().map(not_taken).collect(),
        }
    }

    fn print(&self, ask: &Ask, again: bool, output: &mut Output) -> Result<(), Failure> {
        if again {
            output.line("")?;
        }
        let in_place = if self.in_place && ask.registered { ", in place" } else { "" };
        let head = format!(
            "{} of {} among {} ({}, {}, {} memory{in_place}) on {}",
            self.collective,
            size::show(self.bytes),
            shape::show_ranks(&[self.ranks]),
            self.dtype,
            self.op,
            self.memory,
            self.topology
        );
        output.line(&output.paint(&head, Paint::Bold))?;
        if self.algorithm.is_some() && self.selected_for != self.bytes {
            let (one, all) = (size::show(self.selected_for), size::show_range(&ask.planned_for()));
            output.line(&format!("  selected for {one}, as all calls of {all}"))?;
        }
        let named = |algorithm: &str, layout: &Option<String>| match layout {
            Some(layout) => format!("{algorithm} ({layout})"),
            None => algorithm.to_string(),
        };
        let taken = self.algorithm.as_ref().map_or("no plan".to_string(), |name| named(name, &self.layout));
        output.line(&format!("  runs {taken}: {}", self.because))?;
        for alike in self.others.chunk_by(|a, b| a.why == b.why) {
            let names = alike.iter().map(|other| named(&other.algorithm, &other.layout));
            let names = names.collect::<Vec<_>>().join(", ");
            output.line(&format!("  not  {names}: {}", alike[0].why))?;
        }
        Ok(())
    }
}
