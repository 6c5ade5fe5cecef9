//! `rcc run` and `rcc bench`: real processes, real results.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{RING, command, file, finish, folder, rcc};
use serde_json::Value;

const FIELDS: [&str; 14] = [
    "algbw_gbps",
    "algorithm",
    "busbw_gbps",
    "bytes",
    "chosen",
    "collective",
    "count",
    "dtype",
    "in_place",
    "op",
    "ranks",
    "schedule",
    "time_us",
    "wrong",
];

fn fields(row: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn a_run_says_what_ran_and_that_it_was_right() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    rcc(&["run", &ring, "-n", "3", "--bytes", "64K", "--iterations", "3", "--warmup", "1"])
        .ends(0)
        .shows("ring (allreduce)")
        .shows("16384 x f32")
        .shows("out of place")
        .shows("in place")
        .shows("proved for all ranks");
}

#[test]
fn json_rows() {
    let ran =
        rcc(&["run", "std::allreduce::ring", "-n", "4", "--bytes", "4000", "--iterations", "2", "--json"])
            .ends(0);
    let document = ran.json();
    let rows = document.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, in_place) in rows.iter().zip([false, true]) {
        assert_eq!(fields(row), FIELDS);
        assert_eq!(row["in_place"], in_place);
        assert_eq!(
            (row["count"].as_u64(), row["bytes"].as_u64(), row["wrong"].as_u64()),
            (Some(1000), Some(4000), Some(0))
        );
        // 2(n-1)/n of what the caller sees, and size over time in 10^9 bytes.
        let number = |name: &str| row[name].as_f64().unwrap();
        assert!((number("busbw_gbps") - 1.5 * number("algbw_gbps")).abs() < 1e-9);
        assert!((number("algbw_gbps") - 4000.0 / number("time_us") / 1e3).abs() < 1e-9);
    }
}

/// Counts of every collective as nccl-tests count them.
#[test]
fn sizes_of_every_collective() {
    let blocks = [
        ("allgather", 4),
        ("allreduce", 1),
        ("alltoall", 4),
        ("alltonext", 1),
        ("broadcast", 1),
        ("gather", 4),
        ("reduce", 1),
        ("reducescatter", 4),
        ("scatter", 4),
        ("sendrecv", 1),
    ];
    for (collective, blocks) in blocks {
        let arguments = [
            "run",
            "--collective",
            collective,
            "--bytes",
            "1000",
            "--iterations",
            "1",
            "--warmup",
            "0",
            "--json",
        ];
        let document = rcc(&arguments).ends(0).json();
        for row in document.as_array().unwrap() {
            let count = 250 / blocks;
            assert_eq!(row["collective"], collective);
            assert_eq!(row["count"].as_u64(), Some(count), "{collective}");
            assert_eq!(row["bytes"].as_u64(), Some(count * blocks * 4), "{collective}");
            assert_eq!(row["wrong"].as_u64(), Some(0), "{collective}");
        }
    }
    // What is selected follows from the count where that is given.
    rcc(&["run", "--collective", "allreduce", "--count", "2", "--iterations", "1"])
        .ends(0)
        .shows("std::allreduce::one_shot");
    rcc(&["run", "--collective", "barrier", "--iterations", "2"]).ends(0).shows("barrier");
    // 1000 bytes are 62.5 elements for each of 4 blocks.
    rcc(&["run", "std::allgather::ring", "--bytes", "1000", "--iterations", "1"])
        .ends(0)
        .says("rounded down to 992 bytes");
}

#[test]
fn forms_types_and_operators() {
    let run = |arguments: &[&str]| {
        let all = [
            &["run", "-n", "3", "--iterations", "1", "--warmup", "0", "--count", "1009", "--json"],
            arguments,
        ]
        .concat();
        rcc(&all)
    };
    for (dtype, op) in
        [("f64", "prod"), ("f16", "max"), ("bf16", "avg"), ("i32", "min"), ("i64", "sum"), ("u8", "sum")]
    {
        let document = run(&["std::allreduce::ring", "--dtype", dtype, "--op", op]).ends(0).json();
        assert!(
            document
                .as_array()
                .unwrap()
                .iter()
                .all(|row| row["wrong"] == 0 && row["dtype"] == dtype && row["op"] == op)
        );
    }
    let forms = |arguments: &[&str]| -> Vec<Value> {
        run(arguments).ends(0).json().as_array().unwrap().iter().map(|row| row["in_place"].clone()).collect()
    };
    assert_eq!(forms(&["std::allgather::ring", "--in-place"]), [true]);
    assert_eq!(forms(&["std::allgather::ring", "--out-of-place"]), [false]);
    // An alltoall has no in-place form.
    assert_eq!(forms(&["std::alltoall::direct"]), [false]);
    run(&["std::alltoall::direct", "--in-place"]).ends(2).says("does not run in place");
    assert_eq!(forms(&["std::allreduce::ring", "--slots", "2", "--slot-bytes", "64"]), [false, true]);
    run(&["std::allreduce::ring", "--slot-bytes", "1"]).ends(2);
}

#[test]
fn levels_and_roots() {
    rcc(&["run", "std::allreduce::hierarchical", "--ranks", "2x2", "--bytes", "4K", "--iterations", "1"])
        .ends(0)
        .shows("as 2x2");
    rcc(&["run", "std::allreduce::hierarchical", "-n", "4"]).ends(2).says("2 levels");
    rcc(&["run", "std::broadcast::binomial", "--param", "root=2", "--bytes", "4K", "--iterations", "1"])
        .ends(0)
        .shows("root = 2");
}

#[test]
fn a_bench_has_the_columns_of_nccl_tests() {
    let ran = rcc(&[
        "bench",
        "std::allreduce::ring",
        "std::alltoall::direct",
        "-n",
        "2",
        "-b",
        "64",
        "-e",
        "4K",
        "--iterations",
        "2",
    ])
    .ends(0);
    let header = ran.out.lines().find(|line| line.contains("busbw")).expect("a header");
    let columns: Vec<&str> = header.trim_start_matches('#').split_whitespace().collect();
    let form = ["time", "algbw", "busbw", "#wrong"];
    assert_eq!(columns, [&["size", "count", "type", "redop"][..], &form, &form].concat());
    let rows: Vec<Vec<&str>> = (ran.out.lines().filter(|line| !line.starts_with('#')))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 6, "{}", ran.out);
    assert!(rows.iter().all(|row| row.len() == 12), "{}", ran.out);
    assert_eq!((rows[0][0], rows[1][0], rows[2][0]), ("64", "512", "4096"));
    assert!(rows[3].contains(&"N/A") && rows[3][3] == "none");
    assert!(ran.out.contains("# Out of bounds values : 0 OK"));

    let ran = rcc(&[
        "bench",
        "--collective",
        "allreduce",
        "-n",
        "4",
        "-b",
        "8",
        "-e",
        "8M",
        "-f",
        "1024",
        "--iterations",
        "1",
        "--json",
    ])
    .ends(0);
    let document = ran.json();
    let rows = document.as_array().unwrap();
    assert!(rows.iter().all(|row| fields(row) == FIELDS));
    let algorithms: BTreeSet<&str> = rows.iter().map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert!(algorithms.len() > 1, "one algorithm for 8 bytes and for eight megabytes: {algorithms:?}");
}

#[test]
fn algorithms_that_do_not_fit_are_left_out_of_a_bench_and_named() {
    let ran =
        rcc(&["bench", "std::allgather", "-n", "3", "-b", "96", "-e", "96", "--iterations", "1"]).ends(0);
    assert!(ran.err.contains("skipped") && ran.err.contains("recursive_doubling"), "{}", ran.err);
    rcc(&["bench", "std::allgather::recursive_doubling", "-n", "3", "-b", "96", "-e", "96"])
        .ends(1)
        .says("coll::excluded");
}

#[test]
fn more_memory_than_there_is() {
    rcc(&["run", "std::allreduce::ring", "--bytes", "64T"]).ends(3).says("memory");
    rcc(&["run", "std::allreduce::ring", "--count", "18446744073709551615"]).ends(2).says("addressed");
}

#[test]
fn more_ranks_than_the_soft_limit_of_open_files() {
    let limited = |limit: &str| {
        let mut run = Command::new("sh");
        run.args(["-c", &format!("ulimit {limit} 40; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_rcc")]);
        run.args(["run", "std::allreduce::ring", "-n", "16", "--bytes", "1K", "--iterations", "1"]);
        finish(run)
    };
    limited("-S -n").ends(0);
    limited("-n").ends(3).says("Too many open files").says("ulimit -n");
}

/// A run that takes long, with its rank processes.
struct Long {
    child: Child,
    ranks: Vec<String>,
}

impl Long {
    fn start() -> Long {
        let arguments =
            ["run", "std::allreduce::ring", "-n", "3", "--bytes", "4M", "--iterations", "1000000"];
        let mut run = command(&arguments);
        run.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = run.spawn().unwrap();
        let pid = child.id();
        let ranks = || -> Vec<String> {
            let path = format!("/proc/{pid}/task/{pid}/children");
            fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_string).collect()
        };
        let start = Instant::now();
        while ranks().len() < 3 && start.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(10));
        }
        // Let them get into the midst of it.
        thread::sleep(Duration::from_millis(500));
        let ranks = ranks();
        assert_eq!(ranks.len(), 3, "the ranks did not start");
        Long { child, ranks }
    }

    /// Sends a signal, waits for the end, and checks that it came soon and left no process.
    fn signal(self, signal: &str, to: &str) -> Output {
        assert!(Command::new("kill").args([signal, to]).status().unwrap().success());
        let told = Instant::now();
        let output = self.child.wait_with_output().unwrap();
        let alive = |rank: &String| {
            let state = fs::read_to_string(format!("/proc/{rank}/stat")).unwrap_or_default();
            // A zombie of ours is not left: it is waited for by whoever inherits it.
            !state.is_empty() && !state.contains(") Z ")
        };
        while self.ranks.iter().any(alive) && told.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(10));
        }
        // Two seconds on a machine that is not busy with other tests.
        assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
        assert!(!self.ranks.iter().any(alive));
        output
    }
}

#[test]
fn an_interrupt_ends_the_run_and_leaves_nothing() {
    let long = Long::start();
    let launcher = long.child.id().to_string();
    let output = long.signal("-INT", &launcher);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_rank_that_dies_is_named() {
    let mut told = String::new();
    // It may die while all compare results or come to the next call: then there is no line to tell.
    for _ in 0..5 {
        let long = Long::start();
        let second = long.ranks[1].clone();
        let output = long.signal("-KILL", &second);
        assert_eq!(output.status.code(), Some(3));
        told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("rank 1 died: killed by SIGKILL"), "{told}");
        if told.contains("ring.coll:") {
            return;
        }
    }
    panic!("no rank says where it waits: {told}");
}

#[test]
fn ranks_do_not_outlive_their_launcher() {
    let long = Long::start();
    let launcher = long.child.id().to_string();
    let output = long.signal("-KILL", &launcher);
    assert_eq!(output.status.signal(), Some(9));
}
