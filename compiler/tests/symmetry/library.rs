//! The standard library: which algorithms are symmetric, and that everything said of them is so.

use rcc_compiler::elaborate::Request;
use rcc_compiler::symmetry::Why;
use rcc_compiler::trace::Params;

use crate::support::{Outcome, compare, program, request};

/// Algorithms of one level that every rank runs alike.
const ALIKE: [&str; 9] = [
    "std::allreduce::one_shot",
    "std::allreduce::two_shot",
    "std::allreduce::ring",
    "std::allgather::ring",
    "std::allgather::bruck",
    "std::reducescatter::ring",
    "std::alltoall::direct",
    "std::alltoall::bruck",
    "std::barrier::dissemination",
];

#[test]
fn algorithms_that_are_alike_at_all_ranks_are_proved_by_symmetry() {
    let program = program("");
    for name in ALIKE {
        for n in 2..=16 {
            let request = request(&program, name, &[n]);
            assert_eq!(compare(&program, &request), Outcome::Symmetric { proved: true }, "{name} at {n}");
        }
    }
}

#[test]
fn two_levels_go_round_by_nodes() {
    let program = program("");
    for shape in [[2, 2], [2, 3], [3, 2], [4, 4], [5, 3], [6, 1]] {
        let request = request(&program, "std::alltoall::two_level", &shape);
        assert_eq!(compare(&program, &request), Outcome::Symmetric { proved: true }, "{shape:?}");
    }
}

/// Whatever is said of any standard algorithm, at every root, agrees with the whole.
#[test]
fn nothing_is_said_of_the_library_that_is_not_so() {
    let program = program("");
    let mut refused = 0;
    for id in program.algorithms().collect::<Vec<_>>() {
        let algorithm = program.algorithm(id);
        let shapes: Vec<Vec<u32>> = match algorithm.levels {
            1 => (1..=9).chain([12, 16]).map(|n| vec![n]).collect(),
            _ => vec![vec![1, 1], vec![2, 2], vec![2, 3], vec![4, 2], vec![1, 4]],
        };
        for shape in shapes {
            let roots = rcc_compiler::elaborate::open_ranks(&program, id, &Params::new());
            let n: u32 = shape.iter().product();
            let params: Params = roots.iter().map(|root| (root.clone(), i64::from(n / 2))).collect();
            let request = Request { algorithm: id, shape: shape.clone(), params };
            match compare(&program, &request) {
                Outcome::Refused(_) => refused += 1,
                Outcome::Symmetric { proved } => assert!(proved, "{} at {shape:?}", algorithm.name),
                Outcome::NoTrace(_) => {}
            }
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn what_stands_in_the_way_is_said() {
    let program = program("");
    let why = |name: &str, n: u32| match compare(&program, &request_with_root(&program, name, n)) {
        Outcome::Refused(refusal) => refusal.why,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(why("std::allreduce::ring", 1), Why::OneRank);
    assert!(matches!(why("std::gather::direct", 4), Why::Absent { .. }));
    assert_eq!(why("std::allreduce::recursive_doubling", 8), Why::Value);
    assert_eq!(why("std::allreduce::tree", 7), Why::Rank);
}

fn request_with_root(program: &rcc_compiler::check::checked::Program, name: &str, n: u32) -> Request {
    let mut request = request(program, name, &[n]);
    for root in rcc_compiler::elaborate::open_ranks(program, request.algorithm, &Params::new()) {
        request.params.insert(root, 0);
    }
    request
}
