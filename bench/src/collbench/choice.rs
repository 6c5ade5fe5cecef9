//! The plans of a cell: what `rcc bench std::COLLECTIVE` would take.
//!
//! In: a cell, whether its buffers are registered. Out: for each root a plan, its slots, its name. All standard algorithms of
//! the collective are compiled for this machine and this size, and the one is taken that the cost model predicts to be
//! the fastest. Plans for plain buffers have no direct access; for registered ones the compiler chooses.

use compiler::chooser::{Chosen, Effort, Fixed, Wanted};
use compiler::cost::topology;
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Direct;
use compiler::pipeline::{self, Loaded};
use plan::dtype::{Dtype, Op};
use plan::plan::Forms;
use plan::verify::VerifiedPlan;
use runtime::exec::Shape;
use runtime::exec::exposed::Exposed;
use runtime::job::{Geometry, Job};

use crate::cell::{Cell, Collective};

/// A plan, ready to be called.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: VerifiedPlan,
    pub(crate) geometry: Geometry,
}

/// What a call of the cell is, for the runtime. MPI broadcasts in one buffer, and does the others from one to another.
pub(crate) fn shape(cell: &Cell) -> Shape {
    let in_place = cell.collective == Collective::Broadcast;
    Shape { elements: cell.block as u64, dtype: Dtype::F32, op: Op::Sum, in_place }
}

/// The plans, one for each root.
pub(crate) fn plans(cell: &Cell, registered: bool) -> Result<Vec<Planned>, String> {
    let loaded = pipeline::load(&[], &Limits::default());
    let roots = cell.collective.roots(cell.ranks);
    (0..roots).map(|root| fastest(&loaded, cell, registered, root)).collect()
}

/// What was taken, in a few words without a comma.
pub(crate) fn said(planned: &Planned) -> String {
    let plan = &planned.plan;
    let access = if Exposed::of(plan).any() { "direct" } else { "messages" };
    let Geometry { slots, slot_bytes } = planned.geometry;
    format!("{} {access} {slots} x {slot_bytes} B", plan.header.algorithm)
}

fn fastest(loaded: &Loaded, cell: &Cell, registered: bool, root: u32) -> Result<Planned, String> {
    let shape = shape(cell);
    let limits = Limits::default();
    let topology = topology::cores(u32::try_from(runtime::cpus::allowed()).unwrap_or(u32::MAX));
    let wanted = Wanted {
        bytes: Some(cell.whole_bytes()),
        dtype: shape.dtype,
        fixed: Fixed { direct: (!registered).then_some(Direct::Never), ..Fixed::default() },
        forms: Forms { disjoint: !shape.in_place, same: shape.in_place },
        effort: Effort::Quick,
    };
    let prefix = format!("std::{}::", cell.collective.name());
    let mut best: Option<(f64, VerifiedPlan, Chosen)> = None;
    for id in loaded.program.algorithms() {
        let algorithm = loaded.program.algorithm(id);
        let open = |name: &str| algorithm.params.iter().any(|p| p.default.is_none() && p.name == name);
        let others = algorithm.params.iter().any(|p| p.default.is_none() && p.name != "root");
        if !algorithm.name.starts_with(&prefix) || algorithm.levels != 1 || others {
            continue;
        }
        let params = if open("root") { [("root".to_string(), root.into())].into() } else { [].into() };
        let request = Request { algorithm: id, shape: vec![cell.ranks], params };
        // Others are there for worlds that exclude this one, or give up the form that is wanted.
        let made = pipeline::compile_for(loaded, &request, &wanted, &topology, &limits, &mut |_| {});
        let Ok((compiled, chosen)) = made else { continue };
        let forms = compiled.plan.header.forms;
        let seconds = chosen.best.map_or(f64::INFINITY, |best| best.1);
        let serves = if shape.in_place { forms.same } else { forms.disjoint };
        if serves && best.as_ref().is_none_or(|best| seconds < best.0) {
            best = Some((seconds, compiled.plan, chosen));
        }
    }
    let nothing = || format!("no standard algorithm does {} on {} ranks", cell.collective.name(), cell.ranks);
    let (_, plan, chosen) = best.ok_or_else(nothing)?;
    let call = chosen.best.map(|best| best.0);
    let sliced = plan.header.schedule.slice_bytes.is_some();
    let job = Job {
        slot_bytes: call.map(|call| call.slice_bytes).filter(|_| !sliced),
        slots: call.map(|call| call.slots),
        ..Job::new(shape)
    };
    let geometry = Geometry::of(&plan, &job).map_err(|error| error.to_string())?;
    Ok(Planned { plan, geometry })
}

#[cfg(test)]
mod tests {
    use super::{plans, said, shape};
    use crate::cell::{ALL, Cell, Collective};

    #[test]
    fn every_collective_has_a_plan_for_every_root_and_plain_buffers_are_not_reached_into() {
        for collective in ALL {
            let cell = Cell::new(collective, 3, 3000);
            for registered in [false, true] {
                let found = plans(&cell, registered).expect("a plan");
                assert_eq!(found.len(), if collective == Collective::Broadcast { 3 } else { 1 });
                for planned in &found {
                    assert_eq!(planned.plan.header.collective, collective.name());
                    let forms = planned.plan.header.forms;
                    assert!(if shape(&cell).in_place { forms.same } else { forms.disjoint });
                    assert!(registered || said(planned).contains(" messages "), "{}", said(planned));
                }
            }
        }
    }
}
