//! Groups of rows, and the aggregates of each.
//!
//! First all rows come, each into its group; then one group after the other is finished. An
//! aggregate that has an order keeps its rows sorted and takes them when its group is finished, one
//! by one, so that a large group can pause.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::cursor::{Input, Next};
use super::evaluate::{Env, Shared};
use super::fuel::Halt;
use super::rows::{Directed, Key, Row, bulk, hold, hold_row, keyed, weight};
use crate::SqlError;
use crate::analyze::plan::{Aggregated, Expr, Plan};
use crate::functions::{Body, Call, aggregates::State, confused};
use crate::types::{Datum, compare};

/// The state of a grouping.
pub struct Group {
    input: Input,
    groups: BTreeMap<Key, Vec<Running>>,
    /// Whether all rows are in their groups.
    is_complete: bool,
    /// The group that is being finished: what its row has so far, and aggregates that are left.
    finishing: Option<(Row, VecDeque<Running>)>,
}

/// An aggregate that has seen some rows.
struct Running {
    state: State,
    /// Arguments by the keys that they are sorted by, and a number that tells equal keys apart.
    rows: BTreeMap<(Vec<Directed>, usize), Row>,
    /// The last arguments, if equal ones count once.
    last: Option<Row>,
}

/// What a row brings to an aggregate that does not leave it out: arguments and keys of the order.
type Share = Option<(Row, Vec<Directed>)>;

impl Group {
    pub(super) fn new(input: &Plan) -> Group {
        Group { input: Input::new(input), groups: BTreeMap::new(), is_complete: false, finishing: None }
    }

    pub(super) fn next(
        &mut self,
        input: &Plan,
        keys: &[Expr],
        aggregates: &[Aggregated],
        env: &Env<'_>,
    ) -> Next {
        if !self.is_complete {
            self.gather(input, keys, aggregates, env)?;
            self.is_complete = true;
        }
        loop {
            if let Some((row, left)) = &mut self.finishing {
                finish(row, left, aggregates, env)?;
                return Ok(self.finishing.take().map(|(row, _)| row));
            }
            env.fuel().row()?;
            let Some((key, group)) = self.groups.pop_first() else { return Ok(None) };
            self.finishing = Some((key.0, group.into()));
        }
    }

    fn gather(
        &mut self,
        input: &Plan,
        keys: &[Expr],
        aggregates: &[Aggregated],
        env: &Env<'_>,
    ) -> Result<(), Halt> {
        let fresh = || aggregates.iter().map(Running::new).collect::<Result<Vec<Running>, SqlError>>();
        if keys.is_empty() && self.groups.is_empty() {
            // Without keys there is one group, even of no rows.
            self.groups.insert(Key(Vec::new()), fresh()?);
        }
        let places: Option<Vec<Option<usize>>> = aggregates.iter().map(plain).collect();
        if let (true, Some(places), Some(group)) = (keys.is_empty(), places, self.groups.values_mut().next())
        {
            while let Some((row, ())) = self.input.next(input, env, |_| Ok(()))? {
                for ((running, aggregated), place) in group.iter_mut().zip(aggregates).zip(&places) {
                    let argument = place.and_then(|place| row.get(place..=place));
                    running.add_now(aggregated, argument.unwrap_or_default(), env.shared)?;
                }
            }
            return Ok(());
        }
        let shares = |inside: &Env<'_>| -> Result<(Row, Vec<Share>), Halt> {
            let key = inside.values(keys)?;
            Ok((key, aggregates.iter().map(|it| share(it, inside)).collect::<Result<_, Halt>>()?))
        };
        while let Some((_, (key, shares))) = self.input.next(input, env, shares)? {
            let group = match self.groups.entry(keyed(env.shared, key)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    hold_row(env.shared, &entry.key().0, "GROUP BY")?;
                    hold(env.shared, aggregates.len() * std::mem::size_of::<Running>(), "GROUP BY")?;
                    entry.insert(fresh()?)
                }
            };
            for ((running, aggregated), share) in group.iter_mut().zip(aggregates).zip(shares) {
                running.add(aggregated, share, env.shared)?;
            }
        }
        Ok(())
    }
}

/// Finishes the aggregates that are left of a group, and adds their results to its row.
fn finish(
    row: &mut Row,
    left: &mut VecDeque<Running>,
    aggregates: &[Aggregated],
    env: &Env<'_>,
) -> Result<(), Halt> {
    let places = aggregates.len().saturating_sub(left.len())..;
    for aggregated in aggregates.get(places).unwrap_or_default() {
        if let Some(running) = left.front_mut() {
            running.take_sorted(aggregated, env)?;
        }
        if let Some(running) = left.pop_front() {
            let value = running.state.finish(aggregated.result)?;
            env.fuel().burn_bytes(bulk(&value));
            row.push(value);
        }
    }
    Ok(())
}

/// The column that an aggregate takes, or none, if it takes every row as it comes and does not
/// compute: there is nothing to keep of a row, and nothing that could pause.
fn plain(aggregated: &Aggregated) -> Option<Option<usize>> {
    let takes_all = aggregated.filter.is_none() && aggregated.order.is_empty() && !aggregated.distinct;
    match aggregated.arguments.as_slice() {
        [] if takes_all => Some(None),
        [Expr::Column { level: 0, place }] if takes_all => Some(Some(*place)),
        _ => None,
    }
}

/// What a row brings to an aggregate.
fn share(aggregated: &Aggregated, env: &Env<'_>) -> Result<Share, Halt> {
    if let Some(filter) = &aggregated.filter
        && !env.holds(filter)?
    {
        return Ok(None);
    }
    let arguments = env.values(&aggregated.arguments)?;
    let mut keys = Vec::with_capacity(aggregated.order.len());
    for (key, direction) in &aggregated.order {
        keys.push(Directed(env.value(key)?, *direction));
    }
    Ok(Some((arguments, keys)))
}

impl Running {
    fn new(aggregated: &Aggregated) -> Result<Running, SqlError> {
        match aggregated.function.body {
            Body::Aggregate(kind) => {
                Ok(Running { state: State::new(kind), rows: BTreeMap::new(), last: None })
            }
            _ => Err(confused()),
        }
    }

    fn add(&mut self, aggregated: &Aggregated, share: Share, shared: &Shared<'_>) -> Result<(), SqlError> {
        let Some((arguments, keys)) = share else { return Ok(()) };
        if aggregated.order.is_empty() {
            return self.add_now(aggregated, &arguments, shared);
        }
        hold_row(shared, &arguments, "an aggregate")?;
        hold(shared, keys.iter().map(|key| weight(&key.0)).sum(), "an aggregate")?;
        self.rows.insert((keys, self.rows.len()), arguments);
        Ok(())
    }

    /// Adds a row whose order does not count.
    fn add_now(
        &mut self,
        aggregated: &Aggregated,
        arguments: &[Datum],
        shared: &Shared<'_>,
    ) -> Result<(), SqlError> {
        let before = self.state.size();
        self.take(aggregated, arguments, shared)?;
        hold(shared, self.state.size().saturating_sub(before), "an aggregate")
    }

    /// Takes the rows that were kept for their order.
    fn take_sorted(&mut self, aggregated: &Aggregated, env: &Env<'_>) -> Result<(), Halt> {
        while !self.rows.is_empty() {
            env.fuel().row()?;
            let Some((_, arguments)) = self.rows.pop_first() else { break };
            if aggregated.distinct {
                let same = |last: &Row| {
                    last.len() == arguments.len()
                        && last.iter().zip(&arguments).all(|(a, b)| compare::compare(a, b).is_eq())
                };
                if self.last.as_ref().is_some_and(same) {
                    continue;
                }
                self.last = Some(arguments.clone());
            }
            self.take(aggregated, &arguments, env.shared)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        aggregated: &Aggregated,
        arguments: &[Datum],
        shared: &Shared<'_>,
    ) -> Result<(), SqlError> {
        let context = shared.context;
        context.fuel.burn_bytes(arguments.iter().map(bulk).sum());
        let (types, result) = (aggregated.types.as_slice(), aggregated.result);
        self.state.add(&Call { arguments, types, result, context })
    }
}
