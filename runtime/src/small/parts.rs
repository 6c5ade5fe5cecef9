//! What is written into boxes, and what is made of it.
//!
//! In: a call, this rank's memory, the boxes of all ranks. Out: a part in this rank's box; the result. The one hard idea: a part is
//! folded where it lies, straight from all ranks' boxes in rank order, so the numbers are those of one step with as many sources as
//! ranks, and nothing is copied twice.

use std::ptr;

use plan::dtype::Op;
use plan::pre::Pre;

use super::boxes::Mailbox;
use super::buffers::Areas;
use super::call::{Blocks, Call, Collective};
use crate::exec::kernels::{Fold, Kernel, Stream};

/// What is worked out once for calls of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kit {
    pub(super) call: Call,
    rank: usize,
    ranks: usize,
    /// Bytes of a block, and of a part in a box.
    block: usize,
    pub(super) part: usize,
    kernel: Kernel,
    divisor: Option<u32>,
    pre: Pre,
}

impl Kit {
    pub(super) fn new(call: Call, rank: u32, ranks: u32) -> Kit {
        let block = call.block();
        let (input, _) = call.collective.blocks();
        // Of two ranks only the other's block is of interest.
        let part = if input == Blocks::One || ranks == 2 { block } else { block * ranks as usize };
        // With one operand avg and premulsum are the identity.
        let several = ranks > 1 && call.collective.reduces();
        let marks = (0..ranks).map(|_| several && call.op.factor().is_some());
        Kit {
            call,
            rank: rank as usize,
            ranks: ranks as usize,
            block,
            part,
            kernel: Kernel::new(call.dtype, call.op),
            divisor: (several && call.op == Op::Avg).then_some(ranks),
            // All are alike, so that there are marks for them.
            pre: Pre::of(marks).unwrap_or(Pre::NONE),
        }
    }

    /// Writes this rank's part.
    ///
    /// # Safety
    /// The input is as the call has it; nobody else touches the box.
    #[inline]
    pub(super) unsafe fn write(&self, areas: Areas, to: Mailbox<'_>) {
        let Kit { rank, ranks, block, part, .. } = *self;
        let to = to.part(part);
        let own = rank * block;
        // SAFETY: the caller's promise; parts are no larger than a box, blocks lie within input and part.
        unsafe {
            match self.call.collective.blocks().0 {
                Blocks::One => copy(areas.input, to, part),
                Blocks::Each if ranks == 2 => copy(areas.input.add(block - own), to, part),
                Blocks::Each => {
                    copy(areas.input, to, own);
                    let after = own + block;
                    copy(areas.input.add(after), to.add(after), part - after);
                }
            }
        }
    }

    /// Makes the result of what lies in the boxes that `from` gives; `sources` is room for as many addresses as ranks.
    ///
    /// # Safety
    /// Input and output are as the call has them; parts of all ranks that this one reads lie in their boxes, which nobody writes meanwhile.
    #[inline]
    pub(super) unsafe fn finish<'b>(
        &self,
        areas: Areas,
        sources: &mut [*const u8],
        from: impl Fn(u32) -> Mailbox<'b>,
    ) {
        let Kit { rank, ranks, block, part, .. } = *self;
        let Areas { input, output, in_place } = areas;
        let own = rank * block;
        let part_of = |peer: usize| from(peer as u32).part(part).cast_const();
        // Where this rank's block lies in the part of another.
        let within = if ranks == 2 { 0 } else { own };
        let is_root = self.call.collective.root().is_none_or(|root| root.index() == rank);
        // SAFETY: the caller's promise; blocks lie within parts, input and output.
        unsafe {
            match self.call.collective {
                Collective::Barrier => {}
                Collective::Allreduce => self.fold(sources, input, output, part_of),
                Collective::Reduce { .. } if is_root => self.fold(sources, input, output, part_of),
                Collective::Reducescatter => {
                    self.fold(sources, input.add(own), output, |peer| part_of(peer).add(within));
                }
                Collective::Allgather => self.gather(input, output, in_place, part_of),
                Collective::Gather { .. } if is_root => self.gather(input, output, in_place, part_of),
                Collective::Reduce { .. } | Collective::Gather { .. } => {}
                Collective::Alltoall => {
                    self.gather(input.add(own), output, in_place, |peer| part_of(peer).add(within));
                }
                Collective::Broadcast { .. } if is_root && in_place => {}
                Collective::Broadcast { .. } if is_root => copy(input, output, block),
                Collective::Broadcast { root } => copy(part_of(root.index()), output, block),
                Collective::Scatter { .. } if is_root && in_place => {}
                Collective::Scatter { .. } if is_root => copy(input.add(own), output, block),
                Collective::Scatter { root } => copy(part_of(root.index()).add(within), output, block),
            }
        }
    }

    /// # Safety
    /// As for `finish`; `of` gives a block of each other rank.
    #[inline]
    unsafe fn fold(
        &self,
        sources: &mut [*const u8],
        own: *const u8,
        output: *mut u8,
        of: impl Fn(usize) -> *const u8,
    ) {
        let sources = &mut sources[..self.ranks];
        for (peer, source) in sources.iter_mut().enumerate() {
            *source = if peer == self.rank { own } else { of(peer) };
        }
        let fold = Fold {
            sources,
            destinations: &[output],
            count: self.call.elements as usize,
            round_each: false,
            divisor: self.divisor,
            pre: self.pre,
            stream: Stream::NONE,
        };
        // SAFETY: the caller's promise; the output is this rank's operand (in place), or apart from all.
        unsafe { self.kernel.run(&fold) };
    }

    /// # Safety
    /// As for `finish`; `of` gives a block of each other rank.
    #[inline]
    unsafe fn gather(
        &self,
        own: *const u8,
        output: *mut u8,
        in_place: bool,
        of: impl Fn(usize) -> *const u8,
    ) {
        for peer in 0..self.ranks {
            // SAFETY: the caller's promise: the output has a block for each rank.
            unsafe {
                let to = output.add(peer * self.block);
                if peer != self.rank {
                    copy(of(peer), to, self.block);
                } else if !in_place {
                    copy(own, to, self.block);
                }
            }
        }
    }
}

/// # Safety
/// As `ptr::copy_nonoverlapping`; none of `bytes` = 0 is looked at.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
    }
}
