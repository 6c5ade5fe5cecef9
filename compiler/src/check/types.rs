//! The types of expressions, and inference for functions, whose parameters carry none.
//!
//! In: what each operator needs. Out: the type of every expression. Parameters of a `fn` are integers or truth
//! values by use: each starts as a variable, and unification (union by index) finds out. One that no use decides
//! stays a variable, and each call may choose.

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A 64-bit integer.
    Int,
    /// true or false.
    Bool,
    /// A table, which is no value by itself.
    Table,
    /// A buffer, which is no value by itself.
    Buffer,
    /// Not known yet (in functions), an index of `Types`.
    Unknown(u32),
    /// Something wrong was reported already; agrees with everything.
    Wrong,
}

/// The type variables of one function.
#[derive(Debug, Default)]
pub(crate) struct Types {
    known: Vec<Option<Type>>,
}

/// The type of a function: variables are numbered from 0 in it.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub params: Vec<Type>,
    pub result: Type,
}

impl Types {
    pub(crate) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Unknown(self.known.len() as u32 - 1)
    }

    /// What is known of a type by now.
    pub(crate) fn resolve(&self, mut ty: Type) -> Type {
        while let Type::Unknown(i) = ty {
            match self.known[i as usize] {
                Some(next) => ty = next,
                None => break,
            }
        }
        ty
    }

    /// Makes two types one; false if they are not.
    pub(crate) fn unify(&mut self, a: Type, b: Type) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (Type::Wrong, _) | (_, Type::Wrong) => true,
            (Type::Unknown(i), Type::Unknown(j)) if i == j => true,
            (Type::Unknown(i), other) | (other, Type::Unknown(i)) => {
                let value = matches!(other, Type::Int | Type::Bool | Type::Unknown(_));
                if value {
                    self.known[i as usize] = Some(other);
                }
                value
            }
            (a, b) => a == b,
        }
    }

    /// The signature of a function whose parameters and result have these types.
    pub(crate) fn generalise(&self, params: &[Type], result: Type) -> Signature {
        Signature { params: params.iter().map(|&p| self.resolve(p)).collect(), result: self.resolve(result) }
    }

    /// A signature with fresh variables for those that its function left open.
    pub(crate) fn instantiate(&mut self, signature: &Signature) -> Signature {
        let mut fresh: Vec<(u32, Type)> = Vec::new();
        let mut own = |types: &mut Types, ty: Type| match ty {
            Type::Unknown(i) => match fresh.iter().find(|(old, _)| *old == i) {
                Some(&(_, new)) => new,
                None => {
                    let new = types.fresh();
                    fresh.push((i, new));
                    new
                }
            },
            other => other,
        };
        let params = signature.params.iter().map(|&p| own(self, p)).collect();
        let result = own(self, signature.result);
        Signature { params, result }
    }
}
