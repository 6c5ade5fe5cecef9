//! `rcc compile`: one algorithm, one world shape, one plan.
//!
//! In: a target, a shape. Out: the plan as a file, a stage as text, times, or a line that says what was made.

use compiler::choice::{Choice, Verdict};
use compiler::pipeline::{self, Compiled, Failure as PipelineFailure, Loaded};
use plan::ids::RankId;
use serde::Serialize;

use crate::args::{self, Stage};
use crate::atomic;
use crate::emit;
use crate::failure::Failure;
use crate::one_rank;
use crate::output::Output;
use crate::said;
use crate::stages::{Stages, Times};
use crate::target::Target;
use crate::worlds;

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
    let limits = args.choice.within.limits()?;
    let mut stages = Stages::new();
    stages.begin("load");
    let target = Target::new(&args.target);
    let (loaded, id) = target.load_one(&args.choice, &limits, output)?;
    stages.end();
    let algorithm = loaded.program.algorithm(id);
    worlds::known_params(&[algorithm], &args.choice.params)?;
    let shape = worlds::one_shape(algorithm, &args.ranks)?;
    let given = worlds::given(algorithm, &args.choice.params)?;
    let request = worlds::one_root(&loaded.program, id, &shape, &given)?;

    if args.emit == Some(Stage::Ast) {
        output.text(&emit::ast(&loaded, id))?;
        if args.output.is_none() && !args.timings {
            return Ok(());
        }
    }
    let choice = pipeline::choose(&loaded, &request, args.bytes);
    if let Some(rank) = args.rank {
        return one_rank::run(args, RankId(rank), &loaded, &request, &choice, &limits, &mut stages, output);
    }
    let busy = output.busy("compiling");
    let options = args.scheduling.options(args.slots, args.bytes);
    let compiled =
        pipeline::compile(&loaded, &request, &options, &limits, &mut |stage| stages.begin(stage.name()));
    stages.end();
    drop(busy);
    let compiled = compiled.map_err(|failure| explain(failure, &loaded, output))?;
    for warning in &compiled.proved.warnings {
        output.diagnostic(warning, &loaded.sources);
    }

    match args.emit {
        Some(Stage::Trace) => output.text(&emit::trace(&compiled.proved.trace, &loaded.sources))?,
        Some(Stage::Graph) => output.text(&emit::graph(&compiled.proved.trace, &compiled.proved.graph))?,
        Some(Stage::Plan) => output.text(&plan::display::show(compiled.plan.plan()).to_string())?,
        Some(Stage::Ast) | None => {}
    }
    if as_dot {
        let text = emit::dot(&compiled.proved.trace);
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
        output.json(&Summary::new(&compiled, &choice, &stages))?;
    } else if args.emit.is_none() && (!as_dot || args.output.is_some()) {
        output.line(&summary(&compiled))?;
        if let Some(line) = said::schedule(&choice, compiled.plan.plan()) {
            output.line(&line)?;
        }
        if choice.tried.iter().any(|tried| tried.verdict == Verdict::NoSize) {
            output.note(
                "note: no size is given, so that no `when` of the schedule holds; give one with --bytes",
            );
        }
        if let Some(path) = &args.output {
            output.line(&format!("written to {}", path.display()))?;
        }
    }
    if args.timings && !args.json {
        output.line("")?;
        output.text(&stages.table())?;
    }
    Ok(())
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

/// What was made, in one line.
fn summary(compiled: &Compiled) -> String {
    let plan = compiled.plan.plan();
    let header = &plan.header;
    format!(
        "{}; {} moves, {} steps in {} blocks, k_min = {}",
        said::proved(&header.algorithm, &header.collective, &header.shape, &header.params, header.proof),
        compiled.proved.trace.moves.len(),
        plan.steps.len(),
        plan.blocks.len(),
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
    #[serde(flatten)]
    times: Times,
}

impl Summary {
    fn new(compiled: &Compiled, choice: &Choice, stages: &Stages) -> Summary {
        let plan = compiled.plan.plan();
        Summary {
            algorithm: plan.header.algorithm.clone(),
            ranks: plan.header.ranks,
            moves: compiled.proved.trace.moves.len(),
            steps: plan.steps.len(),
            blocks: plan.blocks.len(),
            copies: plan.header.copies,
            proof: said::status(plan.header.proof),
            schedule: choice.said().map(str::to_string),
            times: stages.times(),
        }
    }
}
