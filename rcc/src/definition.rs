//! What the standard collectives promise, written down once more.
//!
//! In: a plan. Out: whether it promises exactly what its collective is. A verified plan keeps the promise that it carries; a plan that comes
//! from elsewhere (the cache, another rank) may carry another one, and this is what it is held against.

use plan::collective::BlockRef;
use plan::ids::{BufferId, RankId};
use plan::plan::{Plan, Role};
use plan::reference::Reference;

use crate::collective::Collective;

/// A source of a block: a rank, and the block of its send buffer.
type From = (u32, u32);

/// Whether a plan is one of `collective`, from or to `root` if it has one, among `ranks` ranks.
pub(crate) fn promises(plan: &Plan, collective: Collective, root: Option<u32>, ranks: u32) -> bool {
    let header = &plan.header;
    if header.collective != collective.name() || header.ranks != ranks {
        return false;
    }
    if collective == Collective::Barrier {
        return plan.promise.synchronised;
    }
    let of = |role: Role| {
        let mut all = (0..plan.buffers.len()).filter(|&b| plan.buffers[b].role == role);
        all.next().filter(|_| all.next().is_none())
    };
    let (Some(send), Some(recv)) = (of(Role::Send), of(Role::Recv)) else { return false };
    let reference = Reference::new(&plan.promise);
    (0..ranks).all(|rank| {
        let due = due(collective, root.unwrap_or(0), ranks, rank);
        let holds = |b: usize, blocks: u32| {
            let buffer = &plan.buffers[b];
            let there = buffer.at.holds(RankId(rank));
            if blocks == 0 { !there } else { there && buffer.blocks == blocks }
        };
        let clauses: Vec<(u32, &[BlockRef])> = reference.clauses(BufferId::new(recv), RankId(rank)).collect();
        let same = |(block, list): &(u32, &[BlockRef])| {
            let mut operands: Vec<From> = list.iter().map(|from| (from.rank.0, from.block)).collect();
            operands.sort_unstable();
            list.iter().all(|from| from.buffer.index() == send)
                && due.get(*block as usize).is_some_and(|due| *due == operands)
        };
        let mut blocks: Vec<u32> = clauses.iter().map(|clause| clause.0).collect();
        blocks.dedup();
        holds(recv, due.len() as u32)
            && holds(send, gives(collective, root.unwrap_or(0), ranks, rank))
            && blocks.len() == due.len()
            && clauses.iter().all(same)
    })
}

/// Of what each block that a rank ends with is made.
fn due(collective: Collective, root: u32, ranks: u32, rank: u32) -> Vec<Vec<From>> {
    let all = |block: u32| (0..ranks).map(|from| (from, block)).collect::<Vec<From>>();
    let each = |block: u32| all(block).into_iter().map(|from| vec![from]).collect::<Vec<_>>();
    match collective {
        Collective::Allgather => each(0),
        Collective::Alltoall => each(rank),
        Collective::Allreduce => vec![all(0)],
        Collective::Reducescatter => vec![all(rank)],
        Collective::Broadcast => vec![vec![(root, 0)]],
        Collective::Scatter => vec![vec![(root, rank)]],
        Collective::Gather if rank == root => each(0),
        Collective::Reduce if rank == root => vec![all(0)],
        Collective::Gather | Collective::Reduce => Vec::new(),
        // These have no typed calls.
        Collective::Alltonext | Collective::Sendrecv | Collective::Barrier => Vec::new(),
    }
}

/// How many blocks a rank gives.
fn gives(collective: Collective, root: u32, ranks: u32, rank: u32) -> u32 {
    match collective {
        Collective::Alltoall | Collective::Reducescatter => ranks,
        Collective::Scatter if rank == root => ranks,
        Collective::Broadcast if rank != root => 0,
        Collective::Scatter | Collective::Barrier => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use compiler::limits::Limits;
    use compiler::options::Options;
    use compiler::pipeline;
    use plan::plan::Plan;

    use super::promises;
    use crate::collective::Collective;
    use crate::make;
    use crate::request;

    fn typed() -> impl Iterator<Item = Collective> {
        let untyped = [Collective::Alltonext, Collective::Sendrecv];
        Collective::ALL.into_iter().filter(move |collective| !untyped.contains(collective))
    }

    /// A plan of each standard algorithm of a collective.
    fn plans(collective: Collective, ranks: u32, root: u32) -> Vec<Plan> {
        let limits = Limits::default();
        let loaded = pipeline::load(&[], &limits);
        let mut plans = Vec::new();
        for id in make::algorithms(&loaded, collective) {
            let algorithm = loaded.program.algorithm(id);
            let root = [("root".to_string(), root.to_string())];
            let root =
                if algorithm.params.iter().any(|param| param.name == "root") { &root[..] } else { &[] };
            let given = request::given(algorithm, root).unwrap();
            if algorithm.levels != 1 {
                continue;
            }
            let request = request::one_root(&loaded.program, id, &[ranks], &given).unwrap();
            let made = pipeline::compile(&loaded, &request, &Options::default(), &limits, &mut |_| {});
            plans.extend(made.map(|made| made.plan.plan().clone()));
        }
        plans
    }

    #[test]
    fn the_standard_library_promises_what_collectives_are_and_nothing_else() {
        for (ranks, root) in [(1, 0), (3, 1), (4, 3)] {
            for collective in typed() {
                let plans = plans(collective, ranks, root);
                assert!(!plans.is_empty());
                for plan in plans {
                    let name = &plan.header.algorithm;
                    assert!(promises(&plan, collective, Some(root), ranks), "{name} at {ranks}");
                    assert!(!promises(&plan, collective, Some(root), ranks + 1), "{name} at {ranks}");
                    for other in typed().filter(|&other| other != collective) {
                        // By another name, too.
                        let mut renamed = plan.clone();
                        renamed.header.collective = other.name().to_string();
                        let one_rank = ranks == 1 || other == Collective::Barrier;
                        assert!(
                            one_rank || !promises(&renamed, other, Some(root), ranks),
                            "{name} as {other}"
                        );
                    }
                    let rooted = !matches!(
                        collective,
                        Collective::Allgather
                            | Collective::Allreduce
                            | Collective::Alltoall
                            | Collective::Barrier
                            | Collective::Reducescatter
                    );
                    if rooted && ranks > 1 {
                        assert!(!promises(&plan, collective, Some(root - 1), ranks), "{name} from another");
                    }
                }
            }
        }
    }

    #[test]
    fn a_promise_that_lacks_anything_is_found() {
        let plan = plans(Collective::Allgather, 3, 0).remove(0);
        for clause in 0..plan.promise.clauses.len() {
            let mut less = plan.clone();
            less.promise.clauses.remove(clause);
            assert!(!promises(&less, Collective::Allgather, None, 3));
        }
        for list in 0..plan.promise.lists.len() {
            let mut other = plan.clone();
            let rank = &mut other.promise.lists[list][0].rank;
            rank.0 = (rank.0 + 1) % 3;
            assert!(!promises(&other, Collective::Allgather, None, 3));
        }
    }
}
