//! The 8-bit floats, all 256 of each, against their definition in exact arithmetic and rounding by search.

use proptest::prelude::*;
use rcc_plan::arith::{Rounding, fold};
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::float8::{F8E4m3, F8E5m2};

/// A format as OCP's table has it, and how to convert.
struct Format {
    dtype: Dtype,
    mantissa: i32,
    bias: i32,
    largest: u8,
    beyond: u8,
    decode: fn(u8) -> f32,
    encode: fn(f32) -> u8,
}

const FORMATS: [Format; 2] = [
    Format {
        dtype: Dtype::F8E4m3,
        mantissa: 3,
        bias: 7,
        largest: 0x7E,
        beyond: 0x7F,
        decode: |bits| F8E4m3(bits).to_f32(),
        encode: |x| F8E4m3::from_f32(x).0,
    },
    Format {
        dtype: Dtype::F8E5m2,
        mantissa: 2,
        bias: 15,
        largest: 0x7B,
        beyond: 0x7C,
        decode: |bits| F8E5m2(bits).to_f32(),
        encode: |x| F8E5m2::from_f32(x).0,
    },
];

impl Format {
    /// The value of a finite number, in units of 2^-32: exact.
    fn units(&self, magnitude: u8) -> i128 {
        let (exponent, mantissa) =
            (i32::from(magnitude >> self.mantissa), magnitude & ((1 << self.mantissa) - 1));
        let (significand, exponent) = match exponent {
            0 => (i128::from(mantissa), 1),
            _ => (i128::from(mantissa) + (1 << self.mantissa), exponent),
        };
        significand << (32 + exponent - self.bias - self.mantissa)
    }

    /// The bits nearest to a magnitude in units of 2^-33, ties to even, what is too large as `beyond`: by search.
    fn nearest(&self, halves: i128) -> u8 {
        // The number that would follow the largest, if the format went on.
        let next = 2 * self.units(self.largest) - self.units(self.largest - 1);
        let value = |bits: u8| 2 * if bits > self.largest { next } else { self.units(bits) };
        let found = (0..=self.largest + 1).min_by_key(|&bits| ((value(bits) - halves).abs(), bits & 1));
        found.map_or(0, |bits| if bits > self.largest { self.beyond } else { bits })
    }
}

/// A finite f32 in units of 2^-32, if it is a multiple of that and not too large.
fn units(x: f32) -> Option<i128> {
    let scaled = f64::from(x) * 2f64.powi(32);
    (scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(100)).then_some(scaled as i128)
}

#[test]
fn every_one_has_the_value_that_its_fields_say() {
    for format in &FORMATS {
        for bits in 0..=u8::MAX {
            let (magnitude, got) = (bits & 0x7F, (format.decode)(bits));
            assert_eq!(
                got.is_nan(),
                magnitude > format.largest && magnitude != 0x7C || magnitude == 0x7F,
                "{bits:#x}"
            );
            if magnitude <= format.largest {
                assert_eq!(units(got.abs()), Some(format.units(magnitude)), "{bits:#x}");
            } else if !got.is_nan() {
                assert_eq!(got.abs(), f32::INFINITY, "{bits:#x}");
            }
            assert_eq!(got.is_sign_negative(), bits >= 0x80, "{bits:#x}");
            if !got.is_nan() {
                assert_eq!((format.encode)(got), bits, "and back");
            }
        }
    }
    assert_eq!([0x7E, 0x08, 0x01].map(|b| F8E4m3(b).to_f32()), [448.0, 0.015625, 0.001953125]);
    assert_eq!([0x7B, 0x04, 0x01].map(|b| F8E5m2(b).to_f32()), [57344.0, 2f32.powi(-14), 2f32.powi(-16)]);
    assert!((0..=u8::MAX).filter(|&b| F8E4m3(b).to_f32().is_nan()).eq([0x7F, 0xFF]));
}

#[test]
fn ties_and_what_lies_next_to_them_round_as_they_must() {
    for format in &FORMATS {
        for bits in 0..=format.largest {
            // Half way to the next one: exact in f32.
            let above = if bits == format.largest {
                2 * format.units(bits) - format.units(bits - 1)
            } else {
                format.units(bits + 1)
            };
            let tie = ((format.units(bits) + above) as f64 / 2f64.powi(33)) as f32;
            for x in [tie, f32::from_bits(tie.to_bits() - 1), f32::from_bits(tie.to_bits() + 1)] {
                let up = x > tie || (x == tie && bits & 1 == 1);
                let expected = match bits + u8::from(up) {
                    next if next > format.largest => format.beyond,
                    next => next,
                };
                assert_eq!((format.encode)(x), expected, "{x}");
                assert_eq!((format.encode)(-x), expected | 0x80, "-{x}");
            }
        }
        for x in [f32::MIN_POSITIVE, f32::from_bits(1), 0.0] {
            assert_eq!([(format.encode)(x), (format.encode)(-x)], [0, 0x80]);
        }
        for x in [f32::INFINITY, f32::MAX, 1e6] {
            assert_eq!([(format.encode)(x), (format.encode)(-x)], [format.beyond, format.beyond | 0x80]);
        }
        assert!([f32::NAN, -f32::NAN].map(|x| (format.decode)((format.encode)(x)).is_nan()) == [true; 2]);
    }
}

#[test]
fn sums_of_all_pairs_are_rounded_from_the_exact_sum() {
    for format in &FORMATS {
        for a in 0..=u8::MAX {
            for b in 0..=u8::MAX {
                let mut got = [0];
                fold(format.dtype, Op::Sum, &[&[a], &[b]], Rounding::default(), &mut got);
                let (x, y) = ((format.decode)(a), (format.decode)(b));
                if !(x.is_finite() && y.is_finite()) {
                    let (got, sum) = ((format.decode)(got[0]), x + y);
                    // E4M3 has no infinities to begin with.
                    assert!(got == sum || got.is_nan() && sum.is_nan(), "{x} + {y}");
                    continue;
                }
                let signed = |bits: u8| format.units(bits & 0x7F) * if bits < 0x80 { 1 } else { -1 };
                let exact = signed(a) + signed(b);
                // Those of E5M2 may need more bits than f32 has, in which the sum is rounded first.
                let exact = ((exact as f64 as f32) as f64) as i128;
                let sign = if exact < 0 || (exact == 0 && a & b >= 0x80) { 0x80 } else { 0 };
                assert_eq!(got[0], format.nearest(2 * exact.abs()) | sign, "{x} + {y}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_number_rounds_to_the_nearest(mantissa in 0u32..1 << 23, exponent in 95u32..150, negative: bool) {
        let x = f32::from_bits(u32::from(negative) << 31 | exponent << 23 | mantissa);
        // What has bits below 2^-32 is cut there, with a bit that says so: no tie is that fine.
        let scaled = f64::from(x.abs()) * 2f64.powi(32);
        let halves = 2 * scaled.floor() as i128 + i128::from(scaled.fract() != 0.0);
        for format in &FORMATS {
            let expected = format.nearest(halves);
            prop_assert_eq!((format.encode)(x), expected | u8::from(negative) << 7, "{}", x);
        }
    }
}
