//! Runs of the transactions that write, by a client with its market, and what they leave behind.

use std::collections::BTreeMap;

use plimsoll_types::{Abort, Key, ShardId, TableId};
use zerocopy::{FromZeros, IntoBytes};

use super::client::{Card, Client, Turn};
use super::data_maintenance::DataMaintenance;
use super::load;
use super::market_feed::MarketFeed;
use super::numbers::{ISSUES_MAX, Trade, accounts_of};
use super::people;
use super::reference::*;
use super::schema::{self, *};
use super::trade_cleanup::TradeCleanup;
use super::trade_order::TradeOrder;
use super::trade_result::TradeResult;
use super::trade_update::TradeUpdate;
use super::{MarketTime, Parameters, Tpce, Transaction};
use crate::testing::Database;

/// A database with the rows that these transactions need, and a client.
struct Run {
    tpce: Tpce,
    client: Client,
    database: Database,
    /// Balances at the start by account.
    balances: BTreeMap<u32, i64>,
    /// Committed transactions.
    orders: u64,
    rolled_back: u64,
    results: u64,
    entries: u64,
    triggered: u64,
    maintained: u64,
    cards: u64,
    /// Trades shown by the frames of Trade-Update.
    updated: [usize; 3],
    /// Quantity of committed entries.
    fed: i64,
}

fn put(database: &mut Database, layout: Layout, table: TableId, key: &Key, groups: &[&[u8]]) {
    if layout.split {
        for (group, value) in groups.iter().enumerate() {
            database.write(table.group(group as u8), key.clone(), value);
        }
    } else {
        database.write(table.row(), key.clone(), &groups.concat());
    }
}

impl Run {
    fn new(parameters: Parameters) -> Run {
        let tpce = Tpce::new(parameters);
        let (scale, layout) = (tpce.scale(), tpce.layout());
        let mut database = Database::empty(schema::tables(scale, layout.split));
        for unit in 0..load::units(scale) {
            load::load(&tpce, unit, &mut |table, key, groups| {
                for (group, value) in groups.iter().enumerate() {
                    database.write(table.group(group as u8), key.clone(), value);
                }
            });
        }
        let mut balances = BTreeMap::new();
        let customers = (0..scale.homes()).flat_map(|home| scale.customers_of(home));
        for account in customers.flat_map(accounts_of) {
            balances.insert(account, people::account(tpce.parameters(), account).balance);
        }
        let shared = tpce.shared.clone();
        let client = Client::new(tpce.parameters(), shared, 0, ShardId(0), &|_| ShardId(0));
        Run {
            tpce,
            client,
            database,
            balances,
            orders: 0,
            rolled_back: 0,
            results: 0,
            entries: 0,
            triggered: 0,
            maintained: 0,
            cards: 0,
            updated: [0; 3],
            fed: 0,
        }
    }

    fn turns(&mut self, turns: usize) {
        for _ in 0..turns {
            let turn = self.client.turn(&self.tpce);
            self.take(turn);
        }
    }

    fn finish(&mut self) {
        while let Some(turn) = self.client.last_turn(&self.tpce) {
            self.take(turn);
        }
    }

    fn take(&mut self, turn: Turn) {
        let (tpce, client, database) = (&self.tpce, &mut self.client, &mut self.database);
        match turn {
            Turn::Card(Card::TradeOrder) => {
                let mut order = TradeOrder::draw(tpce, client);
                match database.run(&mut order) {
                    Ok(()) => {
                        assert!(!order.rolls_back());
                        client.ordered(tpce, &order);
                        self.orders += 1;
                    }
                    Err(abort) => {
                        assert!(abort == Abort::User && order.rolls_back(), "{abort:?} {order:?}");
                        self.rolled_back += 1;
                    }
                }
            }
            Turn::Card(Card::TradeUpdate) => {
                let mut update = TradeUpdate::draw(tpce, client);
                assert_eq!(database.run(&mut update), Ok(()));
                self.updated[usize::from(update.frame()) - 1] += update.trades().count();
                assert!(database.counts.updated.len() <= update.trades().count());
            }
            Turn::Card(_) => {}
            Turn::Answer(answer) => {
                let mut result = TradeResult::draw(tpce, client, answer);
                assert_eq!(database.run(&mut result), Ok(()), "{result:?}");
                client.completed(tpce, &result);
                self.results += 1;
            }
            Turn::Entry(entry) => {
                let mut feed = MarketFeed::draw(tpce, client, entry);
                assert_eq!(database.run(&mut feed), Ok(()));
                client.fed(&feed);
                self.entries += 1;
                self.triggered += feed.triggered().len() as u64;
                self.fed += i64::from(entry.quantity);
            }
            Turn::Maintenance(number) => {
                let mut maintenance = DataMaintenance::draw(tpce, client, number);
                assert_eq!(database.run(&mut maintenance), Ok(()), "{maintenance:?}");
                assert!(!database.counts.read.is_empty(), "{maintenance:?}");
                self.maintained += 1;
            }
        }
        self.cards += u64::from(matches!(turn, Turn::Card(_)));
    }

    /// All rows of a structure, in the order of their keys.
    fn rows<C: Columns>(&self) -> BTreeMap<Key, C> {
        let layout = self.tpce.layout();
        let rows = self.database.rows(layout.column::<C>());
        rows.map(|(key, record)| (key.clone(), *layout.view::<C>(record).0)).collect()
    }

    fn keys(&self, table: TableId) -> Vec<Key> {
        self.database.rows(table.row()).map(|(key, _)| key.clone()).collect()
    }

    /// Checks what must hold at every moment: the conditions of the specification and others that
    /// follow from the transactions.
    fn check(&self) {
        let scale = self.tpce.scale();
        let orders = self.rows::<schema::TradeOrder>();
        let states = self.rows::<TradeState>();
        let outcomes = self.rows::<TradeOutcome>();
        let settlements = self.rows::<Settlement>();
        let payments = self.rows::<CashTransaction>();
        let accounts = self.rows::<Account>();
        let companies = self.rows::<Company>();
        let mut history: BTreeMap<Trade, Vec<(u8, u64)>> = BTreeMap::new();
        for (key, row) in self.rows::<TradeHistory>() {
            history.entry(keys::first_trade(&key)).or_default().push((keys::status_of(&key), row.date.get()));
        }
        let mut changes: BTreeMap<Trade, i32> = BTreeMap::new();
        for (key, row) in self.rows::<HoldingHistory>() {
            *changes.entry(keys::first_trade(&key)).or_default() += row.after.get() - row.before.get();
        }
        let (mut by_account, mut by_security) = (Vec::new(), Vec::new());
        let (mut requests, mut pending) = (Vec::new(), Vec::new());
        let mut brokers: BTreeMap<u32, (u64, i64)> = BTreeMap::new();
        let mut balances = self.balances.clone();
        for (key, order) in &orders {
            let (trade, state) = (keys::first_trade(key), &states[key]);
            let (account, security, date) = (order.account.get(), order.security.get(), state.date.get());
            by_account.push(keys::by_account(account, date, trade));
            by_security.push(keys::by_security(security, date, trade));
            let states = &history[&trade];
            assert!(states.windows(2).all(|two| two[0].1 <= two[1].1), "{states:?}");
            assert_eq!(states.last(), Some(&(state.status, date)));
            let kind = TradeType::of(order.kind).expect("a type");
            assert_eq!(states[0].0, u8::from(kind.is_market()), "{states:?}");
            let broker = accounts[&keys::number(account)].broker.get();
            if state.status == Status::Pending as u8 {
                requests.push(keys::request(security, order.kind, order.bid.get().into(), trade));
                let company = &companies[&keys::security(security / ISSUES_MAX * ISSUES_MAX)];
                pending.push(keys::by_broker(broker, sector_of(company.industry), trade));
            }
            let completed = state.status == Status::Completed as u8;
            assert_eq!(settlements.contains_key(key), completed);
            assert_eq!(payments.contains_key(key), completed && order.cash > 0);
            let sign = if kind.is_sell() { -1 } else { 1 };
            assert_eq!(changes.get(&trade).copied(), completed.then_some(sign * order.quantity.get()));
            if !completed {
                continue;
            }
            let (settled, outcome) = (&settlements[key], &outcomes[key]);
            let (price, commission) = (i64::from(outcome.price.get()), outcome.commission.get());
            let taxed = accounts[&keys::number(account)].tax_status == 1;
            let withheld = if taxed { outcome.tax.get() } else { 0 };
            let (quantity, charge) = (order.quantity.get(), order.charge.get().into());
            let amount = settlement(kind.is_sell(), quantity, price, charge, commission, withheld);
            assert_eq!(settled.amount.get(), amount);
            assert_eq!(kind.executed_at(order.bid.get().into(), price), price);
            if order.cash > 0 {
                assert_eq!(payments[key].amount.get(), amount);
                let balance = balances.get_mut(&account).expect("the account was loaded");
                *balance += if trade.is_new() { amount } else { 0 };
            }
            let totals = brokers.entry(broker).or_default();
            *totals = (totals.0 + 1, totals.1 + commission);
        }
        by_account.sort();
        by_security.sort();
        requests.sort();
        pending.sort();
        assert_eq!(self.keys(TRADE_BY_ACCOUNT), by_account);
        assert_eq!(self.keys(TRADE_BY_SECURITY), by_security);
        assert_eq!(self.keys(TRADE_REQUEST), requests);
        assert_eq!(self.keys(PENDING_BY_BROKER), pending);
        for (key, row) in self.rows::<BrokerTotals>() {
            let number = (0..scale.brokers()).find(|&number| keys::number(number) == key);
            let expected = number.and_then(|number| brokers.get(&number)).copied().unwrap_or_default();
            assert_eq!((row.trades.get(), row.commissions.get()), expected);
        }
        for (account, balance) in balances {
            let row = self.balance_of(account);
            assert_eq!(row, balance);
        }
        self.check_holdings();
        let volume: i64 = self.rows::<LastTrade>().values().map(|row| row.volume.get()).sum();
        assert_eq!(volume, self.fed);
    }

    fn balance_of(&self, account: u32) -> i64 {
        let layout = self.tpce.layout();
        let record = self.database.read(layout.column::<AccountBalance>(), &keys::number(account));
        layout.view::<AccountBalance>(record.expect("the account was loaded")).0.balance.get()
    }

    fn check_holdings(&self) {
        let mut sums: BTreeMap<Key, i32> = BTreeMap::new();
        for (key, row) in self.rows::<Holding>() {
            let account = key.leading_int(4) as u32;
            let sum = sums.entry(keys::with_security(account, keys::security_of(&key))).or_default();
            let quantity = row.quantity.get();
            assert!(quantity != 0 && i64::from(*sum) * i64::from(quantity) >= 0, "lots of one direction");
            *sum += quantity;
        }
        let summaries = self.rows::<HoldingSummary>();
        let found: BTreeMap<Key, i32> =
            summaries.into_iter().map(|(key, row)| (key, row.quantity.get())).collect();
        assert_eq!(found, sums);
        let by_trade = self.keys(HOLDING_HISTORY);
        let mut by_lot: Vec<Key> = self.keys(HOLDING_HISTORY_BY_LOT);
        by_lot.iter_mut().for_each(|key| {
            *key = keys::two_trades(keys::second_trade(key), keys::first_trade(key));
        });
        by_lot.sort();
        assert_eq!(by_trade, by_lot);
    }
}

#[test]
fn what_a_client_and_its_market_do_leaves_everything_in_agreement() {
    let elsewhere: fn(plimsoll_types::Slot) -> bool = |slot| slot.0 % 2 == 0;
    for (split, here) in [(true, None), (false, None), (true, Some(elsewhere)), (false, Some(elsewhere))] {
        let mut run = Run::new(Parameters { split_columns: split, ..Parameters::small(2) });
        run.database.here = here;
        run.turns(6_000);
        run.check();
        assert!(run.orders > 400 && run.triggered > 50 && run.maintained > 12, "{}", run.orders);
        assert!(run.updated.iter().all(|&shown| shown > 200), "{:?}", run.updated);
        run.finish();
        run.check();
        assert_eq!(run.results, run.orders, "every order was executed");
        assert!(run.keys(TRADE_REQUEST).is_empty());
    }
}

#[test]
fn the_market_answers_as_often_as_the_specification_says() {
    let mut run = Run::new(Parameters::small(2));
    run.turns(2_000);
    let before = (run.cards, run.orders, run.results, run.entries);
    run.turns(20_000);
    let (cards, orders) = (run.cards - before.0, run.orders - before.1);
    let (results, feeds) = (run.results - before.2, (run.entries - before.3) as f64 / 20.0);
    // A Market-Feed of twenty entries counts as one transaction.
    let all = (cards + results) as f64 + feeds;
    let share = |number: f64| 100.0 * number / all;
    assert!((share(results as f64) - 10.0).abs() < 0.3, "{results} of {all}");
    assert!((share(feeds) - 1.0).abs() < 0.3, "{feeds} of {all}");
    assert!((share((orders + run.rolled_back) as f64) - 10.1).abs() < 0.4, "{orders} of {all}");
    assert!(run.client.outstanding_max() < 100, "{}", run.client.outstanding_max());
}

#[test]
fn a_new_client_gives_up_what_an_earlier_one_has_left() {
    for split in [true, false] {
        let mut run = Run::new(Parameters { split_columns: split, ..Parameters::small(2) });
        run.turns(3_000);
        let open = run.orders - run.results;
        assert!(open > 0 && !run.keys(TRADE_REQUEST).is_empty());
        let mut cancelled = 0;
        for &account in run.balances.keys() {
            let mut cleanup = TradeCleanup::new(&run.tpce, account);
            assert_eq!(run.database.run(&mut cleanup), Ok(()));
            cancelled += cleanup.cancelled() as u64;
        }
        assert_eq!(cancelled, open);
        run.check();
        assert!(run.keys(TRADE_REQUEST).is_empty());
        // An answer to one of them comes too late.
        let turn = std::iter::from_fn(|| run.client.last_turn(&run.tpce))
            .find_map(|turn| if let Turn::Answer(answer) = turn { Some(answer) } else { None });
        if let Some(answer) = turn {
            let mut result = TradeResult::draw(&run.tpce, &run.client, answer);
            assert_eq!(run.database.run(&mut result), Err(Abort::User));
        }
    }
}

impl Run {
    /// An account, and a security that it does not trade.
    fn untouched(&self) -> (u32, u32) {
        let account = *self.balances.keys().next().expect("there are accounts");
        let basket = people::account(self.tpce.parameters(), account).basket;
        let scale = self.tpce.scale();
        let mut others = (0..scale.securities()).map(|position| scale.security(position));
        (account, others.find(|security| !basket.contains(security)).expect("it does not trade all"))
    }

    /// Answers an order that some client has left submitted, and what its lots have then: the
    /// quantities by trade.
    fn trade(
        &mut self,
        number: u64,
        kind: TradeType,
        quantity: i32,
        lifo: bool,
        price: i64,
    ) -> Vec<(u64, i32)> {
        let (layout, (account, security)) = (self.tpce.layout(), self.untouched());
        let trade = Trade::of_client(0, 0, number);
        let order = schema::TradeOrder {
            kind: kind as u8,
            cash: 1,
            lifo: lifo.into(),
            security: security.into(),
            quantity: quantity.into(),
            bid: (price as i32).into(),
            account: account.into(),
            charge: 500.into(),
        };
        let state = TradeState { date: 5.into(), status: Status::Submitted as u8 };
        let (outcome, executor) = (TradeOutcome::new_zeroed(), TradeExecutor::new_zeroed());
        let groups = [order.as_bytes(), state.as_bytes(), outcome.as_bytes(), executor.as_bytes()];
        let database = &mut self.database;
        put(database, layout, TRADE, &keys::trade(trade), &groups);
        put(database, layout, TRADE_BY_ACCOUNT, &keys::by_account(account, 5, trade), &[b""]);
        put(database, layout, TRADE_BY_SECURITY, &keys::by_security(security, 5, trade), &[&[0; 4]]);
        let mut result = TradeResult::draw(&self.tpce, &self.client, super::market::Answer { trade, price });
        assert_eq!(database.run(&mut result), Ok(()));
        self.check_holdings();
        let prefix = keys::with_security(account, security);
        let lots = self.rows::<Holding>().into_iter();
        let lots = lots.filter(|(key, _)| {
            keys::with_security(key.leading_int(4) as u32, keys::security_of(key)) == prefix
        });
        let sequence = |row: &Holding| Trade(row.trade.get()).sequence().expect("a trade of a client");
        lots.map(|(_, row)| (sequence(&row), row.quantity.get())).collect()
    }
}

#[test]
fn a_position_is_closed_lot_by_lot_in_the_order_that_the_trade_asks_for() {
    use TradeType::{MarketBuy as BUY, MarketSell as SELL};
    let mut run = Run::new(Parameters::small(1));
    assert_eq!(run.trade(1, BUY, 100, false, 2000), [(1, 100)]);
    assert_eq!(run.trade(2, BUY, 400, false, 2500), [(1, 100), (2, 400)]);
    // At the same moment of market time; the youngest lot comes last all the same.
    assert_eq!(run.trade(3, BUY, 200, true, 2500), [(1, 100), (2, 400), (3, 200)]);
    assert_eq!(run.trade(4, SELL, 200, false, 3000), [(2, 300), (3, 200)]);
    assert_eq!(run.trade(5, SELL, 400, true, 3000), [(2, 100)]);
    // What is sold beyond what is held is a lot of the other direction.
    assert_eq!(run.trade(6, SELL, 800, false, 3000), [(6, -700)]);
    assert_eq!(run.trade(7, SELL, 100, false, 3000), [(6, -700), (7, -100)]);
    assert_eq!(run.trade(8, BUY, 200, true, 2000), [(6, -600)]);
    assert_eq!(run.trade(9, BUY, 800, true, 2000), [(9, 200)]);
    assert_eq!(run.trade(10, SELL, 200, true, 2000), []);
    let (account, security) = run.untouched();
    assert_eq!(run.database.read(HOLDING_SUMMARY.row(), &keys::with_security(account, security)), None);
}

#[test]
fn orders_are_drawn_as_the_specification_says() {
    let mut run = Run::new(Parameters::small(2));
    let drawn: Vec<_> = (0..10_000).map(|_| TradeOrder::draw(&run.tpce, &mut run.client)).collect();
    let share = |of: &dyn Fn(&TradeOrder) -> bool| {
        drawn.iter().filter(|order| of(order)).count() as f64 / drawn.len() as f64
    };
    for (kind, expected) in TradeType::ALL.into_iter().zip([0.3, 0.3, 0.1, 0.1, 0.2]) {
        assert!((share(&|order| order.kind() == kind) - expected).abs() < 0.02, "{kind:?}");
    }
    assert!((share(&|order| order.rolls_back()) - 1.0 / 101.0).abs() < 0.004);
    assert!((share(&|order| order.on_margin()) - 0.08).abs() < 0.01);
    assert!((share(&|order| order.by_name()) - 0.4).abs() < 0.02);
    assert!((share(&|order| order.by_owner()) - 0.9).abs() < 0.02);
    assert!((share(&|order| order.quantity() == 800) - 0.25).abs() < 0.02);
    // On margin it knows what the account has in all, by prices at many market places.
    let mut margin = drawn.into_iter().find(|order| order.on_margin() && !order.rolls_back());
    let order = margin.as_mut().expect("some are");
    assert_eq!(run.database.run(order), Ok(()));
    let (account, prices) = (order.account(), run.rows::<LastTrade>());
    let held =
        run.rows::<HoldingSummary>().into_iter().filter(|(key, _)| key.leading_int(4) as u32 == account);
    let assets: i64 = held
        .map(|(key, row)| {
            let price = prices[&keys::security(keys::security_of(&key))].price.get();
            i64::from(row.quantity.get()) * i64::from(price)
        })
        .sum();
    assert_eq!(order.assets(), Some(run.balance_of(account) + assets));
    assert!(order.costs()[1..].iter().all(|&cost| cost > 0));
}

#[test]
fn what_the_market_says_and_nobody_hears_it_says_again() {
    use crate::Workload;
    let mut run = Run::new(Parameters::small(2));
    let (mut answers, mut entries) = (0, 0);
    while answers < 30 || entries < 60 {
        let turn = run.client.turn(&run.tpce);
        let given_up = match turn {
            Turn::Answer(answer) => {
                answers += 1;
                Transaction::TradeResult(TradeResult::draw(&run.tpce, &run.client, answer))
            }
            Turn::Entry(entry) => {
                entries += 1;
                Transaction::MarketFeed(MarketFeed::draw(&run.tpce, &run.client, entry))
            }
            _ => {
                run.take(turn);
                continue;
            }
        };
        run.tpce.done(&mut run.client, &given_up, false);
        // Once a minute Data-Maintenance comes before an answer.
        let mut again = run.client.turn(&run.tpce);
        if matches!(again, Turn::Maintenance(_)) {
            again = run.client.turn(&run.tpce);
        }
        assert_eq!(again, turn);
        run.take(again);
    }
    assert_eq!(run.entries, entries, "no entry is told twice");
    run.finish();
    run.check();
    assert_eq!(run.results, run.orders, "every order was executed");
}

#[test]
fn market_time_goes_with_the_clock_however_often_it_is_told() {
    let parameters = Parameters { market_time: MarketTime::Clock(2.0), ..Parameters::small(1) };
    let tpce = Tpce::new(parameters);
    for now_ns in (5_000_000_000..=5_003_000_000).step_by(300) {
        tpce.tick(now_ns);
    }
    assert_eq!(tpce.shared.market_us.load(std::sync::atomic::Ordering::Relaxed), 6_000);
}
