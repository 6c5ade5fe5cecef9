//! What is found wrong with fresh steps, as the user reads it: at the lines that the steps come from, in the house's words.

extern crate plan as rcc_plan;

#[path = "../../plan/tests/common/mutate.rs"]
mod mutate;

use std::collections::BTreeMap;

use plan::plan::Plan;
use plan::verify::{Fault, IdFault, Limits as PlanLimits, Violation, verify};
use rcc_compiler::diagnostics::render::{Style, render};
use rcc_compiler::diagnostics::violation::violation;
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::{Direct, Options};
use rcc_compiler::pipeline::{self, Loaded};
use rcc_compiler::trace::Params;

fn compiled(loaded: &Loaded, name: &str, n: u32, options: &Options) -> Plan {
    let algorithm = loaded.program.find(name).unwrap();
    let request = Request { algorithm, shape: vec![n], params: Params::new() };
    let made = pipeline::compile(loaded, &request, options, &Limits::default(), &mut |_| {});
    made.expect("right").plan.into_plan()
}

/// Each violation of every mutant: a label for each step, on its line and nowhere else, and nothing said twice.
fn well_told(found: &Violation, loaded: &Loaded) {
    let told = violation(found, &loaded.sources);
    assert_eq!(told.code, found.code());
    assert!(!told.title.contains("plan::") && !told.title.contains('\n'), "{}", told.title);
    assert!(
        told.title.starts_with(|c: char| !c.is_uppercase()) && !told.title.ends_with('.'),
        "{}",
        told.title
    );
    assert_eq!(told.labels.len(), found.sites.len(), "{found}");
    for (label, site) in told.labels.iter().zip(&found.sites) {
        let line = site.line.as_ref().expect("a compiled step comes from a line");
        let at = loaded.sources.line_column(label.span);
        assert_eq!((&loaded.sources.file(label.span.file).name, at), (&line.file, (line.line, line.column)));
        assert_eq!(loaded.sources.snippet(label.span), line.text);
        assert!(label.text.chars().count() <= 50, "{}", label.text);
        assert!(label.text.contains(&format!("rank {}", site.rank.0)), "{}", label.text);
    }
    let help = told.help.expect("something to do");
    assert!(help.contains("fault of rcc") || found.code() == "plan::v7_target_limit", "{help}");
    assert!(
        found.sites.iter().take(6).all(|site| help.contains(&site.does)) || !help.contains("fault of rcc")
    );
}

#[test]
fn every_step_at_fault_is_shown_at_its_line() {
    let loaded = pipeline::load(&[], &Limits::default());
    let direct = Options { direct: Direct::WhereBothFormsAllow, ..Options::default() };
    let blocks = Options { blocks: 1, ..Options::default() };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, n, options) in [
        ("std::allreduce::ring", 3, Options::default()),
        ("std::allreduce::halving_doubling", 4, Options::default()),
        ("std::alltoall::direct", 3, direct),
        ("std::alltoall::direct", 3, blocks),
        ("std::barrier::dissemination", 3, Options::default()),
    ] {
        let plan = compiled(&loaded, name, n, &options);
        for (_, mutant) in mutate::mutants(&plan) {
            let Err(found) = verify(mutant, &PlanLimits::default()) else { continue };
            for one in &found {
                if !one.sites.is_empty() {
                    well_told(one, &loaded);
                    *seen.entry(one.code()).or_default() += 1;
                }
            }
        }
    }
    let rules: Vec<&str> = ["v0", "v1", "v2", "v3", "v4", "v5"]
        .into_iter()
        .filter(|rule| !seen.keys().any(|code| code.starts_with(&format!("plan::{rule}"))))
        .collect();
    assert!(rules.is_empty(), "nothing of {rules:?}: {seen:?}");
}

/// A program of the user's own, in a file that is called as one of the library's is.
#[test]
fn a_circle_is_drawn_at_the_users_lines() {
    let text = "algorithm swap on ranks[n] implements alltoall {\n    require n == 2, \"two swap\"\n    for r in 0..2 { output[r] @ r = input[r] @ r }\n    \
        output[0] @ 1 = input[1] @ 0\n    output[1] @ 0 = input[0] @ 1\n}\n";
    let files = [("std/alltoall/direct.coll".to_string(), text.as_bytes().to_vec())];
    let loaded = pipeline::load(&files, &Limits::default());
    assert!(loaded.diagnostics.is_empty());
    let one_block = Options { blocks: 1, fuse: false, ..Options::default() };
    let mut plan = compiled(&loaded, "swap", 2, &one_block);
    // Both receive before they send.
    for block in 0..2 {
        let steps = plan.blocks[block].body.clone();
        let is = |plan: &Plan, at: u32, source: bool| {
            let step = plan.steps[at as usize];
            let operands = if source { plan.src(&step) } else { plan.dst(&step) };
            matches!(operands[0], plan::plan::Operand::Channel(_))
        };
        let send = steps.clone().find(|&at| is(&plan, at, false)).unwrap();
        let receive = steps.clone().find(|&at| is(&plan, at, true)).unwrap();
        if send < receive {
            plan.steps.swap(send as usize, receive as usize);
        }
    }
    let found = verify(plan, &PlanLimits::default()).unwrap_err();
    let drawn = render(&violation(&found[0], &loaded.sources), &loaded.sources, Style::default());
    let wanted = "\
plan::v2_deadlock

  × 2 steps wait for each other in a circle, however many slots the channels
  │ have
   ╭─[std/alltoall/direct.coll:5:5]
 4 │     output[0] @ 1 = input[1] @ 0
   ·     ──────────────┬─────────────
   ·                   ╰── rank 1: waits for a message on channel 0
 5 │     output[1] @ 0 = input[0] @ 1
   ·     ──────────────┬─────────────
   ·                   ╰── rank 0: waits for a message on channel 1
   ╰────
  help: this is a fault of rcc: please report it with the program
        - rank 0, block 0, step 0: recv ch1 ← rank 1 → output[1]
        - rank 1, block 0, step 0: recv ch0 ← rank 0 → output[0]
";
    assert_eq!(drawn, wanted);
}

#[test]
fn limits_are_raised_by_name() {
    let loaded = pipeline::load(&[], &Limits::default());
    let plan = || compiled(&loaded, "std::allreduce::ring", 4, &Options::default());
    let told = |limits: PlanLimits| {
        let found = verify(plan(), &limits).unwrap_err();
        let told = violation(&found[0], &loaded.sources);
        assert_eq!(told.code, "plan::v0_limit");
        (told.title, told.help.unwrap())
    };
    let usual = PlanLimits::default;
    for (limits, title, help) in [
        (PlanLimits { steps: 3, ..usual() }, "28 steps", "--limit moves=3`"),
        (PlanLimits { places: 12, ..usual() }, "places", "--limit places="),
        (PlanLimits { micro_steps: 3, ..usual() }, "micro-steps", "--limit moves="),
        (PlanLimits { accesses: 3, ..usual() }, "operands", "--limit moves="),
        (PlanLimits { ranks: 3, ..usual() }, "4 ranks", "use fewer ranks"),
        (PlanLimits { promise_visits: 3, ..usual() }, "visits of values", "--limit moves="),
    ] {
        let (said, advice) = told(limits);
        assert!(said.contains(title) && advice.contains(help), "{said}: {advice}");
    }
}

/// What the advice names is enough, and no less is.
#[test]
fn limits_are_raised_far_enough() {
    let sources = pipeline::load(&[], &Limits::default()).sources;
    type Of = fn(&PlanLimits) -> u64;
    let cases: [(&'static str, Of); 7] = [
        ("places", |l| l.places),
        ("overlaps", |l| l.places),
        ("steps", |l| l.steps),
        ("channel readers", |l| l.steps),
        ("micro-steps", |l| l.micro_steps),
        ("operands", |l| l.accesses),
        ("accesses", |l| l.accesses),
    ];
    for (what, of) in cases {
        for found in [1_000_000_000, 4_000_000_007] {
            let fault = Fault::Ids(IdFault::Limit { what, found, limit: 1 });
            let told = violation(&Violation { fault, sites: Vec::new() }, &sources).help.unwrap();
            let (name, rest) =
                told.split_once("--limit ").and_then(|(_, rest)| rest.split_once('=')).expect(&told);
            let number: u64 = rest.split('`').next().unwrap().parse().unwrap();
            let with = |number: u64| match name {
                "moves" => Limits { moves: number, ..Limits::default() },
                _ => Limits { places: number, ..Limits::default() },
            };
            assert!(of(&with(number).of_plan()) >= found, "{what}: {told}");
            assert!(of(&with(number - 1).of_plan()) < found, "{what}: {told}");
        }
        let fault = Fault::Ids(IdFault::Limit { what, found: 1 << 33, limit: 1 });
        let told = violation(&Violation { fault, sites: Vec::new() }, &sources).help.unwrap();
        assert!(!told.contains("--limit"), "there is no such limit: {told}");
    }
}
