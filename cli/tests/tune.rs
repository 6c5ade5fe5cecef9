//! Measuring, and selecting by what was measured: `rcc tune`, `--tuning`, `rcc explain --collective`, `rcc cache`.

#![allow(clippy::disallowed_methods, reason = "tests write and read files")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use common::{command, file, finish, folder, rcc};
use plan::dtype::{Dtype, Op};
use rcc::collective::Collective;
use rcc::{Communicator, Options, StandardCall};
use serde_json::Value;

/// A tuning file by which an allreduce of 32 KiB among three ranks is a tree, the next best a ring.
const TREE: &str = r#"
format = 1
machine = "somewhere else"
cores = 2
[[row]]
collective = "allreduce"
ranks = 3
bytes = 32768
memory = "registered"
candidates = [
  { algorithm = "std::allreduce::ring", us = 20.0 },
  { algorithm = "std::allreduce::tree", us = 10.0, slice_bytes = 8192 },
]
[[row]]
collective = "allreduce"
ranks = 3
bytes = 32768
candidates = [ { algorithm = "std::allreduce::one_shot", us = 5.5, spread = 0.1 } ]
"#;

fn json(arguments: &[&str]) -> Value {
    rcc(&[arguments, &["--json"]].concat()).ends(0).json()
}

#[test]
fn what_is_measured_is_written_and_selected_by() {
    let folder = folder();
    let tuning = file(&folder, "tuning.toml", "");
    fs::remove_file(&tuning).unwrap();
    let quick = ["tune", "--quick", "--rounds", "2", "-o", &tuning];
    let first = ["--collective", "broadcast", "--collective", "reduce", "-n", "2", "-b", "8K"];
    let ran =
        rcc(&[&quick[..], &first].concat()).ends(0).says("measuring 4 calls, 2 rounds").says("at most 120 s");
    assert!(ran.out.contains("written to ") && ran.out.contains("broadcast"), "{}", ran.out);
    let text = fs::read_to_string(&tuning).unwrap();
    assert_eq!(text.matches("[[row]]").count(), 4);
    // Measured anew: those rows are replaced, and the others stay.
    let again = ["--collective", "reduce", "-n", "2", "-b", "8K,16K,20K", "--memory", "plain"];
    rcc(&[&quick[..], &again].concat())
        .ends(0)
        .says("measuring 2 calls")
        .says("note: 20 KiB is measured as 32 KiB, which calls of 16 KiB up to 128 KiB are selected for");
    let text = fs::read_to_string(&tuning).unwrap();
    assert_eq!((text.matches("[[row]]").count(), text.matches("\"reduce\"").count()), (5, 3));
    // The first candidate of a row is the one that is taken.
    let row = text
        .split("[[row]]")
        .find(|row| row.contains("\"reduce\"") && row.contains("\nbytes = 32768\n"))
        .unwrap();
    let fastest = row.split("algorithm = \"").nth(1).unwrap().split('"').next().unwrap();
    let explain = ["explain", "--collective", "reduce", "-n", "2", "-b", "16K", "--tuning", &tuning];
    let told = json(&explain);
    assert_eq!(told[0]["algorithm"], fastest);
    assert!(told[0]["because"].as_str().unwrap().contains("the fastest measured for 32 KiB"), "{told}");
    let folder = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(folder, 1, "nothing is left beside it");
}

#[test]
fn runs_take_what_the_file_says_and_explain_tells_why_the_others_do_not() {
    let folder = folder();
    let tuning = file(&folder, "tree.toml", TREE);
    let of = ["--collective", "allreduce", "-n", "3", "-b", "32K"];
    let with = ["--tuning", &tuning];
    let rows = json(&[&["run"], &of[..], &with, &["--iterations", "2"]].concat());
    assert_eq!((&rows[0]["algorithm"], &rows[0]["wrong"]), (&"std::allreduce::tree".into(), &0.into()));
    assert_eq!(rows[0]["chosen"]["slice_bytes"], 8192);
    // By the variable, too; and what is said otherwise counts more.
    let mut run = command(&[&["run"], &of[..], &["--json", "--iterations", "2"]].concat());
    let rows = finish({
        run.env("RCC_TUNING", &tuning);
        run
    })
    .ends(0)
    .json();
    assert_eq!(rows[0]["algorithm"], "std::allreduce::tree");
    let model = json(&[&["run"], &of[..], &["--iterations", "2", "--topology", "2-cores"]].concat());
    assert!(model[0]["chosen"]["algorithms"].as_array().unwrap().len() > 4);

    let told = json(&[&["explain"], &of[..], &with, &["--registered"]].concat());
    assert_eq!((&told[0]["algorithm"], &told[0]["time_us"]), (&"std::allreduce::tree".into(), &10.0.into()));
    let why = |name: &str| {
        let others = told[0]["others"].as_array().unwrap();
        let name = format!("std::allreduce::{name}");
        others.iter().find(|one| one["algorithm"] == name).map(|one| one["why"].as_str().unwrap().to_string())
    };
    assert_eq!(why("ring").unwrap(), "measured 20.00 us, 100.0 % longer");
    assert!(why("one_shot").unwrap().contains("not measured in"));
    rcc(&[&["explain"], &of[..], &with].concat())
        .ends(0)
        .shows("allreduce of 32 KiB among 3 ranks (f32, sum, plain memory) on ")
        .shows("  runs std::allreduce::one_shot: the fastest measured for 32 KiB: 5.50 us (")
        .shows("  not  std::allreduce::circulant");
    // Without: the model, and what a shape excludes.
    let told =
        rcc(&["explain", "--collective", "allreduce", "-n", "3", "-b", "32K", "--topology", "2-cores"])
            .ends(0);
    assert!(
        told.out.contains("predicted to be the fastest: ") && told.out.contains("swing: it requires"),
        "{}",
        told.out
    );
    rcc(&["explain", "--collective", "gather", "-n", "3", "-b", "4K"]).ends(0).shows("goes without a plan");
}

#[test]
fn explain_says_what_programs_get() {
    const RANKS: u32 = 3;
    let mut draw = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        draw ^= draw << 13;
        draw ^= draw >> 7;
        draw ^= draw << 17;
        draw % below
    };
    let collectives = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Broadcast,
        Collective::Reducescatter,
        Collective::Alltoall,
    ];
    let comms = Communicator::threads(RANKS, &Options::default().registered(1 << 20)).unwrap();
    let calls: Vec<(StandardCall, u64)> = (0..30)
        .map(|i| {
            let collective = collectives[i % collectives.len()];
            let bytes = (1 << (12 + next(14))) + next(1 << 12);
            let dtype = [Dtype::F32, Dtype::F64, Dtype::I8][next(3) as usize];
            let op = [Op::Sum, Op::Max, Op::Avg][next(3) as usize];
            let registered = next(2) == 0;
            let in_place =
                collective == Collective::Broadcast || (next(2) == 0 && collective.runs_in_place());
            let call = StandardCall::of_bytes(collective, RANKS, bytes, dtype);
            (StandardCall { op, registered, in_place, ..call }, bytes)
        })
        .filter(|(call, _)| !call.is_small(RANKS))
        .collect();
    let calls = &calls;
    let selected: Vec<Vec<(String, String)>> = std::thread::scope(|scope| {
        let select = |mut comm: Communicator| {
            let mut one = move |call: &StandardCall| {
                let algorithm = comm.select(call).unwrap();
                let plan = comm.runtime().plan(algorithm.plan_id());
                (plan.header.algorithm.clone(), plan.content_hash().to_string())
            };
            calls.iter().map(|(call, _)| one(call)).collect()
        };
        let threads: Vec<_> = comms.into_iter().map(|comm| scope.spawn(move || select(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for ((call, bytes), (algorithm, plan)) in calls.iter().zip(&selected[0]) {
        let StandardCall { collective, dtype, op, in_place, registered, .. } = call;
        let (ranks, bytes, op) = (RANKS.to_string(), bytes.to_string(), op.to_string());
        let mut arguments = vec!["explain", "--collective", collective.name(), "-n", &ranks, "-b", &bytes];
        arguments.extend(["--dtype", dtype.name(), "--op", &op]);
        arguments.extend(registered.then_some("--registered"));
        arguments.extend(in_place.then_some("--in-place"));
        let told = json(&arguments);
        assert_eq!(
            (&told[0]["algorithm"], &told[0]["plan"]),
            (&algorithm.as_str().into(), &plan.as_str().into()),
            "{arguments:?}"
        );
    }
}

#[test]
fn sizes_of_a_class_have_one_plan_and_explain_says_which_class() {
    let of = ["explain", "--collective", "allreduce", "-n", "2", "--topology", "2-cores"];
    let told = json(&[&of[..], &["-b", "16K,20001,100K,128K"]].concat());
    let plan = |at: usize| (&told[at]["plan"], &told[at]["selected_for"], &told[at]["slot_bytes"]);
    assert_eq!((plan(0), plan(1)), (plan(1), plan(2)));
    assert_eq!(
        (&told[0]["selected_for"], &told[3]["selected_for"]),
        (&(32 << 10).into(), &(256 << 10).into())
    );
    rcc(&[&of[..], &["-b", "100K"]].concat())
        .ends(0)
        .shows("allreduce of 100 KiB among 2 ranks")
        .shows("  selected for 32 KiB, as all calls of 16 KiB up to 128 KiB");
    rcc(&[&of[..], &["-b", "1G"]].concat())
        .ends(0)
        .shows("selected for 64 MiB, as all calls of 64 MiB and more");
    // Where whole elements of each block are no more than that.
    rcc(&["explain", "--collective", "alltoall", "-n", "4", "-b", "4111"])
        .ends(0)
        .shows("goes without a plan");
}

/// A file that is only looked for counts on the machine that it is of; variables that are not text are told, and files may have any name.
#[test]
fn what_was_measured_elsewhere_is_told() {
    let folder = folder();
    fs::create_dir(folder.path().join("rcc")).unwrap();
    let place = file(&folder, "rcc/tuning.toml", TREE.replace("somewhere else", "no such machine"));
    let explain = |name: &str, value: &OsStr| {
        let mut command =
            command(&["explain", "--collective", "allreduce", "-n", "3", "-b", "32K", "--registered"]);
        command.env_remove("RCC_TUNING").env(name, value);
        finish(command)
    };
    let found = explain("XDG_CONFIG_HOME", folder.path().as_os_str()).ends(0);
    assert!(found.out.contains("predicted to be the fastest"), "{}", found.out);
    found.says("tuning.toml is passed over: it is of `no such machine`, and this is `");
    explain("RCC_TUNING", place.as_ref())
        .ends(0)
        .says("tuning.toml is used, since it is named")
        .shows("runs std::allreduce::tree");
    let strange = OsString::from_vec([folder.path().as_os_str().as_bytes(), b"/caf\xe9.toml"].concat());
    fs::write(&strange, TREE).unwrap();
    explain("RCC_TUNING", &strange).ends(0).shows("runs std::allreduce::tree");
    let error = explain("RCC_LOG", OsStr::from_bytes(b"\xff"));
    error.ends(2).says("the value of RCC_LOG is not text in UTF-8");
    fs::write(&place, vec![b' '; (4 << 20) + 1]).unwrap();
    explain("RCC_TUNING", place.as_ref()).ends(2).says("it has more than 4 MiB");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let bad = file(&folder, "bad.toml", "format = 1\ncores = 2\nsurprise = 3\n");
    let gone = folder.path().join("gone.toml");
    let gone = gone.to_str().unwrap();
    let run = ["run", "--collective", "allreduce", "-n", "2", "-b", "8K"];
    rcc(&[&run[..], &["--tuning", &bad]].concat()).ends(2).says("bad.toml cannot be used").says("surprise");
    rcc(&[&run[..], &["--tuning", gone]].concat()).ends(2).says("gone.toml cannot be used");
    let mut by_variable = command(&run);
    by_variable.env("RCC_TUNING", &bad);
    finish(by_variable).ends(2).says("RCC_TUNING");
    rcc(&["tune", "--collective", "alreduce"]).ends(2).says("did you mean `allreduce`?");
    rcc(&["tune", "--collective", "barrier"]).ends(2).says("nothing is selected for barrier");
    rcc(&["tune", "-n", "0"]).ends(2);
    for (size, said) in [("8K,0", "0 B"), ("4K", "4 KiB")] {
        rcc(&["tune", "-b", size])
            .ends(2)
            .says(&format!("nothing is selected for {said}: calls of at most 4 KiB go without a plan"));
    }
    rcc(&["explain", "--collective", "alltoall", "--in-place"])
        .ends(2)
        .says("alltoall does not run in place");
    rcc(&["explain", "--collective", "allreduce", "--blocks", "2"])
        .ends(2)
        .says("--blocks is for an algorithm");
    rcc(&["explain", "--collective", "reduce", "-n", "2", "--param", "root=2"])
        .ends(2)
        .says("ranks are 0 to 1");
    rcc(&["explain", "--collective", "allreduce", "--algorithm", "ring"])
        .ends(2)
        .says("--algorithm is for an algorithm");
}

#[test]
fn the_cache_is_shown_and_cleared() {
    let folder = folder();
    let plans = folder.path().join("plans");
    let cache = |more: &[&str]| {
        let mut command = command(&[&["cache"], more].concat());
        command.env("RCC_CACHE_DIR", &plans);
        finish(command)
    };
    cache(&[]).ends(0).shows("plans: 0 plans, 0 B");
    fs::create_dir(&plans).unwrap();
    let key = "0a".repeat(32);
    fs::write(plans.join(format!("{key}.cached")), [0; 1024]).unwrap();
    fs::write(plans.join(format!("{key}.123-0.part")), [0; 10]).unwrap();
    let others = ["mine.txt", "mine.cached", "big.iso.part", "00.1-0.part"];
    for name in others {
        fs::write(plans.join(name), "not a plan").unwrap();
    }
    assert_eq!(cache(&["--json"]).ends(0).json()["entries"], 1);
    cache(&["clear"]).ends(0).shows("1 plan, 1 KiB removed");
    assert_eq!(fs::read_dir(&plans).unwrap().count(), others.len(), "what is not ours stays");
    rcc(&["cache"]).ends(2).says("RCC_CACHE_DIR is empty");
}
