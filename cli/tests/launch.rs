//! A program as several ranks: they know who they are, end together, and leave nothing behind.

#![allow(clippy::disallowed_methods, reason = "tests read files, and time what they run")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Ran, command, finish, folder, rcc};
use runtime::bootstrap::{Bootstrap, Settings};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// `rcc launch` of a shell script.
fn shell(options: &[&str], script: &str) -> Ran {
    finish(of_shell(options, script))
}

fn of_shell(options: &[&str], script: &str) -> Command {
    command(&[&["launch"], options, &["--", "sh", "-c", script]].concat())
}

/// Waits until something holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose numbers are in the files of a folder, once there are so many.
fn pids(folder: &Path, count: usize) -> Vec<Pid> {
    let read = || -> Vec<Pid> {
        let files =
            fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        files
            .filter(|text| text.ends_with('\n'))
            .filter_map(|text| Pid::from_raw(text.trim().parse().ok()?))
            .collect()
    };
    until("all processes have started", || read().len() == count);
    read()
}

fn gone(pids: &[Pid]) {
    until("all processes are gone", || pids.iter().all(|&pid| test_kill_process(pid).is_err()));
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ranks_know_who_they_are() {
    let ran = shell(
        &["-n", "12", "--tag"],
        "echo $RCC_RANK $RCC_WORLD $RCC_LOCAL_RANK $RCC_RENDEZVOUS $RCC_SECRET; echo to errors >&2",
    )
    .ends(0);
    let lines: BTreeSet<&str> = ran.out.lines().collect();
    let rest: BTreeSet<&str> = lines.iter().map(|line| line.split_once(" 127.0.0.1:").unwrap().1).collect();
    assert_eq!(rest.len(), 1, "one port and one secret for all: {rest:?}");
    for rank in 0..12 {
        assert!(
            lines.iter().any(|line| line.starts_with(&format!("[{rank:2}] {rank} 12 {rank} "))),
            "{lines:?}"
        );
        assert!(ran.err.contains(&format!("[{rank:2}] to errors\n")));
    }
    let secret = |ran: &Ran| ran.out.split_whitespace().last().unwrap().to_string();
    let other = shell(&["-n", "1"], "echo $RCC_SECRET").ends(0);
    assert!(secret(&ran).len() == 64 && secret(&other).len() == 64 && secret(&ran) != secret(&other));
}

#[test]
fn arguments_pass_as_they_are() {
    let ran = rcc(&["launch", "-n", "1", "printf", "%s|", "--tag", "-n", "a b", "--"]).ends(0);
    assert_eq!(ran.out, "--tag|-n|a b|--|");
    rcc(&["launch", "-n", "2", "true"]).ends(0);
}

/// Not a test of its own: what a rank of the next one does.
#[test]
#[ignore = "a rank of another test"]
fn one_rank() {
    let mut bootstrap = Bootstrap::connect(&Settings::from_env().unwrap()).unwrap();
    let rank = bootstrap.rank() as u8;
    let all = bootstrap.gather("ranks", &[rank]).unwrap();
    assert_eq!(all, (0..bootstrap.world()).map(|rank| vec![rank as u8]).collect::<Vec<_>>());
}

#[test]
fn ranks_find_each_other() {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let ran = rcc(&["launch", "-n", "5", "--", own, "--exact", "one_rank", "--ignored"]).ends(0);
    assert_eq!(ran.out.matches("1 passed").count(), 5, "{}", ran.out);
}

#[test]
fn the_first_failure_ends_all_and_is_told() {
    let folder = folder();
    let at = folder.path().display();
    // What a rank has started itself is ended too.
    let script = format!(
        "sleep 60 & echo $! > {at}/c$RCC_RANK; echo $$ > {at}/p$RCC_RANK; \
         if [ $RCC_RANK = 2 ]; then while [ $(ls {at} | wc -l) -lt 8 ]; do :; done; exit 7; fi; wait"
    );
    let ran = shell(&["-n", "4"], &script).ends(7).says("rank 2 (process ").says("ended with status 7");
    assert!(ran.took < Duration::from_secs(20));
    gone(&pids(folder.path(), 8));
    shell(&["-n", "3"], "[ $RCC_RANK != 1 ] || kill -SEGV $$; sleep 60").ends(139).says("killed by SIGSEGV");
    shell(&["-n", "1"], "exit 255").ends(255).says("rank 0");
}

#[test]
fn who_does_not_end_when_asked_is_killed() {
    let ran =
        shell(&["-n", "3"], "trap '' TERM; [ $RCC_RANK != 0 ] || { sleep 0.2; exit 3; }; sleep 60; sleep 60");
    let ran = ran.ends(3).says("ended with status 3").says("killed, as they did not end when asked: 1, 2");
    assert!(ran.took > Duration::from_secs(5) && ran.took < Duration::from_secs(30));
}

#[test]
fn signals_are_passed_on() {
    let folder = folder();
    let at = folder.path().display();
    let start = |trap: &str| {
        let script = format!("trap '{trap}' TERM; echo $$ > {at}/$RCC_RANK; while :; do sleep 0.05; done");
        let child = of_shell(&["-n", "2"], &script).stderr(Stdio::piped()).spawn().unwrap();
        (child, pids(folder.path(), 2))
    };
    let (mut child, ranks) = start("exit 0");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0), "all ended well");
    gone(&ranks);
    fs::read_dir(folder.path()).unwrap().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    let (child, ranks) = start("exit 0");
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("killed by SIGINT"));
    gone(&ranks);
    fs::read_dir(folder.path()).unwrap().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    // The second does not ask any more.
    let (child, ranks) = start("true");
    signal(&child, Signal::TERM);
    thread::sleep(Duration::from_millis(300));
    assert!(ranks.iter().all(|&rank| test_kill_process(rank).is_ok()));
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(137));
    gone(&ranks);
}

#[test]
fn ranks_die_with_a_launcher_that_is_killed() {
    let folder = folder();
    let script = format!("echo $$ > {}/$RCC_RANK; exec sleep 60", folder.path().display());
    let mut child = of_shell(&["-n", "3"], &script).spawn().unwrap();
    let ranks = pids(folder.path(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    gone(&ranks);
}

#[test]
fn rank_0_reads_what_is_given() {
    let mut command = of_shell(&["-n", "2", "--tag"], "cat");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[0] one\n[0] two\n");
}

#[test]
fn output_of_many_ranks_is_whole_lines() {
    let ran = shell(
        &["-n", "8", "--tag"],
        "i=0; while [ $i -lt 500 ]; do printf 'rank %s ' $RCC_RANK; echo line $i; i=$((i+1)); done",
    );
    let ran = ran.ends(0);
    assert_eq!(ran.out.lines().count(), 4000);
    for rank in 0..8 {
        let own: Vec<&str> = ran.out.lines().filter(|line| line.starts_with(&format!("[{rank}] "))).collect();
        let expected: Vec<String> = (0..500).map(|i| format!("[{rank}] rank {rank} line {i}")).collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn a_closed_output_ends_who_writes_to_it() {
    let child = of_shell(&["-n", "2", "--tag"], "yes").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pinned_ranks_have_cpus_of_their_own() {
    let ran = shell(&["-n", "2", "--pin"], "grep Cpus_allowed_list /proc/self/status").ends(0);
    let lists: BTreeSet<&str> = ran.out.lines().collect();
    let all = shell(&["-n", "1"], "grep Cpus_allowed_list /proc/self/status").ends(0);
    let several = thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(lists.len(), if several { 2 } else { 1 }, "{}", ran.out);
    assert!(!several || !lists.contains(all.out.trim_end()));
}

#[test]
fn limits_are_those_of_the_caller() {
    let mut command = Command::new("sh");
    let rcc = env!("CARGO_BIN_EXE_rcc");
    command.args(["-c", &format!("ulimit -S -n 300; exec {rcc} launch -n 2 sh -c 'ulimit -S -n'")]);
    assert_eq!(finish(command).ends(0).out, "300\n300\n");
}

#[test]
fn ends_are_seen_where_the_caller_ignores_them() {
    let mut command = Command::new("bash");
    let rcc = env!("CARGO_BIN_EXE_rcc");
    command.args(["-c", &format!("trap '' CHLD; exec {rcc} launch -n 2 -- sh -c 'exit 9'")]);
    finish(command).ends(9).says("ended with status 9");
}

#[test]
fn what_cannot_be_started() {
    rcc(&["launch", "-n", "2"]).ends(2).says("PROGRAM");
    rcc(&["launch", "--", "true"]).ends(2).says("-n");
    rcc(&["launch", "-n", "0", "true"]).ends(2).says("0 is not in 1..=65536");
    rcc(&["launch", "-n", "2", "no-such-program-anywhere"])
        .ends(2)
        .says("cannot start no-such-program-anywhere");
    rcc(&["launch", "-n", "2", "/"]).ends(2).says("cannot start /");
}
