//! The machine that plans are chosen for.
//!
//! In: `--topology`, a number of ranks. Out: a topology: a built-in one, one from a file, or what stands for this machine.

use std::path::Path;

use compiler::cost::topology::{self, Topology};
use rcc::Options;
pub(crate) use rcc::machine::here;
use rcc::select::Selection;
use rcc::settings;

use crate::failure::Failure;
use crate::output::Output;
use crate::target;

/// What `rcc compile` takes where no topology is named: the same wherever it runs, so that plans are, too.
const USUAL: &str = "2-cores";

/// A topology by name or from a file.
pub(crate) fn named(given: &Path) -> Result<Topology, Failure> {
    let name = given.to_string_lossy();
    if let Some(known) = topology::builtin(&name) {
        return Ok(known);
    }
    if given.extension().is_none_or(|ending| ending != "toml") {
        let near = target::nearest(&name, &topology::BUILTIN).map(|near| format!("did you mean `{near}`?"));
        let known = topology::BUILTIN.join(", ");
        let help = near.unwrap_or_else(|| format!("there are {known}, or a file that ends in .toml"));
        return Err(Failure::usage_help(format!("there is no topology `{name}`"), help));
    }
    let bytes = target::read(given)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{} is not text in UTF-8", given.display())))?;
    topology::parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", given.display())))
}

/// What selection goes by: for a machine that is named the cost model alone, unless a tuning file is; for this one what was measured on it, or
/// on one of its class.
pub(crate) fn selection(topology: Option<&Path>, tuning: Option<&Path>) -> Result<Selection, Failure> {
    let runtime = |error: runtime::error::Error| Failure::Usage(error.message.clone(), error.help.clone());
    let said = tuning.map(settings::read_tuning).transpose().map_err(runtime)?;
    match topology {
        Some(named) => Ok(Selection::only(self::named(named)?, said.into_iter().collect())),
        None => {
            let tuning = match said {
                Some(said) => Some(said),
                None => Options::from_env().map_err(runtime)?.tuning,
            };
            Ok(Selection::of(here(), tuning))
        }
    }
}

/// Says what became of a tuning file of another machine.
pub(crate) fn tell_remark(selection: &Selection, output: &mut Output) {
    if let Some(remark) = &selection.remark {
        output.note(&format!("note: {remark}"));
    }
}

/// What plans are made for that may run anywhere.
pub(crate) fn usual() -> Topology {
    topology::builtin(USUAL).unwrap_or_else(here)
}

/// The machine for so many ranks: the one that was named, else the smallest of GPUs.
pub(crate) fn for_ranks(named: Option<&Topology>, ranks: u32) -> Result<Topology, Failure> {
    let Some(named) = named else {
        return topology::smallest(ranks).ok_or_else(|| {
            Failure::usage_help(
                format!("no built-in topology has {ranks} ranks"),
                "describe one, as docs/cost.md tells: --topology FILE.toml",
            )
        });
    };
    large_enough(named, ranks)?;
    Ok(named.clone())
}

/// Refuses a machine that has fewer ranks.
pub(crate) fn large_enough(machine: &Topology, ranks: u32) -> Result<(), Failure> {
    match machine.ranks() {
        Some(has) if has < u64::from(ranks) => Err(Failure::usage_help(
            format!("topology `{}` has {has} ranks, and {ranks} are asked for", machine.name),
            "name a larger one (2x8xh100, 128x8xh100), or describe one, as docs/cost.md tells",
        )),
        _ => Ok(()),
    }
}
