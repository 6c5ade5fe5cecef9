//! The standard algorithms on machines: bounds hold, laws hold, choices are the best of what was tried.

use grammar::ast::ParamType;
use plan::dtype::Dtype;
use plan::plan::Role;
use plan::verify::VerifiedPlan;
use rcc_compiler::cost::Program;
use rcc_compiler::cost::estimate::{Estimate, EstimateError, Question, estimate};
use rcc_compiler::cost::topology::{Topology, builtin};
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::Options;
use rcc_compiler::pipeline::{self, Loaded};
use rcc_compiler::trace::Params;

pub(crate) fn loaded() -> Loaded {
    pipeline::load(&[], &Limits::default())
}

pub(crate) fn plan(loaded: &Loaded, name: &str, shape: &[u32]) -> Option<VerifiedPlan> {
    let id = loaded.program.find(name).unwrap();
    let algorithm = loaded.program.algorithm(id);
    let open = algorithm.params.iter().filter(|p| p.ty == ParamType::Rank && p.default.is_none());
    let ranks: u32 = shape.iter().product();
    let params: Params =
        open.enumerate().map(|(k, p)| (p.name.clone(), i64::from(k as u32 % ranks))).collect();
    let request = Request { algorithm: id, shape: shape.to_vec(), params };
    let compiled = pipeline::compile(loaded, &request, &Options::default(), &Limits::default(), &mut |_| {});
    compiled.ok().map(|compiled| compiled.plan)
}

fn all(loaded: &Loaded, n: u32) -> Vec<VerifiedPlan> {
    let names = loaded.program.algorithms().map(|id| {
        let algorithm = loaded.program.algorithm(id);
        (algorithm.name.clone(), algorithm.levels)
    });
    names
        .filter_map(|(name, levels)| plan(loaded, &name, &if levels == 1 { vec![n] } else { vec![2, n / 2] }))
        .collect()
}

fn question(plan: &VerifiedPlan, bytes: u64) -> Question {
    let blocks: u32 =
        plan.buffers.iter().filter(|b| b.role != Role::Scratch).map(|b| b.blocks).max().unwrap_or(1);
    let count = bytes / u64::from(blocks.max(1));
    Question { count, dtype: Dtype::U8, slots: None, slice_bytes: None, copies: None }
}

fn took(plan: &VerifiedPlan, machine: &Topology, bytes: u64) -> Estimate {
    estimate(&Program::new(plan), machine, &question(plan, bytes)).unwrap()
}

/// Nothing is faster than its bound by bandwidth, on any machine, at any size; hops may be fewer than rounds, not than one.
#[test]
fn no_plan_beats_its_bound() {
    let loaded = loaded();
    let plans = all(&loaded, 8);
    assert!(plans.len() > 20);
    for machine in ["8xh100", "8xh100-ideal", "2x8xh100"].map(|name| builtin(name).unwrap()) {
        for plan in &plans {
            for bytes in [8u64, 4096, 3 << 20] {
                let found = took(plan, &machine, bytes);
                let name = format!("{} of {bytes} on {}: {found:?}", plan.header.algorithm, machine.name);
                assert!(found.seconds >= found.least.bandwidth * (1.0 - 1e-6), "{name}");
                if found.least.latency > 0.0 {
                    assert!(found.seconds >= machine.levels[0].latency, "{name}");
                }
                let parts = &found.path;
                let sum = parts.moving + parts.latency + parts.queueing + parts.cores;
                assert!((sum - found.seconds).abs() <= found.seconds * 1e-6, "{name}");
                let best = found.tried.iter().map(|tried| tried.1).fold(f64::INFINITY, f64::min);
                assert!(found.seconds <= best * 1.01 + 1e-12, "{name}");
            }
        }
    }
}

/// What bounds is the narrowest level: a rank's ports to both together, or where the network is slow that of a node.
#[test]
fn bounds_of_a_cluster_are_those_of_its_narrowest_level() {
    let loaded = loaded();
    let plan = plan(&loaded, "std::allreduce::hierarchical", &[2, 8]).unwrap();
    let mut machine = builtin("2x8xh100").unwrap();
    let bytes = 1u64 << 28;
    let given = Question { copies: Some(16), slice_bytes: Some(256 << 10), ..question(&plan, bytes) };
    let of = |machine: &Topology| estimate(&Program::new(&plan), machine, &given).unwrap();
    // 2(n-1)/n of the data out of each rank, over NVLink and its NIC.
    let found = of(&machine);
    let ports = 1.875 * bytes as f64 / (18.0 * 20.6e9 + 50e9);
    assert!((found.least.bandwidth - ports).abs() < ports * 1e-9, "{:?}", found.least);
    // log2 16 hops, one of them between nodes.
    assert!((found.least.latency - (3.0 * 0.6e-6 + 2.7e-6)).abs() < 1e-12);
    assert!(found.seconds >= found.least.bandwidth);
    // A node sends 2(m-1)/m = 1 time the data through 8 ports of 5 GB/s, or through one uplink.
    machine.levels[1].port = Some(5e9);
    let found = of(&machine);
    let network = bytes as f64 / (8.0 * 5e9);
    assert!((found.least.bandwidth - network).abs() < network * 1e-9, "{:?}", found.least);
    assert!(found.seconds >= network && found.seconds < 1.5 * network, "{} of {network}", found.seconds);
    machine.levels[1].uplink = Some(10e9);
    let found = of(&machine);
    assert!((found.least.bandwidth - 4.0 * network).abs() < network * 1e-9);
    assert!(
        found.seconds >= 4.0 * network && found.seconds < 5.0 * network,
        "{} of {network}",
        found.seconds
    );
}

/// Half the bandwidth and twice the latency never help, but for what a queue in order of arrival may lose or win when
/// arrivals change places, and for what the few geometries that are tried miss.
#[test]
fn worse_machines_are_not_faster() {
    let loaded = loaded();
    let machine = builtin("8xh100-ideal").unwrap();
    let mut narrow = machine.clone();
    narrow.levels[0].port = Some(225e9);
    let mut far = machine.clone();
    far.levels[0].latency = 2e-6;
    for plan in all(&loaded, 8) {
        for bytes in [8u64, 1 << 20, 64 << 20] {
            let base = took(&plan, &machine, bytes).seconds;
            let name = &plan.header.algorithm;
            assert!(took(&plan, &narrow, bytes).seconds >= base * 0.97, "{name} of {bytes}");
            assert!(took(&plan, &far, bytes).seconds >= base * 0.97, "{name} of {bytes}");
        }
    }
}

#[test]
fn what_is_given_is_kept() {
    let loaded = loaded();
    let plan = plan(&loaded, "std::allreduce::ring", &[8]).unwrap();
    let machine = builtin("8xh100").unwrap();
    let given =
        Question { slots: Some(5), slice_bytes: Some(12_345), copies: Some(3), ..question(&plan, 1 << 20) };
    let found = estimate(&Program::new(&plan), &machine, &given).unwrap();
    assert_eq!((found.call.slots, found.call.slice_bytes, found.call.copies), (5, 12_345, 3));
    let few = Question { slots: Some(0), ..given };
    assert!(matches!(
        estimate(&Program::new(&plan), &machine, &few),
        Err(EstimateError::Slots { given: 0, .. })
    ));
    let small = Topology {
        levels: vec![rcc_compiler::cost::topology::Level { size: Some(4), ..machine.levels[0].clone() }],
        ..machine
    };
    assert!(matches!(
        estimate(&Program::new(&plan), &small, &given),
        Err(EstimateError::TooManyRanks { has: 4, ranks: 8, .. })
    ));
}

/// A gigabyte in thousands of slices is followed in no time, since what repeats is left out.
#[test]
fn a_large_call_takes_few_events() {
    let loaded = loaded();
    let machine = builtin("8xh100").unwrap();
    for name in ["std::allreduce::ring", "std::broadcast::chain", "std::allreduce::halving_doubling"] {
        let plan = plan(&loaded, name, &[8]).unwrap();
        let program = Program::new(&plan);
        let copies = Some(1);
        let given = Question { slice_bytes: Some(64 << 10), copies, ..question(&plan, 1 << 30) };
        let found = estimate(&program, &machine, &given).unwrap();
        assert!(found.exact && found.events < 60_000, "{name}: {} events", found.events);
    }
}
