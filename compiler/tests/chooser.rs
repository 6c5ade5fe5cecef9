//! What the compiler chooses where nothing is said: the best of what it tries, nothing that was fixed, the same every time.

use plan::dtype::Dtype;
use plan::plan::Forms;
use rcc_compiler::chooser::{ASSUMED_BYTES, Chosen, Effort, Fixed, Layout, Untried, Wanted, elements};
use rcc_compiler::cost::Program;
use rcc_compiler::cost::estimate::{Question, estimate};
use rcc_compiler::cost::topology::{Topology, builtin, parse};
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::{Cut, Direct, Multicast, Options, Reach};
use rcc_compiler::pipeline::{self, Compiled, Failure, Loaded};

const BOTH: Forms = Forms { disjoint: true, same: true };

fn wanted(bytes: u64) -> Wanted {
    Wanted {
        bytes: Some(bytes),
        dtype: Dtype::F32,
        fixed: Fixed::default(),
        forms: BOTH,
        effort: Effort::Quick,
    }
}

fn request(loaded: &Loaded, name: &str, n: u32) -> Request {
    let id = loaded.program.find(name).expect("it is there");
    let open = rcc_compiler::elaborate::open_ranks(&loaded.program, id, &Default::default());
    let params = open.into_iter().map(|name| (name, 0)).collect();
    Request { algorithm: id, shape: vec![n], params }
}

fn made(loaded: &Loaded, name: &str, n: u32, wanted: &Wanted, machine: &Topology) -> (Compiled, Chosen) {
    let request = request(loaded, name, n);
    pipeline::compile_for(loaded, &request, wanted, machine, &Limits::default(), &mut |_| {}).expect("right")
}

fn library() -> Loaded {
    pipeline::load(&[], &Limits::default())
}

fn cores() -> Topology {
    builtin("2-cores").unwrap()
}

/// Against every layout, made by itself and estimated by itself.
#[test]
fn nothing_else_is_clearly_faster() {
    let loaded = library();
    for name in
        ["std::alltoall::direct", "std::allgather::ring", "std::broadcast::chain", "std::allreduce::one_shot"]
    {
        for bytes in [4 << 10, 1 << 20] {
            let (compiled, chosen) = made(&loaded, name, 4, &wanted(bytes), &cores());
            let (call, seconds) = chosen.best.expect("small enough to be followed");
            let mut least = f64::INFINITY;
            for (direct, reach) in [
                (Direct::Never, Reach::Pull),
                (Direct::WhereBothFormsAllow, Reach::Pull),
                (Direct::WhereBothFormsAllow, Reach::Push),
            ] {
                for blocks in [1, 2, 4, 8] {
                    let options = Options { direct, reach, blocks, ..Options::default() };
                    let request = request(&loaded, name, 4);
                    let plan =
                        pipeline::compile(&loaded, &request, &options, &Limits::default(), &mut |_| {})
                            .expect("right")
                            .plan;
                    let count = elements(&plan, bytes, Dtype::F32);
                    let question =
                        Question { count, dtype: Dtype::F32, slots: None, slice_bytes: None, copies: None };
                    let took = estimate(&Program::new(&plan), &cores(), &question).expect("followed");
                    least = least.min(took.seconds);
                }
            }
            // The usual layout is kept for less than a twentieth, and kinds are tried one after another.
            assert!(seconds <= least * 1.12, "{name} of {bytes}: {seconds} for {least}");
            // What is reported is what the plan takes.
            let question = Question {
                count: call.count,
                dtype: Dtype::F32,
                slots: Some(call.slots),
                slice_bytes: Some(call.slice_bytes),
                copies: None,
            };
            let again = estimate(&Program::new(&compiled.plan), &cores(), &question).expect("followed");
            assert!((again.seconds - seconds).abs() < 1e-12, "{name} of {bytes}: {again:?} for {seconds}");
        }
    }
}

#[test]
fn the_same_is_chosen_every_time_and_stands_among_what_was_tried() {
    let loaded = library();
    for name in ["std::allreduce::ring", "std::alltoall::direct", "std::broadcast::binomial"] {
        let first = made(&loaded, name, 6, &wanted(96 << 10), &cores());
        let second = made(&loaded, name, 6, &wanted(96 << 10), &cores());
        assert_eq!(first.1, second.1);
        assert!(first.0.plan.plan() == second.0.plan.plan());
        let chosen = first.1;
        let (call, seconds) = chosen.best.unwrap();
        let own = chosen.tried.iter().find(|t| t.layout == chosen.layout && t.call == call).expect("tried");
        assert_eq!(own.seconds, seconds);
        let least = chosen.tried.iter().map(|tried| tried.seconds).fold(f64::INFINITY, f64::min);
        assert!(seconds <= least * 1.12 && chosen.tried.len() > 3, "{chosen:?}");
        assert!(chosen.next().is_some_and(|next| next.call != call || next.layout != chosen.layout));
    }
}

#[test]
fn what_is_fixed_is_kept() {
    let loaded = library();
    let fixed = Fixed {
        blocks: Some(3),
        direct: Some(Direct::Never),
        multicast: Some(Multicast::Flat),
        cut: Some(Cut::Parts),
        counted_slots: Some(1),
        slots: Some(5),
        slice_bytes: Some(12 << 10),
        ..Fixed::default()
    };
    let asked = Wanted { fixed, ..wanted(1 << 20) };
    let (compiled, chosen) = made(&loaded, "std::alltoall::direct", 6, &asked, &cores());
    let plan = &compiled.plan;
    assert_eq!(plan.header.k_min, 1);
    assert!((0..6).all(|r| plan.blocks.iter().filter(|b| b.rank.0 == r).count() <= 3));
    let layout = Layout {
        blocks: 3,
        counted_slots: 1,
        direct: Direct::Never,
        reach: Reach::Pull,
        multicast: Multicast::Flat,
        cut: Cut::Parts,
    };
    assert!(chosen.tried.iter().all(|tried| tried.layout == layout));
    assert!(chosen.tried.iter().all(|tried| (tried.call.slots, tried.call.slice_bytes) == (5, 12 << 10)));
    for what in ["blocks", "direct", "cut", "slots", "slice_bytes", "protocol"] {
        assert!(chosen.given.contains(&what), "{what} in {:?}", chosen.given);
    }
    // The slot that was said is no clause of the plan's.
    assert_eq!(plan.header.schedule.slice_bytes, None);

    let text = "schedule for ring { channels 2 pipeline 8 KiB protocol ll }";
    let schedules = ("mine.coll".to_string(), text.replace("ring", "std::allreduce::ring").into_bytes());
    let loaded = pipeline::load_scheduled(&[], Some(&schedules), &Limits::default());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let gpus = builtin("8xh100").unwrap();
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 8, &wanted(1 << 20), &gpus);
    let header = &compiled.plan.header;
    assert_eq!((header.copies, header.schedule.slice_bytes), (2, Some(8 << 10)));
    assert_eq!(header.schedule.protocol, plan::schedule::Protocol::Ll);
    assert!(chosen.tried.iter().all(|tried| (tried.call.copies, tried.call.slice_bytes) == (2, 8 << 10)));
    assert!(["copies", "slice_bytes", "protocol"].iter().all(|what| chosen.given.contains(what)));
    // A machine that does not have it: the plan asks for it all the same, and nothing is chosen.
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 4, &wanted(1 << 20), &cores());
    assert_eq!(compiled.plan.header.schedule.protocol, plan::schedule::Protocol::Ll);
    assert!(chosen.best.is_none() && matches!(chosen.untried, Some(Untried::Model(_))));
}

#[test]
fn what_is_chosen_stands_in_the_plan() {
    let loaded = library();
    let gpus = builtin("8xh100").unwrap();
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 8, &wanted(64 << 20), &gpus);
    let (call, _) = chosen.best.unwrap();
    let header = &compiled.plan.header;
    assert!(call.copies > 1, "one block drives a twentieth of the port");
    assert_eq!(header.copies, call.copies);
    assert!(header.schedule.slice_bytes.unwrap() >= call.slice_bytes);
    assert_eq!(header.schedule.protocol, chosen.protocol);
    // Short messages clamp a slot; what the plan asks for is a size of the machine's, for calls of other sizes.
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 4, &wanted(4 << 10), &cores());
    assert!(chosen.best.unwrap().0.slice_bytes <= 2 << 10);
    assert!(cores().slices.contains(&compiled.plan.header.schedule.slice_bytes.unwrap()));
    assert_eq!(compiled.plan.header.schedule.protocol, plan::schedule::Protocol::Auto);
}

#[test]
fn sizes_that_are_not_known_are_assumed() {
    let loaded = library();
    let unknown = Wanted { bytes: None, ..wanted(0) };
    let (open, chosen) = made(&loaded, "std::alltoall::direct", 4, &unknown, &cores());
    assert!(chosen.assumed && chosen.bytes == ASSUMED_BYTES);
    let (given, same) = made(&loaded, "std::alltoall::direct", 4, &wanted(ASSUMED_BYTES), &cores());
    assert!(!same.assumed && same.best == chosen.best);
    assert!(open.plan.plan() == given.plan.plan());
}

#[test]
fn forms_are_given_up_only_where_they_are_not_wanted() {
    let loaded = library();
    let apart = Wanted { forms: Forms { disjoint: true, same: false }, ..wanted(1 << 20) };
    for name in ["std::allreduce::one_shot", "std::allreduce::two_shot", "std::allgather::ring"] {
        let (both, chosen) = made(&loaded, name, 4, &wanted(1 << 20), &cores());
        assert!(both.plan.header.forms.same, "{name}");
        assert!(chosen.tried.iter().all(|tried| tried.layout.direct != Direct::OutOfPlace));
        let (alone, chosen) = made(&loaded, name, 4, &apart, &cores());
        assert!(alone.plan.header.forms.disjoint);
        assert!(chosen.best.unwrap().1 <= both_seconds(&loaded, name) * 1.05);
    }
    fn both_seconds(loaded: &Loaded, name: &str) -> f64 {
        made(loaded, name, 4, &wanted(1 << 20), &cores()).1.best.unwrap().1
    }
}

#[test]
fn large_plans_are_taken_as_they_are_unless_a_machine_is_named() {
    let loaded = library();
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 64, &wanted(64 << 20), &cores());
    let micro: u64 = compiled.plan.steps.iter().map(|step| u64::from(step.width)).sum();
    assert_eq!(chosen.untried, Some(Untried::All { micro_steps: micro }));
    assert!(chosen.best.is_none() && chosen.tried.is_empty());
    let plain = request(&loaded, "std::allreduce::ring", 64);
    let usual =
        pipeline::compile(&loaded, &plain, &Options::default(), &Limits::default(), &mut |_| {}).unwrap();
    assert!(usual.plan.plan() == compiled.plan.plan());
    let named = Wanted { effort: Effort::Thorough, ..wanted(64 << 20) };
    let (_, chosen) = made(&loaded, "std::allreduce::ring", 64, &named, &cores());
    assert!(chosen.best.is_some() && chosen.untried.is_none());
}

#[test]
fn a_rank_gets_no_more_than_the_machine_has() {
    let text = "name = \"small\"\ncopies = 32\n[[level]]\nname = \"wire\"\nlatency = \"1us\"\nport = \"100GB/s\"\n\
        [engine]\nrate = \"5GB/s\"\n[resources]\nblocks = 5\nchannels = 12\n";
    let machine = parse(text).expect("a topology");
    let loaded = library();
    let (compiled, chosen) = made(&loaded, "std::allreduce::ring", 4, &wanted(64 << 20), &machine);
    let header = &compiled.plan.header;
    let of = |r| compiled.plan.blocks.iter().filter(|b| b.rank.0 == r).count() as u32;
    assert!(header.copies > 1, "copies pay here: {chosen:?}");
    assert!((0..4).all(|r| of(r) * header.copies <= 5));
    assert!(chosen.tried.iter().all(|tried| tried.call.copies <= 5));

    let tight = parse(&text.replace("blocks = 5", "connections = 2")).expect("a topology");
    let asked = request(&loaded, "std::alltoall::direct", 4);
    let refused =
        pipeline::compile_for(&loaded, &asked, &wanted(1 << 20), &tight, &Limits::default(), &mut |_| {});
    let Err(Failure::Wrong(told)) = refused else { panic!("three neighbours on a rank that has two") };
    assert_eq!((told.len(), told[0].code), (1, "coll::target_limit"));
    assert!(told[0].title.contains("needs 3 connections: on `small` it has 2"), "{}", told[0].title);
    // `--limit` goes before what the machine says.
    let mut limits = Limits::default();
    limits.resources.connections = Some(3);
    assert!(pipeline::compile_for(&loaded, &asked, &wanted(1 << 20), &tight, &limits, &mut |_| {}).is_ok());
    assert!(parse(&text.replace("blocks = 5", "blocks = 0")).is_err());
    assert!(parse(&text.replace("blocks = 5", "block = 5")).is_err());
}
