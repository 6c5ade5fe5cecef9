//! A folded plan as text: its head, and the programs of the standing ranks, or of the ranks asked for as they stand in the plan of all.
//!
//! In: a verified folded plan. Out: text, as `show` prints plans.

use std::fmt;

use super::{Show, plural};
use crate::fold::Turn;
use crate::ids::RankId;
use crate::verify::VerifiedFolded;

/// A folded plan that prints itself.
#[derive(Debug, Clone, Copy)]
pub struct ShowFolded<'a> {
    folded: &'a VerifiedFolded,
    only: &'a [RankId],
}

/// `folded` as text, through `Display`. With `only`, the programs of these ranks; else those that stand for all.
pub fn show_folded<'a>(folded: &'a VerifiedFolded, only: &'a [RankId]) -> ShowFolded<'a> {
    ShowFolded { folded, only }
}

impl fmt::Display for ShowFolded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folded = self.folded.folded();
        let head = Show { plan: &folded.plan, only: &[] };
        head.header(f)?;
        let (step, ranks) = (folded.rotation.step, folded.plan.header.ranks);
        let stands = if step == 1 { "rank 0 stands".to_string() } else { format!("ranks 0..{step} stand") };
        writeln!(
            f,
            "  folded     {stands} for all {ranks}: rank r + {step} does what rank r does, taken round"
        )?;
        for (buffer, turn) in folded.plan.buffers.iter().zip(&folded.rotation.buffers) {
            if *turn == Turn::default() {
                continue;
            }
            let mut moved = Vec::new();
            if turn.blocks > 0 {
                moved.push(format!("block b is block b + {} of {}", turn.blocks, buffer.blocks));
            }
            if turn.cells > 0 {
                moved.push(format!("cell c is cell c + {} of {}", turn.cells, folded.plan.header.cells));
            }
            writeln!(
                f,
                "             there {} is another: {}",
                super::Clean(&buffer.name),
                moved.join(", ")
            )?;
        }
        head.buffers(f)?;
        head.promise(f)?;
        let standing: Vec<RankId> = (0..step).map(RankId).collect();
        for &rank in if self.only.is_empty() { &standing } else { self.only } {
            let plan = self.folded.rank(rank);
            Show { plan: &plan, only: &[rank] }.programs(f)?;
        }
        if self.only.is_empty() && step < ranks {
            writeln!(f, "{} more, taken round", plural(u64::from(ranks - step), "rank is", "ranks are"))?;
        }
        Ok(())
    }
}
