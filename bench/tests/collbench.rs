//! `collbench`, rcc's side of the comparison with MPI libraries: every collective, both kinds of buffers, right results.
#![allow(clippy::disallowed_methods, reason = "runs a program and reads what it prints")]

use std::process::Command;

fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_collbench")).args(arguments).output().expect("it starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn every_collective_is_measured_in_four_ways_and_right() {
    for collective in ["allreduce", "allgather", "reducescatter", "alltoall", "broadcast"] {
        for (ranks, bytes) in [("2", "8"), ("3", "5000")] {
            let (ended, text) = run(&[collective, bytes, "0.001", "3", "0.05", "-n", ranks]);
            assert!(ended, "{collective}: {text}");
            assert!(text.starts_with("library,rcc "), "{text}");
            for memory in ["plain", "registered"] {
                // Calls of at most 4 KiB go without a plan.
                let taken = if bytes == "8" { "small calls".into() } else { format!("std::{collective}::") };
                let plan = format!("plan,{memory},{taken}");
                assert!(text.contains(&plan), "{plan}: {text}");
                for inputs in ["reused", "rewritten"] {
                    let begins = format!("cell,{collective},{ranks},{bytes},{memory},{inputs},");
                    let line = text.lines().find_map(|line| line.strip_prefix(&begins));
                    let fields: Vec<f64> = line
                        .unwrap_or_else(|| panic!("no {begins}: {text}"))
                        .split(',')
                        .map(|field| field.parse().expect("a number"))
                        .collect();
                    let &[calls, median, least, wrong] = &fields[..] else { panic!("{text}") };
                    assert!(calls >= 1.0 && median >= least && wrong == 0.0, "{text}");
                    assert!(inputs == "rewritten" || least > 0.0, "{text}");
                }
            }
            assert_eq!(text.lines().filter(|line| line.starts_with("cell,")).count(), 4, "{text}");
        }
    }
}

#[test]
fn one_kind_of_buffers_alone() {
    let (ended, text) = run(&["alltoall", "512", "0.001", "1", "0.05", "--memory", "registered"]);
    assert!(ended && text.contains(",registered,") && !text.contains(",plain,"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for arguments in [&["allreduced", "8"][..], &["allreduce", "0"], &["allreduce", "8", "-n", "0"], &[]] {
        assert!(!run(arguments).0, "{arguments:?}");
    }
}
