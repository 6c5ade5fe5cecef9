//! Short lists of rows in which every two values that can stand together do.
//!
//! In: how many values each column has, and which two values of two columns exclude each other. Out: rows, always the
//! same. The one hard idea: each row begins with a pair that no row has yet and takes, column after column, the value
//! that brings the most new pairs; of some rows made so, in random orders of columns, the best is kept.

use std::collections::BTreeSet;

/// Two values of two columns, the left column first: (column, value, column, value).
pub type Pair = (usize, usize, usize, usize);

/// Rows made for each that is kept.
const CANDIDATES: usize = 30;

/// Rows, no two of whose values clash, that have among them every pair that does not clash.
///
/// # Panics
/// If a row cannot be completed: for each value some value of each other column must be left, whatever else stands in
/// the row.
pub fn covering(sizes: &[usize], clashes: &dyn Fn(Pair) -> bool) -> Vec<Vec<usize>> {
    let clash = |a: usize, x: usize, b: usize, y: usize| clashes(ordered(a, x, b, y));
    let mut missing: BTreeSet<Pair> = all(sizes).filter(|&pair| !clashes(pair)).collect();
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut rows: Vec<Vec<usize>> = Vec::new();
    while let Some(&(a, x, b, y)) = missing.first() {
        let mut best: (usize, Vec<usize>) = (0, Vec::new());
        for _ in 0..CANDIDATES {
            let mut row = vec![None; sizes.len()];
            (row[a], row[b]) = (Some(x), Some(y));
            let mut left: Vec<usize> = (0..sizes.len()).filter(|&column| row[column].is_none()).collect();
            while !left.is_empty() {
                let column = left.swap_remove(below(left.len()));
                let set: Vec<(usize, usize)> =
                    row.iter().enumerate().filter_map(|(c, value)| value.map(|value| (c, value))).collect();
                let fits = |&value: &usize| !set.iter().any(|&(c, other)| clash(column, value, c, other));
                let brings = |value: usize| {
                    let new =
                        |&&(c, other): &&(usize, usize)| missing.contains(&ordered(column, value, c, other));
                    set.iter().filter(new).count()
                };
                // Of equals any, or the first values would stand in most rows.
                let chosen = (0..sizes[column]).filter(fits).max_by_key(|&value| (brings(value), below(64)));
                row[column] = Some(chosen.expect("some value fits"));
            }
            let row: Vec<usize> = row.into_iter().flatten().collect();
            let gain = pairs(&row).filter(|pair| missing.contains(pair)).count();
            if gain > best.0 {
                best = (gain, row);
            }
        }
        pairs(&best.1).for_each(|pair| {
            missing.remove(&pair);
        });
        rows.push(best.1);
    }
    rows
}

/// The pairs of one row.
pub fn pairs(row: &[usize]) -> impl Iterator<Item = Pair> {
    (0..row.len()).flat_map(move |a| (a + 1..row.len()).map(move |b| (a, row[a], b, row[b])))
}

/// All pairs there are, those that clash among them.
pub fn all(sizes: &[usize]) -> impl Iterator<Item = Pair> {
    let columns = (0..sizes.len()).flat_map(|a| (a + 1..sizes.len()).map(move |b| (a, b)));
    columns.flat_map(move |(a, b)| (0..sizes[a]).flat_map(move |x| (0..sizes[b]).map(move |y| (a, x, b, y))))
}

fn ordered(a: usize, x: usize, b: usize, y: usize) -> Pair {
    if a < b { (a, x, b, y) } else { (b, y, a, x) }
}
