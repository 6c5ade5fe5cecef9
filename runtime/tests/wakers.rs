//! What the user's own code does when a call ends: wakers, and buffers that are dropped with their call. They run outside of all
//! communicators: they may panic, make calls, wait for other calls, and split.

#![allow(clippy::disallowed_methods, reason = "a deadline of the test's own")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use plan::verify::VerifiedPlan;
use ranks::{LONG, checked, fill, options, shape, together, wrong};
use rcc_runtime::comm::{Communicator, Handle, Options, PlanId};
use rcc_runtime::exec::buffers::Memory;

/// Does something once: when it is woken, or when it is dropped.
struct Once(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Once {
    fn new(work: impl FnOnce() + Send + 'static) -> Once {
        Once(Mutex::new(Some(Box::new(work))))
    }

    fn run(&self) {
        let work = self.0.lock().unwrap().take();
        work.into_iter().for_each(|work| work());
    }
}

impl Wake for Once {
    fn wake(self: Arc<Self>) {
        self.run();
    }
}

/// Buffers that do something when they are dropped.
struct Buffered(Memory, Once);

impl Drop for Buffered {
    fn drop(&mut self) {
        self.1.run();
    }
}

fn ring(n: u32) -> Arc<VerifiedPlan> {
    Arc::new(plans::ring(n))
}

fn progress() -> Options {
    Options { progress: true, in_flight: 4, ..options(LONG) }
}

/// Memory filled for a call of 3000 elements.
fn filled(comm: &mut Communicator, id: PlanId) -> Memory {
    let (plan, rank) = (Arc::clone(comm.plan(id)), comm.rank());
    let mut memory = comm.memory(id, shape(3000)).unwrap();
    fill(&plan, rank, shape(3000), 7, &mut memory);
    memory
}

fn started(comm: &mut Communicator, id: PlanId) -> Handle<Memory> {
    let memory = filled(comm, id);
    comm.start(id, shape(3000), memory).unwrap()
}

/// A call whose buffers are dropped when it has ended.
fn let_go(comm: &mut Communicator, id: PlanId, memory: Memory, work: impl FnOnce() + Send + 'static) {
    let buffered = Buffered(memory, Once::new(work));
    drop(comm.start_with(id, shape(3000), buffered, |all| Ok(all.0.buffers())).unwrap());
}

fn right(handle: Handle<Memory>, plan: &VerifiedPlan, rank: plan::ids::RankId) {
    let (how, memory) = handle.wait();
    how.unwrap();
    assert_eq!(wrong(plan, rank, shape(3000), 7, &memory), 0);
}

/// Rank 0's first call is under way, and wakes `waker` when it ends; the others make it after that.
fn wakes(comm: &mut Communicator, id: PlanId, waker: Arc<Once>, gate: &Gate) {
    if comm.rank().0 > 0 {
        gate.pass();
        checked(comm, id, shape(3000), 7).unwrap();
        return;
    }
    let mut handle = pin!(started(comm, id));
    let waker = Waker::from(waker);
    assert!(matches!(handle.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    // The handle goes; the call and its waker stay.
    gate.open();
}

/// Others pass after it was opened.
#[derive(Default)]
struct Gate(Mutex<bool>, std::sync::Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let closed = self.1.wait_while(self.0.lock().unwrap(), |open| !*open);
        drop(closed.unwrap());
    }
}

fn soon<T>(heard: &Receiver<T>) -> T {
    heard.recv_timeout(LONG / 3).expect("what was to happen when the call ended has not")
}

#[test]
fn a_waker_that_panics_ends_nothing() {
    let (gate, later) = (Gate::default(), Gate::default());
    let (tell, heard) = channel();
    let tell = Mutex::new(tell);
    together(3, &progress(), |mut comm| {
        let plan = ring(3);
        let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
        let tell: Sender<()> = tell.lock().unwrap().clone();
        let panics = Once::new(move || {
            tell.send(()).unwrap();
            panic!("a waker that panics, for a test");
        });
        wakes(&mut comm, id, Arc::new(panics), &gate);
        // The thread that drives calls is still there.
        for _ in 0..3 {
            let handle = started(&mut comm, id);
            let began = Instant::now();
            while !handle.is_done() {
                assert!(began.elapsed() < LONG / 3, "nobody drives it");
                std::hint::spin_loop();
            }
            right(handle, &plan, rank);
        }
        let mut child = comm.duplicate().unwrap();
        let same = child.open(&plan).unwrap();
        checked(&mut child, same, shape(100), 1).unwrap();
        comm.barrier().unwrap();
        // Buffers that panic, of a call that its owner or that thread drives to its end.
        if rank.0 == 0 {
            let memory = filled(&mut comm, id);
            let_go(&mut comm, id, memory, || panic!("buffers that panic, for a test"));
            later.open();
        } else {
            later.pass();
            checked(&mut comm, id, shape(3000), 7).unwrap();
        }
        checked(&mut comm, id, shape(100), 1).unwrap();
        comm.barrier().unwrap();
        assert!(comm.failure().is_none());
    });
    assert_eq!(heard.try_iter().count(), 1);
}

#[test]
fn a_waker_makes_calls_and_splits() {
    let gate = Gate::default();
    let all = Communicator::threads(3, &progress()).unwrap();
    std::thread::scope(|scope| {
        for mut comm in all {
            let gate = &gate;
            scope.spawn(move || {
                let (plan, rank) = (ring(3), comm.rank());
                let id = comm.open(&plan).unwrap();
                let (tell, heard) = channel();
                let (give, given) = channel::<Communicator>();
                let later = move |mut comm: Communicator| {
                    let handle = started(&mut comm, id);
                    checked(&mut comm, id, shape(500), 3).unwrap();
                    right(handle, &plan, rank);
                    let mut child = comm.split(Some(0), 0).unwrap().unwrap();
                    let same = child.open(&plan).unwrap();
                    checked(&mut child, same, shape(500), 4).unwrap();
                    comm.barrier().unwrap();
                };
                if rank.0 > 0 {
                    wakes(&mut comm, id, Arc::new(Once::new(|| ())), gate);
                    return later(comm);
                }
                // Rank 0 does all of it in the waker.
                let waker = Once::new(move || {
                    later(given.recv().unwrap());
                    tell.send(()).unwrap();
                });
                wakes(&mut comm, id, Arc::new(waker), gate);
                give.send(comm).unwrap();
                soon(&heard);
            });
        }
    });
}

/// Where the owner waits for something else: a barrier, a call, an agreement. What it drops meanwhile waits for another call of the same
/// communicator, and the peer comes only when it has.
#[test]
fn buffers_that_wait_for_another_call_when_they_are_dropped() {
    for progress in [false, true] {
        for way in 0..3 {
            let (tell, heard) = channel();
            let (tell, heard, gate) = (Mutex::new(Some(tell)), Mutex::new(heard), Gate::default());
            together(2, &Options { progress, ..self::progress() }, |mut comm| {
                let plan = ring(2);
                let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
                let mut child = comm.duplicate().unwrap();
                let same = child.open(&plan).unwrap();
                if rank.0 == 0 {
                    let (tell, other) = (tell.lock().unwrap().take().unwrap(), Arc::clone(&plan));
                    let (give, given) = channel();
                    // (Memory is made while no call is under way: else that waits for a call to end.)
                    let [a, b, c] = [(); 3].map(|()| filled(&mut comm, id));
                    let_go(&mut comm, id, a, move || {
                        let handles: [Handle<Memory>; 2] = given.recv().unwrap();
                        handles.into_iter().for_each(|handle| right(handle, &other, rank));
                        tell.send(()).unwrap();
                    });
                    let handles = [comm.start(id, shape(3000), b), child.start(same, shape(3000), c)];
                    give.send(handles.map(Result::unwrap)).unwrap();
                    gate.open();
                } else {
                    // The handle is dropped before its call ends.
                    gate.pass();
                    checked(&mut comm, id, shape(3000), 7).unwrap();
                    checked(&mut comm, id, shape(3000), 7).unwrap();
                    checked(&mut child, same, shape(3000), 7).unwrap();
                    soon(&heard.lock().unwrap());
                }
                match way {
                    0 => comm.barrier().unwrap(),
                    1 => checked(&mut comm, id, shape(100), 1).unwrap(),
                    _ => drop(comm.open(&plan).unwrap()),
                }
                checked(&mut comm, id, shape(100), 2).unwrap();
            });
        }
    }
}

/// One thread that holds several ranks: a wait in one drives the others, and what ends there is told outside of both.
#[test]
fn what_ends_elsewhere_is_told_outside_of_both() {
    let mut all = Communicator::one_thread(2, &Options { in_flight: 4, ..options(LONG) }).unwrap();
    let plan = ring(2);
    let ids: Vec<PlanId> = std::thread::scope(|scope| {
        let open = |comm| scope.spawn(|| Communicator::open(comm, &plan).unwrap());
        let threads: Vec<_> = all.iter_mut().map(open).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (tell, heard) = channel();
    let (give, given) = channel::<Handle<Memory>>();
    // The first call is short, the others are long: it ends while rank 0 is inside of its own communicator, and looks after rank 1's.
    let long = shape(200_000);
    let memories = [0, 0, 1, 1].map(|at: usize| all[at].memory(ids[at], long).unwrap());
    let small = [0, 1].map(|at: usize| filled(&mut all[at], ids[at]));
    let [first, other] = small;
    let_go(&mut all[1], ids[1], other, move || {
        given.recv().unwrap().wait().0.unwrap();
        tell.send(()).unwrap();
    });
    let first = all[0].start(ids[0], shape(3000), first).unwrap();
    let [a, b, c, d] = memories;
    let [a, b] = [a, b].map(|memory| all[0].start(ids[0], long, memory).unwrap());
    let [c, d] = [c, d].map(|memory| all[1].start(ids[1], long, memory).unwrap());
    give.send(a).unwrap();
    [b, c, d].into_iter().for_each(|handle| handle.wait().0.unwrap());
    right(first, &plan, all[0].rank());
    assert_eq!(heard.recv_timeout(Duration::ZERO), Ok(()));
}
