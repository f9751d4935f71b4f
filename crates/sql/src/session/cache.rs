//! Statements that have been understood before.
//!
//! A statement's text without its literals tells what it is ([`literals`]). The second time that a
//! session meets such a text it plans the statement with parameters in the places of the literals,
//! where a parameter means the same, and from then on only reads the literals. Where a parameter
//! might mean something else (a type, a position in `ORDER BY`, a number of rows, an argument of a
//! function), a literal has to be what it was.
//!
//! A plan is looked at before it runs: if a table has changed, it is made anew. Settings change
//! what literals mean, so with them all plans go.

use std::collections::BTreeMap;
use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, ParamRef, SelectStmt, a_const};

use super::conversation::Session;
use super::portal::{Body, Prepared};
use super::statement::is_query;
use super::{Stop, World};
use crate::analyze::Column;
use crate::parse::Statement;
use crate::parse::literals::{self, Literal, Value};
use crate::types::{self, Datum, Format, Oid};

/// Plans that a session keeps at most.
const PLANS_MAX: usize = 64;

/// A statement that is known, and the values of its literals.
#[derive(Clone)]
pub(super) struct Known {
    /// With parameters in their places.
    pub prepared: Rc<Prepared>,
    /// The values.
    pub parameters: Vec<Datum>,
}

/// What a session knows of texts.
#[derive(Default)]
pub(super) struct Cache {
    /// By the text without literals; none if it was met once, or cannot be planned so.
    plans: BTreeMap<String, Option<Rc<Template>>>,
    /// The generation of settings that they were made under.
    generation: u64,
}

/// A statement without its literals.
struct Template {
    prepared: Rc<Prepared>,
    slots: Vec<Slot>,
}

/// What a literal is.
enum Slot {
    /// A parameter, by its place; of a number perhaps with the minus before it.
    Parameter { place: usize, negated: bool },
    /// It has to be this.
    Fixed(Value),
}

/// A text that is not known.
pub(super) struct Unknown {
    key: String,
    literals: Vec<Literal>,
    /// Whether it was met before.
    is_second: bool,
}

/// What is known of a text.
pub(super) enum Found {
    /// All of it.
    Known(Known),
    /// It may be learnt.
    Unknown(Unknown),
    /// Nothing, and there is nothing to be learnt.
    Nothing,
}

impl<W: World> Session<'_, W> {
    /// What is known of a text of a simple query.
    pub(super) fn find_known(&mut self, text: &str) -> Found {
        let generation = self.settings.generation();
        if self.cache.generation != generation {
            self.cache = Cache { generation, ..Cache::default() };
        }
        let Some((key, literals)) = literals::taken_out(text) else { return Found::Nothing };
        self.show_normal(&key);
        match self.cache.plans.get(&key) {
            None => Found::Unknown(Unknown { key, literals, is_second: false }),
            Some(None) => Found::Unknown(Unknown { key, literals, is_second: true }),
            Some(Some(template)) => match self.values(template, &literals) {
                Some(parameters) => {
                    Found::Known(Known { prepared: Rc::clone(&template.prepared), parameters })
                }
                None => Found::Nothing,
            },
        }
    }

    fn values(&self, template: &Template, literals: &[Literal]) -> Option<Vec<Datum>> {
        let oids = &template.prepared.parameters;
        let mut values = vec![Datum::Null; oids.len()];
        for (slot, literal) in template.slots.iter().zip(literals) {
            let (place, value) = match (slot, &literal.value) {
                (Slot::Fixed(value), literal) if value == literal => continue,
                (Slot::Fixed(_), _) => return None,
                (Slot::Parameter { place, negated }, Value::Integer(number)) => {
                    (*place, Datum::Int4(if *negated { -number } else { *number }))
                }
                (Slot::Parameter { place, .. }, Value::Text(text)) => {
                    let oid = *oids.get(*place)?;
                    // What is wrong with it is told by what understands the statement as it is.
                    (*place, types::decode(oid, Format::Text, text.as_bytes(), &self.style).ok()?)
                }
            };
            *values.get_mut(place)? = value;
        }
        Some(values)
    }

    /// Learns a statement whose result has these columns, if it is met for the second time.
    pub(super) async fn learn(
        &mut self,
        unknown: Unknown,
        statement: &Statement,
        columns: Option<&[Column]>,
    ) -> Result<(), Stop> {
        let Unknown { key, literals, is_second } = unknown;
        if self.cache.plans.len() >= PLANS_MAX {
            self.cache.plans.clear();
        }
        if !is_second || !statement.node.node.as_ref().is_some_and(is_query) {
            self.cache.plans.insert(key, None);
            return Ok(());
        }
        let mut node = Node::clone(&statement.node);
        let slots = literals.iter().map(|_| None).collect();
        let mut holes = Holes { literals: &literals, slots, given: Vec::new() };
        holes.statement(&mut node);
        let Holes { slots, given, .. } = holes;
        let slots: Vec<Slot> = (slots.into_iter().zip(&literals))
            .map(|(slot, literal)| slot.unwrap_or_else(|| Slot::Fixed(literal.value.clone())))
            .collect();
        let planned = match self.plan(&node, &key, &given).await {
            Ok(planned) => planned,
            Err(Stop::Error(_)) => return Ok(()),
            Err(stop) => return Err(stop),
        };
        // What a name in the catalog identifies may change.
        let names = planned.parameters.iter().any(|oid| oid.element().unwrap_or(*oid).is_reference());
        let is_same = planned.parameters.len() == given.len()
            && !names
            && planned.returns_rows().then_some(planned.columns.as_slice()) == columns;
        if is_same {
            let parameters = planned.parameters.clone();
            let node = planned.depends().then(|| Rc::new(node));
            let text = Rc::from(key.as_str());
            let prepared = Rc::new(Prepared { text, node, body: Body::Query(Rc::new(planned)), parameters });
            self.cache.plans.insert(key, Some(Rc::new(Template { prepared, slots })));
        }
        Ok(())
    }
}

/// Literals of a tree that become parameters.
struct Holes<'a> {
    literals: &'a [Literal],
    slots: Vec<Option<Slot>>,
    /// The types of the parameters, as far as they are known.
    given: Vec<Oid>,
}

impl Holes<'_> {
    /// Goes over the parts of a statement in which a parameter means what a literal does.
    fn statement(&mut self, node: &mut Node) {
        match &mut node.node {
            Some(NodeEnum::SelectStmt(select)) => self.select(select),
            Some(NodeEnum::InsertStmt(insert)) => {
                let rows = insert.select_stmt.as_deref_mut().and_then(|rows| rows.node.as_mut());
                if let Some(NodeEnum::SelectStmt(select)) = rows {
                    self.select(select);
                }
            }
            Some(NodeEnum::UpdateStmt(update)) => {
                for target in &mut update.target_list {
                    if let Some(NodeEnum::ResTarget(target)) = &mut target.node {
                        self.optional(&mut target.val);
                    }
                }
                self.optional(&mut update.where_clause);
            }
            Some(NodeEnum::DeleteStmt(delete)) => self.optional(&mut delete.where_clause),
            _ => {}
        }
    }

    fn select(&mut self, select: &mut SelectStmt) {
        self.optional(&mut select.where_clause);
        self.all(&mut select.values_lists);
    }

    fn optional(&mut self, node: &mut Option<Box<Node>>) {
        if let Some(node) = node {
            self.expression(node);
        }
    }

    fn all(&mut self, nodes: &mut [Node]) {
        nodes.iter_mut().for_each(|node| self.expression(node));
    }

    fn expression(&mut self, node: &mut Node) {
        match &mut node.node {
            Some(NodeEnum::AConst(constant)) => {
                let location = constant.location;
                let Some(number) = self.take(location, &constant.val) else { return };
                node.node = Some(NodeEnum::ParamRef(ParamRef { number, location }));
            }
            Some(NodeEnum::AExpr(expr)) => {
                self.optional(&mut expr.lexpr);
                self.optional(&mut expr.rexpr);
            }
            Some(NodeEnum::BoolExpr(expr)) => self.all(&mut expr.args),
            Some(NodeEnum::List(list)) => self.all(&mut list.items),
            _ => {}
        }
    }

    /// Makes a constant a parameter, if it is one of the literals. Returns its number.
    fn take(&mut self, location: i32, value: &Option<a_const::Val>) -> Option<i32> {
        let location = usize::try_from(location).ok()?;
        let is_it = |literal: &Literal| literal.at == location || literal.minus == Some(location);
        let which = self.literals.iter().position(is_it)?;
        let literal = self.literals.get(which)?;
        let negated = literal.at != location;
        let oid = match (value, &literal.value) {
            (Some(a_const::Val::Ival(number)), Value::Integer(value))
                if number.ival == if negated { -value } else { *value } =>
            {
                Oid::INT4
            }
            (Some(a_const::Val::Sval(text)), Value::Text(value)) if !negated && text.sval == *value => {
                Oid::NONE
            }
            _ => return None,
        };
        let slot = self.slots.get_mut(which).filter(|slot| slot.is_none())?;
        *slot = Some(Slot::Parameter { place: self.given.len(), negated });
        self.given.push(oid);
        i32::try_from(self.given.len()).ok()
    }
}
