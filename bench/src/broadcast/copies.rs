//! What a plan copies, counted from its steps.
//!
//! In: a plan, the lengths of its cells. Out: bytes that all its steps store in one call out of place, by where they go.

use std::ops::Range;

use plan::interpret::classes;
use plan::layout::Layout;
use plan::plan::{ChannelKind, Operand, Plan, Section};
use serde::Serialize;

/// Bytes stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Copies {
    /// In the memory of the rank that copies.
    pub(crate) own: u64,
    /// In the memory of another rank.
    pub(crate) peers: u64,
    /// In slots.
    pub(crate) slots: u64,
}

impl Copies {
    /// Counts a plan's.
    pub(crate) fn of(plan: &Plan, layout: &Layout) -> Result<Copies, String> {
        let classes = classes::classes(plan).map_err(|fault| format!("{fault:?}"))?;
        let size = u64::from(layout.dtype().size());
        let mut copies = Copies::default();
        let bodies: Vec<Range<u32>> = plan.blocks.iter().map(|block| block.section(Section::Body)).collect();
        // Prologues and epilogues hold only tokens.
        for (id, step) in bodies.iter().flat_map(|body| plan.steps(body)) {
            let cells = (0..step.width).filter_map(|micro| classes.of(id, micro));
            let elements: u64 = cells
                .flat_map(|cell| (0..plan.header.copies).map(move |copy| layout.cell(copy, cell)))
                .map(|cell| cell.end - cell.start)
                .sum();
            for operand in plan.dst(step) {
                let into = match operand {
                    Operand::Local { .. } => &mut copies.own,
                    Operand::Peer { .. } => &mut copies.peers,
                    Operand::Channel(c) if plan.channels[c.index()].kind == ChannelKind::Slots => {
                        &mut copies.slots
                    }
                    Operand::Channel(_) => continue,
                };
                *into += elements * size;
            }
        }
        Ok(copies)
    }

    /// What ends in users' memory.
    pub(crate) fn kept(&self) -> u64 {
        self.own + self.peers
    }

    /// All.
    pub(crate) fn all(&self) -> u64 {
        self.kept() + self.slots
    }
}

#[cfg(test)]
mod tests {
    use compiler::options::Direct;

    use super::Copies;
    use crate::call::{Path, Variant};

    /// A rank stores the data once for itself, and all but the last once more for the next one: in a slot, or at once
    /// where it stays.
    #[test]
    fn a_chain_copies_what_the_book_says() {
        for (ranks, bytes) in [(2, 64), (5, 4 << 10), (8, 4 * 999)] {
            let of = |direct| {
                let path = Box::leak(Box::new(Path { name: "tested", direct }));
                Variant::new(path, ranks, bytes).expect("the standard library compiles").copies
            };
            let n = u64::from(ranks);
            assert_eq!(of(Direct::Never), Copies { own: n * bytes, peers: 0, slots: (n - 1) * bytes });
            for direct in [Direct::WhereBothFormsAllow, Direct::OutOfPlace] {
                let copies = of(direct);
                assert_eq!(copies.kept(), n * bytes, "{copies:?}");
                assert!(copies.slots < (n - 1) * bytes, "{copies:?}");
            }
        }
    }
}
