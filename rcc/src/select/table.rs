//! Which standard algorithm serves a call where nothing better is known.
//!
//! In: a collective, the number of ranks, the size of the call. Out: an algorithm's name. A fixed table: few steps for
//! small sizes, few bytes for large ones, set by hand for ranks that share memory. It counts in worlds too large to compile all
//! algorithms for. The table is in docs/cli.md, and a test holds every entry to being an algorithm that takes that number of ranks.

use crate::collective::Collective;

/// The algorithm for a call of `bytes` (as `convention` counts them) among `ranks` ranks: a full name.
pub fn usual(collective: Collective, ranks: u32, bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    let algorithm = match collective {
        Collective::Allreduce if bytes <= 4 * KIB && ranks <= 8 => "one_shot",
        Collective::Allreduce if bytes <= 32 * KIB => "recursive_doubling",
        Collective::Allreduce if bytes <= 512 * KIB => "halving_doubling",
        Collective::Allreduce => "ring",
        Collective::Allgather if bytes <= 32 * KIB => "bruck",
        Collective::Allgather => "ring",
        Collective::Reducescatter if bytes <= 128 * KIB && ranks.is_power_of_two() => "recursive_halving",
        Collective::Reducescatter => "ring",
        Collective::Broadcast if bytes <= 128 * KIB || ranks <= 2 => "binomial",
        Collective::Broadcast => "scatter_allgather",
        Collective::Alltoall if bytes <= 4 * KIB && ranks > 4 => "bruck",
        Collective::Alltoall => "direct",
        Collective::Gather | Collective::Scatter if bytes <= 32 * KIB => "binomial",
        Collective::Gather | Collective::Scatter | Collective::Sendrecv | Collective::Alltonext => "direct",
        Collective::Reduce => "binomial",
        Collective::Barrier => "dissemination",
    };
    format!("std::{collective}::{algorithm}")
}

#[cfg(test)]
mod tests {
    use compiler::limits::Limits;
    use compiler::pipeline;

    use super::usual;
    use crate::collective::Collective;
    use crate::request;

    #[test]
    fn whatever_is_selected_exists_and_takes_that_many_ranks() {
        let limits = Limits::default();
        let loaded = pipeline::load(&[], &limits);
        for collective in Collective::ALL {
            for ranks in 1..=17 {
                for bytes in [0, 8, 4 << 10, 32 << 10, 100 << 10, 512 << 10, 64 << 20] {
                    let name = usual(collective, ranks, bytes);
                    let id = loaded.program.find(&name).unwrap_or_else(|| panic!("{name} is not there"));
                    let given = compiler::trace::Params::new();
                    let request = request::one_root(&loaded.program, id, &[ranks], &given).unwrap();
                    let proved = pipeline::prove(&loaded, &request, &limits, &mut |_| {});
                    assert!(proved.is_ok(), "{name} at {ranks}: {:?}", proved.err());
                }
            }
        }
    }
}
