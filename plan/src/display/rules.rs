//! Affine numbers and places as text.
//!
//! In: rules. Out: `7 - t`, `(7 - t) % 8`, `8 + 2t`; `data[(7 - t) % 8]`, `input[t][0..2]`.

use std::fmt::Write as _;

use super::Show;
use crate::ids::BufferId;
use crate::plan::Role;
use crate::roll::{Affine, Term};

/// What counts the repeats of the outermost loop, and of those within.
pub(super) const NAMES: [&str; 2] = ["t", "u"];

/// A rule, with something added to it.
pub(super) fn text(rule: &Affine, added: i64) -> String {
    let mut start = added;
    let mut moved = Vec::new();
    let mut wrapped = Vec::new();
    for term in &rule.terms {
        if term.modulus == 0 {
            start += term.start;
            moved.extend(term.strides.iter().zip(NAMES).filter(|&(&stride, _)| stride != 0));
        } else {
            // `8 - t` rather than `-t`.
            let down = term.start == 0 && term.strides.iter().any(|&stride| stride < 0);
            let start = if down { term.modulus } else { term.start };
            wrapped.push(format!("({}) % {}", sum(start, term.strides.iter().zip(NAMES)), term.modulus));
        }
    }
    if moved.is_empty() && start == 0 && !wrapped.is_empty() {
        return wrapped.join(" + ");
    }
    let mut text = sum(start, moved.into_iter());
    for part in wrapped {
        let _ = write!(text, " + {part}");
    }
    text
}

/// `start + stride·name + …`
fn sum<'a>(start: i64, moved: impl Iterator<Item = (&'a i64, &'a str)>) -> String {
    let mut text = if start == 0 { String::new() } else { start.to_string() };
    for (&stride, name) in moved.filter(|&(&stride, _)| stride != 0) {
        let sign = match (text.is_empty(), stride < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        let times = if stride.abs() == 1 { String::new() } else { stride.abs().to_string() };
        let _ = write!(text, "{sign}{times}{name}");
    }
    if text.is_empty() { "0".to_string() } else { text }
}

/// All values of a rule in loops that repeat so often, in order.
pub(super) fn values(rule: &Affine, counts: &[u32]) -> Vec<i64> {
    if let Some(fixed) = rule.fixed() {
        return vec![fixed];
    }
    match *counts {
        [count] => (0..count).map(|t| rule.at(&[t])).collect(),
        [outer, inner] => (0..outer).flat_map(|t| (0..inner).map(move |u| rule.at(&[t, u]))).collect(),
        _ => vec![rule.at(&[])],
    }
}

/// The least and the greatest value that terms can sum up to, or less and more.
fn range(terms: &[Term], counts: &[u32]) -> (i64, i64) {
    let mut range = (0, 0);
    for term in terms {
        if term.modulus > 0 {
            range.1 += term.modulus - 1;
            continue;
        }
        range = (range.0 + term.start, range.1 + term.start);
        for (&stride, &count) in term.strides.iter().zip(counts) {
            let reach = stride * (i64::from(count) - 1);
            range = (range.0 + reach.min(0), range.1 + reach.max(0));
        }
    }
    range
}

impl Show<'_> {
    /// Cells that follow a rule, as the language writes them.
    pub(super) fn place(&self, id: BufferId, cell: &Affine, width: u32, counts: &[u32]) -> String {
        if let Some(first) = cell.fixed() {
            return self.cells(id, first as u32, width);
        }
        let name = self.buffer(id);
        let run = |rule: &Affine, len: i64| match len {
            1 => text(rule, 0),
            _ => format!("{}..{}", text(rule, 0), text(rule, len)),
        };
        let width = i64::from(width);
        let k = i64::from(self.plan.header.cells.max(1));
        let Some(buffer) = self.plan.buffers.get(id.index()) else {
            return format!("{name}[{}]", run(cell, width));
        };
        if buffer.role == Role::Scratch {
            return format!("{name} {}", run(cell, width));
        }
        if buffer.blocks == 1 {
            return format!("{name}[{}]", run(cell, width));
        }
        let (block, inner) = split(cell, k);
        let (least, greatest) = range(&inner.terms, counts);
        if (least, greatest) == (0, 0) && width % k == 0 {
            return format!("{name}[{}]", run(&block, width / k));
        }
        if least >= 0 && greatest + width <= k {
            return format!("{name}[{}][{}]", text(&block, 0), run(&inner, width));
        }
        format!("{name} from cell {}, {width} long", text(cell, 0))
    }
}

/// A cell's rule as a block's and a cell's within the block, by which part moves whole blocks.
fn split(cell: &Affine, k: i64) -> (Affine, Affine) {
    let (mut blocks, mut cells) = (Vec::new(), Vec::new());
    let plain = |start: i64, strides: Vec<i64>| Term { start, strides, modulus: 0 };
    for term in &cell.terms {
        let whole = |stride: &i64| stride % k == 0;
        let (quotient, rest) = (term.start.div_euclid(k), term.start.rem_euclid(k));
        if term.modulus == 0 {
            let part = |keep: bool, by: i64| -> Vec<i64> {
                term.strides.iter().map(|s| if whole(s) == keep { s / by } else { 0 }).collect()
            };
            blocks.push(plain(quotient, part(true, k)));
            cells.push(plain(rest, part(false, 1)));
        } else if term.modulus % k == 0 && term.strides.iter().all(whole) {
            let strides = term.strides.iter().map(|stride| stride / k).collect();
            blocks.push(Term { start: quotient, strides, modulus: term.modulus / k });
            cells.push(plain(rest, Vec::new()));
        } else {
            cells.push(term.clone());
        }
    }
    (Affine { terms: blocks }, Affine { terms: cells })
}
