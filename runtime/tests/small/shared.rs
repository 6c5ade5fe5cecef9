//! Calls with their data, and what they must give.

use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::reference;
use rcc_runtime::comm::{Communicator, Options};
use rcc_runtime::error::Error;
use rcc_runtime::small::{Buffers, Call, Collective};

/// For how long a rank waits that will not wait in vain, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn options(patience: Duration) -> Options {
    Options { late: patience, stalled: patience, ..Options::default() }
}

pub(crate) fn call(collective: Collective, elements: u64, dtype: Dtype, op: Op) -> Call {
    Call { collective, elements, dtype, op }
}

/// All collectives that move data.
pub(crate) fn collectives(root: u32) -> [Collective; 8] {
    let root = RankId(root);
    [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Reducescatter,
        Collective::Alltoall,
        Collective::Broadcast { root },
        Collective::Reduce { root },
        Collective::Gather { root },
        Collective::Scatter { root },
    ]
}

/// Numbers that are the same at all ranks.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// A call of one rank with memory of its own.
pub(crate) struct Trial {
    pub(crate) call: Call,
    rank: u32,
    world: u32,
    seed: u64,
    in_place: bool,
    /// What lies before the data, which then begins at an odd address.
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Bytes that no call may touch.
const ASIDE: usize = 3;

impl Trial {
    pub(crate) fn new(call: Call, rank: u32, world: u32, seed: u64, in_place: bool) -> Trial {
        let in_place = in_place && call.collective != Collective::Alltoall;
        let (input, output) = bytes(&call, rank, world);
        let size = if in_place { input.max(output) } else { input };
        let mut trial = Trial {
            call,
            rank,
            world,
            seed,
            in_place,
            input: vec![0xa5; size + 2 * ASIDE],
            output: vec![0xa5; output + 2 * ASIDE],
        };
        // In place the smaller one is this rank's block of the larger.
        let at =
            ASIDE + if in_place && input > 0 && input < output { rank as usize * block(&call) } else { 0 };
        fill(&call, seed, rank, 0, &mut trial.input[at..at + input]);
        trial
    }

    pub(crate) fn buffers(&mut self) -> Buffers<'_> {
        let inner = |len: usize| ASIDE..len - ASIDE;
        let (input, output) = (inner(self.input.len()), inner(self.output.len()));
        if self.in_place {
            return Buffers::in_place(&mut self.input[input]);
        }
        Buffers::apart(&self.input[input], &mut self.output[output])
    }

    pub(crate) fn make(&mut self, comm: &mut Communicator) -> Result<(), Error> {
        let call = self.call;
        comm.small(&call, &mut self.buffers())?;
        self.check();
        Ok(())
    }

    /// What a caller may do with memory that is its own again.
    pub(crate) fn scribble(&mut self) {
        self.input.fill(0x5a);
        self.output.fill(0x5a);
    }

    /// Compares with what the collective promises.
    pub(crate) fn check(&self) {
        let Trial { call, rank, world, .. } = *self;
        let (me, block) = (rank as usize, block(&call));
        let (input, output) = bytes(&call, rank, world);
        let shift = if self.in_place && output > 0 && output < input { me * block } else { 0 };
        let whole = if self.in_place { &self.input } else { &self.output };
        let inner = &whole[ASIDE..whole.len() - ASIDE];
        let got = &inner[shift..shift + output];
        let is_root = call.collective.root().is_none_or(|root| root.0 == rank);
        // For each block of the output, whose blocks it must be the reduction of.
        let everyone = |at: usize| (0..world).map(|of| (of, at)).collect::<Vec<_>>();
        let each = |at: usize| (0..world).map(|of| vec![(of, at)]).collect::<Vec<_>>();
        let expected: Vec<Vec<(u32, usize)>> = match call.collective {
            Collective::Allreduce => vec![everyone(0)],
            Collective::Reduce { .. } if is_root => vec![everyone(0)],
            Collective::Reducescatter => vec![everyone(me)],
            Collective::Allgather => each(0),
            Collective::Gather { .. } if is_root => each(0),
            Collective::Alltoall => each(me),
            Collective::Broadcast { root } => vec![vec![(root.0, 0)]],
            Collective::Scatter { root } => vec![vec![(root.0, me)]],
            Collective::Reduce { .. } | Collective::Gather { .. } | Collective::Barrier => vec![],
        };
        for (at, list) in expected.iter().enumerate() {
            let operands: Vec<Vec<u8>> = list
                .iter()
                .map(|&(of, at)| {
                    let mut operand = vec![0; block];
                    fill(&call, self.seed, of, at * call.elements as usize, &mut operand);
                    operand
                })
                .collect();
            let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
            let got = &got[at * block..][..block];
            let wrong = reference::check(call.dtype, call.op, &operands, got);
            assert_eq!(wrong.count, 0, "rank {rank} of {world}, block {at}: {call:?}: {:?}", wrong.first);
        }
        // Nothing else was written.
        for memory in [&self.input, &self.output] {
            let (before, after) = (&memory[..ASIDE], &memory[memory.len() - ASIDE..]);
            assert!(before.iter().chain(after).all(|&byte| byte == 0xa5), "{call:?}");
        }
        if !self.in_place {
            let mut entry = vec![0; input];
            fill(&call, self.seed, rank, 0, &mut entry);
            assert_eq!(&self.input[ASIDE..ASIDE + input], entry, "{call:?}");
            assert!(!expected.is_empty() || self.output.iter().all(|&byte| byte == 0xa5), "{call:?}");
        } else if output == 0 || (shift, output) != (0, input.max(output)) {
            // What is not the output is as it was.
            let mut entry = vec![0xa5; inner.len()];
            fill(&call, self.seed, rank, 0, &mut entry[..input]);
            entry[shift..shift + output].copy_from_slice(got);
            assert_eq!(inner, entry, "{call:?}");
        }
    }
}

fn block(call: &Call) -> usize {
    call.elements as usize * call.dtype.size() as usize
}

/// Bytes of input and output, where the rank has them.
fn bytes(call: &Call, rank: u32, world: u32) -> (usize, usize) {
    let (one, each) = (block(call), block(call) * world as usize);
    let at = |root: RankId, bytes| if root.0 == rank { bytes } else { 0 };
    match call.collective {
        Collective::Allreduce => (one, one),
        Collective::Allgather => (one, each),
        Collective::Reducescatter => (each, one),
        Collective::Alltoall => (each, each),
        Collective::Broadcast { root } => (at(root, one), one),
        Collective::Reduce { root } => (one, at(root, one)),
        Collective::Gather { root } => (one, at(root, each)),
        Collective::Scatter { root } => (at(root, each), one),
        Collective::Barrier => (0, 0),
    }
}

fn fill(call: &Call, seed: u64, rank: u32, first: usize, to: &mut [u8]) {
    // Rooted calls give nothing at some ranks, and reductions are judged by what their operator makes.
    reference::fill_from(call.dtype, call.op, seed, RankId(rank), BufferId(0), first as u64, to);
}
