//! A call: its number and its signature.
//!
//! In: what a rank asks for. Out: a [`Record`] of it, which lies on the board. Its 64-bit hash (`plan::signature`)
//! rides on the first message of every channel and is compared before the payload behind it is used: ranks that make
//! different calls find out before they mix their data, and the records say in what they differ.

use std::fmt;

use plan::dtype::{Dtype, Op};
use serde::{Deserialize, Serialize};

/// What a rank asks for, the same on all ranks for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the call, from 1.
    pub call: u64,
    /// The algorithm, for reports.
    pub algorithm: String,
    /// The beginning of the plan's content hash; empty for a small call, which has no plan.
    pub plan: String,
    /// Elements of a block.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// The operator.
    pub op: Op,
    /// The name of a user's operator, which takes the place of `op`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Whether send and receive memory overlap.
    pub in_place: bool,
}

/// In what two records of one call differ, in words; empty if in nothing that matters. (Where ranks only exchange
/// messages, each may have its own form.)
pub fn difference(a: &Record, b: &Record) -> String {
    let fields = [
        (a.algorithm != b.algorithm, "algorithm"),
        (a.plan != b.plan && a.algorithm == b.algorithm, "plan"),
        (a.elements != b.elements, "count"),
        (a.dtype != b.dtype, "element type"),
        ((a.op, &a.operator) != (b.op, &b.operator), "operator"),
    ];
    let names: Vec<&str> = fields.into_iter().filter_map(|(differs, name)| differs.then_some(name)).collect();
    names.join(" and ")
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { call, algorithm, plan, elements, dtype, op, operator, in_place } = self;
        let form = if *in_place { "in place" } else { "out of place" };
        write!(f, "call {call}: {algorithm}")?;
        if !plan.is_empty() {
            write!(f, " (plan {plan})")?;
        }
        write!(f, ", {elements} x {dtype} per block, ")?;
        match operator {
            Some(name) => write!(f, "user's operator {name:?}, {form}"),
            None => write!(f, "{op}, {form}"),
        }
    }
}
