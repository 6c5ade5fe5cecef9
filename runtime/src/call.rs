//! A call: its number and its signature.
//!
//! In: what a rank asks for. Out: a [`Record`] of it, and its 64-bit hash, which rides on the first message of every
//! channel and is compared before the payload behind it is used: ranks that make different calls find out before
//! they mix their data. The record lies on the board, so that the error can say in what they differ.

use std::fmt;
use std::hash::Hasher;

use plan::dtype::{Dtype, Op};
use plan::plan::Plan;
use serde::{Deserialize, Serialize};

/// What a rank asks for, the same on all ranks for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the call, from 1.
    pub call: u64,
    /// The algorithm, for reports.
    pub algorithm: String,
    /// The hash of the plan's content.
    pub plan: u64,
    /// Elements of a block.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// The operator.
    pub op: Op,
    /// Whether send and receive memory overlap.
    pub in_place: bool,
}

impl Record {
    /// The hash of all but the number, to be finished by [`signature`] call by call.
    pub fn seed(&self) -> u64 {
        let Record { call: _, algorithm: _, plan, elements, dtype, op, in_place } = self;
        let words = [*plan, *elements, *dtype as u64, *op as u64, u64::from(*in_place)];
        words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| mix(hash ^ word))
    }
}

/// The signature of call `call` whose record has the given [`Record::seed`]; never 0, which is what a word holds
/// that nobody has signed.
pub fn signature(seed: u64, call: u64) -> u64 {
    mix(seed ^ call).max(1)
}

/// In what two records of one call differ, in words; empty if in nothing that a user chose.
pub fn difference(a: &Record, b: &Record) -> String {
    let fields = [
        (a.algorithm != b.algorithm, "algorithm"),
        (a.plan != b.plan && a.algorithm == b.algorithm, "plan"),
        (a.elements != b.elements, "count"),
        (a.dtype != b.dtype, "element type"),
        (a.op != b.op, "operator"),
        (a.in_place != b.in_place, "form"),
    ];
    let names: Vec<&str> = fields.into_iter().filter_map(|(differs, name)| differs.then_some(name)).collect();
    names.join(" and ")
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { call, algorithm, plan, elements, dtype, op, in_place } = self;
        let form = if *in_place { "in place" } else { "out of place" };
        write!(f, "call {call}: {algorithm} (plan {plan:016x}), {elements} x {dtype} per block, {op}, {form}")
    }
}

/// The hash of a plan's content.
pub fn plan_hash(plan: &Plan) -> u64 {
    // The standard hasher with its fixed keys: the same in every process of one build, which is all that is compared.
    let mut hasher = std::hash::DefaultHasher::new();
    let text = serde_json::to_vec(plan).unwrap_or_default();
    hasher.write(&text);
    hasher.finish()
}

/// A permutation of 64-bit words in which every input bit moves about half of the output bits.
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
