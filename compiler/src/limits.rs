//! Limits on what a program may ask for; each is checked before memory is taken.
//!
//! In: `--limit NAME=N`. Out: read by `elaborate`, `graph` and `lower`. `docs/language.md` states the defaults.

use plan::verify::Target;

use crate::cost::topology::Resources;

/// How much a program may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Moves of a trace.
    pub moves: u64,
    /// Loop turns; four expression nodes evaluated count as one more.
    pub turns: u64,
    /// Places: ranks × blocks × cells over all buffers.
    pub places: u64,
    /// Bytes of one source file.
    pub source_bytes: u64,
    /// Nesting of brackets, statements and expressions.
    pub nesting: u32,
    /// Blocks, channel ends and connections of a rank; none: what the target has.
    pub resources: Resources,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            moves: 20_000_000,
            turns: 200_000_000,
            places: 64_000_000,
            source_bytes: 4 << 20,
            nesting: 200,
            resources: Resources::default(),
        }
    }
}

impl Limits {
    /// Cells that moves may read and write in all: five for each move (one `+=` of one cell is three). A run of
    /// chunks is one move of many cells.
    pub fn cell_moves(&self) -> u64 {
        self.moves.saturating_mul(5)
    }

    /// Values that the proof may look at: ten for each move. Different sums of n operands on each of n ranks are n²,
    /// even if they are made by few moves (prefix sums, say).
    pub fn visits(&self) -> u64 {
        self.moves.saturating_mul(10)
    }

    /// What the plan of a program within these limits may ask for, so that raising one here is enough: an `inout`
    /// place is two places of a plan, and a cell that crosses ranks is two micro-steps of at most three operands.
    pub fn of_plan(&self) -> plan::verify::Limits {
        let usual = plan::verify::Limits::default();
        let Resources { blocks, channels, connections } = self.resources;
        let cpu = Target::cpu();
        let target = Target {
            blocks_per_rank: blocks.unwrap_or(cpu.blocks_per_rank),
            channel_ends_per_rank: channels.unwrap_or(cpu.channel_ends_per_rank),
            connections_per_rank: connections.unwrap_or(cpu.connections_per_rank),
            ..cpu
        };
        let cells = self.cell_moves();
        plan::verify::Limits {
            places: usual.places.max(self.places.saturating_mul(2)),
            steps: usual.steps.max(cells.saturating_mul(2)),
            micro_steps: usual.micro_steps.max(cells.saturating_mul(2)),
            accesses: usual.accesses.max(cells.saturating_mul(5)),
            promise_visits: usual.promise_visits.max(self.visits()),
            target,
            ..usual
        }
    }
}
