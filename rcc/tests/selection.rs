//! Which plan serves a call: what was measured, what is predicted, and that all ranks take the same; tuning files, right and wrong.

use compiler::limits::Limits;
use compiler::pipeline;
use plan::dtype::{Dtype, Op};
use plan::plan::{Forms, Operand, Plan, Step};
use rcc::collective::Collective;
use rcc::select::tuning::{Entry, Tuning, parse};
use rcc::select::{Ask, Because, Selection};
use rcc::{Communicator, Error, Kind, Options, StandardCall, machine};
use runtime::comm::{self, Room};

const HEAD: &str = "format = 1\nmachine = \"here\"\ncores = 2\ndate = \"2026-11-30\"\nrcc = \"0.1.0\"\n";

fn ask(collective: Collective, ranks: u32, bytes: u64) -> Ask {
    asked(
        StandardCall { root: None, ..StandardCall::of_bytes(collective, ranks, bytes, Dtype::F32) },
        ranks,
        bytes,
    )
}

/// Exactly of that size, in all forms that the collective has.
fn asked(call: StandardCall, ranks: u32, bytes: u64) -> Ask {
    let forms = Forms { disjoint: true, same: call.collective.runs_in_place() };
    Ask::exactly(&call, ranks, bytes, forms)
}

fn row(ranks: u32, bytes: u64, candidates: &[(&str, f64)]) -> String {
    let entries: Vec<String> = candidates
        .iter()
        .map(|(name, us)| format!("{{ algorithm = \"std::allreduce::{name}\", us = {us:?}, spread = 0.5 }}"))
        .collect();
    format!(
        "[[row]]\ncollective = \"allreduce\"\nranks = {ranks}\nbytes = {bytes}\nelement = 4\nmemory = \"plain\"\n\
         candidates = [{}]\n",
        entries.join(", ")
    )
}

#[test]
fn channels_have_as_many_slots_as_a_core_has_room_for_unless_it_is_said() {
    let loaded = pipeline::load(&[], &Limits::default());
    let entry = |name: &str, slots| Entry {
        algorithm: format!("std::allreduce::{name}"),
        slice_bytes: Some(64 << 10),
        blocks: Some(1),
        slots,
        ..Entry::default()
    };
    let slots = |cores: usize, ranks: u32, entry: &Entry| {
        let selection = Selection::only(machine::cores(cores), Vec::new());
        let call = ask(Collective::Allreduce, ranks, 8 << 20);
        selection.candidate(&loaded, &call, entry).unwrap().geometry.slots
    };
    // A ring writes one channel: 2 MiB for a rank with a core of its own, 1 MiB for all that share one.
    assert_eq!(slots(3, 3, &entry("ring", None)), 32);
    assert_eq!(slots(2, 4, &entry("ring", None)), 8);
    assert_eq!(slots(4, 4, &entry("ring", None)), 32);
    // Never fewer than usual; what is said is said; and ranks that exchange trade their slots.
    assert_eq!(slots(2, 8, &entry("tree", None)), 4);
    assert_eq!(slots(3, 3, &entry("ring", Some(5))), 5);
    assert_eq!(slots(2, 2, &entry("ring", None)), 4);
}

#[test]
fn registered_calls_are_measured_by_messages_alone_too() {
    let loaded = pipeline::load(&[], &Limits::default());
    let selection = Selection::only(machine::cores(2), Vec::new());
    let candidates = |registered| {
        let mut call = ask(Collective::Reducescatter, 2, 256 << 10);
        call.registered = registered;
        let found = selection.candidates(&loaded, &call, 4).unwrap();
        let reach = |plan: &Plan| plan.steps.iter().any(|step| reaches(plan, step));
        found
            .into_iter()
            .map(|(entry, selected)| (entry.messages, reach(selected.plan())))
            .collect::<Vec<_>>()
    };
    assert!(candidates(false).iter().all(|&found| found == (false, false)));
    let found = candidates(true);
    assert!(found.contains(&(false, true)) && found.contains(&(true, false)), "{found:?}");
    assert!(!found.contains(&(true, true)), "{found:?}");
}

/// Whether a step has a place of a peer.
fn reaches(plan: &Plan, step: &Step) -> bool {
    plan.src(step).iter().chain(plan.dst(step)).any(|operand| matches!(operand, Operand::Peer { .. }))
}

#[test]
fn what_was_measured_counts_and_the_others_are_told_why_not() {
    let loaded = pipeline::load(&[], &Limits::default());
    let rows = [
        row(6, 32 << 10, &[("tree", 9.0), ("swing", 2.0), ("ring", 3.0), ("gone", 1.0), ("two_shot", 4.5)]),
        row(6, 1 << 20, &[("two_shot", 70.0)]),
    ];
    let tuning = parse(&format!("{HEAD}{}", rows.join("")), "a.toml").unwrap();
    let selection = Selection::of(machine::cores(2), Some(tuning));
    let selected = selection.select(&loaded, &ask(Collective::Allreduce, 6, 32 << 10)).unwrap();
    let verdict = &selected.verdict;
    assert_eq!(selected.plan().header.algorithm, verdict.algorithm);
    // Swing wants a power of two; `gone` is no algorithm.
    let why = |name: &str| {
        let name = format!("std::allreduce::{name}");
        verdict.others.iter().find(|other| other.algorithm == name).map(|other| other.why.as_str()).unwrap()
    };
    assert_eq!(verdict.algorithm, "std::allreduce::ring");
    assert!(why("swing").contains("it requires"), "{}", why("swing"));
    assert!(why("gone").contains("not in the standard library"));
    assert_eq!(why("two_shot"), "measured 4.50 us, 50.0 % longer");
    assert!(why("one_shot").contains("not measured in a.toml"));
    assert!(matches!(verdict.because, Because::Measured { us: 3.0, bytes: 32768, .. }));
    // Each of the collective's algorithms is spoken of once.
    let mut all: Vec<&str> = verdict.others.iter().map(|other| other.algorithm.as_str()).collect();
    all.push(&verdict.algorithm);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    let names = loaded.program.algorithms().map(|id| &loaded.program.algorithm(id).name);
    assert_eq!(all.len(), count);
    assert_eq!(count, names.filter(|name| name.starts_with("std::allreduce::")).count() + 1);

    // The nearest size; another number of ranks, or a size far away: the model.
    let takes = |ranks, bytes| selection.select(&loaded, &ask(Collective::Allreduce, ranks, bytes)).unwrap();
    assert_eq!(takes(6, 2 << 20).verdict.algorithm, "std::allreduce::two_shot");
    assert_eq!(takes(6, 100 << 10).verdict.algorithm, "std::allreduce::ring");
    assert!(matches!(takes(6, 64 << 20).verdict.because, Because::Predicted { .. }));
    assert!(matches!(takes(5, 32 << 10).verdict.because, Because::Predicted { .. }));
    let large = takes(40, 32 << 10).verdict;
    assert!(large.others.iter().all(|other| other.why.contains("more than 16 ranks")), "{large:?}");
}

#[test]
fn every_collective_is_selected_for_and_each_algorithm_has_its_reason() {
    let loaded = pipeline::load(&[], &Limits::default());
    let selection = Selection::only(machine::cores(2), Vec::new());
    for collective in Collective::ALL {
        for (ranks, bytes) in [(1, 64), (3, 8), (4, 32 << 10), (4, 4 << 20), (20, 4 << 10)] {
            let both = collective.runs_in_place();
            for op in [Op::Sum, Op::Avg, "premulsum:2".parse().unwrap()] {
                let op = if collective.reduces() { op } else { Op::Sum };
                let call = StandardCall {
                    op,
                    root: None,
                    ..StandardCall::of_bytes(collective, ranks, bytes, Dtype::F32)
                };
                let ask = asked(call, ranks, bytes);
                let selected = selection.select(&loaded, &ask).unwrap();
                let plan = selected.plan();
                assert!(
                    plan.header.serves(ask.op) && (plan.header.forms.same || !both),
                    "{collective} {ranks}"
                );
                assert!(selected.geometry.slots >= plan.header.k_min);
                let prefix = format!("std::{collective}::");
                let names = loaded.program.algorithms().map(|id| &loaded.program.algorithm(id).name);
                let others = names.filter(|name| name.starts_with(&prefix)).count() - 1;
                assert_eq!(selected.verdict.others.len(), others, "{collective} at {ranks}");
                assert!(selected.verdict.others.iter().all(|other| !other.why.is_empty()));
                let again = selection.select(&loaded, &ask).unwrap();
                assert_eq!(again.plan().content_hash(), plan.content_hash(), "as another rank would");
            }
        }
    }
}

#[test]
fn what_is_built_in_names_algorithms_that_serve() {
    let loaded = pipeline::load(&[], &Limits::default());
    let selection = Selection::of(machine::cores(2), None);
    assert_eq!((selection.tunings.len(), Selection::of(machine::cores(3), None).tunings.len()), (1, 0));
    for row in &selection.tunings[0].rows {
        let call = StandardCall {
            root: row.collective.is_rooted().then_some(row.ranks - 1),
            registered: row.registered,
            ..StandardCall::of_bytes(row.collective, row.ranks, row.bytes, Dtype::F32)
        };
        let ask = asked(call, row.ranks, row.bytes);
        let verdict = selection.select(&loaded, &ask).unwrap().verdict;
        assert_eq!(
            verdict.algorithm, row.candidates[0].algorithm,
            "{} {} {}",
            row.collective, row.ranks, row.bytes
        );
        assert!(verdict.because.to_string().contains("built in, for 2 cores"), "{}", verdict.because);
        for entry in &row.candidates {
            assert!(loaded.program.find(&entry.algorithm).is_some(), "{}", entry.algorithm);
        }
    }
}

#[test]
fn tuning_files_read_back() {
    let tuning = Tuning {
        source: "x".to_string(),
        machine: "a \"quoted\" \\ machine\u{7}".to_string(),
        ..parse(&format!("{HEAD}{}", row(2, 8, &[("ring", 1.25), ("tree", 2.0)])), "x").unwrap()
    };
    let mut tuning = tuning;
    let entry = &mut tuning.rows[0].candidates[1];
    *entry =
        Entry { blocks: Some(3), slots: Some(7), slice_bytes: Some(4096), messages: true, ..entry.clone() };
    let read = parse(&tuning.to_text(), "x").unwrap();
    assert_eq!(read.machine, "a \"quoted\" \\ machine");
    assert_eq!((&read.rows, read.digest()), (&tuning.rows, parse(&read.to_text(), "y").unwrap().digest()));
    assert!(read.is_of("a \"quoted\" \\ machine\u{7}") && !read.is_of("another"));
}

#[test]
fn what_is_no_tuning_file_is_refused_with_the_row() {
    for (text, says) in [
        (String::new(), "no `format`"),
        ("format = 2\nwhatever = 1".to_string(), "has format 2"),
        ("format =".to_string(), "line 1"),
        (format!("{HEAD}surprise = 1\n"), "surprise"),
        (format!("{HEAD}{}", row(2, 8, &[]).replace("allreduce", "alreduce")), "row 1: `alreduce`"),
        (format!("{HEAD}{}{}", row(2, 8, &[("ring", 1.0)]), row(2, 8, &[])), "row 2: it has no candidates"),
        (format!("{HEAD}{}", row(0, 8, &[("ring", 1.0)])), "row 1: there is no world of 0 ranks"),
        (format!("{HEAD}{}", row(2, 8, &[("ring", -1.0)])), "takes no number"),
        (format!("{HEAD}{}", row(2, 8, &[("ring", f64::NAN)])).replace("NaN", "nan"), "takes no number"),
        (
            format!("{HEAD}{}", row(2, 8, &[("ring", 1.0)])).replace("std::allreduce::", "std::reduce::"),
            "`std::reduce::ring` is no algorithm of allreduce",
        ),
        (
            format!("{HEAD}{}", row(2, 8, &[("ring", 1.0)])).replace("spread = 0.5", "slots = 0"),
            "slots are 1 to 1024",
        ),
    ] {
        let error = parse(&text, "x").unwrap_err();
        assert!(error.contains(says), "{says}: {error}");
    }
}

/// What was measured elsewhere, or with other cores, counts only if it was named; and it is told either way.
#[test]
fn a_tuning_of_another_machine_is_passed_over_with_its_reason() {
    let loaded = pipeline::load(&[], &Limits::default());
    let text = format!("{HEAD}{}", row(6, 32 << 10, &[("tree", 9.0)]));
    let here = |text: &str| text.replace("\"here\"", &format!("\"{}\"", machine::name()));
    for (named, text, says) in [
        (false, here(&text), None),
        (true, here(&text), None),
        (false, text.clone(), Some("t.toml is passed over: it is of `here`, and this is ")),
        (true, text.clone(), Some("t.toml is used, since it is named: it is of `here`")),
        (
            false,
            here(&text).replace("cores = 2", "cores = 4"),
            Some("t.toml is passed over: it is of 4 cores, and ranks have 2 together here"),
        ),
    ] {
        let tuning = Tuning { named, ..parse(&text, "t.toml").unwrap() };
        let selection = Selection::of(machine::cores(2), Some(tuning));
        let remark = selection.remark.as_deref();
        assert_eq!(remark.is_some(), says.is_some(), "{remark:?}");
        assert!(says.is_none_or(|says| remark.unwrap().contains(says)), "{remark:?}");
        let selected = selection.select(&loaded, &ask(Collective::Allreduce, 6, 32 << 10)).unwrap();
        let counts = named || says.is_none();
        assert_eq!(matches!(selected.verdict.because, Because::Measured { us: 9.0, .. }), counts, "{text}");
    }
}

#[test]
fn ranks_with_different_tunings_are_told_before_any_call() {
    let tuning = |name: &str| parse(&format!("{HEAD}{}", row(2, 8, &[(name, 1.0)])), name).unwrap();
    let options = |rank: u32| Options {
        tuning: match rank {
            1 => Some(tuning("ring")),
            _ => Some(tuning("tree")),
        },
        ..Options::default()
    };
    let join = |room: Room, rank: u32| -> Result<(), Error> {
        let inner = comm::Communicator::join(Box::new(room), comm::Options::default())?;
        Communicator::over(inner, &options(rank)).map(|_| ())
    };
    let rooms = Room::for_all(3, std::time::Duration::from_secs(20));
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..).zip(rooms).map(|(rank, room)| scope.spawn(move || join(room, rank).unwrap_err())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for error in errors {
        assert_eq!(error.kind, Kind::Mismatch);
        assert!(error.message.contains("ranks 0 and 1 differ in tuning"), "{error}");
        assert!(error.message.contains("rank 0: tree (content ") && error.message.contains("rank 1: ring"));
    }
}
