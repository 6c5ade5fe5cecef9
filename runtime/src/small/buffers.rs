//! The caller's memory for a small call.
//!
//! In: slices, or addresses. Out: what is read from and written to, once lengths and overlap have been found to be as the
//! collective has them. Elements may lie at any address.
//!
//! In place is what the standard library declares: one buffer where input and output have as many blocks; otherwise the larger one, of
//! which this rank's block is the smaller one. An alltoall is never in place.

use std::marker::PhantomData;

use super::call::{Call, Collective, due};
use crate::error::{Error, Kind};

/// What a rank calls with.
#[derive(Debug)]
pub struct Buffers<'a> {
    input: (*const u8, usize),
    output: (*mut u8, usize),
    memory: PhantomData<&'a mut [u8]>,
}

/// Where a call reads and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Areas {
    pub(super) input: *const u8,
    pub(super) output: *mut u8,
    pub(super) in_place: bool,
}

// SAFETY: addresses of memory that the caller has lent; who made a call of them answers for their use.
unsafe impl Send for Areas {}

impl<'a> Buffers<'a> {
    /// Input and output apart. Where the rank has none, the slice is ignored.
    pub fn apart(input: &'a [u8], output: &'a mut [u8]) -> Buffers<'a> {
        let output = (output.as_mut_ptr(), output.len());
        Buffers { input: (input.as_ptr(), input.len()), output, memory: PhantomData }
    }

    /// One buffer for both, as large as the larger one of the two.
    pub fn in_place(both: &'a mut [u8]) -> Buffers<'a> {
        let (start, len) = (both.as_mut_ptr(), both.len());
        Buffers { input: (start, len), output: (start, len), memory: PhantomData }
    }

    /// No memory: for a barrier.
    pub fn none() -> Buffers<'a> {
        Buffers::apart(&[], &mut [])
    }

    /// By addresses and lengths. They may lie to each other as in place.
    ///
    /// # Safety
    /// For `'a` the input may be read, the output written, and nobody else writes to either or reads the output.
    pub unsafe fn at(input: (*const u8, usize), output: (*mut u8, usize)) -> Buffers<'a> {
        Buffers { input, output, memory: PhantomData }
    }

    /// What `rank` reads and writes in a call that fits.
    #[inline]
    pub(super) fn check(&self, call: &Call, rank: u32, ranks: u32) -> Result<Areas, Error> {
        let due = due(call, rank, ranks);
        let (input, output) = (self.input, self.output);
        let as_due = |due: Option<usize>, given| due.is_none_or(|due| due == given);
        // Where one of them is ignored, it does not matter where it lies.
        let apart = due.0.is_none() || due.1.is_none() || !overlap(input, output);
        if apart && as_due(due.0, input.1) && as_due(due.1, output.1) {
            return Ok(Areas { input: input.0, output: output.0, in_place: false });
        }
        self.check_in_place(call, (due.0.unwrap_or(0), due.1.unwrap_or(0)), rank)
    }

    #[cold]
    fn check_in_place(&self, call: &Call, due: (usize, usize), rank: u32) -> Result<Areas, Error> {
        let (input, output) = (self.input, self.output);
        if !overlap(input, output) {
            let message = format!(
                "rank {rank}: {} of {} x {} per block takes {} bytes of input and {} of output, and has {} and {}",
                call.collective.name(),
                call.elements,
                call.dtype,
                due.0,
                due.1,
                input.1,
                output.1,
            );
            return Err(Error::new(Kind::Invalid, message));
        }
        if call.collective == Collective::Alltoall {
            return Err(Error::new(Kind::Unsupported, "alltoall does not serve calls in place"));
        }
        let own = rank as usize * call.block();
        let both = due.0 > 0 && due.1 > 0;
        let in_output = if both && due.1 > due.0 { own } else { 0 };
        let in_input = if both && due.0 > due.1 { own } else { 0 };
        // As one buffer, or as the two that lie in it.
        let start = if due.1 > due.0 { output.0.cast_const() } else { input.0 };
        let one = input == (output.0.cast_const(), output.1) && input.1 == due.0.max(due.1);
        let two = (input.1, output.1) == due
            && input.0 == start.wrapping_add(in_output)
            && output.0.cast_const() == start.wrapping_add(in_input);
        if !one && !two {
            let message = format!(
                "rank {rank}: input and output of {} do not lie to each other as in a call in place",
                call.collective.name()
            );
            return Err(Error::new(Kind::Invalid, message));
        }
        // Through the address that may be written, which the output's is, as much as the input's in one buffer.
        let output = if one { output.0.wrapping_add(in_input) } else { output.0 };
        let input = if one { input.0.wrapping_add(in_output) } else { input.0 };
        Ok(Areas { input, output, in_place: true })
    }
}

fn overlap(input: (*const u8, usize), output: (*mut u8, usize)) -> bool {
    let (a, b) = (input.0 as usize, output.0 as usize);
    input.1 > 0 && output.1 > 0 && a < b.saturating_add(output.1) && b < a.saturating_add(input.1)
}

#[cfg(test)]
mod tests {
    use plan::dtype::{Dtype, Op};
    use plan::ids::RankId;

    use super::*;

    fn call(collective: Collective) -> Call {
        Call { collective, elements: 2, dtype: Dtype::F32, op: Op::Sum }
    }

    /// Where input and output begin, counted from the beginning of the memory.
    fn places(memory: &[u8], areas: &Areas) -> (usize, usize) {
        let start = memory.as_ptr() as usize;
        (areas.input as usize - start, areas.output as usize - start)
    }

    #[test]
    fn lengths_are_those_of_the_collective() {
        let root = RankId(1);
        // Bytes of input and output at rank 0, and at the root.
        let all = [
            (Collective::Allreduce, (8, 8), (8, 8)),
            (Collective::Allgather, (8, 24), (8, 24)),
            (Collective::Reducescatter, (24, 8), (24, 8)),
            (Collective::Alltoall, (24, 24), (24, 24)),
            (Collective::Broadcast { root }, (999, 8), (8, 8)),
            (Collective::Reduce { root }, (8, 999), (8, 8)),
            (Collective::Gather { root }, (8, 999), (8, 24)),
            (Collective::Scatter { root }, (999, 8), (24, 8)),
        ];
        for (collective, other, at_root) in all {
            for (rank, (input, output)) in [(0, other), (1, at_root)] {
                let check = |input, output| {
                    let (input, mut output) = (vec![0; input], vec![0; output]);
                    Buffers::apart(&input, &mut output).check(&call(collective), rank, 3).map(|_| ())
                };
                assert_eq!(check(input, output), Ok(()), "{collective:?} {rank}");
                for (wrong, ignored) in [((input + 1, output), input), ((input, output - 1), output)] {
                    assert_eq!(check(wrong.0, wrong.1).is_err(), ignored != 999, "{collective:?} {rank}");
                }
            }
        }
        assert!(Buffers::none().check(&Call::BARRIER, 0, 3).is_ok());
    }

    #[test]
    fn in_place_the_smaller_one_is_this_ranks_block() {
        let root = RankId(1);
        let all = [
            (Collective::Allreduce, 8, (0, 0)),
            (Collective::Broadcast { root }, 8, (0, 0)),
            (Collective::Reduce { root }, 8, (0, 0)),
            (Collective::Allgather, 24, (8, 0)),
            (Collective::Gather { root }, 24, (8, 0)),
            (Collective::Reducescatter, 24, (0, 8)),
            (Collective::Scatter { root }, 24, (0, 8)),
        ];
        for (collective, bytes, expected) in all {
            let mut memory = vec![0; bytes];
            let areas = Buffers::in_place(&mut memory).check(&call(collective), 1, 3).unwrap();
            assert!(areas.in_place && places(&memory, &areas) == expected, "{collective:?}");
            // The same by addresses of the two.
            let due = due(&call(collective), 1, 3);
            let start = memory.as_mut_ptr();
            let input = start.wrapping_add(expected.0).cast_const();
            let output = start.wrapping_add(expected.1);
            // SAFETY: within the memory, which nobody else uses.
            let two = unsafe { Buffers::at((input, due.0.unwrap()), (output, due.1.unwrap())) };
            let areas = two.check(&call(collective), 1, 3).unwrap();
            assert_eq!(places(&memory, &areas), expected, "{collective:?}");
            let mut longer = vec![0; bytes + 1];
            assert!(Buffers::in_place(&mut longer).check(&call(collective), 1, 3).is_err());
        }
        let mut memory = vec![0; 24];
        let start = memory.as_mut_ptr();
        let error = Buffers::in_place(&mut memory).check(&call(Collective::Alltoall), 1, 3).unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported);
        // SAFETY: within the memory, which nobody else uses.
        let partly = unsafe { Buffers::at((start, 8), (start.wrapping_add(4), 8)) };
        assert_eq!(partly.check(&call(Collective::Allreduce), 1, 3).unwrap_err().kind, Kind::Invalid);
        // Ranks that are not the root have the smaller one alone.
        let mut block = vec![0; 8];
        for collective in [Collective::Gather { root }, Collective::Scatter { root }] {
            assert!(Buffers::in_place(&mut block).check(&call(collective), 0, 3).is_ok());
        }
    }
}
