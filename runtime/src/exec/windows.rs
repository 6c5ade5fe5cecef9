//! Windows into the registered memory of peers.
//!
//! In: the rank and buffer of each, and the shared segment. Out: the address that a buffer has in this call, in this
//! process. The one hard idea: the owner writes down where its buffers lie before it says READY, and does so anew only
//! when all DONEs of the call have come; so within the call, and only there, what is written may be read, once, and
//! kept. The plan was verified: every access comes after READY and before DONE.

use plan::ids::{BufferId, RankId};
use plan::layout::Layout;

use crate::memory::board::AreaWords;
use crate::memory::segment::Segment;

/// A buffer of a peer.
#[derive(Debug)]
pub struct Window<'s> {
    /// Whose.
    pub owner: RankId,
    /// Which.
    pub buffer: BufferId,
    area: &'s AreaWords,
    region: *mut u8,
    region_bytes: u64,
    /// What it must be long in calls of this layout.
    due: u64,
    /// The call that `start` is of.
    call: u64,
    start: *mut u8,
}

// SAFETY: the pointers are into the shared segment, which `'s` keeps mapped; the plan says who may touch what when.
unsafe impl Send for Window<'_> {}

impl<'s> Window<'s> {
    /// A window into `buffer` of `owner`.
    pub fn new(segment: &'s Segment, owner: RankId, buffer: BufferId) -> Window<'s> {
        let (region, region_bytes) = segment.region(owner);
        let area = segment.area(owner, buffer);
        Window { owner, buffer, area, region, region_bytes, due: 0, call: 0, start: std::ptr::null_mut() }
    }

    /// Prepares it for calls of this layout.
    pub fn prepare(&mut self, layout: &Layout) {
        self.due = layout.buffer_bytes(self.buffer);
        self.call = 0;
    }

    /// Looks where the buffer lies in `call`, if that is not known yet; false if that is not within the registered
    /// memory of its owner. Only between READY and DONE.
    #[inline]
    pub fn open(&mut self, call: u64) -> bool {
        self.call == call || self.look(call)
    }

    /// Its first byte; only after `open` said yes.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    #[cold]
    fn look(&mut self, call: u64) -> bool {
        let (offset, bytes) = self.area.read();
        let within = offset <= self.region_bytes && bytes <= self.region_bytes - offset;
        if bytes != self.due || !within {
            return false;
        }
        self.start = self.region.wrapping_add(offset as usize);
        self.call = call;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::segment::Shape;
    use plan::builder::PlanBuilder;
    use plan::dtype::Dtype;
    use plan::plan::Role;

    #[test]
    fn what_lies_outside_the_region_or_has_another_size_is_not_opened() {
        let mut p = PlanBuilder::new("none", "none", &[2]);
        let buffer = p.buffer("input", Role::Send, 2);
        let plan = p.finish().unwrap().plan;
        let shape = Shape::new(&plan, 1, 64).unwrap().with_registered(|_| 4096).unwrap();
        let (segment, _fd) = Segment::create(shape).unwrap();
        let (owner, layout) = (RankId(1), Layout::new(&plan, 10, Dtype::F32, 64).unwrap());
        let mut window = Window::new(&segment, owner, buffer);
        window.prepare(&layout);
        let mut call = 0;
        let mut open = |offset, bytes| {
            call += 1;
            segment.area(owner, buffer).publish(offset, bytes);
            window.open(call).then(|| window.start() as usize - segment.region(owner).0 as usize)
        };
        assert_eq!(open(0, 80), Some(0));
        assert_eq!(open(4016, 80), Some(4016));
        for (offset, bytes) in [(4017, 80), (0, 79), (0, 84), (u64::MAX, 80), (u64::MAX - 40, 80), (4096, 80)]
        {
            assert_eq!(open(offset, bytes), None, "{offset} {bytes}");
        }
        // Within a call it is looked up once: the owner cannot move it.
        window.call = 99;
        assert!(window.open(99));
    }
}
