//! What `docs/algorithms.md` claims of the standard algorithms: shapes, forms, volume, same bits. The volumes stand
//! here a second time, as formulas, and are held against the moves.

use std::collections::BTreeSet;

use compiler::check::checked::Param;
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{Failure, Loaded, compile, load, traced};
use compiler::trace::{Params, Trace};
use grammar::ast::ParamType;

const TABLE: &str = include_str!("../../docs/algorithms.md");

/// A row of the table.
struct Claim {
    algorithm: &'static str,
    shapes: &'static str,
    forms: &'static str,
}

fn claims() -> Vec<Claim> {
    let rows = TABLE.lines().filter(|line| line.starts_with("| `std::"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        Claim { algorithm: cells[0].trim_matches('`'), shapes: cells[1], forms: cells[2] }
    })
    .collect()
}

/// What the busiest rank sends, in blocks (of which `data` is one), where n ranks take part; none: no claim.
fn sent(algorithm: &str, shape: &[u32]) -> Option<f64> {
    let n = f64::from(shape.iter().product::<u32>());
    let p = n.log2().floor().exp2();
    let (lg_n, lg_p) = (n.log2().ceil(), p.log2());
    let folded = if n > p { 1.0 } else { 0.0 };
    let name = algorithm.strip_prefix("std::").expect("a standard algorithm");
    Some(match name {
        "allreduce::ring" | "allreduce::multi_ring" | "allreduce::circulant" => 2.0 * (n - 1.0) / n,
        "allreduce::swing" | "allreduce::two_shot" | "broadcast::scatter_allgather" => 2.0 * (n - 1.0) / n,
        "allreduce::halving_doubling" if n == p => 2.0 * (p - 1.0) / p,
        "allreduce::recursive_doubling" => lg_p + folded,
        "allreduce::one_shot" | "broadcast::flat" | "barrier::central" => n - 1.0,
        "alltoall::direct" | "alltoall::pairwise" | "scatter::direct" | "scatter::binomial" => n - 1.0,
        "allgather::ring" | "allgather::multi_ring" | "allgather::pat" | "allgather::direct" => n - 1.0,
        "allgather::recursive_doubling" | "allgather::bruck" => n - 1.0,
        "allreduce::hierarchical" => {
            let (m, g) = (f64::from(shape[0]), f64::from(shape[1]));
            2.0 * (g - 1.0) / g + 2.0 * (m - 1.0) / (m * g)
        }
        "allgather::hierarchical" | "reducescatter::hierarchical" => {
            let (m, g) = (f64::from(shape[0]), f64::from(shape[1]));
            (m - 1.0) + (g - 1.0) * m
        }
        "broadcast::hierarchical" => shape.iter().map(|&k| f64::from(k).log2().ceil()).sum(),
        "alltoall::two_level" => {
            let (m, g) = (f64::from(shape[0]), f64::from(shape[1]));
            (g - 1.0) * m + (m - 1.0) * g
        }
        "reducescatter::ring" | "reducescatter::multi_ring" | "reducescatter::circulant" => n - 1.0,
        "reducescatter::pat" | "reducescatter::direct" => n - 1.0,
        "reducescatter::recursive_halving" => n - 1.0 + folded,
        "broadcast::chain" | "broadcast::double_tree" | "gather::direct" if n > 1.0 => 1.0,
        "reduce::binomial" | "reduce::chain" | "reduce::double_tree" if n > 1.0 => 1.0,
        "reduce::direct" | "reduce::hierarchical" if n > 1.0 => 1.0,
        "sendrecv::direct" | "alltonext::direct" if n > 1.0 => 1.0,
        "broadcast::binomial" | "barrier::dissemination" | "barrier::tree" => lg_n,
        // "At most": the table gives a bound.
        "allreduce::tree" | "allreduce::double_tree" | "allreduce::halving_doubling" => return None,
        "alltoall::bruck" | "gather::binomial" => return None,
        "broadcast::scatter_doubling" | "reduce::reducescatter_gather" => return None,
        _ if n == 1.0 => 0.0,
        other => panic!("docs/algorithms.md claims a volume for {other}: write it here too"),
    })
}

/// An upper bound, where there is no formula.
fn at_most(algorithm: &str, n: f64) -> f64 {
    let p = n.log2().floor().exp2();
    match algorithm.strip_prefix("std::").expect("a standard algorithm") {
        "allreduce::tree" => 3.0,
        "allreduce::double_tree" => 2.0,
        "allreduce::halving_doubling" => 2.0 * (p - 1.0) / p + 0.5,
        "broadcast::scatter_doubling" => 2.0 * (n - 1.0) / n,
        "reduce::reducescatter_gather" => 1.5,
        "alltoall::bruck" => n / 2.0 * n.log2().ceil(),
        "gather::binomial" => n / 2.0,
        other => panic!("no bound for {other}"),
    }
}

/// The cells that the busiest rank sends to others, in blocks.
fn busiest(trace: &Trace) -> f64 {
    let mut cells = vec![0u64; trace.ranks as usize];
    for mv in &trace.moves {
        for source in trace.sources(mv).iter().filter(|source| source.rank != mv.to.rank) {
            cells[source.rank.index()] += u64::from(mv.width);
        }
    }
    cells.into_iter().max().unwrap_or(0) as f64 / f64::from(trace.cells)
}

fn shapes(levels: usize) -> Vec<Vec<u32>> {
    match levels {
        1 => (1..=17).map(|n| vec![n]).collect(),
        _ => [[1, 1], [2, 3], [3, 2], [4, 4], [1, 4], [4, 1]].map(Vec::from).to_vec(),
    }
}

/// What a number parameter may be, other than its default.
fn numbers(name: &str) -> Vec<i64> {
    match name {
        "pieces" => vec![1, 7],
        "rings" => vec![1, 3],
        "trees" => vec![1, 4],
        "radix" => vec![4, 8],
        other => panic!("what may `{other}` be?"),
    }
}

/// Every rank for each rank parameter; number parameters as they are, and as [`numbers`] has them.
fn choices(params: &[Param], ranks: u32) -> Vec<Params> {
    let mut choices = vec![Params::new()];
    for param in params {
        let values: Vec<i64> = match param.ty {
            ParamType::Rank => (0..i64::from(ranks)).collect(),
            _ => numbers(&param.name),
        };
        let with = |choice: &Params, value: i64| {
            let mut choice = choice.clone();
            choice.insert(param.name.clone(), value);
            choice
        };
        let given = choices.iter().flat_map(|choice| values.iter().map(move |&value| with(choice, value)));
        let left = choices.iter().filter(|_| param.default.is_some()).cloned();
        choices = left.chain(given).collect();
    }
    choices
}

fn check(loaded: &Loaded, claim: &Claim) {
    let Claim { algorithm: name, .. } = *claim;
    let id = loaded.program.find(name).unwrap_or_else(|| panic!("{name} is in the table only"));
    let algorithm = loaded.program.algorithm(id);
    for shape in shapes(algorithm.levels) {
        let ranks = shape.iter().product::<u32>();
        let claimed = claim.shapes != "powers of two" || ranks.is_power_of_two();
        for params in choices(&algorithm.params, ranks) {
            let request = Request { algorithm: id, shape: shape.clone(), params };
            let compiled = match compile(
                loaded,
                &request,
                &compiler::options::Options::default(),
                &Limits::default(),
                &mut |_| {},
            ) {
                Ok(compiled) => compiled,
                Err(Failure::Excluded { why, .. }) => {
                    assert!(!claimed, "{name} excludes {shape:?}: {why}");
                    continue;
                }
                Err(Failure::Wrong(all)) => panic!("{request:?}: {all:?}"),
            };
            assert!(claimed, "{name} works on {shape:?}, and the table does not say so");

            let forms = compiled.plan.plan().header.forms;
            let expected = if claim.forms == "both" { (true, true) } else { (true, false) };
            if claim.forms != "–" {
                assert_eq!((forms.disjoint, forms.same), expected, "{name}: forms");
            }
            if name.starts_with("std::allreduce::") && ranks > 1 {
                assert_eq!(compiled.proved.proof.same_bits, Some(true), "{name} on {shape:?}");
            }

            let busiest = busiest(&traced(loaded, &request, None, &Limits::default()).unwrap().0);
            let apart = request.params.get("to").is_none_or(|to| request.params.get("from") != Some(to));
            match sent(name, &shape) {
                Some(sent) if apart => {
                    assert!((busiest - sent).abs() < 1e-9, "{name} on {shape:?}: {busiest}, not {sent}");
                }
                Some(_) => assert_eq!(busiest, 0.0, "{name}: from a rank to itself"),
                None => {
                    let most = at_most(name, f64::from(ranks));
                    assert!(busiest <= most + 1e-9, "{name} on {shape:?}: {busiest}, more than {most}");
                }
            }
        }
    }
}

#[test]
fn every_claim_holds() {
    let loaded = load(&[], &Limits::default());
    let claims = claims();
    for claim in &claims {
        check(&loaded, claim);
    }
    let claimed: BTreeSet<&str> = claims.iter().map(|claim| claim.algorithm).collect();
    let all: BTreeSet<&str> =
        loaded.program.algorithms().map(|id| loaded.program.algorithm(id).name.as_str()).collect();
    assert_eq!(claimed, all);
}
