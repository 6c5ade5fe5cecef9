//! What names mean inside one declaration: variables, tables and buffers, one namespace, no shadowing.
//!
//! In: declarations as they come. Out: look-ups. A name is in scope at most once at any time, so one flat map serves
//! all nested scopes; leaving a scope removes what it added.

use grammar::ast::Mode;
use grammar::span::Span;
use rustc_hash::FxHashMap;

use super::checked::{Slot, TableId};
use super::types::{Type, Types};

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entity {
    Variable(Slot, Type),
    /// A table and the type of its elements.
    Table(TableId, Type),
    /// Index into [`Scope::buffers`].
    Buffer(u32),
}

/// A buffer in scope.
#[derive(Debug, Clone)]
pub(crate) struct BufferInfo {
    pub name: String,
    pub span: Span,
    /// None: scratch.
    pub mode: Option<Mode>,
    /// Declared with a number of blocks.
    pub blocks: bool,
}

/// The names of one algorithm, collective or function.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The unit that it stands in.
    pub unit: usize,
    pub buffers: Vec<BufferInfo>,
    /// The name of an algorithm's collective.
    pub collective: String,
    /// The number of levels of its world; none in a function.
    pub levels: usize,
    pub world: Span,
    /// `self` means something here.
    pub self_allowed: bool,
    pub types: Types,
    /// How deep statements and expressions nest at this point.
    pub depth: u32,
    names: FxHashMap<String, (Entity, Span)>,
    order: Vec<String>,
    next: u32,
    frame: u32,
}

/// A point to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    names: usize,
    next: u32,
}

impl Scope {
    /// An empty scope whose frame starts with `reserved` slots.
    pub(crate) fn new(unit: usize, world: Span, levels: usize, reserved: u32) -> Scope {
        Scope {
            unit,
            buffers: Vec::new(),
            collective: String::new(),
            levels,
            world,
            self_allowed: false,
            types: Types::default(),
            depth: 0,
            names: FxHashMap::default(),
            order: Vec::new(),
            next: reserved,
            frame: reserved,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<(Entity, Span)> {
        self.names.get(name).copied()
    }

    /// Adds a name; if it is taken already, tells by whom and changes nothing.
    pub(crate) fn declare(&mut self, name: &str, span: Span, entity: Entity) -> Result<(), Span> {
        if let Some(&(_, outer)) = self.names.get(name) {
            return Err(outer);
        }
        self.names.insert(name.to_owned(), (entity, span));
        self.order.push(name.to_owned());
        Ok(())
    }

    /// A slot that nothing in scope uses.
    pub(crate) fn slot(&mut self) -> Slot {
        self.next += 1;
        self.frame = self.frame.max(self.next);
        Slot(self.next - 1)
    }

    /// The slots that the frame needs.
    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { names: self.order.len(), next: self.next }
    }

    /// Forgets all names since `mark`.
    pub(crate) fn leave(&mut self, mark: Mark) {
        for name in self.order.drain(mark.names..) {
            self.names.remove(&name);
        }
        self.next = mark.next;
    }

    /// All names in scope with what they stand for, oldest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, Entity)> {
        self.order.iter().filter_map(|name| self.names.get(name).map(|&(entity, _)| (name.as_str(), entity)))
    }
}
