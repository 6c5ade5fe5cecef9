//! The golden files: one dropped `.coll` file is one test.
//!
//! In: a program under `golden/accept`, `golden/reject`, `stdlib` or `examples`. Out: nothing, or all that is wrong with
//! it as one text. `docs/testing.md` says what a file gets; in short, what `accept` holds must be right by three
//! judges that share no code (the compiler's proof, the plan run on bytes against the definition of the collective,
//! `naive` on the syntax tree), and what `reject` holds must be refused with the code and at the line it names, and
//! be accepted once its fault is taken out.

#![allow(clippy::disallowed_methods, reason = "reads the golden files")]

mod accept;
mod execute;
mod header;
mod listing;
mod reject;
mod snapshot;

use std::fmt::Display;
use std::path::Path;

use compiler::elaborate::{Request, open_ranks};
use compiler::limits::Limits;
use compiler::pipeline::{self, Loaded};
use compiler::trace::Params;
use grammar::ParseLimits;

pub use self::accept::accept;
pub use self::header::{Header, Stage};
pub use self::reject::{reject, repaired};

/// What is wrong with a golden file, in lines.
#[derive(Debug)]
pub struct Failure(pub String);

impl<T: Display> From<T> for Failure {
    fn from(what: T) -> Failure {
        Failure(what.to_string())
    }
}

/// A program with its header.
struct Program {
    bytes: Vec<u8>,
    header: Header,
    limits: Limits,
    loaded: Loaded,
}

impl Program {
    fn new(path: &Path, bytes: Vec<u8>) -> Result<Program, Failure> {
        let name = path.file_name().ok_or("a file has a name")?.to_string_lossy().into_owned();
        let header = Header::parse(&String::from_utf8_lossy(&bytes))?;
        let limits = header.limits()?;
        let loaded = pipeline::load(&[(name, bytes.clone())], &limits);
        Ok(Program { bytes, header, limits, loaded })
    }

    /// What the file asks to be tried: every algorithm of it (or the ones it names) on every shape (or those it
    /// names), with each of the parameters it gives and every rank for rank parameters left open.
    fn requests(&self, default: fn(usize) -> Vec<Vec<u32>>) -> Result<Vec<Request>, Failure> {
        let program = &self.loaded.program;
        let here = |file| self.loaded.files.contains(&file);
        let asked = &self.header.algorithms;
        let chosen: Vec<_> = program
            .algorithms()
            .filter(|&id| here(program.algorithm(id).file))
            .filter(|&id| asked.is_empty() || asked.contains(&program.algorithm(id).name))
            .collect();
        if chosen.len() < asked.len() {
            return Err(format!("of the algorithms {asked:?} only {} are here", chosen.len()).into());
        }
        let mut requests = Vec::new();
        for algorithm in chosen {
            let levels = program.algorithm(algorithm).levels;
            let shapes = match self.header.shapes.is_empty() {
                true => default(levels),
                false => self.header.shapes.clone(),
            };
            for shape in shapes {
                let ranks: u32 = shape.iter().product();
                for given in self.header.params() {
                    let all = open_ranks(program, algorithm, &given);
                    requests.extend(every_rank(&all, ranks, given).into_iter().map(|params| Request {
                        algorithm,
                        shape: shape.clone(),
                        params,
                    }));
                }
            }
        }
        Ok(requests)
    }

    fn parse_limits(&self) -> ParseLimits {
        ParseLimits {
            nesting: self.limits.nesting,
            bytes: self.limits.source_bytes,
            ..ParseLimits::default()
        }
    }

    /// A request as failures name it.
    fn show(&self, request: &Request) -> String {
        let name = &self.loaded.program.algorithm(request.algorithm).name;
        let shape: Vec<String> = request.shape.iter().map(u32::to_string).collect();
        let params: Vec<String> = request.params.iter().map(|(k, v)| format!(", {k} = {v}")).collect();
        format!("{name} on {}{}", shape.join("x"), params.concat())
    }
}

fn every_rank(open: &[String], ranks: u32, given: Params) -> Vec<Params> {
    let mut all = vec![given];
    for name in open {
        let with = |params: &Params, rank: u32| {
            let mut params = params.clone();
            params.insert(name.clone(), rank.into());
            params
        };
        all = all.iter().flat_map(|params| (0..ranks).map(move |rank| with(params, rank))).collect();
    }
    all
}
