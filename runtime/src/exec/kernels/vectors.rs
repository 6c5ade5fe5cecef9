//! Vector sets, as types: what the compiler does not find by itself.
//!
//! In: arrays. Out: arrays, by instructions of the machine where the set has some. Everything is inlined into
//! functions that are compiled for the set; only there may a set be used. No set contracts a multiplication and an
//! addition: results are the same on all, to the bit (NaN payloads apart).

/// A vector set.
pub(super) trait Vectors {
    /// Bits of binary16 as f32.
    #[inline(always)]
    fn widen_f16<const L: usize>(from: [u16; L]) -> [f32; L] {
        each(from, widen)
    }

    /// To nearest, ties to even.
    #[inline(always)]
    fn narrow_f16<const L: usize>(from: [f32; L]) -> [u16; L] {
        each(from, |x| narrow_bits::<10, -14, 0x7c00, 0x7e00>(x) as u16)
    }
}

/// What the compiler has without being told.
pub(super) struct Baseline;

/// Does the same to each element. (`array::map` would be taken apart before the compiler looks for vectors.)
#[inline(always)]
pub(super) fn each<T: Copy, U: Copy + Default, const L: usize>(from: [T; L], f: impl Fn(T) -> U) -> [U; L] {
    let mut to = [U::default(); L];
    for i in 0..L {
        to[i] = f(from[i]);
    }
    to
}

/// Without a branch: where the exponent field is 0, the number is taken for a normal one, and what that adds is
/// taken away again.
#[inline(always)]
fn widen(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let normal = magnitude + (112 << 23);
    let subnormal = (f32::from_bits(magnitude + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let found = if magnitude < 1 << 23 { subnormal } else { normal };
    let found = if magnitude >= 31 << 23 { magnitude | 0x7f80_0000 } else { found };
    f32::from_bits(found | u32::from(bits & 0x8000) << 16)
}

/// An f32 as a float of 16 or 8 bits with so many bits of mantissa, whose smallest normal number has this exponent; which
/// has `BEYOND` for what is too large, and `NAN`: to nearest, ties to even.
///
/// What stays normal is rounded as an integer, where a carry goes on into the exponent. What does not is added to a power
/// of two that has the smallest number for its last place, so that the addition rounds.
#[inline(always)]
pub(super) fn narrow_bits<const MANTISSA: u32, const LEAST: i32, const BEYOND: u32, const NAN: u32>(
    x: f32,
) -> u32 {
    let shift = 23 - MANTISSA;
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // The exponent field of the smallest normal number is 1 there and 127 + LEAST here.
    let rebias = ((126 + LEAST) as u32) << 23;
    let odd = magnitude >> shift & 1;
    let normal = magnitude.wrapping_sub(rebias).wrapping_add((1 << (shift - 1)) - 1 + odd) >> shift;
    let unit = ((127 + LEAST - MANTISSA as i32 + 23) as u32) << 23;
    let small = (f32::from_bits(magnitude) + f32::from_bits(unit)).to_bits().wrapping_sub(unit);
    let least = ((127 + LEAST) as u32) << 23;
    let found = if magnitude < least { small } else { normal.min(BEYOND) };
    // With the upper bits of what it was, as machines do.
    let nan = NAN | magnitude >> shift & ((1 << MANTISSA) - 1);
    let found = if magnitude > 0x7f80_0000 { nan } else { found };
    let sign = if MANTISSA > 3 { bits >> 16 & 0x8000 } else { bits >> 24 & 0x80 };
    sign | found
}

impl Vectors for Baseline {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_storeu_ps, _mm256_storeu_si256,
        _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_storeu_ps,
    };

    use super::{Baseline, Vectors};

    /// AVX2 and F16C.
    pub(in super::super) struct Avx2;

    /// AVX-512 F, BW and VL.
    pub(in super::super) struct Avx512;

    impl Vectors for Avx2 {
        #[inline(always)]
        fn widen_f16<const L: usize>(from: [u16; L]) -> [f32; L] {
            if !L.is_multiple_of(8) {
                return Baseline::widen_f16(from);
            }
            let mut to = [0.0; L];
            for at in (0..L).step_by(8) {
                // SAFETY: eight elements of each from `at` on; the machine has F16C, or this set would not be in use.
                unsafe {
                    let halves = _mm_loadu_si128(from.as_ptr().add(at).cast());
                    _mm256_storeu_ps(to.as_mut_ptr().add(at), _mm256_cvtph_ps(halves));
                }
            }
            to
        }

        #[inline(always)]
        fn narrow_f16<const L: usize>(from: [f32; L]) -> [u16; L] {
            if !L.is_multiple_of(8) {
                return Baseline::narrow_f16(from);
            }
            let mut to = [0; L];
            for at in (0..L).step_by(8) {
                // SAFETY: as above.
                unsafe {
                    let singles = _mm256_loadu_ps(from.as_ptr().add(at));
                    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(singles);
                    _mm_storeu_si128(to.as_mut_ptr().add(at).cast(), halves);
                }
            }
            to
        }
    }

    impl Vectors for Avx512 {
        #[inline(always)]
        fn widen_f16<const L: usize>(from: [u16; L]) -> [f32; L] {
            if !L.is_multiple_of(16) {
                return Baseline::widen_f16(from);
            }
            let mut to = [0.0; L];
            for at in (0..L).step_by(16) {
                // SAFETY: sixteen elements of each from `at` on; the machine has AVX-512, or this set would not be in use.
                unsafe {
                    let halves: __m256i = _mm256_loadu_si256(from.as_ptr().add(at).cast());
                    _mm512_storeu_ps(to.as_mut_ptr().add(at), _mm512_cvtph_ps(halves));
                }
            }
            to
        }

        #[inline(always)]
        fn narrow_f16<const L: usize>(from: [f32; L]) -> [u16; L] {
            if !L.is_multiple_of(16) {
                return Baseline::narrow_f16(from);
            }
            let mut to = [0; L];
            for at in (0..L).step_by(16) {
                // SAFETY: as above.
                unsafe {
                    let singles = _mm512_loadu_ps(from.as_ptr().add(at));
                    let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(singles);
                    _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), halves);
                }
            }
            to
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};
