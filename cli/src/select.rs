//! Which standard algorithm serves a call for which the user named only the collective.
//!
//! In: a collective, the number of ranks, the size of the call. Out: an algorithm's name. A fixed table: few steps for
//! small sizes, few bytes for large ones. It was set by hand for ranks that share memory; a tuner that measures comes later.
//! The table is in docs/cli.md, and a test holds every entry to being an algorithm that takes that number of ranks.

use crate::failure::Failure;
use crate::target::nearest;

/// Collectives that can be selected for.
pub(crate) const COLLECTIVES: [&str; 11] = [
    "allgather",
    "allreduce",
    "alltoall",
    "alltonext",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reducescatter",
    "scatter",
    "sendrecv",
];

/// The algorithm for a call of `bytes` (as `convention` counts them) among `ranks` ranks.
pub(crate) fn select(collective: &str, ranks: u32, bytes: u64) -> Result<String, Failure> {
    const KIB: u64 = 1 << 10;
    let short = collective.strip_prefix("std::").unwrap_or(collective);
    let algorithm = match short {
        "allreduce" if bytes <= 4 * KIB && ranks <= 8 => "one_shot",
        "allreduce" if bytes <= 32 * KIB => "recursive_doubling",
        "allreduce" if bytes <= 512 * KIB => "halving_doubling",
        "allreduce" => "ring",
        "allgather" if bytes <= 32 * KIB => "bruck",
        "allgather" => "ring",
        "reducescatter" if bytes <= 128 * KIB && ranks.is_power_of_two() => "recursive_halving",
        "reducescatter" => "ring",
        "broadcast" if bytes <= 128 * KIB || ranks <= 2 => "binomial",
        "broadcast" => "scatter_allgather",
        "alltoall" if bytes <= 4 * KIB && ranks > 4 => "bruck",
        "alltoall" => "direct",
        "gather" | "scatter" if bytes <= 32 * KIB => "binomial",
        "gather" | "scatter" | "sendrecv" | "alltonext" => "direct",
        "reduce" => "binomial",
        "barrier" => "dissemination",
        _ => {
            let help = nearest(short, &COLLECTIVES).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| format!("there are {}", COLLECTIVES.join(", ")));
            return Err(Failure::usage_help(format!("`{collective}` is not a standard collective"), help));
        }
    };
    Ok(format!("std::{short}::{algorithm}"))
}

#[cfg(test)]
mod tests {
    use compiler::limits::Limits;
    use compiler::pipeline;

    use super::{COLLECTIVES, select};
    use crate::worlds;

    #[test]
    fn whatever_is_selected_exists_and_takes_that_many_ranks() {
        let limits = Limits::default();
        let loaded = pipeline::load(&[], &limits);
        for collective in COLLECTIVES {
            for ranks in 1..=17 {
                for bytes in [0, 8, 4 << 10, 32 << 10, 100 << 10, 512 << 10, 64 << 20] {
                    let name = select(collective, ranks, bytes).unwrap();
                    let id = loaded.program.find(&name).unwrap_or_else(|| panic!("{name} is not there"));
                    let given = compiler::trace::Params::new();
                    let request = worlds::one_root(&loaded.program, id, &[ranks], &given).unwrap();
                    let proved = pipeline::prove(&loaded, &request, &limits, &mut |_| {});
                    assert!(proved.is_ok(), "{name} at {ranks}: {:?}", proved.err());
                }
            }
        }
    }

    #[test]
    fn a_misspelt_collective_is_recognised() {
        let failure = select("alreduce", 4, 8).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("did you mean `allreduce`?"));
    }
}
