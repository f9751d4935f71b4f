//! Runs of the transactions that write, by a client with its market, and what they leave behind.

use std::collections::BTreeMap;

use plimsoll_types::{Abort, Key, ShardId, TableId};
use zerocopy::{FromZeros, IntoBytes};

use super::client::{Card, Client, Turn};
use super::data_maintenance::DataMaintenance;
use super::market_feed::MarketFeed;
use super::numbers::{ISSUES_MAX, Trade, accounts_of, tier};
use super::people::{self, person};
use super::reference::*;
use super::schema::{self, *};
use super::trade_cleanup::TradeCleanup;
use super::trade_order::TradeOrder;
use super::trade_result::TradeResult;
use super::trade_update::TradeUpdate;
use super::{Parameters, Tpce};
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

/// The copies that are everywhere.
fn load_copies(tpce: &Tpce, database: &mut Database) {
    let layout = tpce.layout();
    let mut put = |table, key: Key, row: &[u8]| put(database, layout, table, &key, &[row]);
    for kind in TradeType::ALL {
        let row = TradeTypeRow {
            id: padded(TRADE_TYPES[kind as usize].0),
            name: padded(TRADE_TYPES[kind as usize].1),
            sell: kind.is_sell().into(),
            market: kind.is_market().into(),
        };
        put(TRADE_TYPE, keys::small(kind as u8), row.as_bytes());
        for tier in 1..=3 {
            let charge = CHARGES[kind as usize][usize::from(tier) - 1] as i32;
            let row = Charge { charge: charge.into() };
            put(CHARGE, keys::charge(kind as u8, tier), row.as_bytes());
            for (exchange, &(_, _, class)) in (0..).zip(&EXCHANGES) {
                for (band, (from, to)) in BANDS.into_iter().enumerate() {
                    let rate = COMMISSION_RATES[class][usize::from(tier) - 1][band];
                    let row = CommissionRate { to: to.into(), rate: rate.into() };
                    put(COMMISSION_RATE, keys::commission(tier, kind as u8, exchange, from), row.as_bytes());
                }
            }
        }
    }
    for tax in 0..TAX_RATES {
        let row = TaxRate { id: [0; 4], rate: tax_rate(tax).into() };
        put(TAX_RATE, keys::tax(tax), row.as_bytes());
        put(TAX_NAME, keys::tax(tax), padded::<50>("Division Tax rate").as_bytes());
    }
    let scale = tpce.scale();
    for position in 0..scale.companies() {
        let company = scale.company(position);
        let mut row = Company::new_zeroed();
        (row.name, row.industry) = (people::company_name(company), (position % 102) as u8);
        put(COMPANY, keys::security(company), row.as_bytes());
        let named = Named { number: company.into() };
        put(COMPANY_BY_NAME, keys::name(crate::rows::unpadded(&row.name)), named.as_bytes());
        put(COMPANY_STATE, keys::security(company), b"ABA\0");
        put(COMPANY_ADDRESS, keys::security(company), Address::new_zeroed().as_bytes());
        for quarter in 0..20u8 {
            let mut row = Financial::new_zeroed();
            row.start = (u16::from(quarter) * 91).into();
            put(
                FINANCIAL,
                keys::quarter(company, 2000 + u16::from(quarter) / 4, quarter % 4 + 1),
                row.as_bytes(),
            );
        }
        for item in 0..2 {
            put(NEWS_XREF, keys::news(company, item), b"");
        }
    }
    for position in 0..scale.securities() {
        let security = scale.security(position);
        let mut row = Security::new_zeroed();
        (row.name, row.exchange) = (padded("COMMON of something"), (position % 4) as u8);
        put(SECURITY, keys::security(security), row.as_bytes());
        put(SECURITY_STATE, keys::security(security), SecurityState { exchange_date: 7.into() }.as_bytes());
        let price = (tpce.prices().at(position, 0) as i32).into();
        let row = LastTrade { date: scale.end_of_load().into(), price, open: price, volume: 0.into() };
        put(LAST_TRADE, keys::security(security), row.as_bytes());
        for day in 0..scale.daily_market_days {
            let day = super::numbers::weekday(day);
            put(DAILY_MARKET, keys::daily(security, day), DailyMarket::new_zeroed().as_bytes());
        }
    }
    for company in 0..scale.companies() {
        for item in 0..2 {
            let (key, head) = (keys::news(scale.company(company), item), NewsHead::new_zeroed());
            super::write_tests::put(database, layout, NEWS_ITEM, &key, &[head.as_bytes(), b"all of it"]);
        }
    }
    for exchange in 0..4 {
        let (row, text) = (Exchange::new_zeroed(), padded::<150>("An exchange"));
        let key = keys::small(exchange);
        super::write_tests::put(database, layout, EXCHANGE, &key, &[row.as_bytes(), &text]);
    }
}

impl Run {
    fn new(parameters: Parameters) -> Run {
        let tpce = Tpce::new(parameters);
        let (scale, layout) = (tpce.scale(), tpce.layout());
        let mut database = Database::empty(schema::tables(scale, layout.split));
        load_copies(&tpce, &mut database);
        for broker in 0..scale.brokers() {
            let row = Broker { status: 0, name: people::broker_name(broker) };
            let groups = [row.as_bytes(), BrokerTotals::new_zeroed().as_bytes()].map(<[u8]>::to_vec);
            put(&mut database, layout, BROKER, &keys::number(broker), &[&groups[0], &groups[1]]);
        }
        let mut balances = BTreeMap::new();
        for customer in (0..scale.homes()).flat_map(|home| scale.customers_of(home)) {
            let who = person(customer.into());
            let mut row = Customer::new_zeroed();
            (row.last, row.first, row.tier) = (who.last, who.first, tier(customer));
            let email = padded::<50>("ada@mail.example");
            put(&mut database, layout, CUSTOMER, &keys::number(customer), &[row.as_bytes(), &email]);
            let address = Address::new_zeroed();
            put(&mut database, layout, CUSTOMER_ADDRESS, &keys::number(customer), &[address.as_bytes()]);
            for tax in people::taxes(tpce.parameters(), customer) {
                put(&mut database, layout, CUSTOMER_TAXRATE, &keys::taxrate(customer, tax), &[b""]);
            }
            for position in 0..5 {
                let key = keys::with_security(customer, scale.security(position * 3));
                put(&mut database, layout, WATCH_ITEM, &key, &[b""]);
            }
            for number in accounts_of(customer) {
                let facts = people::account(tpce.parameters(), number);
                balances.insert(number, facts.balance);
                let row =
                    Account { broker: facts.broker.into(), name: [0; 50], tax_status: facts.tax_status };
                let balance = AccountBalance { balance: facts.balance.into() };
                let groups = [row.as_bytes(), balance.as_bytes()];
                put(&mut database, layout, CUSTOMER_ACCOUNT, &keys::number(number), &groups);
                let others = facts.others.into_iter().flatten();
                for (id, acl) in [customer.into()].into_iter().chain(others).zip([b"0000", b"0001", b"0011"])
                {
                    let who = person(id);
                    let row = Permission { acl: *acl, last: who.last, first: who.first };
                    let key = keys::permission(number, who.tax_id);
                    put(&mut database, layout, ACCOUNT_PERMISSION, &key, &[row.as_bytes()]);
                }
            }
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
                let company = security / ISSUES_MAX;
                pending.push(keys::by_broker(broker, sector_of((company % 102) as u8), trade));
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
                *balances.get_mut(&account).expect("the account was loaded") += amount;
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
            let row = self.rows_of_account(account);
            assert_eq!(row, balance);
        }
        self.check_holdings();
        let volume: i64 = self.rows::<LastTrade>().values().map(|row| row.volume.get()).sum();
        assert_eq!(volume, self.fed);
    }

    fn rows_of_account(&self, account: u32) -> i64 {
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
        for mut cleanup in TradeCleanup::all(&run.tpce) {
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
        let (layout, security) = (self.tpce.layout(), 0);
        let account = *self.balances.keys().next().expect("there are accounts");
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
        let lots = self.rows::<Holding>().into_values();
        let sequence = |row: &Holding| Trade(row.trade.get()).sequence().expect("a trade of a client");
        lots.map(|row| (sequence(&row), row.quantity.get())).collect()
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
    assert!(run.keys(HOLDING_SUMMARY).is_empty());
}
