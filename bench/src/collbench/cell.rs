//! A cell of the comparison: which collective, on how many ranks, of how many bytes, and what its result must be.
//!
//! In: a name, ranks, bytes. Out: elements of a block, of what a rank gives and of what it gets; the value of every element.
//! The same as in `bench/peers/collbench.c`, statement by statement.

use std::str::FromStr;

/// A collective that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    Allreduce,
    Allgather,
    Reducescatter,
    Alltoall,
    Broadcast,
}

/// All of them.
pub(crate) const ALL: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Allgather,
    Collective::Reducescatter,
    Collective::Alltoall,
    Collective::Broadcast,
];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) collective: Collective,
    pub(crate) ranks: u32,
    /// Of the larger buffer, as asked for.
    pub(crate) bytes: u64,
    /// Elements of a block: what a call is told.
    pub(crate) block: usize,
    /// Elements that a rank gives. A broadcast has one buffer, which is both.
    pub(crate) input: usize,
    /// Elements that it gets.
    pub(crate) output: usize,
}

impl Collective {
    /// Its name, here and in the standard library.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collective::Allreduce => "allreduce",
            Collective::Allgather => "allgather",
            Collective::Reducescatter => "reducescatter",
            Collective::Alltoall => "alltoall",
            Collective::Broadcast => "broadcast",
        }
    }

    /// The same to the crate `rcc`.
    pub(crate) fn standard(self) -> rcc::collective::Collective {
        use rcc::collective::Collective as Standard;
        match self {
            Collective::Allreduce => Standard::Allreduce,
            Collective::Allgather => Standard::Allgather,
            Collective::Reducescatter => Standard::Reducescatter,
            Collective::Alltoall => Standard::Alltoall,
            Collective::Broadcast => Standard::Broadcast,
        }
    }

    /// How many of its calls, one from each root, there are.
    pub(crate) fn roots(self, ranks: u32) -> u32 {
        if self == Collective::Broadcast { ranks } else { 1 }
    }
}

impl FromStr for Collective {
    type Err = String;

    fn from_str(name: &str) -> Result<Collective, String> {
        let found = ALL.into_iter().find(|collective| collective.name() == name);
        found.ok_or_else(|| format!("there are {}", ALL.map(Collective::name).join(", ")))
    }
}

impl Cell {
    /// With at least one element in each block.
    pub(crate) fn new(collective: Collective, ranks: u32, bytes: u64) -> Cell {
        let n = ranks as usize;
        let all = (bytes / 4) as usize;
        let whole = matches!(collective, Collective::Allreduce | Collective::Broadcast);
        let block = if whole { all } else { all / n }.max(1);
        let of = |one: Collective| if whole || collective == one { block } else { block * n };
        let (input, output) = (of(Collective::Allgather), of(Collective::Reducescatter));
        Cell { collective, ranks, bytes, block, input, output }
    }

    /// What element `i` of the result of `rank` must be.
    pub(crate) fn expected(&self, rank: u32, root: u32, i: usize) -> f32 {
        let (block, from) = (self.block, rank as usize * self.block);
        let sum = |i| (0..self.ranks).map(|of| value(of, i)).sum();
        match self.collective {
            Collective::Allreduce => sum(i),
            Collective::Reducescatter => sum(from + i),
            Collective::Allgather => value((i / block) as u32, i % block),
            Collective::Alltoall => value((i / block) as u32, from + i % block),
            Collective::Broadcast => value(root, i),
        }
    }
}

/// Element `i` of what rank `of` gives: whole numbers, small enough that sums are exact in any order.
pub(crate) fn value(of: u32, i: usize) -> f32 {
    (((i as u32).wrapping_mul(2_654_435_761) >> 22) ^ (of.wrapping_mul(73) & 1023)) as f32
}

#[cfg(test)]
mod tests {
    use super::{ALL, Cell, Collective, value};

    /// Bytes of the larger buffer.
    fn larger(cell: &Cell) -> usize {
        cell.input.max(cell.output) * 4
    }

    #[test]
    fn the_larger_buffer_has_the_bytes_and_blocks_have_an_element_at_least() {
        for collective in ALL {
            let cell = Cell::new(collective, 4, 4096);
            assert_eq!(larger(&cell), 4096, "{collective:?}");
            let least = Cell::new(collective, 8, 8);
            assert!(least.block >= 1 && larger(&least) >= 8, "{least:?}");
            assert_eq!(collective.name().parse(), Ok(collective));
        }
        assert!("allreduced".parse::<Collective>().is_err());
        let sizes = |collective| {
            let Cell { block, input, output, .. } = Cell::new(collective, 4, 64);
            (block, input, output)
        };
        assert_eq!(sizes(Collective::Allreduce), (16, 16, 16));
        assert_eq!(sizes(Collective::Allgather), (4, 4, 16));
        assert_eq!(sizes(Collective::Reducescatter), (4, 16, 4));
        assert_eq!(sizes(Collective::Alltoall), (4, 16, 16));
    }

    #[test]
    fn results_are_told_apart() {
        // No two ranks give the same, and neighbouring elements differ.
        for i in 0..1000 {
            assert!(
                (0..8).flat_map(|a| (0..a).map(move |b| (a, b))).all(|(a, b)| value(a, i) != value(b, i))
            );
            assert_ne!(value(0, i), value(0, i + 1));
            assert!((0.0..1024.0).contains(&value(7, i)));
        }
        let cell = Cell::new(Collective::Alltoall, 2, 16);
        assert_eq!(cell.expected(1, 0, 0), value(0, 2));
        assert_eq!(cell.expected(1, 0, 3), value(1, 3));
        let cell = Cell::new(Collective::Reducescatter, 2, 16);
        assert_eq!(cell.expected(1, 0, 1), value(0, 3) + value(1, 3));
    }
}
