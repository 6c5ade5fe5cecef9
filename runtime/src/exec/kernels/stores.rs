//! Stores past the caches ("non-temporal"): of what is not read soon and would drive out what is, or is in the way in another
//! core's cache.
//!
//! In: a block and where it goes. Out: the same bytes there. The processor may do such stores later than others: whoever
//! has done some calls [`order`] before others are told that the bytes are there.

/// Stores past the caches if `to` is a multiple of 16, else as always.
///
/// In vectors of 16 bytes, which every x86-64 has: whole lines are put together before they leave the core.
///
/// # Safety
/// `to` is writable for the whole block.
#[inline(always)]
pub(super) unsafe fn past_caches<T: Copy, const L: usize>(block: &[T; L], to: *mut [T; L]) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<[T; L]>().is_multiple_of(16) && to.cast::<std::arch::x86_64::__m128i>().is_aligned() {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let from = block.as_ptr().cast::<__m128i>();
        for i in 0..size_of::<[T; L]>() / 16 {
            // SAFETY: so many vectors lie within the block, and the caller's promise; x86-64 has SSE2.
            unsafe { _mm_stream_si128(to.cast::<__m128i>().add(i), _mm_loadu_si128(from.add(i))) };
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { to.write_unaligned(*block) };
}

/// Orders stores past the caches before all later ones.
#[inline(always)]
pub(super) fn order() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it; it only waits.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
