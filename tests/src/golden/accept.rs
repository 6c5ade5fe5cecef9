//! Programs that must be right.
//!
//! In: a program's path. Out: all that is wrong with it. Every judge is asked before the test fails.

use std::collections::BTreeSet;
use std::path::Path;

use compiler::cost::topology::Resources;
use compiler::diagnostics::Diagnostic;
use compiler::diagnostics::render::{Style, render};
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{self, Compiled};
use grammar::span::FileId;
use grammar::{ParseLimits, ast, parse_bytes};
use plan::file::LoadLimits;
use plan::plan::Plan;

use super::header::Stage;
use super::{Failure, Program, execute, listing, snapshot};
use crate::draw::{self, Draw};
use crate::layouts;
use crate::mutate::Dice;
use crate::naive::{Library, Stop, keeps_its_promise};

/// The finest grain that the naive executor tries.
const MOST_CELLS: usize = 144;

/// Tests the file at `path`.
pub fn accept(path: &Path) -> Result<(), Failure> {
    let program = Program::new(path, std::fs::read(path)?)?;
    if !program.header.codes.is_empty() || !program.header.lines.is_empty() {
        return Err("`code` and `line` are for files under reject/".into());
    }
    let right = right(&program)?;
    let mut wrong = Vec::new();
    let mut compare = |name: &str, text: &str| {
        if let Err(why) = snapshot::compare(path, name, text) {
            wrong.push(why.0);
        }
    };
    for &stage in &program.header.show {
        compare(stage.name(), &shown(stage, &program, &right)?);
    }
    if !right.warnings.is_empty() {
        compare("warnings", &right.warnings);
    }
    let kept = |name: &str| match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
        Some(stage) => program.header.show.contains(&stage),
        None => !right.warnings.is_empty(),
    };
    for name in Stage::ALL.map(Stage::name).into_iter().chain(["warnings"]) {
        if snapshot::exists(path, name) && !kept(name) {
            wrong.push(format!("there is a snapshot of {name}, which the program does not show"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// A program found right.
pub(super) struct Right {
    /// What the first algorithm became on the first shape; none in a file of collectives only.
    first: Option<(Request, Compiled)>,
    /// All distinct warnings, rendered.
    warnings: String,
}

/// Everything that a right program must be, snapshots apart.
pub(super) fn right(program: &Program) -> Result<Right, Failure> {
    if !program.loaded.diagnostics.is_empty() {
        return Err(rendered(program, &program.loaded.diagnostics).into());
    }
    prints_as_it_parses(program)?;

    let requests = program.requests(shapes)?;
    let naive = Naive::new(program);
    let mut wrong = Vec::new();
    let mut right = Right { first: None, warnings: String::new() };
    let mut warnings = Warnings::default();
    let mut excluded = None;
    let mut same_bits = Vec::new();
    let mut compiled_names = BTreeSet::new();
    let mut turn = 0;
    for request in &requests {
        let at = program.show(request);
        let compiled = match pipeline::compile(
            &program.loaded,
            request,
            &compiler::options::Options::default(),
            &program.limits,
            &mut |_| {},
        ) {
            Ok(compiled) => compiled,
            Err(pipeline::Failure::Excluded { diagnostic, .. }) => {
                if !program.header.shapes.is_empty() {
                    wrong.push(format!("{at}, which the header asks for, is excluded"));
                }
                excluded = Some(*diagnostic);
                continue;
            }
            Err(pipeline::Failure::Wrong(diagnostics)) => {
                wrong.push(format!("{at} is refused\n{}", rendered(program, &diagnostics)));
                continue;
            }
        };
        compiled_names.insert(request.algorithm);
        warnings.add(&compiled.proved.warnings);
        same_bits.extend(compiled.proved.proof.same_bits);
        let plan = compiled.plan.plan();
        // The roots in between are like the first and the last: they are proved, and left out here.
        let ranks = plan.header.ranks as i64;
        let ends = request.params.iter().all(|(_, &value)| ranks <= 4 || value == 0 || value >= ranks - 1);
        let mut judge = |verdict: Result<(), String>| {
            if let Err(why) = verdict {
                wrong.push(format!("{at}: {why}"));
            }
        };
        judge(saved_and_loaded(plan));
        if ends {
            judge(execute::oracle(&compiled, turn));
            judge(laid_out_otherwise(program, request, turn));
            judge(execute::threads(&compiled, turn));
            judge(naive.agrees(program, request));
        }
        turn += 1;
        right.first.get_or_insert((request.clone(), compiled));
    }
    for id in requests.iter().map(|request| request.algorithm).collect::<BTreeSet<_>>() {
        if !compiled_names.contains(&id) && wrong.is_empty() {
            let name = &program.loaded.program.algorithm(id).name;
            let why = excluded.iter().map(|d| rendered(program, std::slice::from_ref(d))).collect::<String>();
            wrong.push(format!("{name}: no shape is left\n{why}"));
        }
    }
    if let Some(expected) = program.header.same_bits
        && (same_bits.is_empty() || same_bits.iter().any(|&same| same != expected))
    {
        wrong.push(format!("same bits on all ranks: {same_bits:?}, and the header says {expected}"));
    }
    let asked: BTreeSet<&str> = program.header.warn.iter().map(String::as_str).collect();
    if asked != warnings.codes {
        wrong.push(format!(
            "warnings {:?}, and the header says {asked:?}\n{}",
            warnings.codes,
            warnings.text(program)
        ));
    }
    right.warnings = warnings.text(program);
    if wrong.is_empty() { Ok(right) } else { Err(wrong.join("\n\n").into()) }
}

/// The same program in any other layout, under the oracle.
fn laid_out_otherwise(program: &Program, request: &Request, turn: usize) -> Result<(), String> {
    let seed = draw::seed();
    let mut draw = Draw::new(seed, turn as u64);
    let options = layouts::any(&mut |bound| draw.below(bound));
    let told = |what: String| format!("RCC_TEST_SEED={seed}, {options:?}: {what}");
    // Another layout may need more channels than a file allows.
    let limits = Limits { resources: Resources::default(), ..program.limits };
    match pipeline::compile(&program.loaded, request, &options, &limits, &mut |_| {}) {
        Ok(compiled) => execute::oracle(&compiled, turn).map_err(told),
        Err(pipeline::Failure::Excluded { why, .. }) => Err(told(format!("it is excluded: {why}"))),
        Err(pipeline::Failure::Wrong(all)) => {
            Err(told(format!("it is refused\n{}", rendered(program, &all))))
        }
    }
}

/// Distinct warnings in the order found: one for each place and code.
#[derive(Default)]
struct Warnings {
    codes: BTreeSet<&'static str>,
    shown: Vec<Diagnostic>,
}

impl Warnings {
    fn add(&mut self, found: &[Diagnostic]) {
        for warning in found {
            self.codes.insert(warning.code);
            let place = |d: &Diagnostic| (d.code, d.labels.first().map(|label| label.span));
            if !self.shown.iter().any(|known| place(known) == place(warning)) {
                self.shown.push(warning.clone());
            }
        }
    }

    fn text(&self, program: &Program) -> String {
        rendered(program, &self.shown)
    }
}

/// Diagnostics as the command draws them, without colour, 80 columns wide.
pub(super) fn rendered(program: &Program, diagnostics: &[Diagnostic]) -> String {
    let texts: Vec<String> =
        diagnostics.iter().map(|d| render(d, &program.loaded.sources, Style::default())).collect();
    texts.join("\n")
}

/// The shapes tried if the header names none.
fn shapes(levels: usize) -> Vec<Vec<u32>> {
    match levels {
        1 => [1, 2, 3, 4, 5, 8].map(|n| vec![n]).to_vec(),
        2 => vec![vec![1, 1], vec![2, 2], vec![2, 3], vec![3, 2]],
        _ => vec![vec![1; levels], vec![2; levels]],
    }
}

/// parse ∘ print = id, and printing twice is printing once.
pub(super) fn prints_as_it_parses(program: &Program) -> Result<(), Failure> {
    let tree = tree(program);
    let printed = grammar::print::print(tree);
    let again = grammar::parse(FileId(0), &printed, &program.parse_limits());
    if !again.errors.is_empty() || !grammar::eq_modulo_spans(tree, &again.file) {
        return Err(format!("printed, it parses as another program:\n{printed}").into());
    }
    if grammar::print::print(&again.file) != printed {
        return Err(format!("printed twice, it differs from printed once:\n{printed}").into());
    }
    Ok(())
}

fn tree(program: &Program) -> &ast::File {
    &program.loaded.trees[0]
}

fn saved_and_loaded(plan: &Plan) -> Result<(), String> {
    let loaded = Plan::from_bytes(&plan.to_bytes(), &LoadLimits::default()).map_err(|e| e.to_string())?;
    if &loaded != plan {
        return Err("the plan saved and loaded again differs".to_string());
    }
    if plan::verify::verify(loaded, &plan::verify::Limits::default()).is_err() {
        return Err("the plan saved and loaded again is refused".to_string());
    }
    Ok(())
}

fn shown(stage: Stage, program: &Program, right: &Right) -> Result<String, Failure> {
    let first =
        || right.first.as_ref().ok_or_else(|| Failure::from("a file without an algorithm has no such stage"));
    let traced = || {
        let (request, _) = first()?;
        let traced = pipeline::traced(&program.loaded, request, None, &program.limits);
        traced.map_err(|failure| Failure::from(format!("the program compiles, then not: {failure:?}")))
    };
    Ok(match stage {
        Stage::Ast => listing::ast(tree(program)),
        Stage::Fmt => grammar::print::print(tree(program)),
        Stage::Trace => listing::trace(&traced()?.0, &program.loaded.sources),
        Stage::Graph => {
            let (trace, graph) = traced()?;
            listing::graph(&trace, &graph)
        }
        Stage::Plan => plan::display::show(first()?.1.plan.plan()).to_string(),
    })
}

/// The second implementation of the language, with the trees it walks.
pub(super) struct Naive {
    trees: Vec<(Option<String>, ast::File)>,
}

impl Naive {
    pub(super) fn new(program: &Program) -> Naive {
        let std = stdlib::FILES.iter().map(|(name, text)| {
            let module = name.strip_prefix("std/").and_then(|n| n.split_once('/'));
            (Some(module.map_or(String::new(), |(module, _)| module.to_string())), text.as_bytes())
        });
        let all = std.chain([(None, program.bytes.as_slice())]);
        // Limits are for the user's text.
        let limits = |module: &Option<String>| match module {
            None => program.parse_limits(),
            Some(_) => ParseLimits::default(),
        };
        let parsed = all.enumerate().map(|(i, (module, text))| {
            let tree = parse_bytes(FileId(i as u32), text, &limits(&module)).file;
            (module, tree)
        });
        Naive { trees: parsed.collect() }
    }

    /// Whether the promise is kept on random numbers, in place or out of place.
    pub(super) fn keeps(&self, program: &Program, request: &Request, in_place: bool) -> Result<bool, Stop> {
        let trees: Vec<_> = self.trees.iter().map(|(module, tree)| (module.as_deref(), tree)).collect();
        let library = Library::new(&trees);
        let algorithm = program.loaded.program.algorithm(request.algorithm);
        let too_coarse = |found: &Result<bool, Stop>| matches!(found, Err(Stop::Meaningless(why)) if why == "a boundary falls inside a piece");
        (1..=MOST_CELLS)
            .map(|cells| {
                let (shape, params) = (&request.shape, &request.params);
                keeps_its_promise(&library, &algorithm.name, shape, params, cells, in_place, 1)
            })
            .find(|found| !too_coarse(found))
            .unwrap_or_else(|| Err(Stop::Meaningless("no grain is fine enough".to_string())))
    }

    fn agrees(&self, program: &Program, request: &Request) -> Result<(), String> {
        let claims_in_place = !claims_only_out_of_place(program, request);
        for in_place in [false, true].into_iter().filter(|&in_place| !in_place || claims_in_place) {
            let found = self.keeps(program, request, in_place);
            if found != Ok(true) {
                return Err(format!("the naive executor, in place {in_place}: {found:?}"));
            }
        }
        Ok(())
    }
}

/// `inplace none`.
fn claims_only_out_of_place(program: &Program, request: &Request) -> bool {
    let name = &program.loaded.program.algorithm(request.algorithm).name;
    tree(program).items.iter().any(|item| match item {
        ast::Item::Algorithm(a) if a.name.name == *name => {
            a.body.iter().any(|stmt| matches!(stmt, ast::Stmt::OutOfPlaceOnly(_)))
        }
        _ => false,
    })
}
