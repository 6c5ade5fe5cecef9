//! Schedules on the command line: which one holds, for which size, and what is refused.

#![allow(clippy::disallowed_methods, reason = "tests write files")]

mod common;

use common::{RING, file, folder, rcc, root};

/// The ring with a schedule of its own; what stands outside cannot run on CPUs.
fn scheduled() -> String {
    format!(
        "{RING}
schedule for ring {{
    channels 3
    protocol ll128
    when size < 4 KiB {{ protocol simple channels 1 }}
    when size < 64 KiB {{ protocol auto pipeline 2 KiB }}
}}
"
    )
}

#[test]
fn compile_says_which_part_holds() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", scheduled());
    rcc(&["compile", &ring, "-n", "4"])
        .ends(0)
        .shows("schedule: outside every `when`: channels 3; protocol ll128")
        .says("--bytes");
    rcc(&["compile", &ring, "-n", "4", "--bytes", "4095"])
        .ends(0)
        .shows("schedule: when size < 4 KiB: channels 1; protocol simple");
    let mid = rcc(&["compile", &ring, "-n", "4", "--bytes", "4KiB", "--json"]).ends(0).json();
    assert_eq!(mid["schedule"].as_str(), Some("when size < 64 KiB"));
    assert_eq!(mid["copies"].as_u64(), Some(3));
    let plan = file(&folder, "ring.plan", "");
    rcc(&["compile", &ring, "-n", "4", "--bytes", "4KiB", "-o", &plan]).ends(0);
    rcc(&["show", &plan]).ends(0).shows("3 copies").shows("pipeline 2 KiB");
    // Without a schedule nothing is said of one.
    let plain = rcc(&["compile", "std::allreduce::ring", "-n", "4", "--bytes", "8"]).ends(0);
    assert!(!plain.out.contains("schedule") && plain.err.is_empty(), "{}{}", plain.out, plain.err);
}

#[test]
fn runs_take_the_part_for_their_size() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", scheduled());
    let quick = ["--iterations", "2", "--warmup", "1"];
    let run = |arguments: &[&str]| rcc(&[&["run", &ring, "-n", "3"], arguments, &quick].concat());
    run(&["-b", "4000"]).ends(0).shows("when size < 4 KiB: channels 1; protocol simple");
    run(&["-b", "32K"])
        .ends(0)
        .shows("when size < 64 KiB: channels 3; pipeline 2 KiB")
        .shows("of 2 KiB per channel");
    // What is moved counts, not what is asked for: 4097 bytes are 1024 whole elements.
    run(&["-b", "4097"]).ends(0).shows("when size < 64 KiB");
    run(&["--count", "1023"]).ends(0).shows("when size < 4 KiB");
    run(&["--count", "1024"]).ends(0).shows("when size < 64 KiB");
    // The slots that are asked for on the command line go before the schedule's.
    run(&["-b", "32K", "--slot-bytes", "4K"]).ends(0).shows("of 4 KiB per channel");
    run(&["-b", "64K"]).ends(3).says("ll128");

    let bench = |arguments: &[&str]| rcc(&[&["bench", &ring, "-n", "3"], arguments, &quick].concat());
    let ran = bench(&["-b", "1K", "-e", "32K", "-f", "2", "--json"]).ends(0);
    let document = ran.json();
    let parts: Vec<_> = (document.as_array().unwrap().iter())
        .map(|row| (row["bytes"].as_u64().unwrap(), row["schedule"].as_str().unwrap(), row["wrong"].as_u64()))
        .collect();
    assert_eq!(parts.len(), 12);
    for (bytes, part, wrong) in parts {
        let wanted = if bytes < 4096 { "when size < 4 KiB" } else { "when size < 64 KiB" };
        assert_eq!((part, wrong), (wanted, Some(0)), "{bytes}");
    }
    let shown = bench(&["-b", "1K", "-e", "32K", "-f", "2"]).ends(0);
    assert_eq!(shown.out.matches("# ring (allreduce)").count(), 2, "{}", shown.out);
    // What was measured before the size that cannot be is still there.
    let ran = bench(&["-b", "32K", "-e", "64K", "-f", "2", "--json"]).ends(3).says("ll128");
    assert_eq!(ran.json().as_array().unwrap().len(), 2);
}

#[test]
fn a_file_of_schedules_replaces_those_beside_the_algorithm() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", scheduled());
    let other = file(&folder, "other.coll", "schedule for ring { channels 2 }");
    let library = file(&folder, "library.coll", "schedule for std::allreduce::ring { channels 5 }");
    let with = |command: &[&str], schedule: &str| rcc(&[command, &["--schedule", schedule]].concat());
    with(&["compile", &ring, "-n", "4"], &other).ends(0).shows("schedule: for all sizes: channels 2");
    with(&["compile", "std::allreduce::ring", "-n", "4"], &library).ends(0).shows("channels 5");
    with(&["run", &ring, "-n", "2", "-b", "64K", "--iterations", "1"], &other).ends(0).shows("channels 2");
    with(&["check", &ring, "-n", "4"], &other).ends(0).shows("proved");
    with(&["explain", &ring, "-n", "4"], &other).ends(0);
    with(&["bench", "std::allreduce", "-n", "2", "-b", "8", "-e", "8", "--iterations", "1"], &library)
        .ends(0)
        .shows("channels 5");
    let only = file(&folder, "only.coll", "schedule for std::alltonext::direct { channels 5 }");
    with(&["run", "--collective", "alltonext", "-n", "2", "-b", "1M", "--iterations", "1"], &only)
        .ends(0)
        .shows("channels 5");

    // A file that speaks of a standard algorithm only stands for it.
    rcc(&["compile", &library, "-n", "4"]).ends(0).shows("std::allreduce::ring").shows("channels 5");
    rcc(&["check", &library, "-n", "4"]).ends(0).shows("proved  std::allreduce::ring");

    // Beside others, it is named; the file's own algorithms go first.
    let mixed = format!("{RING}\nschedule for std::allgather::ring {{ channels 6 }}");
    let mixed = file(&folder, "mixed.coll", mixed);
    rcc(&["compile", &mixed, "-n", "4"]).ends(0).shows("ring implements allreduce");
    rcc(&["compile", &mixed, "-n", "4", "--algorithm", "ring"]).ends(0).shows("ring implements allreduce");
    rcc(&["compile", &mixed, "-n", "4", "--algorithm", "std::allgather::ring"]).ends(0).shows("channels 6");

    // One that has none for what is at hand is refused.
    with(&["compile", &ring, "-n", "4"], &library)
        .ends(2)
        .says("has no schedule for `ring`")
        .says("std::allreduce::ring");
    let nothing = file(&folder, "nothing.coll", "// nothing");
    with(&["compile", &ring, "-n", "4"], &nothing).ends(2).says("write `schedule for ring");
    with(&["run", "--collective", "allreduce", "-n", "2"], &other)
        .ends(1)
        .says("no algorithm is called `ring`");
    // So are wrong ones, and those that are not there.
    let wrong = file(&folder, "wrong.coll", "schedule for ring { channels 0 }");
    with(&["compile", &ring, "-n", "4"], &wrong).ends(1).says("coll::schedule_number").says("wrong.coll");
    with(&["compile", &ring, "-n", "4"], "missing.coll").ends(2).says("missing.coll");
    with(&["compile", "-", "-n", "4"], "-").ends(2).says("both the program and its schedule");
    let plan = file(&folder, "ring.plan", "");
    rcc(&["compile", &ring, "-n", "2", "-o", &plan]).ends(0);
    with(&["run", &plan], &other).ends(2).says("--schedule is for source files");
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let folder = folder();
    let run = |clauses: &str, arguments: &[&str]| {
        let ring = file(&folder, "ring.coll", format!("{RING} schedule for ring {{ {clauses} }}"));
        rcc(&[&["run", &ring, "-n", "2", "-b", "4K", "--iterations", "1"], arguments].concat())
    };
    for (clauses, said) in [
        ("protocol ll", "protocol ll"),
        ("protocol ll128", "protocol ll128"),
        ("threads 2", "threads"),
        ("transport prefer nvlink", "transport"),
        ("transport avoid shared", "shared memory"),
        ("via switch", "switch"),
    ] {
        run(clauses, &[]).ends(3).says(said);
    }
    // A call must allow what touches values; only then is it asked whether it can be done.
    run("wire bf16", &[]).ends(2).says("bf16").says("--allow-wire");
    run("wire bf16", &["--allow-wire"]).ends(3).says("wire");
    run("threads 1 protocol simple transport prefer nvlink, shared transport avoid tcp", &[]).ends(0);
}

#[test]
fn the_example_runs_in_each_of_its_parts() {
    let example = root().join("examples/12_schedule.coll");
    let example = example.to_str().unwrap();
    let parts = [
        ("32K", "when size < 64 KiB: channels 1"),
        ("1M", "outside every `when`: channels 2; pipeline 256 KiB"),
        ("64M", "when size >= 64 MiB: channels 2; pipeline 1 MiB"),
    ];
    for (bytes, part) in parts {
        rcc(&["compile", example, "-n", "3", "-b", bytes]).ends(0).shows(part);
    }
    for (bytes, part) in &parts[..2] {
        let once = ["--iterations", "1", "--warmup", "0"];
        rcc(&[&["run", example, "-n", "3", "-b", bytes], &once[..]].concat()).ends(0).shows(part);
    }
}

/// Channels of labels are something that is asked for; which of several standard algorithms is meant is not guessed.
#[test]
fn what_is_said_of_labels_is_told() {
    let folder = folder();
    let text = "algorithm star on ranks[n] implements allreduce {\n    'up: for r in 1..n { data @ 0 += data @ r }\n    \
        'down: for r in 1..n { data @ r = data @ 0 }\n}\n";
    let star = file(&folder, "star.coll", text);
    let of = |schedule: &str, more: &[&str]| {
        let schedule = file(&folder, "star.sched", schedule);
        rcc(&[&["compile", &star, "-n", "4", "--schedule", &schedule], more].concat())
    };
    let labels =
        "schedule for star { 'up { channel 1 } when size < 1 MiB { 'down { channel r } channels 2 } }";
    of(labels, &[]).ends(0).shows("schedule: outside every `when`: channels chosen for 'up\n");
    of(labels, &["-b", "1K"])
        .ends(0)
        .shows("schedule: when size < 1 MiB: channels 2; channels chosen for 'down, 'up\n");
    of("schedule for star { }", &[]).ends(0).shows("schedule: for all sizes: nothing is asked for\n");
    of("schedule for ring { channels 2 }", &[])
        .ends(1)
        .says("did you mean `std::allgather::ring`, `std::allreduce::ring` or")
        .says("`std::reducescatter::ring`?");
}
