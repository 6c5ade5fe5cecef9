//! Which world shape and parameters an algorithm is proved for, or run with.
//!
//! In: an algorithm, the shape asked for, the parameters given. Out: requests with every parameter resolved, or what makes no
//! sense of what was asked ([`Misuse`]). A shape of several levels is flattened for an algorithm of one level; an algorithm of several
//! levels takes only shapes of as many. A rank parameter that is not given stands for every rank when an algorithm is
//! proved, and for one rank when it is run: its default, else the first rank for the first such parameter, the
//! second for the second, and so on (so a sendrecv goes from rank 0 to rank 1).

use std::fmt;

use compiler::check::checked::{Algorithm, AlgorithmId, Param, Program};
use compiler::elaborate::Request;
use compiler::trace::Params;
use grammar::ast::ParamType;

use crate::world::{self, Shape};

/// More jobs than this of one algorithm at one shape are not started.
const MOST_ROOTS: usize = 1 << 16;

/// What was asked makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misuse {
    /// What is wrong: a fragment that stands alone.
    pub message: String,
    /// What would be right, if there is something to do.
    pub help: Option<String>,
}

impl Misuse {
    /// Without advice.
    pub fn new(message: impl Into<String>) -> Misuse {
        Misuse { message: message.into(), help: None }
    }

    /// With what would be right.
    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Misuse {
        Misuse { message: message.into(), help: Some(help.into()) }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.help {
            None => f.write_str(&self.message),
            Some(help) => write!(f, "{}\n  help: {help}", self.message),
        }
    }
}

impl std::error::Error for Misuse {}

/// The one shape to run an algorithm on.
pub fn one_shape(algorithm: &Algorithm, asked: &[u32]) -> Result<Shape, Misuse> {
    match algorithm.levels {
        1 => Ok(vec![world::ranks(asked)]),
        levels if levels == asked.len() => Ok(asked.to_vec()),
        levels => {
            let example = world::show(&vec![2; levels]);
            Err(Misuse::with_help(
                format!(
                    "{} runs on worlds of {levels} levels, and {} has {}",
                    algorithm.name,
                    world::show(asked),
                    asked.len()
                ),
                format!("give the size of every level, as in --ranks {example}"),
            ))
        }
    }
}

/// One request for every value of the rank parameters that are not given; or why the shape does not fit what is given.
pub fn every_root(
    program: &Program,
    id: AlgorithmId,
    shape: &[u32],
    given: &Params,
) -> Result<Result<Vec<Request>, String>, Misuse> {
    let algorithm = program.algorithm(id);
    if let Err(why) = ranks_exist(algorithm, shape, given) {
        return Ok(Err(why));
    }
    all_given(algorithm, given)?;
    let mut all = vec![given.clone()];
    for open in open_ranks(algorithm, given) {
        let with = |params: &Params, rank: u32| {
            let mut params = params.clone();
            params.insert(open.name.clone(), rank.into());
            params
        };
        all = all
            .iter()
            .flat_map(|params| (0..world::ranks(shape)).map(move |rank| with(params, rank)))
            .collect();
        if all.len() > MOST_ROOTS {
            return Err(Misuse::with_help(
                format!(
                    "{} has too many combinations of rank parameters at {} ranks",
                    algorithm.name,
                    world::show(shape)
                ),
                format!("give one, as in --param {}=0", open.name),
            ));
        }
    }
    Ok(Ok(all.into_iter().map(|params| Request { algorithm: id, shape: shape.to_vec(), params }).collect()))
}

/// The one request to run.
pub fn one_root(
    program: &Program,
    id: AlgorithmId,
    shape: &[u32],
    given: &Params,
) -> Result<Request, Misuse> {
    let algorithm = program.algorithm(id);
    ranks_exist(algorithm, shape, given).map_err(Misuse::new)?;
    all_given(algorithm, given)?;
    let mut params = given.clone();
    for (k, open) in open_ranks(algorithm, given).filter(|param| param.default.is_none()).enumerate() {
        params.insert(open.name.clone(), (k as u32 % world::ranks(shape)).into());
    }
    Ok(Request { algorithm: id, shape: shape.to_vec(), params })
}

/// Whether a rank parameter is left open.
pub fn is_open(algorithm: &Algorithm, given: &Params) -> bool {
    open_ranks(algorithm, given).next().is_some()
}

fn open_ranks<'a>(algorithm: &'a Algorithm, given: &'a Params) -> impl Iterator<Item = &'a Param> {
    algorithm.params.iter().filter(|param| param.ty == ParamType::Rank && !given.contains_key(&param.name))
}

/// A rank that is given must be one of the world.
fn ranks_exist(algorithm: &Algorithm, shape: &[u32], given: &Params) -> Result<(), String> {
    let ranks = algorithm.params.iter().filter(|param| param.ty == ParamType::Rank);
    let mut values = ranks.filter_map(|param| Some((&param.name, *given.get(&param.name)?)));
    match values.find(|&(_, value)| value >= world::ranks(shape).into()) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "{name} = {value} is no rank of {}: they are 0 to {}",
            world::show(shape),
            world::ranks(shape) - 1
        )),
    }
}

/// A number or truth value without a default must be given.
fn all_given(algorithm: &Algorithm, given: &Params) -> Result<(), Misuse> {
    let missing = |param: &&Param| {
        param.ty != ParamType::Rank && param.default.is_none() && !given.contains_key(&param.name)
    };
    match algorithm.params.iter().find(missing) {
        None => Ok(()),
        Some(param) => Err(Misuse::with_help(
            format!("{} needs a value for its parameter `{}`", algorithm.name, param.name),
            format!(
                "give one, as in --param {}={}",
                param.name,
                if param.ty == ParamType::Bool { "true" } else { "4" }
            ),
        )),
    }
}

/// Checks names and types of what `--param` gives against an algorithm; names that it does not have are left to the
/// caller.
pub fn given(algorithm: &Algorithm, params: &[(String, String)]) -> Result<Params, Misuse> {
    let mut known = Params::new();
    for (name, text) in params {
        let Some(param) = algorithm.params.iter().find(|param| param.name == *name) else { continue };
        let (value, wanted) = match param.ty {
            ParamType::Bool => {
                (["false", "true"].iter().position(|word| word == text).map(|v| v as i64), "true or false")
            }
            ParamType::Int => (text.parse().ok(), "a whole number"),
            ParamType::Rank => {
                (text.parse().ok().filter(|&rank: &i64| rank >= 0), "a rank: a whole number from 0")
            }
        };
        let value = value.ok_or_else(|| {
            Misuse::new(format!("--param {name}={text}: `{name}` of {} is {wanted}", algorithm.name))
        })?;
        if known.insert(name.clone(), value).is_some() {
            return Err(Misuse::new(format!("--param {name} is given twice")));
        }
    }
    Ok(known)
}

/// Refuses names in `--param` that none of the algorithms has.
pub fn known_params(algorithms: &[&Algorithm], params: &[(String, String)]) -> Result<(), Misuse> {
    for (name, _) in params {
        if algorithms.iter().all(|algorithm| algorithm.params.iter().all(|param| param.name != *name)) {
            let mut names: Vec<&str> =
                algorithms.iter().flat_map(|a| &a.params).map(|param| param.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let help = match names.len() {
                0 => "it has none".to_string(),
                _ => format!("there are {}", names.join(", ")),
            };
            let whose = algorithms.first().map_or("this", |algorithm| algorithm.name.as_str());
            return Err(Misuse::with_help(format!("{whose} has no parameter `{name}`"), help));
        }
    }
    Ok(())
}
