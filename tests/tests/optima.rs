//! What `docs/algorithms.md` says is the least, held against the cost model: at most 1.05 times the bound, at 1 GiB
//! by bandwidth and at 8 B by latency, on eight GPUs whose ports are all that costs.

use compiler::cost::Program;
use compiler::cost::estimate::{Estimate, Question, estimate};
use compiler::cost::topology::{Topology, builtin};
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::{Direct, Options, Reach};
use compiler::pipeline::{Loaded, compile, load};
use compiler::trace::Params;
use grammar::ast::ParamType;
use plan::dtype::Dtype;
use plan::plan::Role;
use plan::verify::VerifiedPlan;

const TABLE: &str = include_str!("../../docs/algorithms.md");
const RANKS: u32 = 8;
const MOST: f64 = 1.05;

/// Algorithm, least in bandwidth, least in latency.
fn claims() -> Vec<(&'static str, bool, bool)> {
    let rows = TABLE.lines().filter(|line| line.starts_with("| `std::"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        // "n = p": for powers of two, which eight is.
        let claim = cells[5].split(',').next().unwrap();
        let (bandwidth, latency) = match claim {
            "both" => (true, true),
            "bandwidth" => (true, false),
            "latency" => (false, true),
            "–" => (false, false),
            other => panic!("`{other}` is no claim"),
        };
        (cells[0].trim_matches('`'), bandwidth, latency)
    })
    .collect()
}

fn plan(loaded: &Loaded, name: &str) -> VerifiedPlan {
    laid_out(loaded, name, &Options::default())
}

fn laid_out(loaded: &Loaded, name: &str, options: &Options) -> VerifiedPlan {
    let id = loaded.program.find(name).unwrap();
    let algorithm = loaded.program.algorithm(id);
    let open = algorithm.params.iter().filter(|p| p.ty == ParamType::Rank && p.default.is_none());
    let params: Params = open.enumerate().map(|(k, p)| (p.name.clone(), k as i64)).collect();
    let shape = if algorithm.levels == 1 { vec![RANKS] } else { vec![2, RANKS / 2] };
    let request = Request { algorithm: id, shape, params };
    match compile(loaded, &request, options, &Limits::default(), &mut |_| {}) {
        Ok(compiled) => compiled.plan,
        Err(failure) => panic!("{name}: {failure:?}"),
    }
}

/// A call whose larger side has so many bytes.
fn call(plan: &VerifiedPlan, machine: &Topology, bytes: u64) -> Estimate {
    let side =
        |role| plan.buffers.iter().filter(|b| b.role == role).map(|b| u64::from(b.blocks)).sum::<u64>();
    let blocks = side(Role::Send).max(side(Role::Recv)).max(1);
    let question =
        Question { count: bytes / blocks, dtype: Dtype::U8, slots: None, slice_bytes: None, copies: None };
    estimate(&Program::new(plan), machine, &question).unwrap()
}

#[test]
fn what_is_said_to_be_the_least_is() {
    let loaded = load(&[], &Limits::default());
    let machine = builtin("8xh100-ideal").unwrap();
    let claims = claims();
    assert!(claims.iter().filter(|claim| claim.1).count() >= 12, "{claims:?}");
    assert!(claims.iter().filter(|claim| claim.2).count() >= 12, "{claims:?}");
    let mut short = Vec::new();
    for (name, bandwidth, latency) in claims {
        let plan = plan(&loaded, name);
        if bandwidth {
            let found = call(&plan, &machine, 1 << 30);
            let ratio = found.seconds / found.least.bandwidth;
            if !(1.0 - 1e-9..=MOST).contains(&ratio) {
                short.push(format!("{name}: {ratio:.3} of the bandwidth bound, with {:?}", found.call));
            }
        }
        if latency {
            let found = call(&plan, &machine, 8);
            let ratio = found.seconds / found.least.latency;
            if ratio > MOST {
                short.push(format!("{name}: {ratio:.3} of the latency bound"));
            }
        }
    }
    assert!(short.is_empty(), "{}", short.join("\n"));
}

/// A bound is no excuse: what is not said to be the least is not.
#[test]
fn what_is_not_said_to_be_the_least_is_not() {
    let loaded = load(&[], &Limits::default());
    let machine = builtin("8xh100-ideal").unwrap();
    let mut modest = Vec::new();
    for (name, bandwidth, latency) in claims() {
        let plan = plan(&loaded, name);
        let large = call(&plan, &machine, 1 << 30);
        if !bandwidth && large.least.bandwidth > 0.0 && large.seconds <= large.least.bandwidth * MOST {
            modest.push(format!("{name} could claim bandwidth"));
        }
        let small = call(&plan, &machine, 8);
        if !latency && small.seconds <= small.least.latency * MOST {
            modest.push(format!("{name} could claim latency"));
        }
    }
    assert!(modest.is_empty(), "{}", modest.join("\n"));
}

/// However it is laid out, and whether ports are what costs or cores and their caches.
#[test]
fn nothing_is_predicted_to_beat_the_bandwidth_bound() {
    let loaded = load(&[], &Limits::default());
    let machines = ["2-cores", "8xh100-ideal", "2x8xh100"].map(|name| builtin(name).unwrap());
    let reaches = [Reach::Pull, Reach::Push];
    let direct = reaches.map(|reach| Options { direct: Direct::OutOfPlace, reach, ..Options::default() });
    let layouts = [Options::default()].into_iter().chain(direct);
    let (mut below, mut near) = (Vec::new(), 0);
    for (l, options) in layouts.enumerate() {
        for (name, ..) in claims() {
            let plan = laid_out(&loaded, name, &options);
            for machine in &machines[..if l == 0 { machines.len() } else { 1 }] {
                // In the caches of the cores, in part, and not.
                for bytes in [1 << 10, 1 << 20, 1 << 23, 1 << 26, 1 << 28] {
                    let found = call(&plan, machine, bytes);
                    let ratio = found.seconds / found.least.bandwidth;
                    near += usize::from(ratio < MOST);
                    if ratio < 1.0 - 1e-9 {
                        let on = &machine.name;
                        let direct = options.direct;
                        below.push(format!(
                            "{name} on {on}, {bytes} B, {direct:?}: {ratio:.3}, {:?}",
                            found.call
                        ));
                    }
                }
            }
        }
    }
    assert!(below.is_empty(), "{}", below.join("\n"));
    // It is no bound that nothing comes near to.
    assert!(near > 20, "{near}");
}

/// A chain overlaps its hops: 64 MiB over 8 ranks take no more than 1.3 times as long as over one hop.
#[test]
fn a_chain_broadcast_is_nearly_one_hop() {
    let loaded = load(&[], &Limits::default());
    let machine = builtin("8xh100-ideal").unwrap();
    let bytes = 64u64 << 20;
    let found = call(&plan(&loaded, "std::broadcast::chain"), &machine, bytes);
    let level = &machine.levels[0];
    let hop = level.latency + bytes as f64 / level.port.unwrap();
    assert!(
        found.seconds >= hop && found.seconds <= 1.3 * hop,
        "{} and {hop}: {:?}",
        found.seconds,
        found.call
    );
}
