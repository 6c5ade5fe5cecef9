//! The 8-bit floats of OCP ("OFP8"): as they are defined, one by one; executors have fast conversions of their own.
//!
//! In: bits or an f32. Out: the other. Every value is an f32 exactly. From f32 they round to nearest, ties to even,
//! subnormals kept. What is too large is **not** cut down to the largest number: it becomes what the type has for it,
//! an infinity in E5M2 and a NaN in E4M3, which has no infinities (decisions/0030).

/// E4M3, the variant without infinities ("E4M3FN"): bias 7, largest number 448, NaN is `S.1111.111`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct F8E4m3(pub u8);

/// E5M2: bias 15, largest number 57,344; infinities and NaN as in IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct F8E5m2(pub u8);

/// The parameters of a format.
struct Format {
    /// Bits of the mantissa, without the leading one.
    mantissa: u32,
    /// The exponent of the smallest normal number.
    least: i32,
    /// Magnitude bits of the largest number.
    largest: u8,
    /// Magnitude bits of what is larger.
    beyond: u8,
}

const E4M3: Format = Format { mantissa: 3, least: -6, largest: 0x7E, beyond: 0x7F };
const E5M2: Format = Format { mantissa: 2, least: -14, largest: 0x7B, beyond: 0x7C };

impl Format {
    /// The value of magnitude bits up to `largest`.
    fn value(&self, magnitude: u8) -> f32 {
        let fraction = f32::from(magnitude & ((1 << self.mantissa) - 1)) / (1u32 << self.mantissa) as f32;
        match i32::from(magnitude >> self.mantissa) {
            0 => fraction * power(self.least),
            exponent => (1.0 + fraction) * power(self.least + exponent - 1),
        }
    }

    fn decode(&self, bits: u8) -> f32 {
        let magnitude = bits & 0x7F;
        let value = if magnitude <= self.largest {
            self.value(magnitude)
        } else if magnitude == 0x7C && self.beyond == 0x7C {
            f32::INFINITY
        } else {
            f32::NAN
        };
        if bits & 0x80 == 0 { value } else { -value }
    }

    fn encode(&self, x: f32) -> u8 {
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        if x.is_nan() {
            return sign | 0x7F;
        }
        // In units of the last place; below the normal numbers the unit stays the same. Each step is exact but the
        // rounding: f32 has far more range and bits. (What is subnormal in f32 rounds to zero.)
        let exponent = ((x.to_bits() >> 23 & 0xFF) as i32 - 127).max(self.least);
        if exponent > self.least + 32 {
            return sign | self.beyond;
        }
        let unit = exponent - self.mantissa as i32;
        let count = (x.abs() * power(-unit)).round_ties_even() as u32;
        // The leading one, if it is there, counts one up in the exponent; so does what was rounded up to the next.
        let magnitude = (((exponent - self.least) as u32) << self.mantissa) + count;
        let bits = if magnitude > u32::from(self.largest) { self.beyond } else { magnitude as u8 };
        sign | bits
    }
}

/// 2 to the power of `e`, a normal number.
fn power(e: i32) -> f32 {
    f32::from_bits(((127 + e) as u32) << 23)
}

macro_rules! float8 {
    ($name:ident, $format:expr) => {
        impl $name {
            /// Its value; a NaN for every NaN.
            pub fn to_f32(self) -> f32 {
                $format.decode(self.0)
            }

            /// The nearest one, ties to even.
            pub fn from_f32(x: f32) -> $name {
                $name($format.encode(x))
            }

            /// From memory.
            pub fn from_ne_bytes(bytes: [u8; 1]) -> $name {
                $name(bytes[0])
            }

            /// To memory.
            pub fn to_ne_bytes(self) -> [u8; 1] {
                [self.0]
            }
        }
    };
}

float8!(F8E4m3, E4M3);
float8!(F8E5m2, E5M2);
