//! Bad usage ends with 2 and says what would be right.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use common::{RING, command, file, finish, folder, rcc};

#[test]
fn nothing_and_help() {
    rcc(&[]).ends(2).says("Usage");
    rcc(&["--help"]).ends(0).shows("check").shows("Exit status");
    rcc(&["--version"]).ends(0).shows("rcc 0");
    for name in ["check", "compile", "show", "run", "bench", "explain", "fmt", "launch"] {
        rcc(&[name, "--help"]).ends(0).shows("Usage");
    }
}

#[test]
fn misspelt_commands_and_options_get_a_hint() {
    rcc(&["chekc", "x.coll"]).ends(2).says("check");
    rcc(&["check", "x.coll", "--rank", "4"]).ends(2).says("--ranks");
}

#[test]
fn values_that_make_no_sense() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    for (arguments, hint) in [
        (vec!["check", &ring, "--ranks", "0"], "at least one rank"),
        (vec!["check", &ring, "--ranks", "8..2"], "8 is more than 2"),
        (vec!["check", &ring, "--ranks", "1..4000000000"], "too large"),
        (vec!["check", &ring, "--ranks", "eight"], "shapes look like"),
        (vec!["check", &ring, "--limit", "speed=1"], "moves, turns, places"),
        (vec!["check", &ring, "--limit", "nesting=5000"], "at most 500"),
        (vec!["check", &ring, "--param", "k"], "NAME=VALUE"),
        (vec!["check", &ring, "--param", "k=1"], "has no parameter `k`"),
        (vec!["check", &ring, "--algorithm", "rong"], "it has ring"),
        (vec!["compile", &ring], "--ranks"),
        (vec!["compile", &ring, "--ranks", "2..4"], "one is wanted"),
        (vec!["compile", &ring, "--ranks", "4", "--target", "cuda"], "not built yet"),
        (vec!["compile", &ring, "--ranks", "4", "--target", "pdf"], "no target `pdf`"),
        (vec!["run", &ring, "-n", "0"], "at least one rank"),
        (vec!["compile", &ring, "-n", "4", "--rank", "-1"], "'-1' for '--rank"),
        (vec!["compile", &ring, "-n", "-4"], "`-4`"),
        (vec!["explain", &ring, "-b", "-1"], "`-1` is not a size"),
        (vec!["run", &ring, "--slots", "-1"], "-1 is not in 1..=1024"),
        (vec!["run", &ring, "--bytes", "1.5M"], "not a unit"),
        (vec!["run", &ring, "--dtype", "f23"], "f32"),
        (vec!["run", &ring, "--op", "plus"], "sum"),
        (vec!["run", &ring, "--device", "tpu"], "cpu and cuda:0"),
        (vec!["run", &ring, "--timeout", "0"], "seconds"),
        (vec!["run", &ring, "--in-place", "--out-of-place"], "cannot be used with"),
        (vec!["run", "--collective", "alreduce"], "did you mean `allreduce`?"),
        (vec!["run"], "required"),
        (vec!["bench", &ring, "-b", "1M", "-e", "8"], "more than the last"),
        (vec!["bench", &ring, "-f", "1"], "2.."),
        (vec!["explain", "coll::promis"], "did you mean `coll::promise`?"),
        (vec!["run", "std::allreduce::rong"], "did you mean `std::allreduce::ring`?"),
        (vec!["run", "std::allreduse::ring"], "did you mean `std::allreduce::ring`?"),
        (vec!["run", "std::reducescater::ring"], "did you mean `std::reducescatter::ring`?"),
        (vec!["show", &ring], "not a plan"),
    ] {
        let status = if arguments[0] == "show" { 1 } else { 2 };
        rcc(&arguments).ends(status).says(hint);
    }
}

/// A plan is one algorithm, with its parameters: options that would change it are refused, not ignored.
#[test]
fn options_that_mean_nothing_here() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let plan = file(&folder, "ring.plan", "");
    rcc(&["compile", &ring, "-n", "2", "-o", &plan]).ends(0);
    for command in ["run", "bench", "explain"] {
        for option in [["--algorithm", "ring"], ["--param", "k=1"]] {
            rcc(&[&[command, plan.as_str()][..], &option].concat()).ends(2).says(option[0]);
        }
    }
    for option in [&["--json"][..], &["--emit", "trace"], &["--timings"]] {
        let dot = [&["compile", &ring, "-n", "2", "--target", "dot"][..], option].concat();
        rcc(&dot).ends(2).says("-o");
        rcc(&[&dot[..], &["-o", &plan]].concat()).ends(0);
        assert!(std::fs::read_to_string(&plan).unwrap().starts_with("digraph"));
    }
    std::fs::remove_file(&plan).unwrap();
    rcc(&["compile", &ring, "-n", "2", "--emit", "ast", "-o", &plan]).ends(0).shows("Algorithm");
    assert!(std::fs::read(&plan).unwrap().starts_with(b"rccplan"));
}

/// With `--json` standard output is one document, whatever happens.
#[test]
fn failures_are_documents_too() {
    let folder = folder();
    let broken = file(&folder, "broken.coll", common::broken_ring());
    let spoilt = file(&folder, "spoilt.coll", "algorithm {");
    for command in ["check", "compile", "run", "bench"] {
        for (target, status) in [(broken.as_str(), 1), (&spoilt, 1), ("nowhere.coll", 2)] {
            let ran = rcc(&[command, target, "-n", "3", "--json"]).ends(status);
            let document = ran.json();
            if command == "check" && status == 1 {
                assert_eq!(document[0]["proved"], false);
            } else {
                assert_eq!(document["status"], status, "{document}");
                assert!(!document["error"].as_str().unwrap().is_empty());
                assert_eq!(document["diagnostics"].as_array().unwrap().is_empty(), status == 2, "{document}");
            }
        }
    }
    let ran = rcc(&["run", "std::allreduce::ring", "--bytes", "64T", "--json"]).ends(3);
    assert!(ran.json()["error"].as_str().unwrap().contains("memory"));
    // What was measured before is not lost.
    let ran = rcc(&[
        "bench",
        "std::allreduce::ring",
        "-n",
        "2",
        "-b",
        "8",
        "-e",
        "64T",
        "-f",
        "4294967295",
        "--iterations",
        "1",
        "--json",
    ])
    .ends(3);
    assert_eq!(ran.json().as_array().unwrap().len(), 2, "{}", ran.out);
}

#[test]
fn several_algorithms_are_listed() {
    let folder = folder();
    let two =
        file(&folder, "two.coll", format!("{RING}\n{}", RING.replace("algorithm ring", "algorithm other")));
    rcc(&["compile", &two, "--ranks", "4"]).ends(2).says("--algorithm").says("ring, other");
    rcc(&["compile", &two, "--ranks", "4", "--algorithm", "other"])
        .ends(0)
        .shows("other implements allreduce");
}

#[test]
fn no_device_is_the_machines_fault() {
    rcc(&["run", "std::allreduce::ring", "--device", "cuda:0"]).ends(3).says("no device cuda:0");
}

#[test]
fn under_a_launcher_a_world_of_its_own_must_be_asked_for() {
    for (name, value) in [("OMPI_COMM_WORLD_RANK", "1"), ("PMI_RANK", "0"), ("SLURM_PROCID", "3")] {
        let mut ranked = command(&["run", "std::allreduce::ring", "--bytes", "8"]);
        ranked.env(name, value);
        finish(ranked).ends(2).says(name).says("-n");
    }
    let mut torchrun = command(&["bench", "std::allreduce::ring"]);
    torchrun.env("RANK", "0").env("WORLD_SIZE", "2");
    finish(torchrun).ends(2).says("RANK");
    let mut asked = command(&["run", "std::allreduce::ring", "-n", "2", "--bytes", "8", "--iterations", "1"]);
    asked.env("PMI_RANK", "0");
    finish(asked).ends(0);
}

/// What is read is not written over, under whatever name.
#[test]
fn inputs_stay_as_they_are() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let schedule = file(&folder, "ring.sched", "schedule for ring { channels 2 }");
    let machine = "name = \"m\"\n[[level]]\nname = \"wire\"\nlatency = \"5us\"\nport = \"1GB/s\"\n";
    let machine = file(&folder, "m.toml", machine);
    let link = folder.path().join("link.coll");
    std::os::unix::fs::symlink(&ring, &link).unwrap();
    let link = link.to_str().unwrap();
    let all = ["compile", &ring, "-n", "4", "--schedule", &schedule, "--topology", &machine];
    for (input, written) in
        [(&ring, ring.as_str()), (&ring, link), (&schedule, &schedule), (&machine, &machine)]
    {
        let before = std::fs::read(input).unwrap();
        for (more, ending) in [
            (&["-o", written][..], "plan"),
            (&["-o", written, "--rank", "1"], "plan"),
            (&["-o", written, "--target", "dot"], "dot"),
        ] {
            let other = std::path::Path::new(written).with_extension(ending);
            let other = format!("as in -o {}", other.display());
            rcc(&[&all[..], more].concat()).ends(2).says("would overwrite").says(&other);
            assert_eq!(std::fs::read(input).unwrap(), before);
        }
    }
    rcc(&[&all[..], &["-o", "-"]].concat()).ends(2).says("`-` is none");
    // What is proposed is not read either.
    let dotted = file(&folder, "schedule.dot", std::fs::read(&schedule).unwrap());
    rcc(&["compile", &ring, "-n", "4", "--schedule", &dotted, "-o", &dotted, "--target", "dot"])
        .ends(2)
        .says("schedule.1.dot");
    let plan = folder.path().join("ring.plan");
    let plan = plan.to_str().unwrap();
    for _ in 0..2 {
        rcc(&[&all[..], &["-o", plan]].concat()).ends(0);
    }
    rcc(&["show", &ring]).ends(1).says("not a plan").says("rcc compile FILE --ranks 8 -o FILE.plan");
}

/// Calls that no machine could hold are still sizes; what takes longer than the model counts is said to.
#[test]
fn the_largest_sizes() {
    let folder = folder();
    let text = "name = \"slow\"\nslices = [\"1GiB\"]\n[[level]]\nname = \"wire\"\nlatency = \"1000s\"\nport = \"1B/s\"\n\
        [engine]\nrate = \"1B/s\"\nevent = \"1000s\"\n";
    let slow = file(&folder, "slow.toml", text);
    let too_long = "takes longer than the cost model counts";
    for name in ["std::allreduce::ring", "std::broadcast::chain", "std::allgather::bruck"] {
        for (size, machine) in [("18446744073709551615", "8xh100"), ("8G", slow.as_str())] {
            let call = ["-n", "4", "-b", size, "-d", "u8", "--topology", machine];
            rcc(&[&["explain", name], &call[..]].concat()).ends(2).says(too_long);
            rcc(&[&["compile", name], &call[..]].concat()).ends(0).shows(too_long);
        }
        let call = ["-n", "4", "-b", "8192T", "-d", "u8", "--topology", "8xh100", "--json"];
        let told = rcc(&[&["explain", name], &call[..]].concat()).ends(0).json();
        // At 450 GB/s at most.
        assert!(told[0]["time_us"].as_f64().unwrap() > (1u64 << 53) as f64 / 450e9 * 1e6 / 4.0);
    }
}
