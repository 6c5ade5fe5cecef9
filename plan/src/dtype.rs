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
    /// All of them.
    pub const ALL: [Op; 5] = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Avg];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Prod => "prod",
            Op::Min => "min",
            Op::Max => "max",
            Op::Avg => "avg",
        }
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
        find(given, &Op::ALL, Op::name)
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

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
