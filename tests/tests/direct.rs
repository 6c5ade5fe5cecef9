//! Standard algorithms compiled for direct access (`options::Direct`): proved, free of races by the analysis apart from the proof,
//! of the same bits as with messages alone, and executed by ranks on this machine.

use compiler::limits::Limits;
use compiler::options::{Direct, Options};
use compiler::pipeline::load;
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use plan::interpret::Call;
use plan::interpret::clocks::findings;
use plan::interpret::scheduler::{Random, RoundRobin};
use plan::plan::{ChannelKind, Operand, Plan};
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::{layouts, library, oracle};

/// Operands that name memory of other ranks.
fn reaches(plan: &Plan) -> usize {
    plan.operands.iter().filter(|operand| matches!(operand, Operand::Peer { .. })).count()
}

/// Messages that are left: ends of channels of slots on the sending side.
fn messages(plan: &Plan) -> usize {
    let slots = |operand: &&Operand| match operand {
        Operand::Channel(channel) => plan.channels[channel.index()].kind == ChannelKind::Slots,
        _ => false,
    };
    plan.steps.iter().map(|step| plan.dst(step).iter().filter(slots).count()).sum()
}

#[test]
fn all_algorithms_keep_their_bits() {
    let (loaded, limits) = (load(&[], &Limits::default()), Limits::default());
    let (mut plans, mut direct) = (0, [0; 2]);
    let mut draw = Draw::new(draw::seed(), 1);
    for algorithm in library::algorithms(&loaded) {
        for ranks in 2..=8 {
            for request in library::requests(&loaded, algorithm, ranks) {
                let seed = draw.number();
                let options = layouts::any(&mut |bound| draw.below(bound));
                let compile = |direct: Direct| {
                    let options = Options { direct, ..options };
                    let named = format!("{}, {options:?}", library::named(&loaded, &request));
                    let compiled = library::compiled(&loaded, &request, &options, &limits);
                    let compiled = compiled.unwrap_or_else(|what| panic!("{named}: {what}"));
                    compiled.map(|compiled| (named, compiled.plan.into_plan()))
                };
                let Some((_, plain)) = compile(Direct::Never) else { continue };
                assert_eq!(reaches(&plain), 0);
                for (mode, &how) in [Direct::WhereBothFormsAllow, Direct::OutOfPlace].iter().enumerate() {
                    let (named, plan) = compile(how).expect("the same shape");
                    plans += 1;
                    direct[mode] += usize::from(reaches(&plan) > 0);
                    if reaches(&plan) == 0 {
                        assert!(plan == plain, "{named}: nothing else may change");
                        continue;
                    }
                    assert!(messages(&plan) < messages(&plain), "{named}");
                    if how == Direct::WhereBothFormsAllow {
                        assert_eq!(plan.header.forms, plain.header.forms, "{named}");
                    } else {
                        assert!(plan.header.forms.disjoint && !plan.header.forms.same, "{named}");
                    }
                    judge(&named, &plain, &plan, seed);
                }
            }
        }
    }
    println!("{plans} plans, {direct:?} of them with direct access");
    assert!(direct[0] > 40 && direct[1] > 150, "of {plans} plans {direct:?} have direct access");
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

/// What no other rank needs to pass on or to combine is never sent.
#[test]
fn values_that_only_go_from_one_memory_to_another_are_not_sent() {
    let (loaded, limits) = (load(&[], &Limits::default()), Limits::default());
    for (name, form) in [
        ("std::alltoall::direct", Direct::WhereBothFormsAllow),
        ("std::allreduce::one_shot", Direct::OutOfPlace),
        ("std::gather::direct", Direct::OutOfPlace),
        ("std::scatter::direct", Direct::OutOfPlace),
        ("std::sendrecv::direct", Direct::OutOfPlace),
        ("std::alltonext::direct", Direct::OutOfPlace),
    ] {
        for ranks in 3..=9 {
            let algorithm = loaded.program.find(name).expect("a standard algorithm");
            let request = library::request(&loaded, algorithm, vec![ranks]);
            let options = Options { direct: form, ..Options::default() };
            let compiled = library::compiled(&loaded, &request, &options, &limits).unwrap();
            let Some(compiled) = compiled else { continue };
            let plan = compiled.plan.plan();
            assert_eq!(messages(plan), 0, "{name}, {ranks} ranks");
            assert!(plan.channels.iter().all(|channel| channel.kind == ChannelKind::Counter));
            // Nor is there anything left of what sent: every data step has a place of a peer, or is local.
            let per_rank = |rank: RankId| plan.blocks_of(rank).len();
            assert!((0..ranks).map(RankId).all(|rank| per_rank(rank) <= 8), "{name}, {ranks} ranks");
        }
    }
}

#[test]
fn ranks_execute_them() {
    let (loaded, limits) = (load(&[], &Limits::default()), Limits::default());
    let mut executed = 0;
    for algorithm in library::algorithms(&loaded) {
        for ranks in [2, 4, 6] {
            for request in library::requests(&loaded, algorithm, ranks) {
                for direct in [Direct::WhereBothFormsAllow, Direct::OutOfPlace] {
                    let options = Options { direct, ..Options::default() };
                    let compiled = library::compiled(&loaded, &request, &options, &limits).unwrap();
                    let Some(plan) = compiled.map(|compiled| compiled.plan) else { continue };
                    if reaches(&plan) > 0 {
                        executed += 1;
                        oracle::ranks_execute(&plan)
                            .unwrap_or_else(|what| panic!("{}: {what}", library::named(&loaded, &request)));
                    }
                }
            }
        }
    }
    assert!(executed > 50, "{executed}");
}
