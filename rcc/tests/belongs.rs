//! Whose plan it is: every plan of a standard algorithm is its own, however it is laid out, and none is another root's, world's or collective's.

use compiler::belongs::is_of;
use compiler::chooser::{Effort, Fixed};
use compiler::limits::Limits;
use compiler::options::Direct;
use compiler::pipeline;
use plan::dtype::Dtype;
use plan::plan::Forms;
use rcc::make::How;
use rcc::{machine, request};

#[test]
fn plans_are_of_their_programs_and_of_no_other() {
    let limits = Limits::default();
    let loaded = pipeline::load(&[], &limits);
    let how = |direct, blocks| How {
        fixed: Fixed { direct, blocks, ..Fixed::default() },
        dtype: Dtype::F32,
        forms: Forms { disjoint: true, same: direct.is_some() },
        effort: Effort::Quick,
        topology: machine::cores(2),
        limits,
    };
    let ways = [how(Some(Direct::Never), None), how(None, None), how(Some(Direct::Never), Some(1))];
    let mut of = Vec::new();
    for id in loaded.program.algorithms() {
        let algorithm = loaded.program.algorithm(id);
        let shapes: &[&[u32]] = if algorithm.levels == 1 { &[&[1], &[3], &[4]] } else { &[&[2, 2]] };
        for (&shape, root) in shapes.iter().flat_map(|shape| [(shape, 0), (shape, shape[0] - 1)]) {
            let rooted = algorithm.params.iter().any(|param| param.name == "root");
            let given = if rooted { vec![("root".to_string(), i64::from(root))] } else { Vec::new() };
            let given = given.into_iter().collect();
            let Ok(request) = request::one_root(&loaded.program, id, shape, &given) else { continue };
            for (way, bytes) in ways.iter().zip([8 << 10, 1 << 20, 64 << 10]) {
                let Ok(made) = way.make(&loaded, &request, Some(bytes), &mut |_| {}) else { continue };
                let plan = made.compiled.plan;
                assert!(is_of(&plan, &loaded.program, &request, &limits), "{} {shape:?}", algorithm.name);
                of.push((request.clone(), plan));
            }
        }
    }
    assert!(of.len() > 300, "{}", of.len());
    let mut draw = 7usize;
    for (at, (request, _)) in of.iter().enumerate() {
        draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        for other in [at + 3, at + 6, draw >> 8].map(|other| &of[other % of.len()]) {
            let same = other.0 == *request;
            assert_eq!(is_of(&other.1, &loaded.program, request, &limits), same, "{request:?} {:?}", other.0);
        }
    }
}
