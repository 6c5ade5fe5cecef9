//! The standard collectives, by name.
//!
//! In: a name as users write it. Out: a [`Collective`], and what calls of it have: a root, blocks, a reduction.

use std::fmt;

use plan::dtype::Dtype;

use crate::request::Misuse;

/// A standard collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Collective {
    /// Every rank ends with every rank's data.
    Allgather,
    /// Every rank ends with the reduction of all ranks' data.
    Allreduce,
    /// Rank r ends with block r of every rank.
    Alltoall,
    /// Rank r + 1 ends with the data of rank r.
    Alltonext,
    /// No rank leaves before all have entered.
    Barrier,
    /// Every rank ends with the root's data.
    Broadcast,
    /// The root ends with every rank's data.
    Gather,
    /// The root ends with the reduction of all ranks' data.
    Reduce,
    /// Rank r ends with the reduction of all ranks' block r.
    Reducescatter,
    /// Rank r ends with block r of the root.
    Scatter,
    /// One rank ends with the data of another.
    Sendrecv,
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 11] = [
        Collective::Allgather,
        Collective::Allreduce,
        Collective::Alltoall,
        Collective::Alltonext,
        Collective::Barrier,
        Collective::Broadcast,
        Collective::Gather,
        Collective::Reduce,
        Collective::Reducescatter,
        Collective::Scatter,
        Collective::Sendrecv,
    ];

    /// Its name, without `std::`.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Allgather => "allgather",
            Collective::Allreduce => "allreduce",
            Collective::Alltoall => "alltoall",
            Collective::Alltonext => "alltonext",
            Collective::Barrier => "barrier",
            Collective::Broadcast => "broadcast",
            Collective::Gather => "gather",
            Collective::Reduce => "reduce",
            Collective::Reducescatter => "reducescatter",
            Collective::Scatter => "scatter",
            Collective::Sendrecv => "sendrecv",
        }
    }

    /// The one that a name means, with `std::` or without, if it means no more than that.
    pub fn exactly(name: &str) -> Option<Collective> {
        let short = name.strip_prefix("std::").unwrap_or(name);
        Collective::ALL.into_iter().find(|collective| collective.name() == short)
    }

    /// The one that a name means, with `std::` or without.
    ///
    /// # Errors
    /// A name of none, with the name that is most like it.
    pub fn named(name: &str) -> Result<Collective, Misuse> {
        let short = name.strip_prefix("std::").unwrap_or(name);
        Collective::exactly(name).ok_or_else(|| {
            let all = Collective::ALL.map(Collective::name);
            let near = all.iter().min_by_key(|known| strsim::osa_distance(known, short));
            let near = near.filter(|known| strsim::osa_distance(known, short) * 3 <= short.len().max(3));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", all.join(", ")),
            };
            Misuse::with_help(format!("`{name}` is not a standard collective"), help)
        })
    }

    /// Whether send and receive memory of a call may overlap.
    pub fn runs_in_place(self) -> bool {
        use Collective::{Alltoall, Alltonext, Barrier, Sendrecv};
        !matches!(self, Alltoall | Alltonext | Sendrecv | Barrier)
    }

    /// Whether one rank has another part than all others.
    pub fn is_rooted(self) -> bool {
        matches!(self, Collective::Broadcast | Collective::Gather | Collective::Reduce | Collective::Scatter)
    }

    /// Blocks of the larger side of a call, at the rank where it is largest; what its size counts.
    pub fn blocks(self, ranks: u32) -> u32 {
        use Collective::{Allgather, Alltoall, Barrier, Gather, Reducescatter, Scatter};
        match self {
            Allgather | Alltoall | Gather | Reducescatter | Scatter => ranks,
            Barrier => 0,
            _ => 1,
        }
    }

    /// Elements of a block in a call of so many bytes; at least one.
    pub fn elements(self, ranks: u32, bytes: u64, dtype: Dtype) -> u64 {
        (bytes / (u64::from(self.blocks(ranks).max(1)) * u64::from(dtype.size()))).max(1)
    }

    /// Whether [`Communicator`](crate::Communicator) has a call of it with buffers.
    pub fn has_call(self) -> bool {
        !matches!(self, Collective::Alltonext | Collective::Sendrecv | Collective::Barrier)
    }

    /// Whether a call of it combines values: only then its operator means anything.
    pub fn reduces(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::Reduce | Collective::Reducescatter)
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Collective;

    #[test]
    fn names_are_found_and_misspelt_ones_recognised() {
        for collective in Collective::ALL {
            assert_eq!(Collective::named(collective.name()), Ok(collective));
            assert_eq!(Collective::named(&format!("std::{collective}")), Ok(collective));
        }
        assert_eq!(Collective::exactly("std::allreduce::ring"), None);
        let misuse = Collective::named("alreduce").unwrap_err();
        assert_eq!(misuse.help.as_deref(), Some("did you mean `allreduce`?"));
        let misuse = Collective::named("x").unwrap_err();
        assert!(misuse.help.unwrap().contains("there are allgather, "));
    }
}
