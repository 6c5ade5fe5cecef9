//! Labels of statements, and the channels that a schedule gives them.
//!
//! In: labelled statements as they are met, the schedule of the algorithm at hand. Out: [`Lane`]s. The one hard idea: the
//! expression stands in the schedule and means what it would mean at the label: the variables are those in scope there
//! (of a labelled loop, its own among them), the functions those of the text that the schedule stands in.

use grammar::ast;
use grammar::span::Span;
use rustc_hash::FxHashMap;

use super::Checker;
use super::checked::{AlgorithmId, ExprId, Lane, Stmt};
use super::error::{ErrorKind, NameKind};
use super::scope::Scope;

/// The labels of one body.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// The algorithm.
    pub algorithm: Option<AlgorithmId>,
    seen: FxHashMap<String, Span>,
    names: Vec<String>,
}

/// A label with its expressions, checked in the scope at hand.
pub(crate) struct Addressed {
    label: String,
    span: Span,
    channels: Vec<(usize, ExprId)>,
}

impl Addressed {
    /// Around statements.
    pub(crate) fn around(self, body: Vec<Stmt>) -> Stmt {
        let Addressed { label, span, channels } = self;
        Stmt::Lane(Box::new(Lane { label, span, channels, body }))
    }
}

impl Checker<'_> {
    /// A label that is met; what the schedule says of it, if it does, checked in `scope`.
    pub(crate) fn label(
        &mut self,
        scope: &mut Scope,
        labels: &mut Labels,
        label: &ast::Ident,
        span: Span,
    ) -> Option<Addressed> {
        if let Some(&first) = labels.seen.get(&label.name) {
            self.error(label.span, ErrorKind::LabelTwice { name: label.name.clone(), first });
            return None;
        }
        labels.seen.insert(label.name.clone(), label.span);
        labels.names.push(label.name.clone());
        let found = self.schedules.get(labels.algorithm?.index())?.as_ref()?;
        let unit = found.unit;
        let blocks = found.by_label.get(label.name.as_str())?.iter().map(|&at| found.labels[at as usize]);
        let values: Vec<(usize, &ast::Expr)> =
            blocks.filter_map(|(level, block)| Some((level, &block.channels.first()?.0))).collect();
        if values.is_empty() {
            return None;
        }
        let outer = std::mem::replace(&mut scope.unit, unit);
        let before = self.errors.len();
        let channels = values.into_iter().map(|(level, value)| (level, self.int(scope, value))).collect();
        scope.unit = outer;
        // Variables are looked for at the label, not where the expression stands.
        for error in &mut self.errors[before..] {
            if let ErrorKind::UnknownName { kind: NameKind::Variable, of, .. } = &mut error.kind {
                *of = Some(format!("'{}", label.name));
            }
        }
        self.program.lanes = true;
        Some(Addressed { label: label.name.clone(), span, channels })
    }

    /// Reports labels of the algorithm's schedule that its body does not have.
    pub(crate) fn unknown_labels(&mut self, labels: &Labels) {
        let Some(Some(found)) = labels.algorithm.and_then(|id| self.schedules.get(id.index())) else {
            return;
        };
        let unknown: Vec<ast::Ident> = found
            .labels
            .iter()
            .filter(|(_, block)| !labels.seen.contains_key(&block.label.name))
            .map(|(_, block)| block.label.clone())
            .collect();
        for label in unknown {
            let nearest = self.nearest(&label.name, labels.names.iter().map(String::as_str)).pop();
            let algorithm = labels.algorithm.map(|id| self.program.algorithm(id));
            let (of, declared) =
                algorithm.map_or((String::new(), label.span), |a| (a.name.clone(), a.name_span));
            let none = labels.names.is_empty();
            let kind = ErrorKind::UnknownLabel { name: label.name, nearest, of, declared, none };
            self.error(label.span, kind);
        }
    }
}
