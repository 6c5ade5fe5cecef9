//! What a compilation may choose, beside the program itself.
//!
//! In: the command line, an embedding program. Out: read by `schedule`. None of it can change a result: only how the
//! same moves are laid out in steps, blocks and channels.

/// How a program is to be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Slots per channel that the plan may count on, at least 1: it is made free of deadlock with so many, and
    /// `k_min` is at most that. More than two are used only where less would be stored for it.
    pub slots: u32,
    /// The most blocks per rank, at least 1.
    pub blocks: u32,
    /// The most sources, and the most destinations, of a step that fusion makes.
    pub operands: u32,
    /// Whether steps are fused. Without, every transfer is a send and a receive through memory.
    pub fuse: bool,
    /// Bytes of one block times its number of blocks, by which a schedule's `when` chooses; none: the clauses outside.
    pub bytes: Option<u64>,
    /// Whether ranks reach into each other's memory where that saves a message.
    pub direct: Direct,
    /// Who reaches, where both could.
    pub reach: Reach,
    /// How a value that one rank sends to several reaches them.
    pub multicast: Multicast,
    /// How wide messages are. Only where steps are fused.
    pub cut: Cut,
}

/// Where moves of several cells are cut into messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere: a message is as wide as its move. What goes on as a part of it, or in other company, is stored in between.
    #[default]
    Whole,
    /// Where what comes together goes on apart, or the other way round: nothing is stored that only passes through.
    Parts,
}

/// How a value that one rank sends to several, all in one round, reaches them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Multicast {
    /// In a message to each.
    #[default]
    Flat,
    /// In one message on a channel with several readers, written once, where no deadlock comes of it.
    Channel,
    /// By way of each other: a tree, where each can keep the value until those below have taken it.
    Tree(Tree),
    /// By way of each other, and who gives it to several does so in one message that all of them read.
    ChannelTree(Tree),
}

impl Multicast {
    /// The tree, where there is one.
    pub fn tree(self) -> Option<Tree> {
        match self {
            Multicast::Flat | Multicast::Channel => None,
            Multicast::Tree(tree) | Multicast::ChannelTree(tree) => Some(tree),
        }
    }

    /// Whether a message may have several readers.
    pub fn shares(self) -> bool {
        matches!(self, Multicast::Channel | Multicast::ChannelTree(_))
    }
}

/// Who takes a multicast from whom. Ranks are counted from the root, in a circle; on a world of several levels, first among one
/// rank of each part of the outermost level, and then within the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tree {
    /// In each round everyone who has it gives it to one more: the least rounds.
    Binomial,
    /// From neighbour to neighbour: each sends it once.
    Chain,
    /// Each gives it to so many, at least one.
    Wide(u16),
}

/// Where ranks may reach into each other's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direct {
    /// Nowhere: all that ranks exchange are messages.
    #[default]
    Never,
    /// Where it is right in place and out of place.
    WhereBothFormsAllow,
    /// Where it is right out of place; if that is anywhere, the plan does not serve calls in place.
    OutOfPlace,
}

/// Who reaches into the other's memory, where a message could be spared either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// The reader reads the sender's.
    #[default]
    Pull,
    /// The sender writes the reader's.
    Push,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            slots: 8,
            blocks: 8,
            operands: 64,
            fuse: true,
            bytes: None,
            direct: Direct::Never,
            reach: Reach::Pull,
            multicast: Multicast::Flat,
            cut: Cut::Whole,
        }
    }
}

impl Options {
    /// The same, as far as a plan can count: a step counts sources, destinations and waits in 16 bits. It may store and send a
    /// value to `operands` places each, and waits for at most one step of each other block of its rank.
    pub(crate) fn countable(self) -> Options {
        const MOST: u32 = (u16::MAX / 2) as u32;
        Options { blocks: self.blocks.min(MOST), operands: self.operands.min(MOST), ..self }
    }
}
