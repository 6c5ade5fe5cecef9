//! Ranks as processes: right results, and nothing left behind however a run ends.
//!
//! This executable plays three parts: a rank (started by `launch::run`, which re-executes it), a launcher that another
//! test can kill (`__launch`), and the tests.

#![allow(clippy::disallowed_methods, reason = "waits for processes, and looks for them in /proc")]

extern crate plan as rcc_plan;

mod plans;

use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use plan::dtype::{Dtype, Op};
use rcc_runtime::error::{Error, Kind, State};
use rcc_runtime::exec::Shape;
use rcc_runtime::job::{Inputs, Job, Report};
use rcc_runtime::launch::{self, Options, StopSignals};

const LAUNCH: &str = "__launch";

fn main() {
    if let Some(status) = launch::child_entry() {
        std::process::exit(status);
    }
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == LAUNCH) {
        std::process::exit(be_launcher(&arguments[2], &arguments[3], &arguments[4]));
    }
    let tests = vec![
        Trial::test("right_results", right_results),
        Trial::test("right_results_by_direct_access", right_results_by_direct_access),
        Trial::test("a_killed_rank_ends_the_run", || a_killed_rank_ends_the_run("ring")),
        Trial::test("a_killed_rank_ends_a_run_by_direct_access", || a_killed_rank_ends_the_run("pull_ring")),
        Trial::test("a_stopped_rank_is_named", || a_stopped_rank_is_named("ring")),
        Trial::test("a_stopped_rank_is_named_by_direct_access", || a_stopped_rank_is_named("pull_ring")),
        Trial::test("all_ranks_stopped", || stopped_with_nobody_to_see_it(3)),
        Trial::test("the_only_rank_stopped", || stopped_with_nobody_to_see_it(1)),
        Trial::test("an_ignored_signal_stays_ignored", an_ignored_signal_stays_ignored),
        Trial::test("a_file_size_limit", a_file_size_limit),
        Trial::test("ranks_die_with_their_launcher", ranks_die_with_their_launcher),
        Trial::test("an_interrupt_ends_the_run", || a_signal_ends_the_run(libc::SIGINT)),
        Trial::test("a_termination_ends_the_run", || a_signal_ends_the_run(libc::SIGTERM)),
        Trial::test("ranks_have_no_descriptors_but_theirs", ranks_have_no_descriptors_but_theirs),
        Trial::test("too_much_memory_is_refused", too_much_memory_is_refused),
        Trial::test("an_executable_that_is_no_rank", an_executable_that_is_no_rank),
    ];
    let mut args = Arguments::from_args();
    // One after the other: one of them counts the descriptors of this process.
    args.test_threads.get_or_insert(1);
    libtest_mimic::run(&args, tests).exit();
}

/// Runs the plan named with so many ranks; prints the ranks' processes, then the outcome.
fn be_launcher(plan: &str, ranks: &str, job: &str) -> i32 {
    let ranks = ranks.parse().expect("a number");
    let built = match plan {
        "ring" => plans::ring(ranks),
        "pull_ring" => plans::proved(plans::direct::pull_ring(ranks)),
        _ => panic!("no such plan: {plan}"),
    };
    let job: Job = serde_json::from_str(job).expect("a job");
    let stop = StopSignals::new().expect("signals");
    let started =
        |pids: &[u32]| println!("{}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
    let options = Options { stop: Some(stop.as_fd()), started: Some(started), ..Options::default() };
    let outcome = launch::run(&built, &job, &options);
    println!("{}", serde_json::to_string(&outcome).expect("an outcome"));
    if outcome.is_ok() { 0 } else { 3 }
}

/// A launcher that runs until something ends it.
struct Launcher {
    child: Child,
    output: BufReader<ChildStdout>,
    ranks: Vec<u32>,
}

impl Launcher {
    fn start(ranks: u32, job: &Job) -> Launcher {
        Launcher::start_as("ring", ranks, job, || Ok(()))
    }

    fn start_plan(plan: &str, ranks: u32, job: &Job) -> Launcher {
        Launcher::start_as(plan, ranks, job, || Ok(()))
    }

    /// With what is to be done to the process before it begins: system calls only.
    fn start_as(
        plan: &str,
        ranks: u32,
        job: &Job,
        before: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Launcher {
        let mut command = Command::new("/proc/self/exe");
        command.args([LAUNCH, plan, &ranks.to_string(), &serde_json::to_string(job).unwrap()]);
        // SAFETY: the caller's promise.
        unsafe { command.pre_exec(before) };
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let pids: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), ranks as usize);
        Launcher { child, output, ranks: pids }
    }

    fn send(&self, pid: u32, signal: i32) {
        // SAFETY: a signal to a process that this test has started.
        assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
    }

    /// Waits for the outcome; checks that nothing is left.
    fn outcome(mut self, within: Duration) -> (i32, Result<Report, Error>) {
        let began = Instant::now();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap().code().unwrap();
        assert!(began.elapsed() < within, "it took {:?}", began.elapsed());
        assert_gone(&self.ranks, Duration::ZERO);
        (status, serde_json::from_str(&rest).unwrap())
    }
}

fn alive(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']),
        Err(_) => false,
    }
}

fn assert_gone(pids: &[u32], within: Duration) {
    let began = Instant::now();
    while pids.iter().any(|&pid| alive(pid)) {
        assert!(began.elapsed() <= within, "processes are left behind");
        std::thread::yield_now();
    }
}

/// A run of the ring that lasts until something ends it.
fn endless(elements: u64) -> Job {
    let shape = Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    Job { iterations: u32::MAX, check: false, ..Job::new(shape) }
}

/// Waits until the ranks have made some calls; there is nothing to poll for from outside.
fn let_it_run() {
    std::thread::sleep(Duration::from_millis(400));
}

fn right_results() -> Result<(), Failed> {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    for (ranks, elements) in [(1, 5), (2, 0), (2, 1), (2, 100_003), (3, 1009), (4, 40_001)] {
        for (dtype, op, in_place) in
            [(Dtype::F32, Op::Sum, false), (Dtype::Bf16, Op::Avg, true), (Dtype::I64, Op::Max, true)]
        {
            let shape = Shape { elements, dtype, op, in_place };
            let job = Job { warmup: 1, iterations: 2, inputs: Inputs::Anew, ..Job::new(shape) };
            let report = launch::run(&plans::ring(ranks), &job, &Options::default())
                .map_err(|e| format!("{shape:?} on {ranks}: {e}"))?;
            assert_eq!(report.wrong, 0, "{:?}", report.first_wrong);
            assert_eq!(report.checked, 2 * u64::from(ranks) * elements);
            assert_eq!(report.times.len(), 2);
        }
    }
    assert_eq!(descriptors(), before, "descriptors are left open");
    Ok(())
}

fn right_results_by_direct_access() -> Result<(), Failed> {
    for plan in plans::all_direct(3).into_iter().chain(plans::all_blocks(2)) {
        for (elements, dtype) in [(0, Dtype::U8), (1, Dtype::F32), (40_009, Dtype::Bf16)] {
            let name = &plan.header.algorithm;
            for in_place in [false, true] {
                let forms = plan.header.forms;
                if !if in_place { forms.same } else { forms.disjoint } {
                    continue;
                }
                let shape = Shape { elements, dtype, op: Op::Sum, in_place };
                let job = Job { iterations: 2, inputs: Inputs::Anew, ..Job::new(shape) };
                let report = launch::run(&plan, &job, &Options::default())
                    .map_err(|e| format!("{name}: {shape:?}: {e}"))?;
                assert_eq!(report.wrong, 0, "{name}: {shape:?}: {:?}", report.first_wrong);
                assert!(report.checked > 0 || elements == 0);
            }
        }
    }
    Ok(())
}

fn a_killed_rank_ends_the_run(plan: &str) -> Result<(), Failed> {
    let launcher = Launcher::start_plan(plan, 4, &endless(1 << 16));
    let_it_run();
    launcher.send(launcher.ranks[1], libc::SIGKILL);
    let (status, outcome) = launcher.outcome(Duration::from_secs(2));
    assert_eq!(status, 3);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind, error.culprits.as_slice()), (Kind::PeerDied, &[1][..]), "{error}");
    let text = error.to_string();
    assert!(text.contains("rank 1 died: killed by SIGKILL"), "{text}");
    // Every other rank says at which line it waits.
    for rank in [0, 2, 3] {
        let position = error.others.iter().chain(&error.seen).find(|p| p.rank == rank).unwrap();
        match &position.state {
            State::At(places) => assert!(places[0].line.starts_with(plan), "{text}"),
            // Between two calls, or about to leave one: rank 1 had done its part of it.
            state => assert!(matches!(state, State::Outside | State::Finished), "{text}"),
        }
    }
    Ok(())
}

fn a_stopped_rank_is_named(plan: &str) -> Result<(), Failed> {
    let soon = Duration::from_millis(700);
    let job = Job { deadline: soon, ..endless(1 << 20) };
    let launcher = Launcher::start_plan(plan, 3, &job);
    let_it_run();
    launcher.send(launcher.ranks[2], libc::SIGSTOP);
    let (status, outcome) = launcher.outcome(Duration::from_secs(8));
    assert_eq!(status, 3);
    let error = outcome.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error.kind, Kind::Stalled | Kind::Late), "{text}");
    assert_eq!(error.culprits, [2], "{text}");
    assert!(text.contains("its process is stopped"), "{text}");
    Ok(())
}

/// Whoever could wait for a stopped rank is stopped too: the launcher must see it.
fn stopped_with_nobody_to_see_it(ranks: u32) -> Result<(), Failed> {
    let job = Job { deadline: Duration::from_millis(700), ..endless(1 << 20) };
    let launcher = Launcher::start(ranks, &job);
    let_it_run();
    launcher.ranks.iter().for_each(|&rank| launcher.send(rank, libc::SIGSTOP));
    let (status, outcome) = launcher.outcome(Duration::from_secs(8));
    assert_eq!(status, 3);
    let error = outcome.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, Kind::Stalled, "{text}");
    assert_eq!(error.culprits, (0..ranks).collect::<Vec<_>>(), "{text}");
    assert!(text.contains("its process is stopped"), "{text}");
    Ok(())
}

fn an_ignored_signal_stays_ignored() -> Result<(), Failed> {
    let launcher = Launcher::start_as("ring", 2, &endless(1 << 12), || {
        // SAFETY: a system call on plain numbers. This is what `nohup` does.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    });
    let_it_run();
    launcher.send(launcher.child.id(), libc::SIGHUP);
    launcher.ranks.iter().for_each(|&rank| launcher.send(rank, libc::SIGHUP));
    let_it_run();
    assert!(alive(launcher.child.id()) && launcher.ranks.iter().all(|&rank| alive(rank)));
    launcher.send(launcher.child.id(), libc::SIGTERM);
    let (status, outcome) = launcher.outcome(Duration::from_secs(2));
    assert_eq!((status, outcome.unwrap_err().kind), (3, Kind::Aborted));
    Ok(())
}

/// Shared memory beyond the limit for files is refused with an error, and not by a signal.
fn a_file_size_limit() -> Result<(), Failed> {
    let mut launcher = Command::new("/proc/self/exe");
    launcher.args([LAUNCH, "ring", "2", &serde_json::to_string(&endless(1 << 12))?]);
    let limit = || {
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        // SAFETY: a system call that reads a plain structure.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: it makes a system call only.
    unsafe { launcher.pre_exec(limit) };
    let output = launcher.output()?;
    let outcome: Result<Report, Error> = serde_json::from_slice(&output.stdout)?;
    let error = outcome.unwrap_err();
    assert_eq!((output.status.code(), error.kind), (Some(3), Kind::Resource), "{error}");
    assert!(error.message.contains("limit, 4096"), "{error}");
    Ok(())
}

fn ranks_die_with_their_launcher() -> Result<(), Failed> {
    let mut launcher = Launcher::start(3, &endless(1 << 12));
    let_it_run();
    assert!(launcher.ranks.iter().all(|&pid| alive(pid)));
    // One of them does not even run: it must die all the same.
    launcher.send(launcher.ranks[0], libc::SIGSTOP);
    launcher.send(launcher.child.id(), libc::SIGKILL);
    launcher.child.wait()?;
    assert_gone(&launcher.ranks, Duration::from_secs(2));
    Ok(())
}

fn a_signal_ends_the_run(signal: i32) -> Result<(), Failed> {
    let launcher = Launcher::start(3, &endless(1 << 12));
    let_it_run();
    launcher.send(launcher.child.id(), signal);
    let (status, outcome) = launcher.outcome(Duration::from_secs(2));
    assert_eq!(status, 3);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, Kind::Aborted, "{error}");
    Ok(())
}

fn ranks_have_no_descriptors_but_theirs() -> Result<(), Failed> {
    // One that this process has opened carelessly, and that its child inherits.
    let careless = std::fs::File::open("/dev/null")?;
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty())?;
    let launcher = Launcher::start(2, &endless(1 << 12));
    drop(careless);
    let_it_run();
    for &pid in &launcher.ranks {
        let mut names: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))?
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .map(|target| target.to_string_lossy().into_owned())
            .collect();
        names.retain(|name| !name.starts_with("/memfd:rcc-") && !name.starts_with("socket:"));
        // Its standard input and output; what it says on standard error goes where that of its launcher goes.
        let null = names.iter().filter(|name| *name == "/dev/null").count();
        assert!(null >= 2 && names.len() <= 3, "{names:?}");
    }
    launcher.send(launcher.child.id(), libc::SIGINT);
    let (status, _) = launcher.outcome(Duration::from_secs(2));
    assert_eq!(status, 3);
    Ok(())
}

fn too_much_memory_is_refused() -> Result<(), Failed> {
    let shape = Shape { elements: 1 << 42, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let error = launch::run(&plans::ring(2), &Job::new(shape), &Options::default()).unwrap_err();
    assert_eq!(error.kind, Kind::Resource);
    assert!(error.message.contains("for buffers"), "{error}");
    Ok(())
}

fn an_executable_that_is_no_rank() -> Result<(), Failed> {
    let shape = Shape { elements: 8, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let options = Options { program: Some("/bin/true".into()), ..Options::default() };
    let error = launch::run(&plans::ring(2), &Job::new(shape), &options).unwrap_err();
    assert_eq!(error.kind, Kind::PeerDied, "{error}");
    let options = Options { program: Some("/nowhere/at/all".into()), ..Options::default() };
    let error = launch::run(&plans::ring(2), &Job::new(shape), &options).unwrap_err();
    assert_eq!(error.kind, Kind::Resource, "{error}");
    Ok(())
}
