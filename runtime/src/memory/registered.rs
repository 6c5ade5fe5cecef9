//! Registered memory: what peers may read and write.
//!
//! In: a rank and a size. Out: [`Registered`], a piece of that rank's region of the hall, which every rank
//! of the job maps. The one hard idea: it is handed out as a value of its own, and lent to a call as a whole, so that no
//! slice of it exists while peers may touch it. If a call has failed and a peer may still be writing, the region is in
//! quarantine: no slice of it is given out any more.
//!
//! A region is a stack: a piece is free for others again once it and all pieces after it are dropped.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plan::ids::RankId;

use super::hall::Hall;
use crate::error::{Error, Kind};

/// What pieces begin and end at multiples of: a page, so that neighbours share none.
pub const ALIGN: u64 = 4096;

/// A piece of a rank's registered memory.
#[derive(Debug)]
pub struct Registered {
    hall: Arc<Hall>,
    rank: RankId,
    /// Of the region.
    taken: Range<u64>,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a piece of memory that this value alone gives out; the segment may be used from any thread.
unsafe impl Send for Registered {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Registered {}

/// The bytes of the region that a piece of `bytes` takes.
pub fn taken(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX)
}

impl Registered {
    /// A zeroed piece of the region of `rank`.
    pub fn new(hall: &Arc<Hall>, rank: RankId, bytes: u64) -> Result<Registered, Error> {
        let (region, most) = hall.region(rank);
        let allocated = &hall.rank(rank).allocated;
        let fits = |from: u64| from.checked_add(taken(bytes)).filter(|&end| end <= most);
        let Ok(from) = allocated.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits) else {
            let free = most.saturating_sub(allocated.load(Ordering::Relaxed));
            let message = format!(
                "rank {}: {bytes} bytes of registered memory were asked for, and {free} of {most} are free",
                rank.0
            );
            return Err(Error::new(Kind::Resource, message).help("give ranks more registered memory"));
        };
        let start = region.wrapping_add(from as usize);
        let taken = from..from + taken(bytes);
        let mut piece = Registered { hall: Arc::clone(hall), rank, taken, start, bytes: bytes as usize };
        piece.bytes_mut().fill(0);
        Ok(piece)
    }

    /// Whose it is.
    pub fn rank(&self) -> RankId {
        self.rank
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether a call has failed and a peer may still write here. For good: the job is at its end then.
    pub fn quarantined(&self) -> bool {
        self.hall.rank(self.rank).quarantined.load(Ordering::Relaxed) != 0
    }

    /// Its bytes; none in quarantine.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a part of the region that is this value's alone, initialised because the segment was zeroed. Peers
        // touch it only during a call, which borrows this value, or after one that failed, which is quarantine.
        unsafe { std::slice::from_raw_parts(self.start, self.given()) }
    }

    /// Its bytes, to be written; none in quarantine.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and this borrows the value alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.given()) }
    }

    /// Its first byte, for a call that borrows it.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    fn given(&self) -> usize {
        if self.quarantined() { 0 } else { self.bytes }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if !self.quarantined() {
            // Only the last piece can be given back; what lies below one that lives stays taken.
            let Range { start, end } = self.taken;
            let allocated = &self.hall.rank(self.rank).allocated;
            let _ = allocated.compare_exchange(end, start, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::hall::Shape;

    #[test]
    fn pieces_are_apart_and_given_back_from_the_top() {
        let shape = Shape::new(2, |r| u64::from(r.0) * 10_000).unwrap();
        let (hall, _fd) = Hall::create(shape).unwrap();
        let hall = Arc::new(hall);
        let one = RankId(1);
        assert_eq!(Registered::new(&hall, RankId(0), 1).unwrap_err().kind, Kind::Resource);
        assert!(Registered::new(&hall, RankId(0), 0).unwrap().is_empty());
        let mut a = Registered::new(&hall, one, 4097).unwrap();
        let mut b = Registered::new(&hall, one, 4096).unwrap();
        a.bytes_mut().fill(1);
        b.bytes_mut().fill(2);
        assert_eq!((a.bytes(), b.bytes()), (&[1; 4097][..], &[2; 4096][..]));
        let error = Registered::new(&hall, one, 1).unwrap_err();
        assert!(error.message.contains("0 of 12288 are free"), "{error}");
        drop(b);
        assert_eq!(Registered::new(&hall, one, 5).unwrap().bytes(), [0; 5]);
        assert_eq!(Registered::new(&hall, one, u64::MAX).unwrap_err().kind, Kind::Resource);
        // The lower one goes first: nothing is free until the upper one goes, and then only that.
        let b = Registered::new(&hall, one, 1).unwrap();
        drop(a);
        assert!(Registered::new(&hall, one, 1).is_err());
        drop(b);
        assert!(Registered::new(&hall, one, 4096).is_ok());

        let kept = Registered::new(&hall, one, 7).unwrap();
        hall.rank(one).quarantined.store(1, Ordering::Relaxed);
        assert!(kept.quarantined() && kept.bytes().is_empty());
    }
}
