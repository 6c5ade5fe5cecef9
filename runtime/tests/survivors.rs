//! Ranks as processes that make communicators of their own: mismatches are told to all of them, a killed one is named by all others soon, wherever it
//! was, and those that are left go on without it.
//!
//! This executable plays two parts: a rank (with `RANK` as its first argument), and the tests.

#![allow(clippy::disallowed_methods, reason = "waits for processes")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use plan::dtype::{Dtype, Op};
use plan::verify::VerifiedPlan;
use ranks::{checked, options, shape};
use rcc_runtime::bootstrap::reserve::Reserved;
use rcc_runtime::bootstrap::{Secret, Settings};
use rcc_runtime::comm::{Communicator, Options, PlanId};
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::Shape;

const RANK: &str = "__rank";
const WORLD: u32 = 4;
/// For how long ranks wait for each other where nobody is missing; and within which time they must hear of who is.
const LONG: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(10);
/// For how long they wait for one that does not come.
const LATE: Duration = Duration::from_millis(500);

/// What a rank says in the end: what its communicator was ended by, and the world that was left.
type Said = (Option<Error>, Option<(u32, u32)>);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == RANK) {
        be_rank(&arguments[2], arguments[3].parse().unwrap(), &arguments[4], &arguments[5]);
        return;
    }
    let mut tests = Vec::new();
    for what in ["count", "type", "operator", "collective", "order", "barrier", "open", "split"] {
        tests.push(Trial::test(format!("another_{what}"), move || another(what)));
    }
    tests.push(Trial::test("one_rank_is_missing", one_is_missing));
    for place in
        ["in_a_call", "between_calls", "at_a_barrier", "opening", "splitting", "in_a_small_call", "any_time"]
    {
        for victim in [0, 2] {
            let name = format!("rank_{victim}_is_killed_{place}");
            tests.push(Trial::test(name, move || killed(place, victim)));
        }
    }
    for place in ["shrinking", "shrinking_at_any_time"] {
        tests.push(Trial::test(format!("a_second_one_is_killed_{place}"), move || killed_again(place)));
    }
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn die() -> ! {
    // SAFETY: ends this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("nobody survives that")
}

/// Dies some time from now, whatever it does then.
fn die_after(micros: u64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_micros(micros));
        die();
    });
}

fn be_rank(scenario: &str, rank: u32, address: &str, secret: &str) {
    let settings = Settings::new(rank, WORLD, address, Secret::new(secret).unwrap()).unwrap();
    let late = if scenario == "missing" { LATE } else { LONG };
    let options = Options { late, stalled: LONG, ..options(LONG) };
    let mut comm = Communicator::connect(&settings, options).unwrap();
    let all = [plans::ring(WORLD), plans::fold_at_root(WORLD, true)].map(Arc::new);
    let ids = [comm.open(&all[0]).unwrap(), comm.open(&all[1]).unwrap()];
    checked(&mut comm, ids[0], shape(100), 1).unwrap();
    comm.barrier().unwrap();
    let parts: Vec<&str> = scenario.split(':').collect();
    let victim = parts.get(1).and_then(|v| v.parse().ok()) == Some(rank);
    let second = parts.get(2).and_then(|v| v.parse().ok()) == Some(rank);
    let delay = u64::from(std::process::id()) * 7919 % 3000;
    let ended = match parts[0] {
        "another" => differ(&mut comm, &all, ids, parts[1]),
        "missing" => {
            if rank == 1 {
                std::thread::sleep(LATE * 4);
            }
            checked(&mut comm, ids[0], shape(10), 2)
        }
        place => {
            if victim {
                meet_its_end(&mut comm, &all, ids, place, delay);
            }
            go_on(&mut comm, &all, ids, place)
        }
    };
    let ended = ended.and_then(|()| comm.barrier()).and_then(|()| checked(&mut comm, ids[0], shape(9), 9));
    let mut said: Said = (ended.err(), None);
    if said.0.as_ref().is_some_and(|error| error.kind == Kind::PeerDied) {
        if second && parts[0] == "shrinking" {
            die();
        }
        if second {
            die_after(delay);
        }
        let mut left = comm.shrink().unwrap();
        if second {
            std::thread::sleep(LONG);
        }
        // Where another one died after all had agreed, it is found out here, and once more left behind.
        if go_on_as(&mut left).is_err() {
            left = left.shrink().unwrap();
            go_on_as(&mut left).unwrap();
        }
        said.1 = Some((left.rank().0, left.world()));
    }
    println!("{}", serde_json::to_string(&said).unwrap());
}

/// Calls of those that are left.
fn go_on_as(left: &mut Communicator) -> Result<(), Error> {
    let plan = Arc::new(plans::ring(left.world()));
    let id = left.open(&plan)?;
    for seed in 0..20 {
        checked(left, id, shape(seed * 50), seed)?;
    }
    left.barrier()
}

/// Rank 3 does something else.
fn differ(
    comm: &mut Communicator,
    all: &[Arc<VerifiedPlan>; 2],
    ids: [PlanId; 2],
    what: &str,
) -> Result<(), Error> {
    let usual = shape(1000);
    let odd = comm.rank().0 == 3;
    let call = |comm: &mut Communicator, id: PlanId, shape: Shape| {
        let mut memory = comm.memory(id, shape)?;
        comm.call(id, shape, &mut memory.buffers())
    };
    match what {
        _ if !odd => call(comm, ids[0], usual).and_then(|()| call(comm, ids[1], usual)),
        "count" => call(comm, ids[0], Shape { elements: 999, ..usual }),
        "type" => call(comm, ids[0], Shape { dtype: Dtype::U32, ..usual }),
        "operator" => call(comm, ids[0], Shape { op: Op::Prod, ..usual }),
        "collective" => call(comm, ids[1], usual),
        "order" => call(comm, ids[1], usual).and_then(|()| call(comm, ids[0], usual)),
        "barrier" => comm.barrier(),
        "open" => comm.open(&all[0]).map(|_| ()),
        "split" => comm.split(Some(1), 0).map(|_| ()),
        _ => panic!("{what}?"),
    }
}

/// What the others do when one is killed.
fn go_on(
    comm: &mut Communicator,
    all: &[Arc<VerifiedPlan>; 2],
    ids: [PlanId; 2],
    place: &str,
) -> Result<(), Error> {
    match place {
        "at_a_barrier" => comm.barrier(),
        "opening" => comm.open(&all[0]).map(|_| ()),
        "splitting" => comm.split(Some(0), 0).map(|_| ()),
        "in_a_small_call" => loop {
            comm.small(&rcc_runtime::small::Call::BARRIER, &mut rcc_runtime::small::Buffers::none())?;
        },
        _ => (0..).try_for_each(|seed| checked(comm, ids[0], shape(1 + seed * 13 % 5000), seed)),
    }
}

/// What the victim does.
fn meet_its_end(
    comm: &mut Communicator,
    all: &[Arc<VerifiedPlan>; 2],
    ids: [PlanId; 2],
    place: &str,
    delay: u64,
) {
    match place {
        "in_a_call" => {
            let mut memory = comm.memory(ids[0], shape(1)).unwrap();
            let _ = comm.scope(|scope| {
                let _ = scope.start(ids[0], shape(1), memory.buffers())?;
                die();
                #[expect(unreachable_code, reason = "it says what the closure returns")]
                Ok(())
            });
        }
        "between_calls" => {
            (0..3).for_each(|seed| checked(comm, ids[0], shape(1 + seed * 13 % 5000), seed).unwrap());
            die();
        }
        "at_a_barrier" | "opening" | "splitting" if delay.is_multiple_of(2) => die(),
        "opening" => {
            die_after(delay / 10);
            let _ = comm.open(&all[0]);
        }
        "any_time" | "in_a_small_call" | "shrinking" | "shrinking_at_any_time" => {
            die_after(delay);
            let _ = go_on(comm, all, ids, place);
        }
        _ => die(),
    }
    std::thread::sleep(LONG);
}

struct Job {
    ranks: Vec<Child>,
    _place: Reserved,
}

impl Job {
    fn start(scenario: &str) -> Job {
        let place = Reserved::new().unwrap();
        let secret = Secret::random().unwrap();
        let secret = std::str::from_utf8(secret.expose()).unwrap();
        let start = |rank: u32| {
            let mut command = Command::new("/proc/self/exe");
            command.args([RANK, scenario, &rank.to_string(), &place.address(), secret]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        Job { ranks: (0..WORLD).map(start).collect(), _place: place }
    }

    /// What each rank said; none for one that was killed.
    fn outcome(mut self, within: Duration) -> Vec<Option<Said>> {
        let began = Instant::now();
        let heard = |rank: &mut Child| {
            let mut text = String::new();
            rank.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            rank.wait().unwrap();
            serde_json::from_str(&text).ok()
        };
        let said = self.ranks.iter_mut().map(heard).collect();
        assert!(began.elapsed() < within, "it took {:?}", began.elapsed());
        said
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

fn another(what: &str) -> Result<(), Failed> {
    for said in Job::start(&format!("another:{what}")).outcome(SOON) {
        let (error, left) = said.ok_or("a rank said nothing")?;
        let error = error.ok_or("a rank was not told")?;
        assert_eq!((error.kind, left), (Kind::Mismatch, None), "{error}");
        assert!(error.culprits.contains(&3), "{error}");
        assert!(error.message.contains("rank 3"), "{error}");
    }
    Ok(())
}

fn one_is_missing() -> Result<(), Failed> {
    for said in Job::start("missing").outcome(SOON) {
        let (error, _) = said.ok_or("a rank said nothing")?;
        let error = error.ok_or("a rank was not told")?;
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[1][..]), "{error}");
    }
    Ok(())
}

fn killed(place: &str, victim: u32) -> Result<(), Failed> {
    let said = Job::start(&format!("{place}:{victim}")).outcome(SOON);
    for (rank, said) in (0..).zip(said) {
        if rank == victim {
            assert!(said.is_none());
            continue;
        }
        let (error, left) = said.ok_or_else(|| format!("rank {rank} said nothing"))?;
        let error = error.ok_or("a rank was not told")?;
        assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[victim][..]), "{error}");
        let place = rank - u32::from(rank > victim);
        assert_eq!(left, Some((place, WORLD - 1)));
    }
    Ok(())
}

/// Rank 1 dies, and then another while it is to shrink: the first that takes the word, as likely as not.
fn killed_again(place: &str) -> Result<(), Failed> {
    for second in [0, 2, 3] {
        let said = Job::start(&format!("{place}:1:{second}")).outcome(SOON);
        let alive: Vec<u32> = (0..WORLD).filter(|&rank| rank != 1 && rank != second).collect();
        for (place, rank) in (0..).zip(alive) {
            let (_, left) = said[rank as usize].clone().ok_or_else(|| format!("rank {rank} said nothing"))?;
            assert_eq!(left, Some((place, WORLD - 2)), "rank {rank}");
        }
    }
    Ok(())
}
