//! `rcc show`: a plan as text, with the source lines beside the steps.
//!
//! In: a plan's file. Out: the whole of it, or its head and the ranks that were asked for.

use plan::ids::RankId;

use crate::args;
use crate::failure::Failure;
use crate::output::Output;
use crate::target::{self, Judged};

/// Runs the command.
pub(crate) fn run(args: &args::Show, output: &mut Output) -> Result<(), Failure> {
    let plan = target::judge_plan(&args.plan, &args.within.limits()?, output)?;
    let ranks = match &plan {
        Judged::Whole(plan) => plan.plan().header.ranks,
        Judged::Folded(folded) => folded.folded().plan.header.ranks,
    };
    if let Some(rank) = args.only.iter().find(|&&rank| rank >= ranks) {
        return Err(Failure::usage(format!(
            "there is no rank {rank}: the plan is for ranks 0 to {}",
            ranks - 1
        )));
    }
    let only: Vec<RankId> = args.only.iter().map(|&rank| RankId(rank)).collect();
    output.text(&match &plan {
        Judged::Whole(plan) => plan::display::show(plan.plan()).only(&only).to_string(),
        Judged::Folded(folded) => plan::display::show_folded(folded, &only).to_string(),
    })
}
