//! One rank's steps for a machine: what is chosen for them, and what a rank has too little of, as for all ranks.

use plan::dtype::Dtype;
use plan::plan::Forms;
use plan::verify::Limits as PlanLimits;
use rcc_compiler::chooser::{Chosen, Effort, Fixed, Untried, Wanted, elements};
use rcc_compiler::cost::Program;
use rcc_compiler::cost::estimate::{Question, estimate};
use rcc_compiler::cost::topology::{Resources, Topology, builtin};
use rcc_compiler::diagnostics::Diagnostic;
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::Direct;
use rcc_compiler::pipeline::{self, CompiledByOne, Failure, Loaded, NotByOne};
use rcc_compiler::trace::Params;

fn library() -> Loaded {
    pipeline::load(&[], &Limits::default())
}

fn request(loaded: &Loaded, name: &str, shape: &[u32]) -> Request {
    let algorithm = loaded.program.find(name).unwrap();
    Request { algorithm, shape: shape.to_vec(), params: Params::new() }
}

fn wanted(bytes: u64, effort: Effort) -> Wanted {
    let forms = Forms { disjoint: true, same: true };
    Wanted { bytes: Some(bytes), dtype: Dtype::F32, fixed: Fixed::default(), forms, effort }
}

fn by_one(
    loaded: &Loaded,
    (name, n): (&str, u32),
    wanted: &Wanted,
    machine: &Topology,
    limits: &Limits,
) -> Result<(CompiledByOne, Option<Chosen>), Vec<Diagnostic>> {
    let request = request(loaded, name, &[n]);
    match pipeline::compile_by_one_for(loaded, &request, wanted, machine, limits, &mut |_| {}) {
        Ok(made) => Ok(made),
        Err(NotByOne::Failed(Failure::Wrong(told))) => Err(told),
        Err(why) => panic!("{name} at {n}: {why:?}"),
    }
}

/// What is chosen is what is chosen for all ranks without direct access, and the prediction is what the model says of the plan that
/// came out.
#[test]
fn what_is_chosen_for_one_rank_is_chosen_for_all() {
    let loaded = library();
    let limits = Limits::default();
    for machine in ["2-cores", "8xh100"].map(|name| builtin(name).unwrap()) {
        for (name, n) in [
            ("std::allreduce::ring", 4),
            ("std::allreduce::ring", 8),
            ("std::allgather::ring", 5),
            ("std::reducescatter::ring", 3),
            ("std::barrier::dissemination", 6),
            ("std::alltoall::direct", 4),
            ("std::alltoall::direct", 8),
            ("std::allgather::bruck", 6),
            ("std::alltoall::bruck", 8),
        ] {
            for bytes in [64, 64 << 20] {
                let wanted = wanted(bytes, Effort::Thorough);
                let (one, chosen) = by_one(&loaded, (name, n), &wanted, &machine, &limits).unwrap();
                let plan = match one.plan {
                    Ok(plan) => plan,
                    Err(why) => panic!("{name} at {n}: {why:?}"),
                };
                let chosen = chosen.expect("there are steps");
                let fixed = Fixed { direct: Some(Direct::Never), ..Fixed::default() };
                let request = request(&loaded, name, &[n]);
                let (whole, of_all) = pipeline::compile_for(
                    &loaded,
                    &request,
                    &Wanted { fixed, ..wanted },
                    &machine,
                    &limits,
                    &mut |_| {},
                )
                .expect("right");

                let header = &plan.folded().plan.header;
                let (call, seconds) = chosen.best.expect("small enough to be followed");
                assert_eq!(header.copies, call.copies, "{name} at {n}");
                if machine.encodings.len() > 1 {
                    assert_eq!(header.schedule.protocol, chosen.protocol);
                }
                let unfolded = plan.unfold(&PlanLimits::default()).unwrap();
                let question = Question {
                    count: elements(&unfolded, bytes, Dtype::F32),
                    dtype: Dtype::F32,
                    slots: Some(call.slots),
                    slice_bytes: Some(call.slice_bytes),
                    copies: Some(call.copies),
                };
                let took = estimate(&Program::new(&unfolded), &machine, &question).unwrap().seconds;
                assert!((took / seconds - 1.0).abs() < 1e-6, "{name} at {n}: {took} for {seconds}");
                // What was tried is not compared: there may be layouts that are not the same at all ranks. Nobody said that there be
                // no direct access at one rank.
                assert!(!chosen.given.contains(&"direct") && of_all.given.contains(&"direct"));
                let taken = |chosen: &Chosen| {
                    let given = chosen.given.iter().copied().filter(|&given| given != "direct").collect();
                    Chosen { tried: Vec::new(), given, ..chosen.clone() }
                };
                assert_eq!(taken(&chosen), taken(&of_all), "{name} at {n}, {bytes} bytes");
                let all = &whole.plan.header;
                assert_eq!((header.copies, &header.schedule), (all.copies, &all.schedule));
            }
        }
    }
}

#[test]
fn what_is_too_large_is_taken_as_it_is() {
    let loaded = library();
    let limits = Limits::default();
    let machine = builtin("2-cores").unwrap();
    let ring = ("std::allreduce::ring", 16_384);
    let all = 16_384 * 32_767;
    for (effort, why) in [
        (Effort::Quick, Untried::All { micro_steps: all }),
        (Effort::Thorough, Untried::TooLarge { micro_steps: all }),
    ] {
        let (made, chosen) = by_one(&loaded, ring, &wanted(1 << 20, effort), &machine, &limits).unwrap();
        assert!(made.plan.is_ok());
        assert_eq!(chosen.unwrap().untried, Some(why));
    }
    // As many as are laid out in several ways where no rank speaks for others: n ranks of 2n - 1 micro-steps.
    for (n, untried) in [(100, None), (101, Some(Untried::TooLarge { micro_steps: 101 * 201 }))] {
        let wanted = wanted(64, Effort::Thorough);
        let (_, chosen) = by_one(&loaded, ("std::allreduce::ring", n), &wanted, &machine, &limits).unwrap();
        let chosen = chosen.unwrap();
        assert_eq!((chosen.best.is_some(), &chosen.untried), (untried.is_none(), &untried), "{n}");
    }
}

/// By the machine or by `--limit`: whatever a rank has too few of is refused at the same line, of the same move, in the same words, and what is
/// enough for the one is enough for the other.
#[test]
fn one_rank_has_as_much_as_any() {
    let loaded = library();
    let mut refused = 0;
    for (name, n) in [
        ("std::alltoall::direct", 6),
        ("std::allreduce::ring", 5),
        ("std::allgather::bruck", 7),
        ("std::alltoall::bruck", 6),
        ("std::barrier::dissemination", 9),
    ] {
        for most in 0..12 {
            for resources in [
                Resources { blocks: Some(most), ..Resources::default() },
                Resources { channels: Some(most), ..Resources::default() },
                Resources { connections: Some(most), ..Resources::default() },
            ] {
                let machine = Topology { resources, ..builtin("2-cores").unwrap() };
                let fixed = Fixed { blocks: Some(8), direct: Some(Direct::Never), ..Fixed::default() };
                let wanted = Wanted { fixed, ..wanted(1 << 20, Effort::Quick) };
                let limits = Limits::default();
                let one = by_one(&loaded, (name, n), &wanted, &machine, &limits).map(|_| ());
                let asked = request(&loaded, name, &[n]);
                let all = pipeline::compile_for(&loaded, &asked, &wanted, &machine, &limits, &mut |_| {});
                let all = match all {
                    Ok(_) => Ok(()),
                    Err(Failure::Wrong(told)) => Err(told),
                    Err(why) => panic!("{why:?}"),
                };
                // What a variable stands at is not known of one rank where its range is another one in each turn of the loop around.
                let labels = |one: &Diagnostic| {
                    let mut labels = one.labels.clone();
                    if name.ends_with("bruck") {
                        for label in &mut labels {
                            label.text.truncate(label.text.find(", with").unwrap_or(label.text.len()));
                        }
                    }
                    labels
                };
                let told = |verdict: &Result<(), Vec<Diagnostic>>| {
                    verdict
                        .as_ref()
                        .map_err(|told| {
                            assert!(told.iter().all(|one| one.code == "coll::target_limit"), "{told:?}");
                            told.iter().map(|one| (one.title.clone(), labels(one))).collect::<Vec<_>>()
                        })
                        .copied()
                };
                assert_eq!(told(&one), told(&all), "{name} at {n}, {resources:?}");
                refused += usize::from(one.is_err());
                // `--limit` goes before what the machine says; by itself it does the same.
                let limits = Limits { resources, ..Limits::default() };
                let usual = builtin("2-cores").unwrap();
                let limited = by_one(&loaded, (name, n), &wanted, &usual, &limits).map(|_| ());
                assert_eq!(told(&limited), told(&one), "{name} at {n}, {resources:?}");
            }
        }
    }
    assert!(refused > 20, "{refused}");
}
