//! From samples to ratios.
//!
//! In: what every program took for every cell in every round. Out: for each cell, memory and kind of inputs the median of the
//! per-round ratios to each peer; geometric means; cells that are lost.
//!
//! Peers have plain buffers alone, so registered ones of ours are held against those, too. The best peer of a cell is the
//! one that we do worst against: the ratio to the best is the greatest of the ratios to each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Inputs, Memory, Sample};

/// Our own program among the others.
pub(crate) const OURS: &str = "rcc";
/// A cell above this is lost, if it is so in all sittings.
pub(crate) const LOST: f64 = 1.15;
/// The four ways in which our calls are measured.
pub(crate) const WAYS: [(Memory, Inputs); 4] = [
    (Memory::Plain, Inputs::Reused),
    (Memory::Plain, Inputs::Rewritten),
    (Memory::Registered, Inputs::Reused),
    (Memory::Registered, Inputs::Rewritten),
];

/// What a program took for a cell in a round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured<'a> {
    pub(crate) program: &'a str,
    pub(crate) round: u32,
    pub(crate) cell: &'a Cell,
    pub(crate) sample: &'a Sample,
}

/// A cell in one of the ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) memory: Memory,
    pub(crate) inputs: Inputs,
    /// Rounds in which we and one peer at least were measured.
    pub(crate) rounds: usize,
    /// Microseconds of every program: medians of all rounds.
    pub(crate) us: BTreeMap<String, f64>,
    /// To every peer.
    pub(crate) ratios: BTreeMap<String, f64>,
    /// To the best of them; none: there was no peer.
    pub(crate) best: Option<f64>,
}

/// Geometric means of some rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Means {
    /// To every peer, over the cells that it has.
    pub(crate) peers: BTreeMap<String, f64>,
    pub(crate) best: Option<f64>,
    /// How many cells have a best.
    pub(crate) cells: usize,
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        even if even % 2 == 0 => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// The geometric mean.
pub(crate) fn geomean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// A row for every cell and way that we were measured in. Where taking off what rewriting takes leaves nothing, a round has no
/// figure.
pub(crate) fn rows(measured: &[Measured<'_>]) -> Vec<Row> {
    let mut cells: Vec<&Cell> = measured.iter().map(|one| one.cell).collect();
    cells.sort_by(|a, b| (a.ranks, &a.collective, a.bytes).cmp(&(b.ranks, &b.collective, b.bytes)));
    cells.dedup();
    let mut rows = Vec::new();
    for cell in cells {
        for (memory, inputs) in WAYS {
            // For each program, its time in each round.
            let mut times: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
            for one in measured.iter().filter(|one| one.cell == cell && one.sample.inputs == inputs) {
                let due = if one.program == OURS { memory } else { Memory::Plain };
                if one.sample.memory == due && one.sample.median_us > 0.0 {
                    times.entry(one.program).or_default().insert(one.round, one.sample.median_us);
                }
            }
            let Some(ours) = times.get(OURS) else { continue };
            let mut ratios = BTreeMap::new();
            let mut rounds = 0;
            for (&peer, theirs) in times.iter().filter(|(program, _)| **program != OURS) {
                let each = ours.iter().filter_map(|(round, time)| Some(time / theirs.get(round)?));
                let each: Vec<f64> = each.collect();
                rounds = rounds.max(each.len());
                if let Some(ratio) = median(&each) {
                    ratios.insert(peer.to_string(), ratio);
                }
            }
            let us = times.iter().filter_map(|(program, times)| {
                Some((program.to_string(), median(&times.values().copied().collect::<Vec<_>>())?))
            });
            rows.push(Row {
                cell: cell.clone(),
                memory,
                inputs,
                rounds,
                us: us.collect(),
                best: ratios.values().copied().max_by(f64::total_cmp),
                ratios,
            });
        }
    }
    rows
}

/// Geometric means of rows.
pub(crate) fn means<'a>(rows: impl Iterator<Item = &'a Row>) -> Means {
    let mut peers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut best = Vec::new();
    for row in rows {
        best.extend(row.best);
        for (peer, &ratio) in &row.ratios {
            peers.entry(peer.clone()).or_default().push(ratio);
        }
    }
    let peers = peers.into_iter().filter_map(|(peer, ratios)| Some((peer, geomean(&ratios)?)));
    Means { peers: peers.collect(), best: geomean(&best), cells: best.len() }
}

/// Rows above the line in every sitting, with their ratios; and how many rows are not in all sittings.
pub(crate) fn lost(sittings: &[Vec<Row>]) -> (Vec<(Row, Vec<f64>)>, usize) {
    let Some((first, others)) = sittings.split_first() else { return (Vec::new(), 0) };
    let same = |a: &Row, b: &Row| (&a.cell, a.memory, a.inputs) == (&b.cell, b.memory, b.inputs);
    let mut lost = Vec::new();
    let mut common = 0;
    for row in first {
        let again: Option<Vec<&Row>> =
            others.iter().map(|rows| rows.iter().find(|other| same(row, other))).collect();
        let Some(again) = again else { continue };
        common += 1;
        let ratios: Vec<f64> = std::iter::once(row).chain(again).filter_map(|row| row.best).collect();
        if ratios.len() == sittings.len() && ratios.iter().all(|&ratio| ratio > LOST) {
            lost.push((row.clone(), ratios));
        }
    }
    let all: usize = sittings.iter().map(Vec::len).sum();
    (lost, all - common * sittings.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(bytes: u64) -> Cell {
        Cell { collective: "allreduce".into(), ranks: 2, bytes }
    }

    fn sample(memory: Memory, inputs: Inputs, median_us: f64) -> Sample {
        Sample { memory, inputs, calls: 1, median_us, least_us: median_us, wrong: 0 }
    }

    fn rows_of(cell: &Cell, times: &[(&str, u32, Memory, Inputs, f64)]) -> Vec<Row> {
        let samples: Vec<Sample> = times.iter().map(|t| sample(t.2, t.3, t.4)).collect();
        let measured: Vec<Measured<'_>> = times
            .iter()
            .zip(&samples)
            .map(|(t, sample)| Measured { program: t.0, round: t.1, cell, sample })
            .collect();
        rows(&measured)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn a_median_is_in_the_middle_and_a_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(geomean(&[]), None);
        assert!(near(geomean(&[0.25, 4.0]).unwrap(), 1.0));
        assert!(near(geomean(&[2.0, 4.0, 8.0]).unwrap(), 4.0));
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_ratios_and_not_that_of_medians() {
        use Inputs::Reused as R;
        use Memory::Plain as P;
        // Ratios 1, 2, 0.5 while medians are 4 and 2.
        let cell = cell(8);
        let found = rows_of(
            &cell,
            &[
                ("rcc", 0, P, R, 2.0),
                ("a", 0, P, R, 2.0),
                ("rcc", 1, P, R, 4.0),
                ("a", 1, P, R, 2.0),
                ("rcc", 2, P, R, 5.0),
                ("a", 2, P, R, 10.0),
            ],
        );
        assert_eq!(found.len(), 1);
        assert!(near(found[0].ratios["a"], 1.0));
        assert_eq!((found[0].us["rcc"], found[0].us["a"], found[0].rounds), (4.0, 2.0, 3));
    }

    #[test]
    fn the_best_peer_is_the_one_that_we_do_worst_against() {
        use Inputs::Reused as R;
        use Memory::Plain as P;
        let cell = cell(8);
        let found = rows_of(
            &cell,
            &[("rcc", 0, P, R, 3.0), ("a", 0, P, R, 6.0), ("b", 0, P, R, 2.0), ("c", 1, P, R, 1.0)],
        );
        let [row] = &found[..] else { panic!("{found:?}") };
        // c was measured in another round.
        assert_eq!(row.ratios.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(near(row.best.unwrap(), 1.5));
        let alone = rows_of(&cell, &[("rcc", 0, P, R, 3.0)]);
        assert_eq!((alone[0].best, alone[0].rounds), (None, 0));
        assert!(rows_of(&cell, &[("a", 0, P, R, 3.0)]).is_empty());
    }

    #[test]
    fn kinds_of_inputs_are_apart_and_registered_is_held_against_plain() {
        use Inputs::{Reused, Rewritten};
        use Memory::{Plain, Registered};
        let cell = cell(8);
        let found = rows_of(
            &cell,
            &[
                ("rcc", 0, Plain, Reused, 1.0),
                ("rcc", 0, Plain, Rewritten, 2.0),
                ("rcc", 0, Registered, Reused, 3.0),
                ("rcc", 0, Registered, Rewritten, 4.0),
                ("a", 0, Plain, Reused, 10.0),
                ("a", 0, Plain, Rewritten, 100.0),
                // Nothing is left of it.
                ("rcc", 1, Plain, Rewritten, -1.0),
                ("a", 1, Plain, Rewritten, 0.0),
            ],
        );
        let best: Vec<f64> = found.iter().map(|row| row.best.unwrap()).collect();
        let due = [0.1, 0.02, 0.3, 0.04];
        assert!(best.len() == 4 && best.iter().zip(due).all(|(a, b)| near(*a, b)), "{best:?}");
        let ways: Vec<_> = found.iter().map(|row| (row.memory, row.inputs)).collect();
        assert_eq!(ways, WAYS);
    }

    fn row(bytes: u64, ratios: &[(&str, f64)]) -> Row {
        Row {
            cell: cell(bytes),
            memory: Memory::Plain,
            inputs: Inputs::Reused,
            rounds: 5,
            us: BTreeMap::new(),
            ratios: ratios.iter().map(|(peer, ratio)| (peer.to_string(), *ratio)).collect(),
            best: ratios.iter().map(|ratio| ratio.1).max_by(f64::total_cmp),
        }
    }

    #[test]
    fn means_take_the_best_cell_by_cell() {
        let rows = [row(8, &[("a", 0.5), ("b", 2.0)]), row(16, &[("a", 8.0), ("b", 0.25)]), row(32, &[])];
        let found = means(rows.iter());
        assert!(near(found.peers["a"], 2.0) && near(found.peers["b"], 0.5f64.sqrt()));
        assert!(near(found.best.unwrap(), 4.0));
        assert_eq!(found.cells, 2);
        assert_eq!(means([].iter()), Means::default());
    }

    #[test]
    fn a_cell_is_lost_only_if_it_is_so_in_every_sitting() {
        let one = vec![row(8, &[("a", 1.2)]), row(16, &[("a", 1.2)]), row(32, &[("a", 1.15)]), row(64, &[])];
        let two = vec![row(8, &[("a", 1.16)]), row(16, &[("a", 1.1)]), row(32, &[("a", 9.0)]), row(64, &[])];
        let (alone, missing) = lost(std::slice::from_ref(&one));
        assert_eq!(alone.iter().map(|lost| lost.0.cell.bytes).collect::<Vec<_>>(), [8, 16]);
        assert_eq!(missing, 0);
        let (both, missing) = lost(&[one.clone(), two]);
        assert_eq!(both.len(), 1);
        assert_eq!((both[0].0.cell.bytes, &both[0].1[..], missing), (8, &[1.2, 1.16][..], 0));
        // What one of them lacks cannot be said to be lost.
        let (none, missing) = lost(&[one, vec![row(16, &[("a", 1.3)])]]);
        assert_eq!((none.len(), missing), (1, 3));
        assert_eq!(lost(&[]), (Vec::new(), 0));
    }
}
