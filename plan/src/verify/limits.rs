//! How much a plan may ask for: checked before memory or time is spent on it.
//!
//! In: a default, or what a caller sets. Out: read by V0 (sizes of the plan, also of what a small file can expand
//! to: wide steps, large buffers) and V7 (what the machine that is to run it can hold).

/// How much a plan may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Virtual ranks.
    pub ranks: u64,
    /// Places: cells of all buffers (scratch included) of all ranks, and (buffer, rank) pairs.
    pub places: u64,
    /// Steps of all blocks.
    pub steps: u64,
    /// Micro-steps: the widths of all steps, added up.
    pub micro_steps: u64,
    /// Accesses: width × operands of every step, added up.
    pub accesses: u64,
    /// Waits of all steps.
    pub waits: u64,
    /// Entries of the clocks that order the blocks of a rank: blocks of the rank × its steps that wait.
    pub clock_entries: u64,
    /// Words of 64 ranks that the proof of `synchronised` may keep.
    pub arrival_words: u64,
    /// Values visited by the comparison with the promise.
    pub promise_visits: u64,
    /// Bytes of one name.
    pub name_bytes: usize,
    /// Characters of one excerpt in the span table.
    pub excerpt_chars: usize,
    /// What the plan is to run on.
    pub target: Target,
}

/// What a plan is to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name in messages.
    pub name: String,
    /// Blocks of one rank.
    pub blocks_per_rank: u32,
    /// Channel ends (written or read) of one rank.
    pub channel_ends_per_rank: u32,
    /// Other ranks that one rank exchanges messages with or reads and writes memory of.
    pub connections_per_rank: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            ranks: 1 << 20,
            places: 64_000_000,
            steps: 64_000_000,
            micro_steps: 64_000_000,
            accesses: 128_000_000,
            waits: 64_000_000,
            clock_entries: 64_000_000,
            arrival_words: 16_000_000,
            promise_visits: 4_000_000_000,
            name_bytes: 4096,
            excerpt_chars: 120,
            target: Target::cpu(),
        }
    }
}

impl Target {
    /// Ranks as threads or processes of one machine.
    pub fn cpu() -> Target {
        Target {
            name: "cpu".to_string(),
            blocks_per_rank: 1024,
            channel_ends_per_rank: 65_536,
            connections_per_rank: 65_536,
        }
    }
}
