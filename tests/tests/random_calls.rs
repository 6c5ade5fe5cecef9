//! Random calls on four ranks: standard algorithms in random layouts, any count, type, operator and form; blocking, several at once, with handles that are
//! waited for in another order at each rank, in groups; on communicators that are duplicated and split anew all the time. Every result is compared with
//! the promise.
//!
//! `RCC_RANDOM_SECONDS` sets for how long (10), `RCC_TEST_SEED` which calls. With `--nocapture` it says every minute, and at the end, how many calls were
//! made and how many elements of results were compared; half an hour in one piece is `cargo xtask test --full --only random`.

#![allow(
    clippy::disallowed_methods,
    reason = "for how long it runs comes from the environment, and the clock says so"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compiler::limits::Limits;
use compiler::pipeline::load;
use plan::dtype::{Dtype, Factor, Op};
use plan::ids::{BufferId, RankId};
use plan::plan::{Operand, Role};
use plan::reference::{self, Reference};
use plan::verify::VerifiedPlan;
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::{layouts, library};
use runtime::comm::{Communicator, Handle, Options, PlanId, group};
use runtime::exec::Shape;
use runtime::exec::buffers::Memory;
use runtime::small;

const RANKS: u32 = 4;
/// Steps of an epoch: then communicators are made anew.
const STEPS: usize = 60;
/// Plans that a communicator opens.
const OPENED: usize = 6;
/// Calls with handles under way at once.
const PENDING: usize = 6;

fn seconds() -> u64 {
    std::env::var("RCC_RANDOM_SECONDS").ok().and_then(|value| value.parse().ok()).unwrap_or(10)
}

/// Random plans for so many ranks.
fn pool(ranks: u32, count: usize, draw: &mut Draw) -> Vec<Arc<VerifiedPlan>> {
    let (loaded, limits) = (load(&[], &Limits::default()), Limits::default());
    let all = library::algorithms(&loaded);
    let mut plans = Vec::new();
    while plans.len() < count {
        let requests = library::requests(&loaded, *draw.of(&all), ranks);
        let request = draw.of(&requests);
        let options = layouts::any(&mut |bound| draw.below(bound));
        let compiled = library::compiled(&loaded, request, &options, &limits);
        let named = || format!("{}, {options:?}", library::named(&loaded, request));
        if let Some(compiled) = compiled.unwrap_or_else(|what| panic!("{}: {what}", named())) {
            plans.push(Arc::new(compiled.plan));
        }
    }
    plans
}

/// A communicator and the plans that it has opened.
struct Party {
    comm: Communicator,
    plans: Vec<(PlanId, Arc<VerifiedPlan>)>,
}

/// A call, the same at all ranks.
#[derive(Debug, Clone, Copy)]
struct Asked {
    party: usize,
    plan: usize,
    shape: Shape,
    seed: u64,
}

fn reaches(plan: &VerifiedPlan) -> bool {
    plan.operands.iter().any(|operand| matches!(operand, Operand::Peer { .. }))
}

fn serves(plan: &VerifiedPlan, shape: Shape) -> bool {
    let Shape { op, dtype, in_place, .. } = shape;
    let forms = plan.header.forms;
    let divides = !op.has_post() || !plan.promise.reduces() || plan.promise.reduced_operands().is_some();
    let fits = op.factor().is_none_or(|factor| factor.fits(dtype));
    (if in_place { forms.same } else { forms.disjoint }) && plan.header.serves(op) && divides && fits
}

/// A random call that its plan serves.
fn ask(draw: &mut Draw, party: usize, parties: &[Party], seed: u64, by_messages: bool) -> Asked {
    let plans = &parties[party].plans;
    loop {
        let plan = draw.below(plans.len());
        let most = *draw.of(&[2, 40, 40, 3000, 3000, 20_000]);
        let op = *draw.of(&[Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Avg, Op::PremulSum(Factor::new(3.0))]);
        let (dtype, in_place) = (*draw.of(&Dtype::ALL), draw.chance(50));
        let shape = Shape { elements: draw.below(most) as u64, dtype, op, in_place };
        if serves(&plans[plan].1, shape) && !(by_messages && reaches(&plans[plan].1)) {
            return Asked { party, plan, shape, seed };
        }
        // All of a communicator's plans may reach into peers.
        if by_messages && plans.iter().all(|(_, plan)| reaches(plan)) {
            return ask(draw, party, parties, seed, false);
        }
    }
}

/// Memory filled for a call.
fn filled(parties: &mut [Party], asked: Asked) -> Memory {
    let Party { comm, plans } = &mut parties[asked.party];
    let (id, plan) = &plans[asked.plan];
    let Asked { shape, seed, .. } = asked;
    let named = || format!("{} {asked:?}", plan.header.algorithm);
    let mut memory = comm.memory(*id, shape).unwrap_or_else(|e| panic!("{}: {e}", named()));
    for (b, buffer) in plan.buffers.iter().enumerate() {
        let b = BufferId::new(b);
        if buffer.role == Role::Recv && !shape.in_place {
            memory.bytes_mut(b).fill(0xa5);
        }
        if buffer.role == Role::Send && buffer.at.holds(comm.rank()) {
            reference::fill(shape.dtype, shape.op, seed, comm.rank(), b, memory.bytes_mut(b));
        }
    }
    memory
}

/// What all ranks have compared so far: calls (each once for each of its ranks), and elements of their results.
static COMPARED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn compared(calls: u64, elements: u64) {
    COMPARED[0].fetch_add(calls, Ordering::Relaxed);
    COMPARED[1].fetch_add(elements, Ordering::Relaxed);
}

/// Compares what a call left with the promise.
fn check(parties: &[Party], asked: Asked, memory: &Memory) {
    let Party { comm, plans } = &parties[asked.party];
    let (plan, rank) = (&plans[asked.plan].1, comm.rank());
    let Asked { shape: Shape { elements, dtype, op, .. }, seed, .. } = asked;
    let promise = Reference::new(&plan.promise);
    let mut entry = |place: plan::collective::BlockRef| -> Cow<'static, [u8]> {
        let mut bytes = vec![0; (elements * u64::from(dtype.size())) as usize];
        let first = u64::from(place.block) * elements;
        reference::fill_from(dtype, op, seed, place.rank, place.buffer, first, &mut bytes);
        bytes.into()
    };
    for (b, buffer) in plan.buffers.iter().enumerate() {
        let b = BufferId::new(b);
        if buffer.role == Role::Recv && buffer.at.holds(rank) {
            let wrong = promise.check((b, rank), elements, (dtype, op), &mut entry, memory.bytes(b));
            assert_eq!(wrong.count, 0, "{} {asked:?} at rank {rank:?}: {wrong:?}", plan.header.algorithm);
            compared(0, memory.bytes(b).len() as u64 / u64::from(dtype.size()));
        }
    }
    compared(1, 0);
}

/// Numbers of calls by how they were made.
type Counts = BTreeMap<&'static str, u64>;

/// What is under way with a handle.
type UnderWay = (Asked, Handle<Memory>);

/// One epoch of a rank.
fn epoch(
    base: &mut Communicator,
    whole: &[Arc<VerifiedPlan>],
    half: &[Arc<VerifiedPlan>],
    seed: u64,
    counts: &mut Counts,
) {
    let mut draw = Draw::new(seed, 1);
    // Not the same at all ranks: in which order they wait.
    let mut own = Draw::new(seed, 100 + u64::from(base.rank().0));
    let in_flight = 1 + draw.below(3) as u32;
    let options = Options { registered: 6 << 20, in_flight, progress: draw.chance(25), ..options() };
    let rank = base.rank().0;
    let color = if draw.chance(50) { rank % 2 } else { rank / 2 };
    let key = if draw.chance(50) { i64::from(rank) } else { -i64::from(rank) };
    let made = [
        base.split_with(Some(0), key, &options).unwrap(),
        base.split_with(Some(0), 0, &options).unwrap(),
        base.split_with(Some(color), key, &options).unwrap(),
    ];
    let mut parties: Vec<Party> =
        made.into_iter().flatten().map(|comm| Party { comm, plans: Vec::new() }).collect();
    for Party { comm, plans } in &mut parties {
        let pool = if comm.world() == RANKS { whole } else { half };
        for _ in 0..OPENED {
            let plan = draw.of(pool);
            plans.push((comm.open(plan).unwrap(), Arc::clone(plan)));
        }
    }
    let mut pending: Vec<UnderWay> = Vec::new();
    for step in 0..STEPS as u64 {
        let seed = seed.wrapping_mul(1000) + step * 10;
        let party = draw.below(parties.len());
        match draw.below(10) {
            0..4 => {
                let asked = ask(&mut draw, party, &parties, seed, false);
                let mut memory = filled(&mut parties, asked);
                let Party { comm, plans } = &mut parties[party];
                comm.call(plans[asked.plan].0, asked.shape, &mut memory.buffers()).unwrap();
                check(&parties, asked, &memory);
                *counts.entry("blocking").or_default() += 1;
            }
            4..7 => {
                let asked = ask(&mut draw, party, &parties, seed, true);
                let mut memory = filled(&mut parties, asked);
                let Party { comm, plans } = &mut parties[party];
                let (id, plan) = &plans[asked.plan];
                if reaches(plan) {
                    // Registered memory is a stack: what is given back in any order is not free again.
                    comm.call(*id, asked.shape, &mut memory.buffers()).unwrap();
                    check(&parties, asked, &memory);
                    *counts.entry("blocking").or_default() += 1;
                } else {
                    let handle = comm.start(*id, asked.shape, memory).unwrap();
                    pending.push((asked, handle));
                    *counts.entry("with a handle").or_default() += 1;
                }
                while pending.len() > own.below(PENDING) {
                    wait_for_one(&parties, &mut pending, &mut own);
                }
            }
            7 => {
                let asked: Vec<Asked> = (0..1 + draw.below(4) as u64)
                    .map(|i| ask(&mut draw, party, &parties, seed + i, false))
                    .collect();
                let mut memories: Vec<Memory> = asked.iter().map(|&one| filled(&mut parties, one)).collect();
                let Party { comm, plans } = &mut parties[party];
                comm.scope(|scope| {
                    let mut started = Vec::new();
                    for (memory, asked) in memories.iter_mut().zip(&asked) {
                        started.push(scope.start(plans[asked.plan].0, asked.shape, memory.buffers())?);
                    }
                    while !started.is_empty() {
                        let one = started.swap_remove(own.below(started.len()));
                        if own.chance(70) {
                            scope.wait(one)?;
                        }
                    }
                    Ok(())
                })
                .unwrap();
                judge(&parties, &asked, memories);
                *counts.entry("in a scope").or_default() += asked.len() as u64;
            }
            8 => {
                let count = 1 + draw.below(6) as u64;
                let asked: Vec<Asked> = (0..count)
                    .map(|i| {
                        let party = draw.below(parties.len());
                        ask(&mut draw, party, &parties, seed + i, false)
                    })
                    .collect();
                let mut memories: Vec<Memory> = asked.iter().map(|&one| filled(&mut parties, one)).collect();
                let ids: Vec<PlanId> = asked.iter().map(|one| parties[one.party].plans[one.plan].0).collect();
                let mut each: Vec<&mut Communicator> =
                    parties.iter_mut().map(|party| &mut party.comm).collect();
                group(&mut each, |group| {
                    for ((memory, asked), &id) in memories.iter_mut().zip(&asked).zip(&ids) {
                        group.call_of(asked.party, id, asked.shape, memory.buffers());
                    }
                    Ok(())
                })
                .unwrap();
                judge(&parties, &asked, memories);
                *counts.entry("in a group").or_default() += count;
            }
            _ => {
                let comm = &mut parties[party].comm;
                if draw.chance(20) {
                    comm.barrier().unwrap();
                } else {
                    small(comm, seed, 1 + draw.below(64) as u64);
                    *counts.entry("small").or_default() += 1;
                }
            }
        }
    }
    while !pending.is_empty() && own.chance(90) {
        wait_for_one(&parties, &mut pending, &mut own);
    }
    // What is left ends when its communicator goes.
}

fn wait_for_one(parties: &[Party], pending: &mut Vec<UnderWay>, own: &mut Draw) {
    if pending.is_empty() {
        return;
    }
    let (asked, handle) = pending.swap_remove(own.below(pending.len()));
    if own.chance(50) {
        let _ = handle.test();
    }
    let (how, memory) = handle.wait();
    how.unwrap();
    check(parties, asked, &memory);
}

fn judge(parties: &[Party], asked: &[Asked], mut memories: Vec<Memory>) {
    for (&asked, memory) in asked.iter().zip(&memories) {
        check(parties, asked, memory);
    }
    // Registered memory is a stack.
    while memories.pop().is_some() {}
}

/// A small call: the sum of numbers that follow from rank and seed.
fn small(comm: &mut Communicator, seed: u64, elements: u64) {
    let number = |rank: u32, i: u64| {
        seed.wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(rank) << 32).wrapping_add(i * i)
    };
    let bytes = |rank: u32| (0..elements).flat_map(|i| number(rank, i).to_ne_bytes()).collect::<Vec<u8>>();
    let (input, mut output) = (bytes(comm.rank().0), vec![0; 8 * elements as usize]);
    let collective = small::Collective::Allreduce;
    let call = small::Call { collective, elements, dtype: Dtype::U64, op: Op::Sum };
    comm.small(&call, &mut small::Buffers::apart(&input, &mut output)).unwrap();
    let world = comm.world();
    let sum = |i| (0..world).map(|rank| number(rank, i)).fold(0, u64::wrapping_add);
    let expected: Vec<u8> = (0..elements).flat_map(|i| sum(i).to_ne_bytes()).collect();
    assert!(
        output == expected,
        "small, seed {seed}, {elements} elements at rank {:?}",
        RankId(comm.rank().0)
    );
    compared(1, elements);
}

fn options() -> Options {
    let patience = Duration::from_secs(120);
    Options { late: patience, stalled: patience, ..Options::default() }
}

#[test]
fn no_element_is_wrong() {
    let (seed, seconds) = (draw::seed(), seconds());
    let mut draw = Draw::new(seed, 77);
    let count = 12 + (seconds / 4).min(200) as usize;
    let (whole, half) = (pool(RANKS, count, &mut draw), pool(RANKS / 2, count / 2, &mut draw));
    let began = Instant::now();
    let all = Communicator::threads(RANKS, &options()).unwrap();
    let (whole, half) = (&whole, &half);
    let counts = std::thread::scope(|scope| {
        let rank = |mut base: Communicator| {
            scope.spawn(move || {
                let mut counts = Counts::new();
                let mut told = 0;
                for number in 0.. {
                    let minutes = began.elapsed().as_secs() / 60;
                    if minutes > std::mem::replace(&mut told, minutes) && base.rank().0 == 0 {
                        tell(began);
                    }
                    let goes_on = [u8::from(began.elapsed() < Duration::from_secs(seconds))];
                    // Rank 0's clock counts.
                    if base.gather("whether it goes on", &goes_on).unwrap()[0] == [0] {
                        break;
                    }
                    epoch(&mut base, whole, half, seed.wrapping_add(number), &mut counts);
                    *counts.entry("epochs").or_default() += 1;
                }
                counts
            })
        };
        let threads: Vec<_> = all.into_iter().map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).next_back().unwrap()
    });
    println!("seed {seed}, {} + {} plans, calls of a rank: {counts:?}", whole.len(), half.len());
    tell(began);
    assert!(counts.len() > 1 && COMPARED.iter().all(|count| count.load(Ordering::Relaxed) > 0));
}

fn tell(began: Instant) {
    let [calls, elements] = COMPARED.each_ref().map(|count| count.load(Ordering::Relaxed));
    println!(
        "{:.0?}: {calls} results of calls at {RANKS} ranks, {elements} elements compared, none wrong",
        began.elapsed()
    );
}
