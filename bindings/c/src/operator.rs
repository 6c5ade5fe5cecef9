//! Operators that are made: a sum with a factor, and functions of the caller's.
//!
//! In: a factor, or a C function. Out: a number that calls take as their operator. They belong to no communicator: any call of any
//! may use them.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use rcc::{Dtype, Error, Operator};

use crate::handle::Table;
use crate::status::{guard, invalid, rcc_status_t};
use crate::strings::{out, words};
use crate::values::{Combine, dtype, dtype_number, rcc_dtype_t, rcc_op_t};

/// A function that combines elements: into[i] = into[i] o other[i], for `count` elements of the type that
/// the operator was made for. Both begin at multiples of 64 bytes. It must be associative and commutative,
/// and give the same for the same operands at all ranks. Whichever thread drives the call calls it, several
/// at once. It must return: no exception, no longjmp, no thread's end; and it makes no calls of rcc.
/// `context` is what rcc_op_create was given.
pub type rcc_combine_t = Option<
    unsafe extern "C" fn(
        into: *mut c_void,
        other: *const c_void,
        count: usize,
        dtype: rcc_dtype_t,
        context: *mut c_void,
    ),
>;

/// A function of the caller's, and what it is of.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) dtype: Dtype,
}

/// The function of an operator.
struct Function {
    name: String,
    combine: unsafe extern "C" fn(*mut c_void, *const c_void, usize, rcc_dtype_t, *mut c_void),
    dtype: Dtype,
    context: Context,
}

/// A pointer that only the caller's function looks at.
struct Context(*mut c_void);

// SAFETY: whoever made the operator has promised that its function may be called with it from any thread.
unsafe impl Send for Context {}
// SAFETY: as above, by several at once.
unsafe impl Sync for Context {}

/// What lies aside is the operator itself: it is only ever looked at.
static OPERATORS: Table<(), Combine> = Table::new("operator", 3);

impl Operator for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn combine(&self, into: &mut [u8], other: &[u8]) {
        let count = into.len() / self.dtype.size() as usize;
        let (to, from) = (into.as_mut_ptr().cast(), other.as_ptr().cast());
        // SAFETY: the caller of `rcc_op_create` has promised that the function combines elements of this type; both have as many.
        unsafe { (self.combine)(to, from, count, dtype_number(self.dtype), self.context.0) };
    }
}

/// The operator of a handle.
pub(crate) fn made(given: rcc_op_t) -> Result<Combine, Error> {
    match OPERATORS.aside(given)? {
        Combine::Own(_, own) => Ok(Combine::Own(given, own)),
        op => Ok(op),
    }
}

/// Makes an operator: the sum of elements that are each multiplied by `factor` before. Integers only by whole
/// numbers that their type holds. Where there is one rank nothing is combined, and nothing multiplied.
///
/// # Safety
/// `op` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_op_premul_sum(factor: f64, op: *mut rcc_op_t) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let op = unsafe { out(op, 0, "op") }?;
        *op = OPERATORS.add((), Combine::scaled(factor))?;
        Ok(())
    })
}

/// Makes an operator of a function, for elements of one type. All ranks give the same one under the same
/// name, of 1 to 64 bytes: ranks that combine by operators of other names are told. It takes the place of
/// RCC_SUM in any call that reduces, of any communicator.
///
/// # Safety
/// `name` is text that ends with a NUL, or NULL, which is refused; `combine` is as rcc_combine_t says for
/// as long as calls with it may be under way; `op` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_op_create(
    name: *const c_char,
    dtype: MaybeUninit<rcc_dtype_t>,
    combine: rcc_combine_t,
    context: *mut c_void,
    op: *mut rcc_op_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let op = unsafe { out(op, 0, "op") }?;
        // SAFETY: the caller's promise.
        let name = unsafe { words(name, "name") }?.to_string();
        let dtype = self::dtype(dtype)?;
        let combine = combine.ok_or_else(|| invalid("the function that combines is NULL"))?;
        let most = runtime::exec::operator::MOST_NAME;
        if name.is_empty() || name.len() > most || name.chars().any(char::is_control) {
            let message = format!("`{}` cannot be the name of an operator", name.escape_debug());
            return Err(
                invalid(message).help(format!("a name has 1 to {most} bytes, and no control characters"))
            );
        }
        let operator: Arc<dyn Operator> =
            Arc::new(Function { name, combine, dtype, context: Context(context) });
        *op = OPERATORS.add((), Combine::Own(0, Own { operator, dtype }))?;
        Ok(())
    })
}

/// Frees an operator that was made. Calls that are under way with it go on. A communicator that has called with one of
/// a function remembers it until it is destroyed: make it once, not for each call.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_op_free(op: rcc_op_t) -> rcc_status_t {
    guard(|| {
        OPERATORS.enter(op)?.remove(|()| ());
        Ok(())
    })
}
