//! Operators of the user's own.
//!
//! In: an [`Operator`]: how elements are combined. Out: folds by it, with all that the executor asks of a fold. The one hard idea: the operator is safe
//! code that knows nothing of slots, peers or buffers that lie on each other; so it works on copies, a few KiB at a time, which lie in the first cache and are
//! aligned for every element type. If it panics, nothing of what it was making is published, and the call ends at all ranks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::kernels::Fold;
use crate::payload;

/// How elements are combined. It must be associative and commutative: plans combine in any order.
///
/// All ranks give the same one, under the same name; ranks that give others are told, as for any other operator.
///
/// To an operator elements are nothing but so many bytes: those of a call's type, 1, 2, 4 or 8. What has one of these sizes is called with
/// any type of that size (a pair of two `u32` as `u64`).
///
/// It runs while the communicator drives its calls: it computes, and makes no calls.
pub trait Operator: Send + Sync {
    /// What tells it from others, in at most 64 bytes. It is asked once, when the operator is joined to a plan; what it says then counts.
    fn name(&self) -> &str;

    /// Combines elements one by one: `into[i] = into[i] ∘ other[i]`. Both have equally many whole elements of the call's type, in the machine's
    /// order of bytes, and begin at a multiple of 64 bytes.
    fn combine(&self, into: &mut [u8], other: &[u8]);
}

/// An operator of a name and a function.
pub struct Named<F> {
    name: String,
    combine: F,
}

impl<F: Fn(&mut [u8], &[u8]) + Send + Sync> Named<F> {
    /// Combines by `combine` ([`Operator::combine`]).
    pub fn new(name: impl Into<String>, combine: F) -> Named<F> {
        Named { name: name.into(), combine }
    }
}

impl<F: Fn(&mut [u8], &[u8]) + Send + Sync> Operator for Named<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn combine(&self, into: &mut [u8], other: &[u8]) {
        (self.combine)(into, other);
    }
}

impl<F> std::fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Named({:?})", self.name)
    }
}

/// The most bytes that a name has.
pub const MOST_NAME: usize = 64;

/// An operator that a rank calls with.
#[derive(Clone)]
pub(crate) struct User {
    /// Which of the rank's; from 1.
    pub(crate) number: u32,
    /// As it said once.
    pub(crate) name: Arc<str>,
    pub(crate) operator: Arc<dyn Operator>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({}: {:?})", self.number, self.name)
    }
}

/// What is combined at once: a multiple of every element's size.
const PART: usize = 4096;

/// A part, where any element may lie.
#[repr(align(64))]
struct Part([u8; PART]);

/// Folds elements of `size` bytes; whether the operator did not panic.
///
/// # Safety
/// As `kernels::Kernel::run`.
pub(super) unsafe fn fold(operator: &dyn Operator, fold: &Fold<'_>, size: usize) -> bool {
    let [first, rest @ ..] = fold.sources else { return true };
    let total = fold.count * size;
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let (mut into, mut other) = (Part([0; PART]), Part([0; PART]));
        let mut at = 0;
        while at < total {
            let bytes = PART.min(total - at);
            let read = |from: *const u8, part: &mut [u8]| {
                // SAFETY: the caller's promise: the source is readable there, and the part is memory of this function.
                unsafe { std::ptr::copy_nonoverlapping(from.add(at), part.as_mut_ptr(), bytes) };
            };
            read(*first, &mut into.0[..bytes]);
            for &source in rest {
                read(source, &mut other.0[..bytes]);
                operator.combine(&mut into.0[..bytes], &other.0[..bytes]);
            }
            for &to in fold.destinations {
                // SAFETY: the caller's promise: the destination is writable there. Where it is one of the sources, this part of it
                // has been read.
                unsafe { std::ptr::copy_nonoverlapping(into.0.as_ptr(), to.add(at), bytes) };
            }
            at += bytes;
        }
    }));
    whole.map_err(payload::discard).is_ok()
}

#[cfg(test)]
mod tests {
    use plan::pre::Pre;

    use super::*;
    use crate::exec::kernels::Stream;

    fn request<'a>(sources: &'a [*const u8], destinations: &'a [*mut u8], count: usize) -> Fold<'a> {
        Fold {
            sources,
            destinations,
            count,
            round_each: false,
            divisor: None,
            pre: Pre::default(),
            stream: Stream::NONE,
        }
    }

    #[test]
    fn folds_from_left_to_right_in_place_and_to_many() {
        // Not commutative, to see the order: x ∘ y = 3x + y, on bytes.
        let order = Named::new("order", |into: &mut [u8], other: &[u8]| {
            into.iter_mut().zip(other).for_each(|(x, &y)| *x = x.wrapping_mul(3).wrapping_add(y));
        });
        for count in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7] {
            let lists: Vec<Vec<u8>> =
                (0..3u8).map(|k| (0..count).map(|i| (i as u8).wrapping_mul(k + 2)).collect()).collect();
            let expected: Vec<u8> = (0..count)
                .map(|i| lists.iter().map(|l| l[i]).reduce(|x, y| x.wrapping_mul(3).wrapping_add(y)).unwrap())
                .collect();
            let mut all = lists.clone();
            let mut out = vec![0; count];
            let second = all[1].as_mut_ptr();
            let sources = [all[0].as_ptr(), second.cast_const(), all[2].as_ptr()];
            let destinations = [second, out.as_mut_ptr()];
            // SAFETY: the memory is there; one destination is a source.
            assert!(unsafe { fold(&order, &request(&sources, &destinations, count), 1) });
            assert_eq!((&all[1], &out), (&expected, &expected));
        }
    }

    #[test]
    fn a_panic_is_told_and_stores_nothing() {
        let (a, b, mut out) = ([1u8; 8], [2u8; 8], [9u8; 8]);
        let bad = Named::new("bad", |_: &mut [u8], _: &[u8]| panic!("for a test"));
        let sources = [a.as_ptr(), b.as_ptr()];
        // SAFETY: the memory is there.
        assert!(!unsafe { fold(&bad, &request(&sources, &[out.as_mut_ptr()], 8), 1) });
        assert_eq!(out, [9; 8]);
    }
}
