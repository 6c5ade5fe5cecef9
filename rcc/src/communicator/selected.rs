//! Plans of standard calls, for those who do more with them than to call them.
//!
//! In: a call of a standard collective, in data. Out: the plan that it would run, opened: to be called by the names of its buffers, combined
//! by an operator of the user's own, or run several at once by the runtime's communicator.

use std::sync::Arc;

use runtime::comm::PlanId;
use runtime::error::{Error, Kind};
use runtime::exec::operator::Operator;

use super::key::Call;
use super::{Algorithm, Communicator, no_rank};
use crate::select::StandardCall;

impl Communicator {
    /// The plan that a call would run, also where it is small enough to go without one. It serves calls of other counts, too. All ranks ask
    /// for the same. Sendrecv and alltonext have no calls here.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a call that there is not; and as for the first call of its kind.
    pub fn select(&mut self, call: &StandardCall) -> Result<Algorithm, Error> {
        let call = self.standard(call)?;
        Ok(Algorithm(self.ready(&call)?.plan))
    }

    /// A call, if there is such a one.
    #[inline]
    pub(super) fn standard(&self, call: &StandardCall) -> Result<Call, Error> {
        let StandardCall { collective, elements, dtype, op, root, in_place, registered } = *call;
        let invalid = |message: String| Err(Error::new(Kind::Invalid, message));
        if !collective.has_call() {
            return invalid(format!("there is no call of {collective} to select a plan for"));
        }
        if collective.is_rooted() != root.is_some() {
            let has = if root.is_some() { "has no root" } else { "needs a root" };
            return invalid(format!("a call of {collective} {has}"));
        }
        if let Some(root) = root.filter(|&root| root >= self.world()) {
            return Err(no_rank(root, self.world()));
        }
        if in_place && !collective.runs_in_place() {
            return invalid(format!("{collective} does not run in place"));
        }
        let blocks = collective.blocks(self.world());
        Ok(Call { collective, elements, blocks, dtype, op, root, in_place, registered })
    }

    /// The same plan, combining by an operator of the user's own, which takes the place of [`Op::Sum`](crate::Op).
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the operator's name is empty or too long.
    pub fn reducing(
        &mut self,
        algorithm: Algorithm,
        operator: Arc<dyn Operator>,
    ) -> Result<Algorithm, Error> {
        Ok(Algorithm(self.inner.reducing(algorithm.0, operator)?))
    }
}

impl Algorithm {
    /// What the runtime's communicator ([`Communicator::runtime`]) knows it by: for scopes, groups, and calls that own their buffers.
    pub fn plan_id(self) -> PlanId {
        self.0
    }
}
