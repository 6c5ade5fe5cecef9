//! Programs compiled for multicast (`options::Multicast`): a value that one rank sends to several is written once, the plan is
//! proved, free of races by the analysis apart from the proof, of the same bits as with a message to each, and executed by ranks
//! on this machine.

use compiler::limits::Limits;
use compiler::options::{Direct, Multicast, Options, Tree};
use compiler::pipeline::{Loaded, load};
use plan::dtype::{Dtype, Op};
use plan::interpret::Call;
use plan::interpret::clocks::findings;
use plan::interpret::scheduler::{Random, RoundRobin};
use plan::plan::{ChannelKind, Operand, Plan};
use plan::verify::VerifiedPlan;
use rcc_tests::draw::{self, Draw};
use rcc_tests::layouts::{self, TREES};
use rcc_tests::mutate::Dice;
use rcc_tests::programs::MULTICASTS;
use rcc_tests::{library, oracle};

fn programs() -> Loaded {
    let loaded = load(&[("multicast.coll".to_string(), MULTICASTS.as_bytes().to_vec())], &Limits::default());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics.first().map(|d| &d.title));
    loaded
}

fn compiled(loaded: &Loaded, name: &str, ranks: u32, options: &Options) -> Option<VerifiedPlan> {
    on_shape(loaded, name, &[ranks], options)
}

fn on_shape(loaded: &Loaded, name: &str, shape: &[u32], options: &Options) -> Option<VerifiedPlan> {
    let algorithm = loaded.program.find(name).expect("a known algorithm");
    let request = library::request(loaded, algorithm, shape.to_vec());
    let compiled = library::compiled(loaded, &request, options, &Limits::default());
    compiled.unwrap_or_else(|what| panic!("{name} at {shape:?}, {options:?}: {what}")).map(|c| c.plan)
}

/// Cells that ranks write into slots, each counted as often as it is written.
fn written(plan: &Plan) -> [u64; 2] {
    let mut counts = [0; 2];
    for step in &plan.steps {
        for operand in plan.dst(step) {
            let Operand::Channel(channel) = *operand else { continue };
            let channel = &plan.channels[channel.index()];
            if channel.kind == ChannelKind::Slots {
                counts[0] += u64::from(step.width);
                counts[1] += u64::from(step.width) * plan.readers(channel).len() as u64;
            }
        }
    }
    counts
}

/// What each sends to all is written once, and still reaches everybody.
#[test]
fn what_all_read_is_written_once() {
    let loaded = programs();
    let channel = Options { multicast: Multicast::Channel, ..Options::default() };
    for ranks in 3..=9u32 {
        let n = u64::from(ranks);
        for (name, cells, reached) in [
            ("flat", 1, n - 1),
            ("in_pieces", 3, 3 * (n - 1)),
            ("one_by_one", 1, n - 1),
            ("together", n, n * (n - 1)),
            ("in_turn", n, n * (n - 1)),
            ("by_way_of_0", n, 2 * (n - 1)),
            ("std::allreduce::one_shot", n, n * (n - 1)),
            // Chunks are gathered one by one, and given to all at once.
            ("std::allreduce::two_shot", n * (n - 1) + n, 2 * n * (n - 1)),
        ] {
            let per_block = |plan: &Plan| u64::from(plan.header.cells);
            let flat = compiled(&loaded, name, ranks, &Options::default()).unwrap();
            let plan = compiled(&loaded, name, ranks, &channel).unwrap();
            // Pieces are one wide message where nothing tells them apart.
            let unit = if name.starts_with("in_pieces") || name.ends_with("two_shot") {
                1
            } else {
                per_block(&plan)
            };
            assert_eq!(written(&flat), [reached * unit; 2], "{name}, {ranks} ranks, flat");
            assert_eq!(written(&plan), [cells * unit, reached * unit], "{name}, {ranks} ranks");
        }
    }
}

/// From rank to rank, once for each channel.
fn links(plan: &Plan) -> Vec<(u32, u32)> {
    let rank = |block: plan::ids::BlockId| plan.blocks[block.index()].rank.0;
    let of = |channel: &plan::plan::Channel| {
        plan.readers(channel).iter().map(|&reader| (rank(channel.writer), rank(reader))).collect::<Vec<_>>()
    };
    plan.channels.iter().flat_map(of).collect()
}

/// How many hops each rank is away from the root; all are reached, each from one other.
fn depths(named: &str, links: &[(u32, u32)], root: u32, ranks: u32) -> Vec<u32> {
    assert_eq!(links.len() as u32, ranks - 1, "{named}");
    let depth = |mut rank: u32| {
        let mut hops = 0;
        while rank != root {
            let above: Vec<u32> = links.iter().filter(|link| link.1 == rank).map(|link| link.0).collect();
            assert!(above.len() == 1 && hops < ranks, "{named}: rank {rank} is reached from {above:?}");
            rank = above[0];
            hops += 1;
        }
        hops
    };
    (0..ranks).map(depth).collect()
}

/// A flat broadcast as each kind of tree: how deep, and how many take it from one.
#[test]
fn trees_have_their_form() {
    let loaded = programs();
    for ranks in 2..=17u32 {
        for name in ["flat", "one_by_one"] {
            for tree in TREES {
                let options = Options { multicast: Multicast::Tree(tree), ..Options::default() };
                let named = format!("{name}, {ranks} ranks, {tree:?}");
                let plan = compiled(&loaded, name, ranks, &options).unwrap();
                let links = links(&plan);
                let depths = depths(&named, &links, ranks / 2, ranks);
                let children = |rank: u32| links.iter().filter(|&&(from, _)| from == rank).count() as u32;
                let (deepest, most) = (depths.into_iter().max(), (0..ranks).map(children).max());
                // By definition: with c children each, levels hold 1, c, c², …; a binomial tree doubles.
                let least_depth = |c: u32| {
                    let (mut depth, mut level, mut all) = (0, 1, 1);
                    while all < ranks {
                        (depth, level) = (depth + 1, level * c);
                        all += level;
                    }
                    depth
                };
                let doublings = (0..).find(|&d| 1 << d >= ranks);
                let expected = match tree {
                    // The deepest rank is the number below n with the most ones.
                    Tree::Binomial => ((0..ranks).map(u32::count_ones).max(), doublings),
                    Tree::Chain => (Some(ranks - 1), Some(1)),
                    Tree::Wide(c) => (Some(least_depth(c.into())), Some(u32::from(c).min(ranks - 1))),
                };
                assert_eq!((deepest, most), expected, "{named}");
                // Who passes it on does so with the step that takes it.
                let own = |rank: u32| {
                    plan.blocks_of(plan::ids::RankId(rank)).iter().map(|b| b.body.len()).sum::<usize>()
                };
                assert!((0..ranks).filter(|&rank| rank != ranks / 2).all(|rank| own(rank) == 1), "{named}");
            }
        }
    }
}

/// In a tree with channels everyone who passes it on writes it once, for as many readers as it has children.
#[test]
fn who_passes_it_on_writes_it_once() {
    let loaded = programs();
    for ranks in 2..=17u32 {
        for name in ["flat", "one_by_one"] {
            for tree in TREES {
                let named = format!("{name}, {ranks} ranks, {tree:?}");
                let of = |multicast| {
                    compiled(&loaded, name, ranks, &Options { multicast, ..Options::default() }).unwrap()
                };
                let (apart, shared) = (of(Multicast::Tree(tree)), of(Multicast::ChannelTree(tree)));
                let sorted = |plan: &Plan| {
                    let mut links = links(plan);
                    links.sort_unstable();
                    links
                };
                let edges = sorted(&apart);
                assert_eq!(sorted(&shared), edges, "{named}: the same tree");
                let mut inner: Vec<u32> = edges.iter().map(|&(from, _)| from).collect();
                inner.dedup();
                assert_eq!(written(&shared), [inner.len() as u64, u64::from(ranks) - 1], "{named}");
            }
        }
    }
}

/// On two levels each part of the outer one is entered once.
#[test]
fn trees_follow_the_levels() {
    let loaded = programs();
    for (m, k) in [(2, 3), (3, 2), (4, 4), (3, 5), (1, 4), (4, 1)] {
        for tree in TREES {
            let options = Options { multicast: Multicast::Tree(tree), ..Options::default() };
            let plan = on_shape(&loaded, "on_two_levels", &[m, k], &options).unwrap();
            let named = format!("{m}x{k}, {tree:?}");
            let links = links(&plan);
            depths(&named, &links, m * k / 2, m * k);
            let crossing = links.iter().filter(|&&(from, to)| from / k != to / k).count() as u32;
            assert_eq!(crossing, m - 1, "{named}");
        }
    }
}

/// Every rank passes on as much as any other: trees are turned with their roots.
#[test]
fn trees_of_all_ranks_share_the_work() {
    let loaded = programs();
    for ranks in 3..=9u32 {
        for tree in TREES {
            let options = Options { multicast: Multicast::Tree(tree), ..Options::default() };
            let plan = compiled(&loaded, "together", ranks, &options).unwrap();
            let mut sent = vec![0; ranks as usize];
            for block in &plan.blocks {
                for (_, step) in plan.steps(&block.body) {
                    let messages = plan.dst(step).iter().filter(|o| matches!(o, Operand::Channel(_))).count();
                    sent[block.rank.index()] += messages;
                }
            }
            assert_eq!(sent, vec![ranks as usize - 1; ranks as usize], "{ranks} ranks, {tree:?}");
        }
    }
}

/// What is overwritten before all have taken it, or swapped in one go, is still right; and where a copy cannot be moved it is not.
#[test]
fn places_that_change_are_read_in_time() {
    let loaded = programs();
    for ranks in 3..=7 {
        for name in ["overwritten", "swapped", "by_way_of_0"] {
            let flat = compiled(&loaded, name, ranks, &Options::default()).unwrap().into_plan();
            for tree in TREES {
                let options = Options { multicast: Multicast::Tree(tree), ..Options::default() };
                let plan = compiled(&loaded, name, ranks, &options).unwrap().into_plan();
                judge(&format!("{name}, {ranks} ranks, {tree:?}"), &flat, &plan, u64::from(ranks));
            }
        }
    }
}

/// What a place held in between is another sum of the same operands: the promise would not tell.
#[test]
fn copies_do_not_pass_what_reads_the_place_before() {
    let loaded = programs();
    let flat = compiled(&loaded, "changed_between", 3, &Options::default()).unwrap().into_plan();
    for tree in TREES {
        let options = Options { multicast: Multicast::Tree(tree), ..Options::default() };
        let plan = compiled(&loaded, "changed_between", 3, &options).unwrap().into_plan();
        judge(&format!("changed_between, {tree:?}"), &flat, &plan, 1);
    }
}

/// All programs and standard algorithms, laid out in any other way.
#[test]
fn bits_and_promises_are_kept() {
    let (loaded, limits) = (programs(), Limits::default());
    let (mut plans, mut several, mut trees, mut both) = (0, 0, 0, 0);
    let mut draw = Draw::new(draw::seed(), 1);
    for algorithm in loaded.program.algorithms() {
        for ranks in 2..=8 {
            for request in library::requests(&loaded, algorithm, ranks) {
                let seed = draw.number();
                let options =
                    Options { multicast: Multicast::Flat, ..layouts::any(&mut |bound| draw.below(bound)) };
                let compile = |options: &Options| {
                    let named = format!("{}, {options:?}", library::named(&loaded, &request));
                    let compiled = library::compiled(&loaded, &request, options, &limits);
                    let compiled = compiled.unwrap_or_else(|what| panic!("{named}: {what}"));
                    compiled.map(|compiled| (named, compiled.plan.into_plan()))
                };
                let Some((_, flat)) = compile(&options) else { continue };
                let shared = |plan: &Plan| {
                    plan.channels
                        .iter()
                        .any(|channel| channel.readers.len() > 1 && channel.kind == ChannelKind::Slots)
                };
                assert!(!shared(&flat));
                let tree = *draw.of(&TREES);
                for multicast in [Multicast::Channel, Multicast::Tree(tree), Multicast::ChannelTree(tree)] {
                    let (named, plan) = compile(&Options { multicast, ..options }).expect("the same shape");
                    plans += 1;
                    several += usize::from(shared(&plan));
                    trees += usize::from(multicast.tree().is_some() && plan != flat);
                    both += usize::from(multicast.tree().is_some() && shared(&plan));
                    assert!(plan.header.k_min <= options.slots, "{named}");
                    judge(&named, &flat, &plan, seed);
                }
            }
        }
    }
    println!("{plans} plans, {several} of them with messages that several read, {trees} with trees");
    assert!(several > 40, "of {plans} plans only {several} have messages that several read");
    assert!(trees > 40, "of {plans} plans only {trees} have trees");
    assert!(both > 40, "of {plans} plans only {both} have trees with messages that several read");
}

fn judge(named: &str, plain: &Plan, plan: &Plan, seed: u64) {
    for in_place in oracle::forms(plan) {
        assert_eq!(findings(plan, in_place).unwrap(), [], "{named}");
        for elements in [0, 1, 1 + seed % 90] {
            let call = Call {
                slots: plan.header.k_min.max(1),
                slot_bytes: 16 + (seed % 50) as u32,
                in_place,
                elide: seed.is_multiple_of(2),
                group: seed.is_multiple_of(3),
                ..Call::new(elements, [Dtype::F32, Dtype::Bf16][seed as usize % 2], Op::Sum)
            };
            let wrong = |what: String| -> ! { panic!("{named}, {call:?}: {what}") };
            let outcome = oracle::run(plan, &call, &mut Random::new(seed)).unwrap_or_else(|what| wrong(what));
            oracle::keeps_promise(plan, &call, &outcome).unwrap_or_else(|what| wrong(what));
            let call = Call { slots: plain.header.k_min.max(1), ..call };
            let expected =
                oracle::run(plain, &call, &mut RoundRobin::default()).unwrap_or_else(|what| wrong(what));
            for clause in &plan.promise.clauses {
                let (buffer, rank) = (clause.place.buffer, clause.place.rank);
                assert!(outcome.buffer(buffer, rank) == expected.buffer(buffer, rank), "{named}, {call:?}");
            }
        }
    }
}

/// With direct access what no one overwrites is read where it lies by all of them, and what all store at once is written there.
#[test]
fn what_several_read_may_be_reached_into() {
    let loaded = programs();
    for (name, direct) in [
        ("flat", Direct::OutOfPlace),
        ("together", Direct::OutOfPlace),
        ("by_way_of_0", Direct::OutOfPlace),
        ("std::allreduce::one_shot", Direct::OutOfPlace),
        ("std::allreduce::two_shot", Direct::OutOfPlace),
    ] {
        for ranks in 3..=6 {
            let options = Options { multicast: Multicast::Channel, direct, ..Options::default() };
            let plan = compiled(&loaded, name, ranks, &options).unwrap();
            assert_eq!(written(&plan)[0], 0, "{name}, {ranks} ranks: no message is left");
        }
    }
}

#[test]
fn ranks_execute_them() {
    let loaded = programs();
    let mut executed = 0;
    let of = |tree| Multicast::Tree(tree);
    for algorithm in loaded.program.algorithms() {
        for (ranks, multicast) in [
            (3, Multicast::Channel),
            (4, Multicast::Channel),
            (6, Multicast::Channel),
            (4, of(Tree::Binomial)),
            (6, of(Tree::Wide(2))),
            (6, Multicast::ChannelTree(Tree::Wide(2))),
            (8, Multicast::ChannelTree(Tree::Binomial)),
        ] {
            for request in library::requests(&loaded, algorithm, ranks) {
                let compile = |multicast: Multicast| {
                    let options = Options { multicast, ..Options::default() };
                    let compiled =
                        library::compiled(&loaded, &request, &options, &Limits::default()).unwrap();
                    compiled.map(|compiled| compiled.plan)
                };
                let Some(plan) = compile(multicast) else { continue };
                if compile(Multicast::Flat).is_some_and(|flat| *flat != *plan) {
                    executed += 1;
                    oracle::ranks_execute(&plan)
                        .unwrap_or_else(|what| panic!("{}: {what}", library::named(&loaded, &request)));
                }
            }
        }
    }
    assert!(executed > 50, "{executed}");
}
