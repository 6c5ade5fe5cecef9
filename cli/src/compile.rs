//! `rcc compile`: one algorithm, one world shape, one plan.
//!
//! In: a target, a shape. Out: the plan as a file, a stage as text, times, or a line that says what was made.

use std::path::Path;

use compiler::chooser::Effort;
use compiler::pipeline::{self, Compiled, Failure as PipelineFailure, Loaded};
use plan::display::plural;
use plan::dtype::Op;
use plan::ids::RankId;
use plan::plan::Forms;
use rcc::make::{How, Made, NotMade, Open};
use rcc::request;
use serde::Serialize;

use crate::allocator;
use crate::args::{self, Stage};
use crate::atomic;
use crate::chosen::{self, Said};
use crate::emit;
use crate::failure::Failure;
use crate::machine;
use crate::one_rank;
use crate::output::Output;
use crate::said;
use crate::shape;
use crate::stages::{Stages, Times};
use crate::target::{self, Chosen as Found, Target};

/// Targets of later versions: naming one is no mistake of the user's spelling.
const NOT_YET: [&str; 6] = ["cuda", "ptx", "cubin", "msccl-xml", "mscclpp-json", "goal"];

/// Runs the command.
pub(crate) fn run(args: &args::Compile, output: &mut Output) -> Result<(), Failure> {
    let as_dot = match args.format.as_str() {
        "plan" => false,
        "dot" => true,
        known if NOT_YET.contains(&known) => {
            return Err(Failure::usage_help(
                format!("--target {known} is not built yet"),
                "this version writes `plan` (the default) and `dot`",
            ));
        }
        other => {
            return Err(Failure::usage_help(
                format!("there is no target `{other}`"),
                "this version writes `plan` (the default) and `dot`",
            ));
        }
    };
    let shown = args.json || args.emit.is_some() || args.timings;
    if as_dot && args.output.is_none() && shown {
        return Err(Failure::usage_help(
            "--target dot prints the picture, and nothing can be printed beside it",
            "write it to a file, as in -o ring.dot",
        ));
    }
    one_rank::refuse(args)?;
    keeps_inputs(args)?;
    let limits = args.choice.within.limits()?;
    let mut stages = Stages::new();
    stages.begin("load");
    let target = Target::new(&args.target);
    let topology = match &args.topology {
        Some(named) => machine::named(named)?,
        None => machine::usual(),
    };
    let how = How {
        fixed: args.fixed(),
        dtype: args.dtype,
        forms: Forms { disjoint: true, same: !args.out_of_place },
        effort: if args.topology.is_some() { Effort::Thorough } else { Effort::Quick },
        topology,
        limits,
    };
    machine::large_enough(&how.topology, shape::ranks(&args.ranks))?;
    let open = target.collective().filter(|_| args.choice.algorithm.is_none());
    let (loaded, request, made) = if let Some(collective) = open {
        only_named(args)?;
        let Found { loaded, .. } = target.load(&args.choice, &limits)?;
        target::report(&loaded, output)?;
        stages.end();
        let shape = args.ranks.clone();
        let open =
            Open { collective, shape, params: args.choice.params.clone(), op: Op::Sum, every_form: false };
        let busy = output.busy("compiling");
        stages.begin("compile all");
        let made = how.fastest(&loaded, &open, args.bytes, &mut allocator::at);
        stages.end();
        drop(busy);
        let (request, made) = made.map_err(|why| not_made(why, &loaded, output))?;
        (loaded, request, Some(made))
    } else {
        let (loaded, id) = target.load_one(&args.choice, &limits, output)?;
        stages.end();
        let algorithm = loaded.program.algorithm(id);
        request::known_params(&[algorithm], &args.choice.params)?;
        let shape = request::one_shape(algorithm, &args.ranks)?;
        let given = request::given(algorithm, &args.choice.params)?;
        let request = request::one_root(&loaded.program, id, &shape, &given)?;
        (loaded, request, None)
    };

    if args.emit == Some(Stage::Ast) {
        output.text(&emit::ast(&loaded, request.algorithm))?;
        if args.output.is_none() && !args.timings {
            return Ok(());
        }
    }
    if let Some(rank) = args.rank {
        let choice = pipeline::choose(&loaded, &request, args.bytes);
        let (rank, loaded, request) = (RankId(rank), &loaded, &request);
        let asked = one_rank::Asked { args, rank, loaded, request, choice: &choice, how: &how };
        return one_rank::run(&asked, &mut stages, output);
    }
    let made = match made {
        Some(made) => made,
        None => {
            let busy = output.busy("compiling");
            let made = how.make(&loaded, &request, args.bytes, &mut |stage| {
                stages.begin(stage.name());
                allocator::at(stage);
            });
            stages.end();
            drop(busy);
            made.map_err(|failure| explain(failure, &loaded, output))?
        }
    };
    let Made { compiled, choice, .. } = &made;
    for warning in &compiled.proved.warnings {
        output.diagnostic(warning, &loaded.sources);
    }

    let traced = |output: &mut Output| {
        let traced = pipeline::traced(&loaded, &request, args.bytes, &limits);
        traced.map_err(|failure| explain(failure, &loaded, output))
    };
    match args.emit {
        Some(Stage::Trace) => {
            let (trace, _) = traced(output)?;
            output.text(&emit::trace(&trace, &loaded.sources))?;
        }
        Some(Stage::Graph) => {
            let (trace, graph) = traced(output)?;
            output.text(&emit::graph(&trace, &graph))?;
        }
        Some(Stage::Plan) => output.text(&plan::display::show(compiled.plan.plan()).to_string())?,
        Some(Stage::Ast) | None => {}
    }
    if as_dot {
        let text = emit::dot(&traced(output)?.0);
        match &args.output {
            Some(path) => atomic::write(path, text.as_bytes())?,
            None => output.text(&text)?,
        }
    } else if let Some(path) = &args.output {
        stages.begin("write");
        atomic::write(path, &compiled.plan.plan().to_bytes())?;
        stages.end();
    }
    if args.json {
        output.json(&Summary::new(&made, &stages))?;
    } else if args.emit.is_none() && (!as_dot || args.output.is_some()) {
        output.line(&summary(compiled))?;
        if let Some(line) = said::schedule(choice) {
            output.line(&line)?;
        }
        output.line(&format!("chosen {}", chosen::line(&made.chosen)))?;
        if let Some(algorithms) = chosen::algorithms(&made.candidates) {
            output.line(&format!("of {algorithms}"))?;
        }
        said::no_size(choice, output);
        if let Some(path) = &args.output {
            output.line(&format!("written to {}", path.display()))?;
        }
    }
    timings(args, &stages, output)
}

/// The last that is printed, if it is asked for. (JSON has it within.)
pub(crate) fn timings(args: &args::Compile, stages: &Stages, output: &mut Output) -> Result<(), Failure> {
    if !args.timings || args.json {
        return Ok(());
    }
    output.line("")?;
    output.text(&stages.table())
}

/// Refuses to write over what is read, and `-`, which elsewhere is standard output.
fn keeps_inputs(args: &args::Compile) -> Result<(), Failure> {
    let Some(path) = &args.output else { return Ok(()) };
    if path.as_os_str() == "-" {
        return Err(Failure::usage_help(
            "-o names a file, and `-` is none",
            "--emit plan prints the steps; --target dot without -o prints the picture",
        ));
    }
    let inputs = [Some(&args.target), args.choice.schedule.as_ref(), args.topology.as_ref()];
    let read = |path: &Path| inputs.into_iter().flatten().find(|input| atomic::same(input, path));
    let Some(input) = read(path) else { return Ok(()) };
    // `ring.plan`, else `ring.1.plan`, and so on: one more than may be read.
    let ending = &args.format;
    let other = |at: usize| match at {
        0 => path.with_extension(ending),
        at => path.with_extension(format!("{at}.{ending}")),
    };
    let free = (0..inputs.len()).map(other).find(|path| read(path).is_none());
    let free = free.unwrap_or_else(|| other(inputs.len()));
    Err(Failure::usage_help(
        format!("-o {} would overwrite {}, which is read", path.display(), input.display()),
        format!("name another file, as in -o {}", free.display()),
    ))
}

/// Refuses options that speak of one algorithm, where only a collective is named.
fn only_named(args: &args::Compile) -> Result<(), Failure> {
    match (args.rank, args.emit) {
        (Some(_), _) => {
            Err(Failure::usage_help("--rank is of one algorithm", "name it, as in std::allreduce::ring"))
        }
        _ => Ok(()),
    }
}

/// Prints why there is no plan.
pub(crate) fn explain(failure: PipelineFailure, loaded: &Loaded, output: &mut Output) -> Failure {
    let diagnostics = match failure {
        PipelineFailure::Excluded { diagnostic, .. } => vec![*diagnostic],
        PipelineFailure::Wrong(diagnostics) => diagnostics,
    };
    for diagnostic in &diagnostics {
        output.diagnostic(diagnostic, &loaded.sources);
    }
    Failure::Wrong
}

/// Says why there is no plan where only a collective was named.
pub(crate) fn not_made(why: NotMade, loaded: &Loaded, output: &mut Output) -> Failure {
    match why {
        NotMade::Misuse(misuse) => misuse.into(),
        NotMade::Failed(failure) => explain(failure, loaded, output),
    }
}

/// What was made, in one line.
fn summary(compiled: &Compiled) -> String {
    let plan = compiled.plan.plan();
    let header = &plan.header;
    format!(
        "{}; {}, {} in {}, k_min = {}",
        said::proved(&header.algorithm, &header.collective, &header.shape, &header.params, header.proof),
        plural(compiled.proved.moves as u64, "move", "moves"),
        plural(plan.steps.len() as u64, "step", "steps"),
        plural(plan.blocks.len() as u64, "block", "blocks"),
        header.k_min,
    )
}

/// The same for programs.
#[derive(Serialize)]
struct Summary {
    algorithm: String,
    ranks: u32,
    moves: usize,
    steps: usize,
    blocks: usize,
    copies: u32,
    proof: &'static str,
    /// Which part of the schedule holds.
    schedule: Option<String>,
    /// What the compiler chose.
    chosen: Said,
    #[serde(flatten)]
    times: Times,
}

impl Summary {
    fn new(made: &Made, stages: &Stages) -> Summary {
        let Made { compiled, choice, chosen, candidates, .. } = made;
        let plan = compiled.plan.plan();
        Summary {
            algorithm: plan.header.algorithm.clone(),
            ranks: plan.header.ranks,
            moves: compiled.proved.moves,
            steps: plan.steps.len(),
            blocks: plan.blocks.len(),
            copies: plan.header.copies,
            proof: said::status(plan.header.proof),
            schedule: choice.said().map(str::to_string),
            chosen: Said::whole(chosen, candidates),
            times: stages.times(),
        }
    }
}
