//! A second implementation of the language: it walks the syntax tree and moves numbers.
//!
//! In: the tree of a program, an algorithm, a world. Out: whether the numbers that every rank ends with are those
//! that the collective's `ensures` ask for. It shares nothing with the compiler but the tree, is as plain as
//! possible and as slow as it likes. The one hard idea: random numbers modulo the prime 2^61-1 stand for the data, so
//! a sum with a contribution lost, doubled or foreign differs from the promised one but for a chance of 2^-61.

mod expression;
mod machine;
mod promise;

use std::collections::BTreeMap;

use grammar::ast;

pub use self::machine::Machine;

/// The modulus of all sums.
pub const PRIME: u64 = (1 << 61) - 1;

/// Variables in scope.
pub type Scope = BTreeMap<String, Value>;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number; truth values are 0 and 1.
    Number(i64),
    /// A `let` table.
    Table(Vec<i64>),
}

/// Why a program has no meaning here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A `require` is false: this shape is not meant.
    Excluded(String),
    /// Something that the language forbids.
    Meaningless(String),
}

/// All declarations a program may use.
pub struct Library<'a> {
    collectives: BTreeMap<String, &'a ast::Collective>,
    algorithms: BTreeMap<String, (&'a ast::Algorithm, usize)>,
    functions: Vec<BTreeMap<String, &'a ast::Fn>>,
}

impl<'a> Library<'a> {
    /// From files with their modules: `Some("allreduce")` for `std/allreduce/…`, none for the user's. A later
    /// file's names hide an earlier one's.
    pub fn new(files: &[(Option<&str>, &'a ast::File)]) -> Library<'a> {
        let mut library =
            Library { collectives: BTreeMap::new(), algorithms: BTreeMap::new(), functions: Vec::new() };
        for (index, (module, file)) in files.iter().enumerate() {
            let mut functions = BTreeMap::new();
            for item in &file.items {
                match item {
                    ast::Item::Collective(c) => {
                        library.collectives.insert(c.name.name.clone(), c);
                    }
                    ast::Item::Algorithm(a) => {
                        let name = &a.name.name;
                        library.algorithms.insert(format!("{index}::{name}"), (a, index));
                        let full = module.map_or(name.clone(), |m| format!("std::{m}::{name}"));
                        library.algorithms.insert(full, (a, index));
                    }
                    ast::Item::Fn(f) => {
                        functions.insert(f.name.name.clone(), f);
                    }
                    // A schedule changes no result.
                    ast::Item::Schedule(_) => {}
                }
            }
            library.functions.push(functions);
        }
        library
    }

    fn algorithm(&self, path: &ast::Path, file: usize) -> Result<(&'a ast::Algorithm, usize), Stop> {
        let names: Vec<&str> = path.segments.iter().map(|s| s.name.as_str()).collect();
        let name = names.join("::");
        let local = self.algorithms.get(&format!("{file}::{name}"));
        let found = local.or_else(|| self.algorithms.get(&name));
        found.copied().ok_or_else(|| Stop::Meaningless(format!("no algorithm {name}")))
    }
}

/// A pseudo-random number below the modulus, from a seed and a counter.
pub fn number(seed: u64, counter: u64) -> u64 {
    let mut x = seed ^ counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    x % PRIME
}

/// Runs `algorithm` (`std::…` or a plain name) and compares what every rank ends with.
///
/// `cells` is the number of pieces each block is cut into; every boundary the program uses must fall between pieces.
/// In place, buffers overlap as the collective's `inplace` declares.
pub fn keeps_its_promise(
    library: &Library<'_>,
    algorithm: &str,
    shape: &[u32],
    params: &BTreeMap<String, i64>,
    cells: usize,
    in_place: bool,
    seed: u64,
) -> Result<bool, Stop> {
    let (algorithm, file) = *library
        .algorithms
        .get(algorithm)
        .ok_or_else(|| Stop::Meaningless(format!("no algorithm {algorithm}")))?;
    let mut machine = Machine::new(library, cells, seed);
    promise::run_and_compare(&mut machine, algorithm, file, shape, params, in_place)
}
