//! Element types and reduction operators: what a call chooses, a plan never knows.
//!
//! In: names as users write them. Out: sizes and classes that the layout, the reference and the executors share.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// 8-bit float of OCP (4 bits of exponent, 3 of mantissa): no infinities, one NaN; up to 448.
    F8E4m3,
    /// 8-bit float of OCP (5 bits of exponent, 2 of mantissa): binary16 cut short; up to 57,344.
    F8E5m2,
    /// Signed 8-bit; sums and products wrap.
    I8,
    /// Signed 32-bit; sums and products wrap.
    I32,
    /// Signed 64-bit; sums and products wrap.
    I64,
    /// Unsigned 8-bit; sums and products wrap.
    U8,
    /// Unsigned 32-bit; sums and products wrap.
    U32,
    /// Unsigned 64-bit; sums and products wrap.
    U64,
}

/// The operator a collective reduces with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// `a + b`
    Sum,
    /// `a * b`
    Prod,
    /// The smaller; a NaN wins.
    Min,
    /// The larger; a NaN wins.
    Max,
    /// The sum divided by the number of operands promised; truncates on integers.
    Avg,
    /// The sum of the operands, each multiplied by a factor before.
    PremulSum(Factor),
}

/// What `premulsum` multiplies by; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Factor(u64);

impl Factor {
    /// Of a number. Floats of up to 32 bits are multiplied by the nearest f32.
    pub const fn new(value: f64) -> Factor {
        Factor(value.to_bits())
    }

    /// The number.
    pub const fn value(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Whether elements of a type can be multiplied by it: integers only by whole numbers that the type holds (and
    /// that an f64 tells apart: up to 2^53).
    pub fn fits(self, dtype: Dtype) -> bool {
        let value = self.value();
        let bits = 8 * dtype.size();
        let (least, most) = match dtype {
            _ if dtype.is_float() => return true,
            Dtype::U8 | Dtype::U32 | Dtype::U64 => (0.0, power(bits)),
            _ => (-power(bits - 1), power(bits - 1)),
        };
        value.fract() == 0.0 && value.abs() <= power(53) && (least..most).contains(&value)
    }
}

/// 2 to the power of `e`.
fn power(e: u32) -> f64 {
    f64::from(e).exp2()
}

impl Dtype {
    /// All of them.
    pub const ALL: [Dtype; 12] = [
        Dtype::F32,
        Dtype::F64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F8E4m3,
        Dtype::F8E5m2,
        Dtype::I8,
        Dtype::I32,
        Dtype::I64,
        Dtype::U8,
        Dtype::U32,
        Dtype::U64,
    ];

    /// Bytes of an element.
    pub fn size(self) -> u32 {
        match self {
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::F8E4m3 | Dtype::F8E5m2 | Dtype::I8 | Dtype::U8 => 1,
        }
    }

    /// Whether it rounds.
    pub fn is_float(self) -> bool {
        match self {
            Dtype::F32 | Dtype::F64 | Dtype::F16 | Dtype::Bf16 | Dtype::F8E4m3 | Dtype::F8E5m2 => true,
            Dtype::I8 | Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::U32 | Dtype::U64 => false,
        }
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F8E4m3 => "f8e4m3",
            Dtype::F8E5m2 => "f8e5m2",
            Dtype::I8 => "i8",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
            Dtype::U8 => "u8",
            Dtype::U32 => "u32",
            Dtype::U64 => "u64",
        }
    }
}

impl Op {
    /// One of each kind.
    pub const ALL: [Op; 6] = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Avg, Op::PremulSum(Factor::new(2.0))];

    /// The name users write, without the factor.
    pub fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Prod => "prod",
            Op::Min => "min",
            Op::Max => "max",
            Op::Avg => "avg",
            Op::PremulSum(_) => "premulsum",
        }
    }

    /// What it multiplies each entry value by (`Step::pre`).
    pub fn factor(self) -> Option<Factor> {
        if let Op::PremulSum(factor) = self { Some(factor) } else { None }
    }

    /// Whether it has an outer part (`Step::post`).
    pub fn has_post(self) -> bool {
        self == Op::Avg
    }
}

/// A name that is none of those known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not one of {known}")]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What is known, joined by commas.
    pub known: String,
}

impl FromStr for Dtype {
    type Err = UnknownName;

    fn from_str(given: &str) -> Result<Dtype, UnknownName> {
        find(given, &Dtype::ALL, Dtype::name)
    }
}

impl FromStr for Op {
    type Err = UnknownName;

    fn from_str(given: &str) -> Result<Op, UnknownName> {
        let unknown = || UnknownName {
            given: given.to_string(),
            known: "sum, prod, min, max, avg, premulsum:FACTOR".to_string(),
        };
        match given.split_once(':') {
            Some(("premulsum", factor)) => {
                factor.parse().map(|factor| Op::PremulSum(Factor::new(factor))).map_err(|_| unknown())
            }
            _ => find(given, &Op::ALL[..5], Op::name).map_err(|_| unknown()),
        }
    }
}

fn find<T: Copy>(given: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UnknownName> {
    let known = || all.iter().map(|&x| name(x)).collect::<Vec<_>>().join(", ");
    all.iter()
        .copied()
        .find(|&x| name(x) == given)
        .ok_or_else(|| UnknownName { given: given.to_string(), known: known() })
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// As it is read.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.factor() {
            None => f.pad(self.name()),
            Some(factor) => f.pad(&format!("{}:{}", self.name(), factor.value())),
        }
    }
}
