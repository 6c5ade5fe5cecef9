//! The standard algorithms as requests: every one at every shape of a world, its rank parameters chosen.
//!
//! In: the loaded standard library, a number of ranks. Out: requests, and what compiling them gives.

use compiler::check::checked::AlgorithmId;
use compiler::elaborate::{Request, open_ranks};
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Compiled, Failure, Loaded, compile, load};
use compiler::trace::Params;
use grammar::ParseLimits;
use grammar::ast::{self, Item};
use grammar::span::FileId;

use crate::draw::Draw;
use crate::schedules::{self, Asked, Scheduled};

/// All standard algorithms.
pub fn algorithms(loaded: &Loaded) -> Vec<AlgorithmId> {
    let name = |id: &AlgorithmId| loaded.program.algorithm(*id).name.as_str();
    loaded.program.algorithms().filter(|id| name(id).starts_with("std::")).collect()
}

/// The algorithm on every shape of so many ranks: one for one level, each product for two.
pub fn requests(loaded: &Loaded, algorithm: AlgorithmId, ranks: u32) -> Vec<Request> {
    let shapes: Vec<Vec<u32>> = match loaded.program.algorithm(algorithm).levels {
        1 => vec![vec![ranks]],
        _ => (1..=ranks).filter(|m| ranks.is_multiple_of(*m)).map(|m| vec![m, ranks / m]).collect(),
    };
    shapes.into_iter().map(|shape| request(loaded, algorithm, shape)).collect()
}

/// The algorithm on one shape: `from` is the first rank, every other rank asked for is one in the middle, so that it is
/// neither the first nor the last of three or more.
pub fn request(loaded: &Loaded, algorithm: AlgorithmId, shape: Vec<u32>) -> Request {
    let ranks: u32 = shape.iter().product();
    let open = open_ranks(&loaded.program, algorithm, &Params::default());
    let chosen = |name: &str| if name == "from" { 0 } else { i64::from(ranks / 2) };
    let params = open.into_iter().map(|name| (name.clone(), chosen(&name))).collect();
    Request { algorithm, shape, params }
}

/// What it compiles to; none if a `require` excludes the shape; in words what is wrong.
pub fn compiled(
    loaded: &Loaded,
    request: &Request,
    options: &Options,
    limits: &Limits,
) -> Result<Option<Compiled>, String> {
    match compile(loaded, request, options, limits, &mut |_| {}) {
        Ok(compiled) => Ok(Some(compiled)),
        Err(Failure::Excluded { .. }) => Ok(None),
        Err(Failure::Wrong(all)) => {
            let told: Vec<String> = all.iter().take(3).map(|d| format!("{}: {}", d.code, d.title)).collect();
            Err(told.join("; "))
        }
    }
}

/// `std::allreduce::ring at [4], root = 2`.
pub fn named(loaded: &Loaded, request: &Request) -> String {
    let params: Vec<String> =
        request.params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
    format!("{} at {:?}{}", loaded.program.algorithm(request.algorithm).name, request.shape, params.concat())
}

/// The texts of the standard algorithms, by their files' names.
pub fn trees() -> Vec<(&'static str, ast::File)> {
    let parsed = stdlib::FILES.iter().enumerate().map(|(i, (name, text))| {
        let parsed = grammar::parse(FileId(i as u32), text, &ParseLimits::default());
        assert!(parsed.errors.is_empty(), "{name}: {:?}", parsed.errors);
        (*name, parsed.file)
    });
    let has_one = |file: &ast::File| file.items.iter().any(|item| matches!(item, Item::Algorithm(_)));
    parsed.filter(|(_, file)| has_one(file)).collect()
}

/// The algorithms that the user's texts declare.
pub fn own(loaded: &Loaded) -> Vec<AlgorithmId> {
    let name = |id: &AlgorithmId| loaded.program.algorithm(*id).name.as_str();
    loaded.program.algorithms().filter(|id| !name(id).starts_with("std::")).collect()
}

/// One program with labels and schedules at random.
pub fn scheduled(file: &ast::File, asked: Asked, draw: &mut Draw) -> (Loaded, Scheduled) {
    let made = schedules::scheduled(file, asked, draw);
    let text = ("scheduled.coll".to_string(), made.text.clone().into_bytes());
    (load(&[text], &Limits::default()), made)
}
