//! A client of a session: it draws transactions, sends their statements, and notes what it is told.

use std::rc::Rc;

use super::connection::{Connection, Reply, Sent};
use super::deed::{Deed, Effect, Rows};
use super::{BALANCE, Node};
use crate::client::{Client, Observer};
use crate::workload::append::End;

/// Attempts at a transaction at most.
const ATTEMPTS: usize = 6;
/// The longest time that a client which is going to vanish stays, in nanoseconds.
const STAYS_NS: u64 = 2_000_000;
/// How long a client waits before it looks again whether the tables are there, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// Errors that any statement may meet: conflicts, doubts, timeouts, nodes out of reach, full disks.
const USUAL: [&str; 8] = ["40001", "40003", "55P03", "57014", "57P03", "72000", "25P02", "53100"];

/// What a client has of SQL.
pub(crate) struct Caller {
    node: Rc<Node>,
    connection: Option<Connection>,
    /// Whether it has seen that the tables are there.
    has_begun: bool,
}

/// Why a transaction does not go on.
enum Stop {
    /// The session has told an error.
    Refused(String),
    /// There is no session any more.
    Gone,
}

/// A statement, and what to do with the answer.
struct Step {
    label: &'static str,
    statements: Vec<String>,
    /// Errors that are right.
    may_fail: &'static [&'static str],
    /// What it does if it is carried out.
    effect: Option<Effect>,
    reads: Reads,
}

/// What a step's rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    /// A list; no row is one that is not there.
    List(u64),
    /// The same, and no row tells nothing.
    ListIfThere(u64),
    /// Lists with their numbers, but only those that are there.
    Lists,
    /// The number and the sum of accounts.
    Sum,
    /// A number of the sequence.
    Number,
    /// Ids of rows that were removed.
    Removed(Rows),
}

impl Step {
    fn new(label: &'static str, statements: Vec<String>) -> Step {
        Step { label, statements, may_fail: &[], effect: None, reads: Reads::Nothing }
    }

    fn one(label: &'static str, statement: String) -> Step {
        Step::new(label, vec![statement])
    }

    fn may_fail(self, may_fail: &'static [&'static str]) -> Step {
        Step { may_fail, ..self }
    }

    fn doing(self, effect: Effect) -> Step {
        Step { effect: Some(effect), ..self }
    }

    fn reading(self, reads: Reads) -> Step {
        Step { reads, ..self }
    }
}

impl Caller {
    /// One that has no session yet.
    pub(crate) fn new(node: Rc<Node>) -> Caller {
        Caller { node, connection: None, has_begun: false }
    }
}

impl<O: Observer> Client<O> {
    /// Runs one transaction. Its lists, accounts, seats and parents have numbers below `keys`.
    pub(crate) async fn sql(&mut self, caller: &mut Caller, keys: u64) {
        Turn { client: self, caller, keys, until_ns: None, sums: Vec::new() }.go().await;
    }
}

/// A client while it tries one transaction.
struct Turn<'a, O> {
    client: &'a mut Client<O>,
    caller: &'a mut Caller,
    keys: u64,
    /// When the client vanishes, by the shard's clock.
    until_ns: Option<u64>,
    /// Wrong sums that it was told.
    sums: Vec<String>,
}

impl<O: Observer> Turn<'_, O> {
    /// Tries it, again and again if it fails.
    async fn go(&mut self) {
        while !self.caller.has_begun {
            let asked = self.ask("select 1 from list limit 1").await;
            self.caller.has_begun = matches!(asked, Ok(Reply { error: None, .. }));
            if !self.caller.has_begun {
                self.caller.connection = None;
                self.client.shard.sleep(LOOK_NS).await;
            }
        }
        let vanishes = self.client.one_in(12);
        for tries in 0..ATTEMPTS {
            let begin = self.client.begin();
            let moment = self.client.observer.moment();
            let (session, how) = (self.client.session, End::Aborted);
            self.client.left.deeds.all.push(Deed {
                session,
                begin: moment,
                end: moment,
                how,
                effects: Vec::new(),
            });
            let now_ns = self.client.shard.clock().0;
            self.until_ns = (vanishes && tries == 0).then(|| now_ns + self.client.rng.below(STAYS_NS));
            let ended = match self.client.rng.below(8) {
                0..=2 => self.single().await,
                3 => self.look().await,
                _ => self.block().await,
            };
            let end = self.client.observer.moment();
            let deed = self.deed();
            deed.end = end;
            deed.how = match &ended {
                Ok(()) => End::Committed,
                Err(Stop::Refused(state)) if state != "40003" => End::Aborted,
                Err(_) => deed.how,
            };
            let how = deed.how;
            // Locks whose node was cut off are given to others, and what was read under them and
            // under later ones need not fit. Then the commit is refused.
            let counts = !self.client.pair.has_locks() || how == End::Committed;
            let sums = self.sums.drain(..).filter(|_| counts);
            self.client.left.broken.extend(sums);
            match ended {
                Ok(()) => return,
                Err(Stop::Gone) => self.leave(),
                Err(Stop::Refused(_)) => {
                    self.client.left.aborts += u64::from(how == End::Aborted);
                    if self.ask("rollback").await.is_err() {
                        self.leave();
                    }
                }
            }
            self.client.back_off(tries, begin).await;
        }
    }

    fn deed(&mut self) -> &mut Deed {
        self.client.left.deeds.all.last_mut().expect("a transaction has begun")
    }

    /// Goes away, and leaves the session to notice it or takes it along.
    fn leave(&mut self) {
        if let Some(connection) = self.caller.connection.take()
            && self.client.one_in(2)
        {
            self.client.shard.start(connection.close());
        }
    }

    /// Sends a text and waits for the answer, until `until_ns` of the shard's clock.
    async fn ask(&mut self, text: &str) -> Result<Reply, Stop> {
        if self.caller.connection.is_none() {
            let mut connection = self.caller.node.connect(&self.client.shard);
            connection.answer(None).await.ok_or(Stop::Gone)?;
            let setting = match self.client.rng.below(8) {
                0 | 1 => Some("set lock_timeout = '3ms'"),
                2 => Some("set statement_timeout = '20ms'"),
                _ => None,
            };
            if let Some(setting) = setting {
                connection.ask(setting, Sent::Simple, None).await.ok_or(Stop::Gone)?;
            }
            self.caller.connection = Some(connection);
        }
        let Some(connection) = &mut self.caller.connection else { return Err(Stop::Gone) };
        let is_one = !text.contains(';');
        let sent = if is_one && self.client.rng.below(4) == 0 { Sent::Extended } else { Sent::Simple };
        let shard = &self.client.shard;
        let patience = self.until_ns.map(|until_ns| shard.sleep(until_ns.saturating_sub(shard.clock().0)));
        connection.ask(text, sent, patience).await.ok_or(Stop::Gone)
    }

    /// The same for what must not fail with an error that is not among these.
    async fn say(&mut self, (label, text): (&'static str, &str), may_fail: &[&str]) -> Result<Reply, Stop> {
        let reply = self.ask(text).await?;
        let state = reply.error.as_ref().map_or("", |(state, _)| state);
        *self.client.left.deeds.told.entry((label, state.to_owned())).or_default() += 1;
        match reply.error {
            None => Ok(reply),
            Some((state, why)) => {
                if !USUAL.contains(&&*state) && !may_fail.contains(&&*state) {
                    self.client
                        .left
                        .broken
                        .push(format!("session {}: {text}: {state}: {why}", self.client.session));
                }
                Err(Stop::Refused(state))
            }
        }
    }

    /// A step that is a transaction.
    async fn single(&mut self) -> Result<(), Stop> {
        let step = match self.client.one_in(10) {
            true => self.definition(),
            false => self.step(),
        };
        // Who is not answered has to know what it may have removed.
        if matches!(step.reads, Reads::Removed(_)) {
            return self.block().await;
        }
        let text = step.statements.join("; ");
        self.deed().effects.extend(step.effect.clone());
        self.deed().how = End::Unknown;
        let reply = self.say((step.label, &text), step.may_fail).await?;
        self.told(&step, &reply);
        Ok(())
    }

    /// A transaction that only reads, some lists and the sum, at one snapshot.
    async fn look(&mut self) -> Result<(), Stop> {
        self.say(("begin", "begin read only"), &[]).await?;
        for _ in 0..1 + self.client.rng.below(4) {
            let step = match self.client.rng.below(4) {
                0 => sum(),
                1 => lists(),
                _ => list(self.client.rng.below(self.keys), ""),
            };
            let reply = self.say((step.label, &step.statements[0]), &[]).await?;
            self.told(&step, &reply);
            self.client.dawdle().await;
        }
        self.say(("commit", "commit"), &[]).await?;
        Ok(())
    }

    /// Some steps in a block, with savepoints.
    async fn block(&mut self) -> Result<(), Stop> {
        self.say(("begin", "begin"), &[]).await?;
        // How many effects there were at the savepoint.
        let mut savepoint = None;
        for _ in 0..1 + self.client.rng.below(5) {
            if self.client.one_in(5) {
                self.say(("savepoint", "savepoint s"), &[]).await?;
                savepoint = Some(self.deed().effects.len());
            }
            let step = if self.client.one_in(40) { self.definition() } else { self.step() };
            let done = self.in_block(&step).await;
            let goes_back = match &done {
                Ok(()) => self.client.one_in(8),
                // A conflict ends the block, whatever is undone, but not every client knows that.
                Err(Stop::Refused(state)) => {
                    step.may_fail.contains(&&**state) || savepoint.is_some() && self.client.one_in(2)
                }
                Err(Stop::Gone) => false,
            };
            match savepoint {
                Some(mark) if goes_back => {
                    let back = ("rollback to", "rollback to s");
                    self.say(back, &[]).await?;
                    let mut undone = self.deed().effects.split_off(mark);
                    undone.retain(|effect| matches!(effect, Effect::Read(..)));
                    self.deed().effects.extend(undone);
                }
                _ => done?,
            }
            self.client.dawdle().await;
        }
        if self.client.one_in(12) {
            return Err(Stop::Refused("rollback".to_owned()));
        }
        self.deed().how = End::Unknown;
        self.say(("commit", "commit"), &[]).await?;
        Ok(())
    }

    async fn in_block(&mut self, step: &Step) -> Result<(), Stop> {
        self.deed().effects.extend(step.effect.clone());
        let mut all = Reply::default();
        for statement in &step.statements {
            let reply = self.say((step.label, statement), step.may_fail).await?;
            all.rows.extend(reply.rows);
            all.tags.extend(reply.tags);
        }
        self.told(step, &all);
        Ok(())
    }

    /// Something to do with a table.
    fn step(&mut self) -> Step {
        let (key, number) = (self.client.rng.below(self.keys), self.client.next_number());
        match self.client.rng.below(18) {
            0..=4 => self.append(key, number),
            5 => list(key, ""),
            6 => list(key, " for update"),
            7 => list(key, " for update nowait").may_fail(&["55P03"]),
            8 => Step { reads: Reads::ListIfThere(key), ..list(key, " for update skip locked") },
            9 => lists(),
            10..=12 => self.transfer(number),
            13 => match self.client.one_in(3) {
                false => {
                    let text = format!("insert into ticket (id, seat) values ({number}, {key})");
                    Step::one("take seat", text)
                        .doing(Effect::Insert(Rows::Tickets, number))
                        .may_fail(&["23505"])
                }
                true => {
                    Step::one("leave seat", format!("delete from ticket where seat = {key} returning id"))
                        .reading(Reads::Removed(Rows::Tickets))
                }
            },
            14 => {
                let text = format!("insert into child (id, parent) values ({number}, {key})");
                Step::one("child", text).doing(Effect::Insert(Rows::Children, number)).may_fail(&["23503"])
            }
            15 => match self.client.rng.below(3) {
                0 => Step::one("remove parent", format!("delete from parent where id = {key}"))
                    .may_fail(&["23503"]),
                1 => Step::one("parent", format!("insert into parent values ({key}) on conflict do nothing")),
                _ => {
                    let text = format!("delete from child where parent = {key} returning id");
                    Step::one("remove children", text).reading(Reads::Removed(Rows::Children))
                }
            },
            16 => sum(),
            _ => Step::one("number", "select nextval('number')".to_owned()).reading(Reads::Number),
        }
    }

    /// Appends to a list. Those with odd numbers may not be there.
    fn append(&mut self, list: u64, number: u64) -> Step {
        let reads = self.client.one_in(2);
        let returning = if reads { " returning v" } else { "" };
        let text = match list.is_multiple_of(2) && self.client.one_in(2) {
            true => format!("update list set v = v || '{number},' where id = {list}{returning}"),
            false => format!(
                "insert into list values ({list}, '{number},') on conflict (id) do update set v = list.v || \
                 excluded.v{returning}"
            ),
        };
        let step = Step::one("append", text).doing(Effect::Append(list, number));
        if reads { step.reading(Reads::List(list)) } else { step }
    }

    fn transfer(&mut self, number: u64) -> Step {
        let (source, target) = (self.client.rng.below(self.keys), self.client.rng.below(self.keys));
        let amount = self.client.rng.below(9);
        let mut statements = vec![
            format!("update account set balance = balance - {amount} where id = {source}"),
            format!("update account set balance = balance + {amount} where id = {target}"),
            format!(
                "insert into transfer (id, source, target, amount) values ({number}, {source}, {target}, {amount})"
            ),
        ];
        if self.client.one_in(3) {
            statements.insert(
                0,
                format!("select balance from account where id in ({source}, {target}) for update"),
            );
        }
        Step::new("transfer", statements).doing(Effect::Insert(Rows::Transfers, number))
    }

    /// Something that changes what a table is.
    fn definition(&mut self) -> Step {
        let index = self.client.rng.below(2);
        let (label, text) = match self.client.rng.below(8) {
            0..=2 => {
                let columns = ["balance", "zone, balance desc"][self.client.rng.below(2) as usize];
                ("create index", format!("create index account_{index} on account ({columns})"))
            }
            3 => ("create index", format!("create unique index ticket_{index} on ticket (seat, id)")),
            4 => ("drop index", format!("drop index account_{index}")),
            5 => ("drop index", format!("drop index ticket_{index}")),
            6 => ("add column", format!("alter table account add column extra_{index} int default 7")),
            _ => ("drop column", format!("alter table account drop column extra_{index}")),
        };
        // There already, or not there; or dropped by another session while it was made.
        Step::one(label, text).may_fail(&["42P07", "42704", "42701", "42703", "55000"])
    }

    /// Takes in what the answer to a step tells.
    fn told(&mut self, step: &Step, reply: &Reply) {
        let number = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse::<u64>().ok();
        match step.reads {
            Reads::Nothing => {}
            Reads::ListIfThere(_) if reply.rows.is_empty() => {}
            Reads::List(list) | Reads::ListIfThere(list) => {
                self.read(list, reply.value().unwrap_or_default());
            }
            Reads::Lists => {
                for row in &reply.rows {
                    if let [Some(list), Some(value)] = &row[..] {
                        self.read(list.parse().unwrap_or(u64::MAX), value);
                    }
                }
            }
            Reads::Sum => {
                let is_sum = |row: &Vec<Option<String>>| {
                    let numbers: Vec<i64> =
                        row.iter().flatten().filter_map(|value| value.parse().ok()).collect();
                    matches!(numbers[..], [count, sum] if count > 0 && sum == count * BALANCE)
                };
                if !reply.rows.iter().any(is_sum) {
                    self.sums.push(format!("the accounts have {:?}", reply.rows));
                }
            }
            Reads::Number => {
                let given = reply.value().and_then(|value| value.parse::<i64>().ok());
                self.client.left.deeds.numbers.extend(given);
            }
            Reads::Removed(rows) => {
                let ids: Vec<u64> = reply.rows.iter().filter_map(number).collect();
                if !ids.is_empty() {
                    self.deed().effects.push(Effect::Remove(rows, ids));
                }
            }
        }
    }

    /// A list was read. What the transaction has appended itself stands at its end.
    fn read(&mut self, list: u64, value: &str) {
        let mut numbers = numbers(value);
        let own: Vec<u64> = (self.deed().effects.iter())
            .filter_map(|effect| match *effect {
                Effect::Append(of, number) if of == list => Some(number),
                _ => None,
            })
            .collect();
        if !numbers.ends_with(&own) {
            self.client.left.broken.push(format!(
                "a transaction was told that list {list} is {value:?}, and had appended {own:?}"
            ));
            return;
        }
        numbers.truncate(numbers.len() - own.len());
        self.deed().effects.push(Effect::Read(list, numbers));
    }
}

/// The numbers of a list.
pub(super) fn numbers(value: &str) -> Vec<u64> {
    value.split_terminator(',').map(|number| number.parse().unwrap_or(0)).collect()
}

fn list(list: u64, locking: &str) -> Step {
    Step::one("read", format!("select v from list where id = {list}{locking}")).reading(Reads::List(list))
}

fn lists() -> Step {
    Step::one("read all", "select id, v from list order by id".to_owned()).reading(Reads::Lists)
}

fn sum() -> Step {
    Step::one("sum", "select count(*), sum(balance) from account".to_owned()).reading(Reads::Sum)
}
