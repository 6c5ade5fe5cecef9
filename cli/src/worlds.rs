//! Which world shapes and parameters an algorithm is proved for, or run with.
//!
//! In: an algorithm, the shapes asked for, the parameters given. Out: requests with every parameter resolved, and what
//! was left out and why. A shape of several levels is flattened for an algorithm of one level; an algorithm of several
//! levels takes only shapes of as many. A rank parameter that is not given stands for every rank when an algorithm is
//! proved, and for one rank when it is run: its default, else the first rank for the first such parameter, the
//! second for the second, and so on (so a sendrecv goes from rank 0 to rank 1).

use compiler::check::checked::{Algorithm, AlgorithmId, Param, Program};
use compiler::elaborate::Request;
use compiler::trace::Params;
use grammar::ast::ParamType;

use crate::failure::Failure;
use crate::shape::{self, Shape};

/// More jobs than this of one algorithm at one shape are not started.
const MOST_ROOTS: usize = 1 << 16;

/// A shape that an algorithm cannot run on, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The shape as asked for.
    pub(crate) shape: Shape,
    /// Why.
    pub(crate) why: String,
}

/// The shapes for an algorithm of `levels` levels, each once, and those that do not fit it.
pub(crate) fn shapes(levels: usize, asked: &[Shape]) -> (Vec<Shape>, Vec<Skipped>) {
    if asked.is_empty() {
        return (defaults(levels), Vec::new());
    }
    let mut fitting: Vec<Shape> = Vec::new();
    let mut skipped = Vec::new();
    for shape in asked {
        let fitted = match levels {
            1 => Some(vec![shape::ranks(shape)]),
            _ if shape.len() == levels => Some(shape.clone()),
            _ => None,
        };
        match fitted {
            Some(shape) if fitting.contains(&shape) => {}
            Some(shape) => fitting.push(shape),
            None => skipped
                .push(Skipped { shape: shape.clone(), why: format!("runs on worlds of {levels} levels") }),
        }
    }
    (fitting, skipped)
}

/// What an algorithm is proved for if nothing is asked: 2..16; for several levels, small worlds of unlike levels.
fn defaults(levels: usize) -> Vec<Shape> {
    let alternating = |a: u32, b: u32| (0..levels).map(|level| if level % 2 == 0 { a } else { b }).collect();
    match levels {
        1 => (2..=16).map(|n| vec![n]).collect(),
        2 => vec![vec![1, 1], vec![2, 2], vec![2, 3], vec![3, 2], vec![4, 4]],
        _ => vec![alternating(1, 1), alternating(2, 2), alternating(2, 3), alternating(3, 2)],
    }
}

/// The one shape to run an algorithm on.
pub(crate) fn one_shape(algorithm: &Algorithm, asked: &[u32]) -> Result<Shape, Failure> {
    match algorithm.levels {
        1 => Ok(vec![shape::ranks(asked)]),
        levels if levels == asked.len() => Ok(asked.to_vec()),
        levels => {
            let example = shape::show(&vec![2; levels]);
            Err(Failure::usage_help(
                format!(
                    "{} runs on worlds of {levels} levels, and {} has {}",
                    algorithm.name,
                    shape::show(asked),
                    asked.len()
                ),
                format!("give the size of every level, as in --ranks {example}"),
            ))
        }
    }
}

/// One request for every value of the rank parameters that are not given; or why the shape does not fit what is given.
pub(crate) fn every_root(
    program: &Program,
    id: AlgorithmId,
    shape: &[u32],
    given: &Params,
) -> Result<Result<Vec<Request>, String>, Failure> {
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
            .flat_map(|params| (0..shape::ranks(shape)).map(move |rank| with(params, rank)))
            .collect();
        if all.len() > MOST_ROOTS {
            return Err(Failure::usage_help(
                format!(
                    "{} has too many combinations of rank parameters at {} ranks",
                    algorithm.name,
                    shape::show(shape)
                ),
                format!("give one, as in --param {}=0", open.name),
            ));
        }
    }
    Ok(Ok(all.into_iter().map(|params| Request { algorithm: id, shape: shape.to_vec(), params }).collect()))
}

/// The one request to run.
pub(crate) fn one_root(
    program: &Program,
    id: AlgorithmId,
    shape: &[u32],
    given: &Params,
) -> Result<Request, Failure> {
    let algorithm = program.algorithm(id);
    ranks_exist(algorithm, shape, given).map_err(Failure::usage)?;
    all_given(algorithm, given)?;
    let mut params = given.clone();
    for (k, open) in open_ranks(algorithm, given).filter(|param| param.default.is_none()).enumerate() {
        params.insert(open.name.clone(), (k as u32 % shape::ranks(shape)).into());
    }
    Ok(Request { algorithm: id, shape: shape.to_vec(), params })
}

/// Whether a rank parameter is left open.
pub(crate) fn is_open(algorithm: &Algorithm, given: &Params) -> bool {
    open_ranks(algorithm, given).next().is_some()
}

fn open_ranks<'a>(algorithm: &'a Algorithm, given: &'a Params) -> impl Iterator<Item = &'a Param> {
    algorithm.params.iter().filter(|param| param.ty == ParamType::Rank && !given.contains_key(&param.name))
}

/// A rank that is given must be one of the world.
fn ranks_exist(algorithm: &Algorithm, shape: &[u32], given: &Params) -> Result<(), String> {
    let ranks = algorithm.params.iter().filter(|param| param.ty == ParamType::Rank);
    let mut values = ranks.filter_map(|param| Some((&param.name, *given.get(&param.name)?)));
    match values.find(|&(_, value)| value >= shape::ranks(shape).into()) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "{name} = {value} is no rank of {}: they are 0 to {}",
            shape::show(shape),
            shape::ranks(shape) - 1
        )),
    }
}

/// A number or truth value without a default must be given.
fn all_given(algorithm: &Algorithm, given: &Params) -> Result<(), Failure> {
    let missing = |param: &&Param| {
        param.ty != ParamType::Rank && param.default.is_none() && !given.contains_key(&param.name)
    };
    match algorithm.params.iter().find(missing) {
        None => Ok(()),
        Some(param) => Err(Failure::usage_help(
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
pub(crate) fn given(algorithm: &Algorithm, params: &[(String, String)]) -> Result<Params, Failure> {
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
            Failure::usage(format!("--param {name}={text}: `{name}` of {} is {wanted}", algorithm.name))
        })?;
        if known.insert(name.clone(), value).is_some() {
            return Err(Failure::usage(format!("--param {name} is given twice")));
        }
    }
    Ok(known)
}

/// Refuses names in `--param` that none of the algorithms has.
pub(crate) fn known_params(algorithms: &[&Algorithm], params: &[(String, String)]) -> Result<(), Failure> {
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
            return Err(Failure::usage_help(format!("{whose} has no parameter `{name}`"), help));
        }
    }
    Ok(())
}
