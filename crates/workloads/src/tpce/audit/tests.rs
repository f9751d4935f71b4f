//! Whether the conditions hold for sound data, and which do not once an error is planted.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_types::random::Rng;
use plimsoll_types::{Abort, ShardId, TableId, TableSpec};
use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::testing::{Database, run_audit};
use crate::tpce::client::{Card, Client, Turn};
use crate::tpce::conditions::{self, *};
use crate::tpce::data_maintenance::DataMaintenance;
use crate::tpce::market_feed::MarketFeed;
use crate::tpce::numbers::{self, ISSUES_MAX, Trade, accounts_of};
use crate::tpce::people;
use crate::tpce::reference::{
    CHARGES, Status, TradeType, commission, commission_rate, sector_of, settlement,
};
use crate::tpce::schema::{self, *};
use crate::tpce::trade_result::TradeResult;
use crate::tpce::trade_update::TradeUpdate;
use crate::tpce::{Tpce, load, trade_order};
use crate::{Check, Tally, Workload};

/// Rows that look as if some trades had been loaded and others made since.
#[derive(Clone)]
struct Data {
    parameters: Parameters,
    rows: BTreeMap<Option<Slot>, Vec<Row>>,
    sums: Vec<i64>,
}

type Row = (TableId, Key, Vec<Vec<u8>>);

/// What trades of a home have left behind.
#[derive(Default)]
struct Left {
    /// By account and security: lots, the oldest first, with their dates.
    lots: BTreeMap<(u32, u32), Vec<(u64, Holding)>>,
    balances: BTreeMap<u32, i64>,
    brokers: BTreeMap<u32, (u64, i64)>,
}

/// A trade to be made up.
struct Made {
    trade: Trade,
    account: u32,
    security: u32,
    kind: TradeType,
    quantity: i32,
    states: Vec<Status>,
}

impl Data {
    /// A database with these rows.
    fn load(&self) -> Database {
        let slots: Vec<_> = self.rows.keys().copied().collect();
        Database::fill(self.tables(), slots.iter().copied().enumerate(), |unit, sink| {
            for (table, key, groups) in &self.rows[&slots[unit]] {
                let groups: Vec<&[u8]> = groups.iter().map(|group| &group[..]).collect();
                sink(*table, key.clone(), &groups);
            }
        })
    }

    fn tables(&self) -> Vec<TableSpec> {
        schema::tables(self.parameters.scale, self.parameters.split_columns)
    }

    fn new(parameters: Parameters) -> Data {
        let (scale, mut rng) = (parameters.scale, Rng::new(7, 7));
        let mut data = Data { parameters, rows: BTreeMap::new(), sums: vec![0; conditions::SUMS.len()] };
        for position in 0..scale.companies() {
            let company = Company { industry: (position % 102) as u8, ..Company::new_zeroed() };
            data.put(COMPANY, keys::security(scale.company(position)), &[company.as_bytes()]);
        }
        for position in 0..scale.securities() {
            data.sums[FEED_QUANTITY] += i64::from(position);
            let row = LastTrade {
                date: 0.into(),
                price: (2000 + position as i32).into(),
                open: 2000.into(),
                volume: i64::from(position).into(),
            };
            data.put(LAST_TRADE, keys::security(scale.security(position)), &[row.as_bytes()]);
        }
        for home in 0..scale.homes() {
            data.home(home, &mut rng);
        }
        data
    }

    fn put(&mut self, table: TableId, key: Key, groups: &[&[u8]]) {
        let groups = match self.parameters.split_columns {
            true => groups.iter().map(|group| group.to_vec()).collect(),
            false => vec![groups.concat()],
        };
        let slot = self.tables()[table.index()].partitioning.slot(&key);
        self.rows.entry(slot).or_default().push((table, key, groups));
    }

    fn home(&mut self, home: u32, rng: &mut Rng) {
        let scale = self.parameters.scale;
        let accounts: Vec<u32> = scale.customers_of(home).flat_map(accounts_of).collect();
        let mut left = Left::default();
        let loaded = scale.trades();
        for n in 1..=loaded + 100 {
            let account = accounts[rng.below(accounts.len() as u64) as usize];
            let basket = people::account(&self.parameters, account).basket;
            let kind = TradeType::ALL[rng.below(5) as usize];
            let trade = if n <= loaded { Trade::new(home, n) } else { Trade::of_client(home, 3, n) };
            let mut states = vec![Status::Pending, Status::Submitted, Status::Completed];
            match rng.below(6) {
                0 if n > loaded => states.truncate(1 + usize::from(kind.is_market())),
                1 if n > loaded => states.truncate(2),
                2 if n > loaded => states[2] = Status::Cancelled,
                _ => {}
            }
            states.drain(..usize::from(kind.is_market()));
            let made = Made {
                trade,
                account,
                security: basket[rng.below(basket.len().min(3) as u64) as usize],
                kind,
                quantity: 100 << rng.below(4),
                states,
            };
            let begin = if n <= loaded { 0 } else { scale.end_of_load() };
            self.make(&made, begin + n * 100_000, &mut left);
        }
        for ((account, security), lots) in &left.lots {
            for (date, lot) in lots {
                self.put(HOLDING, keys::holding(*account, *security, *date), &[lot.as_bytes()]);
            }
            let sum: i32 = lots.iter().map(|(_, lot)| lot.quantity.get()).sum();
            if sum != 0 {
                let row = HoldingSummary { quantity: sum.into() };
                self.put(HOLDING_SUMMARY, keys::with_security(*account, *security), &[row.as_bytes()]);
            }
        }
        for broker in home * scale.brokers_per_home()..(home + 1) * scale.brokers_per_home() {
            let (trades, commissions) = left.brokers.get(&broker).copied().unwrap_or_default();
            let totals = BrokerTotals { trades: trades.into(), commissions: commissions.into() };
            self.put(BROKER, keys::number(broker), &[Broker::new_zeroed().as_bytes(), totals.as_bytes()]);
        }
        for account in accounts {
            let facts = people::account(&self.parameters, account);
            let balance = facts.balance + left.balances.get(&account).copied().unwrap_or(0);
            let fixed = Account { broker: facts.broker.into(), name: [0; 50], tax_status: facts.tax_status };
            let balance = AccountBalance { balance: balance.into() };
            self.put(CUSTOMER_ACCOUNT, keys::number(account), &[fixed.as_bytes(), balance.as_bytes()]);
        }
    }

    fn make(&mut self, made: &Made, date: u64, left: &mut Left) {
        let &Made { trade, account, security, kind, quantity, .. } = made;
        let state = *made.states.last().expect("a trade has a state");
        let at = |step: usize| date + 10 * step as u64;
        let now = at(made.states.len() - 1);
        let completed = state == Status::Completed;
        let (bid, price, sell) = (2500, 2400 + (date / 100_000 % 100) as i64, kind.is_sell());
        let facts = people::account(&self.parameters, account);
        let tier = numbers::tier(account / numbers::ACCOUNTS_MAX);
        let charge = CHARGES[kind as usize][usize::from(tier) - 1] as i32;
        let rate = commission_rate(people::exchange(security), tier, quantity);
        let fee = commission(quantity, if completed { price } else { bid }, rate);
        let lots = left.lots.get(&(account, security)).and_then(|lots| lots.first());
        let closes = lots.is_some_and(|(_, lot)| (lot.quantity.get() > 0) == sell);
        let tax = if completed && closes && facts.tax_status > 0 { 77 } else { 0 };
        let cash = sell || !date.is_multiple_of(300_000);
        for (step, &state) in made.states.iter().enumerate() {
            let row = TradeHistory { date: at(step).into() };
            self.put(TRADE_HISTORY, keys::history(trade, state as u8), &[row.as_bytes()]);
        }
        let order = TradeOrder {
            kind: kind as u8,
            cash: cash.into(),
            lifo: 0,
            security: security.into(),
            quantity: quantity.into(),
            bid: (bid as i32).into(),
            account: account.into(),
            charge: charge.into(),
        };
        let price_now = if completed { price as i32 } else { 0 };
        let outcome = TradeOutcome { price: price_now.into(), commission: fee.into(), tax: tax.into() };
        let row = TradeState { date: now.into(), status: state as u8 };
        let executor = TradeExecutor { name: [0; 49] };
        let groups = [order.as_bytes(), row.as_bytes(), outcome.as_bytes(), executor.as_bytes()];
        self.put(TRADE, keys::trade(trade), &groups);
        self.put(TRADE_BY_ACCOUNT, keys::by_account(account, now, trade), &[b""]);
        let row = TradeOfSecurity { account: account.into() };
        self.put(TRADE_BY_SECURITY, keys::by_security(security, now, trade), &[row.as_bytes()]);
        if trade.is_new() {
            self.sums[ORDERED_TRADES] += 1;
            self.sums[CANCELLED_TRADES] += i64::from(state == Status::Cancelled);
            self.sums[SUBMITTED_LIMIT_ORDERS] += i64::from(!kind.is_market() && state != Status::Pending);
        }
        if state == Status::Pending {
            let sector = sector_of((security / ISSUES_MAX % 102) as u8);
            let row = PendingOrder {
                security: security.into(),
                quantity: quantity.into(),
                bid: (bid as i32).into(),
            };
            self.put(PENDING_BY_BROKER, keys::by_broker(facts.broker, sector, trade), &[row.as_bytes()]);
            let row = TradeRequest {
                quantity: quantity.into(),
                broker: facts.broker.into(),
                account: account.into(),
                date: now.into(),
            };
            self.put(TRADE_REQUEST, keys::request(security, kind as u8, bid, trade), &[row.as_bytes()]);
        }
        if !completed {
            return;
        }
        self.change_lots(made, now, price as i32, left.lots.entry((account, security)).or_default());
        let broker = left.brokers.entry(facts.broker).or_default();
        (broker.0, broker.1) = (broker.0 + 1, broker.1 + fee);
        let withheld = if facts.tax_status == 1 { tax } else { 0 };
        let amount = settlement(sell, quantity, price, charge.into(), fee, withheld);
        let row = Settlement { due: 0.into(), amount: amount.into() };
        let cash_type = SettlementType { cash_type: [0; 40] };
        self.put(SETTLEMENT, keys::trade(trade), &[row.as_bytes(), cash_type.as_bytes()]);
        if cash {
            let row = CashTransaction { date: now.into(), amount: amount.into() };
            let name = CashTransactionName { name: [0; 100] };
            self.put(CASH_TRANSACTION, keys::trade(trade), &[row.as_bytes(), name.as_bytes()]);
        }
        if trade.is_new() {
            self.sums[COMPLETED_TRADES] += 1;
            self.sums[COMMISSION_CENTS] += fee;
            self.sums[SETTLED_CENTS] += amount;
            self.sums[CASH_CENTS] += if cash { amount } else { 0 };
            *left.balances.entry(account).or_default() += if cash { amount } else { 0 };
        }
    }

    fn change_lots(&mut self, made: &Made, date: u64, price: i32, lots: &mut Vec<(u64, Holding)>) {
        let (trade, sign) = (made.trade, if made.kind.is_sell() { -1 } else { 1 });
        let mut needed = made.quantity;
        while needed > 0 && lots.first().is_some_and(|(_, lot)| lot.quantity.get().signum() != sign) {
            let lot = &mut lots[0].1;
            let before = lot.quantity.get();
            let part = needed.min(before.abs());
            lot.quantity = (before + sign * part).into();
            self.change(trade, Trade(lot.trade.get()), before, before + sign * part);
            needed -= part;
            if part == before.abs() {
                lots.remove(0);
            }
        }
        if needed > 0 {
            self.change(trade, trade, 0, sign * needed);
            let lot =
                Holding { trade: trade.0.into(), price: price.into(), quantity: (sign * needed).into() };
            lots.push((date, lot));
        }
    }

    fn change(&mut self, trade: Trade, lot: Trade, before: i32, after: i32) {
        let row = HoldingHistory { before: before.into(), after: after.into() };
        self.put(HOLDING_HISTORY, keys::two_trades(trade, lot), &[row.as_bytes()]);
        self.put(HOLDING_HISTORY_BY_LOT, keys::two_trades(lot, trade), &[b""]);
    }

    fn counted(&self) -> Tally {
        Tally { committed: Vec::new(), sums: self.sums.clone() }
    }
}

fn parameters() -> Parameters {
    let mut parameters = Parameters::small(2);
    parameters.scale.customers_per_unit = 10;
    parameters
}

fn audited(parameters: &Parameters, database: &mut Database) -> Vec<Audit> {
    Audit::all(parameters).into_iter().map(|mut audit| run_audit(database, &mut audit)).collect()
}

/// Judges all audits, and sees that a single one finds no errors that all together do not.
fn judged(parameters: &Parameters, database: &mut Database, tally: &Tally) -> Vec<Check> {
    let audits = audited(parameters, database);
    let all = judge(parameters, &audits, tally);
    for check in audits.iter().flat_map(judge_snapshot) {
        let same = all.iter().find(|other| other.name == check.name).expect("a snapshot's checks are judged");
        assert!(check.ok || !same.ok, "{check:?} but {same:?}");
    }
    all
}

/// The checks that fail, by number or first word.
fn failed(checks: &[Check]) -> Vec<String> {
    let name = |check: &Check| {
        let name = check.name.trim_start_matches("tpce ").trim_start_matches("consistency ");
        name.split(' ').next().unwrap_or_default().to_owned()
    };
    checks.iter().filter(|check| !check.ok).map(name).collect()
}

fn glances(parameters: &Parameters, database: &mut Database) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut last = None;
    for number in 0..400 {
        let mut audit = Audit::online(parameters, number);
        last.iter().for_each(|last| audit.follow(last));
        let audit = run_audit(database, &mut audit);
        checks.extend(judge_snapshot(&audit));
        last = Some(audit);
    }
    checks
}

/// The column groups of a row as they are, changed, and written behind all transactions' backs.
fn corrupt<C: Columns>(database: &mut Database, key: &Key, change: impl FnOnce(&mut C)) {
    let column = Layout { split: true }.column::<C>();
    let mut record = database.read(column, key).expect("the row is there").to_vec();
    change(C::mut_from_prefix(&mut record).expect("the record holds the columns").0);
    database.write(column, key.clone(), &record);
}

#[test]
fn the_conditions_hold_for_sound_data() {
    for split_columns in [true, false] {
        let data = Data::new(Parameters { split_columns, ..parameters() });
        let mut database = data.load();
        let audits = audited(&data.parameters, &mut database);
        let counted = found(&data.parameters, &audits.iter().collect::<Vec<_>>());
        assert_eq!(counted, data.counted());
        assert!(counted.sums.iter().all(|&sum| sum != 0), "{counted:?}");
        let (sequence, date) = last_sequence_and_date(&audits.iter().collect::<Vec<_>>());
        let (scale, made) = (data.parameters.scale, data.parameters.scale.trades() + 100);
        assert_eq!(sequence, made);
        assert!(date.abs_diff(scale.end_of_load() + made * 100_000) < 100_000, "{date}");
        let checks = judge(&data.parameters, &audits, &counted);
        assert_eq!((checks.len(), failed(&checks).len()), (17, 0), "{checks:#?}");
        assert!(!checks.iter().any(|check| check.detail == "holds for 0"), "{checks:#?}");

        for reads in [0, 7, 100, 1000] {
            database.interrupt_after = Some(reads);
            assert_eq!(failed(&judged(&data.parameters, &mut database, &counted)).len(), 0);
        }
        let checks = glances(&data.parameters, &mut database);
        assert_eq!(failed(&checks).len(), 0, "{checks:#?}");
        let names: BTreeSet<_> = checks.iter().map(|check| &check.name).collect();
        assert_eq!(names.len(), 9, "1, 2, 3, 4, 8, 10, 13, 14 and whether rows are there: {names:?}");
        database.interrupt_after = None;
        let here: [fn(Slot) -> bool; 3] = [|_| true, |slot| slot.0 == 0, |slot| slot.0 % 2 == 1];
        for here in here {
            database.here = Some(here);
            assert_eq!(failed(&judged(&data.parameters, &mut database, &counted)).len(), 0);
            assert_eq!(failed(&glances(&data.parameters, &mut database)).len(), 0);
        }
    }
}

#[test]
fn what_drivers_have_counted_wrongly_breaks_one_check() {
    let data = Data::new(parameters());
    let mut database = data.load();
    let audits = audited(&data.parameters, &mut database);
    for (sum, expected) in ["12", "12", "limits", "limits", "commissions", "commissions", "commissions", "13"]
        .into_iter()
        .enumerate()
    {
        let mut tally = data.counted();
        tally.sums[sum] += 1;
        assert_eq!(
            failed(&judge(&data.parameters, &audits, &tally)),
            [expected],
            "{}",
            conditions::SUMS[sum]
        );
    }
    let without = failed(&judge(&data.parameters, &audits[1..], &data.counted()));
    assert!(without.contains(&"loaded".to_owned()), "{without:?}");
}

/// The first row of a column group that a test is looking for.
fn find<C: Columns>(database: &Database, mut test: impl FnMut(&Key, &C) -> bool) -> Key {
    let layout = Layout { split: true };
    let mut rows = database.rows(layout.column::<C>());
    let found = rows.find(|(key, record)| test(key, layout.view::<C>(record).0));
    found.expect("there is such a row").0.clone()
}

#[test]
fn planted_errors_break_the_conditions_that_speak_about_them() {
    let data = Data::new(parameters());
    let sound = data.load();
    let breaks = |expected: &[&str], plant: &dyn Fn(&mut Database)| {
        let mut database = sound.clone();
        plant(&mut database);
        let checks = judged(&data.parameters, &mut database, &data.counted());
        let details: Vec<_> = checks.iter().filter(|check| !check.ok).collect();
        assert_eq!(failed(&checks), expected, "{details:#?}");
    };
    breaks(&[], &|_| ());

    let broker = find(&sound, |_, row: &BrokerTotals| row.trades.get() > 0);
    breaks(&["1"], &|db| corrupt(db, &broker, |row: &mut BrokerTotals| row.trades += 1));
    breaks(&["2"], &|db| corrupt(db, &broker, |row: &mut BrokerTotals| row.commissions += 1));
    breaks(&["1", "2", "loaded"], &|db| db.remove(BROKER.group(1), &broker));

    // A lot beside others.
    let lots: Vec<Key> = sound.rows(HOLDING.row()).map(|(key, _)| key.clone()).collect();
    let place = |key: &Key| keys::with_security(key.leading_int(4) as u32, keys::security_of(key));
    let two = lots.windows(2).find(|two| place(&two[0]) == place(&two[1])).expect("there are such lots");
    let (lot, summary) = (&two[0], &place(&two[0]));
    breaks(&["3"], &|db| corrupt(db, summary, |row: &mut HoldingSummary| row.quantity += 1));
    breaks(&["3"], &|db| db.remove(HOLDING_SUMMARY.row(), summary));
    let none = keys::with_security(summary.leading_int(4) as u32, 0xff_ffff);
    breaks(&["3"], &|db| db.write(HOLDING_SUMMARY.row(), none.clone(), &[0; 4]));
    breaks(&["3", "5"], &|db| corrupt(db, lot, |row: &mut Holding| row.quantity += 1));
    breaks(&["3", "5"], &|db| db.remove(HOLDING.row(), lot));
    breaks(&["5", "7"], &|db| corrupt(db, lot, |row: &mut Holding| row.trade += 1));
    breaks(&["7"], &|db| corrupt(db, lot, |row: &mut Holding| row.price += 1));
    breaks(&["4", "5"], &|db| {
        let mut change = 0;
        corrupt(db, lot, |row: &mut Holding| {
            change = -2 * row.quantity.get();
            row.quantity += change;
        });
        corrupt(db, summary, |row: &mut HoldingSummary| row.quantity += change);
    });
    breaks(&["4", "5", "7"], &|db| {
        let (account, security) = (lot.leading_int(4) as u32, keys::security_of(lot));
        db.write(HOLDING.row(), keys::holding(account, security, 1), Holding::new_zeroed().as_bytes());
    });

    let part = find(&sound, |_, row: &HoldingHistory| row.before.get() > 2 && row.after.get() > 2);
    breaks(&["5"], &|db| corrupt(db, &part, |row: &mut HoldingHistory| row.after += 1));
    breaks(&["5"], &|db| {
        corrupt(db, &part, |row: &mut HoldingHistory| {
            row.before += 1;
            row.after += 1;
        });
    });
    breaks(&["5", "7", "history"], &|db| db.remove(HOLDING_HISTORY.row(), &part));
    let stray = keys::two_trades(Trade::new(1, 99_999), keys::second_trade(&part));
    breaks(&["5", "history"], &|db| db.write(HOLDING_HISTORY.row(), stray.clone(), &[0; 8]));
    let by_lot = keys::two_trades(keys::second_trade(&part), keys::first_trade(&part));
    breaks(&["history"], &|db| db.remove(HOLDING_HISTORY_BY_LOT.row(), &by_lot));

    // A loaded trade on margin, one for cash, and one for cash of the run.
    let is_new = |key: &Key| keys::first_trade(key).is_new();
    let margin = find(&sound, |key, row: &TradeOrder| !is_new(key) && row.cash == 0);
    let cash = find(&sound, |key, _: &CashTransaction| !is_new(key));
    let new = find(&sound, |key, _: &CashTransaction| is_new(key));
    breaks(&["6"], &|db| db.remove(SETTLEMENT.group(0), &margin));
    breaks(&["6"], &|db| db.remove(CASH_TRANSACTION.group(0), &cash));
    breaks(&["6"], &|db| corrupt(db, &cash, |row: &mut CashTransaction| row.amount += 1));
    breaks(&["6", "8", "commissions"], &|db| {
        corrupt(db, &new, |row: &mut CashTransaction| row.amount += 1);
    });
    breaks(&["6"], &|db| {
        let row = CashTransaction { date: 0.into(), amount: 0.into() };
        db.write(CASH_TRANSACTION.group(0), margin.clone(), row.as_bytes());
        let amount = db.read(SETTLEMENT.group(0), &margin).expect("it has a settlement")[8..].to_vec();
        let key = margin.clone();
        corrupt(db, &key, |row: &mut CashTransaction| row.amount.as_mut_bytes().copy_from_slice(&amount));
    });
    breaks(&["7"], &|db| corrupt(db, &margin, |row: &mut Settlement| row.amount += 1));
    breaks(&["6", "7"], &|db| corrupt(db, &cash, |row: &mut Settlement| row.amount += 1));
    breaks(&["7"], &|db| corrupt(db, &cash, |row: &mut TradeOutcome| row.price += 1));
    breaks(&["2", "7"], &|db| corrupt(db, &cash, |row: &mut TradeOutcome| row.commission += 1));
    breaks(&["5", "7"], &|db| corrupt(db, &cash, |row: &mut TradeOrder| row.quantity += 1));
    let taxed = find(&sound, |key, row: &TradeOutcome| {
        let order = sound.read(TRADE.row(), key).expect("it was ordered");
        let account = Layout { split: true }.view::<TradeOrder>(order).0.account.get();
        row.tax.get() > 0 && people::account(&data.parameters, account).tax_status == 1
    });
    breaks(&["7"], &|db| corrupt(db, &taxed, |row: &mut TradeOutcome| row.tax -= 1));
    // What is not completed has settled nothing, so only the costs are wrong.
    let pending = find(&sound, |_, row: &TradeState| row.status == Status::Pending as u8);
    breaks(&["7"], &|db| corrupt(db, &pending, |row: &mut TradeOutcome| row.commission += 1));
    breaks(&["7"], &|db| corrupt(db, &pending, |row: &mut TradeOutcome| row.tax += 1));
    breaks(&["7"], &|db| corrupt(db, &pending, |row: &mut TradeOrder| row.charge += 1));

    let account = find(&sound, |_, _: &AccountBalance| true);
    breaks(&["8"], &|db| corrupt(db, &account, |row: &mut AccountBalance| row.balance += 1));
    breaks(&["9"], &|db| db.remove(TRADE_HISTORY.row(), &keys::history(keys::first_trade(&cash), 1)));
    breaks(&["9"], &|db| {
        let key = keys::history(keys::first_trade(&cash), 1);
        corrupt(db, &key, |row: &mut TradeHistory| row.date += 1_000_000);
    });
    breaks(&["9"], &|db| {
        let key = keys::history(keys::first_trade(&cash), 2);
        corrupt(db, &key, |row: &mut TradeHistory| row.date += 1);
    });
    breaks(&["9", "11"], &|db| corrupt(db, &cash, |row: &mut TradeState| row.date += 1));
    breaks(&["1", "2", "5", "6", "7", "9", "12"], &|db| {
        corrupt(db, &margin, |row: &mut TradeState| row.status = 1)
    });
    breaks(&["1", "2", "5", "9", "11", "12"], &|db| {
        (0..4).for_each(|group| db.remove(TRADE.group(group), &margin));
    });

    let request = find(&sound, |_, _: &TradeRequest| true);
    breaks(&["10"], &|db| corrupt(db, &request, |row: &mut TradeRequest| row.quantity += 1));
    breaks(&["10"], &|db| corrupt(db, &request, |row: &mut TradeRequest| row.broker += 1));
    breaks(&["10"], &|db| db.remove(TRADE_REQUEST.row(), &request));
    let pending = find(&sound, |_, _: &PendingOrder| true);
    breaks(&["10"], &|db| corrupt(db, &pending, |row: &mut PendingOrder| row.bid += 1));
    breaks(&["10"], &|db| db.remove(PENDING_BY_BROKER.row(), &pending));

    let first = |table: TableId| sound.rows(table.row()).next().expect("there is a row").0.clone();
    breaks(&["11"], &|db| db.remove(TRADE_BY_ACCOUNT.row(), &first(TRADE_BY_ACCOUNT)));
    breaks(&["11"], &|db| db.remove(TRADE_BY_SECURITY.row(), &first(TRADE_BY_SECURITY)));
    breaks(&["11"], &|db| {
        corrupt(db, &first(TRADE_BY_SECURITY), |row: &mut TradeOfSecurity| row.account += 1);
    });
    let elsewhere = keys::by_security(0, 5, Trade::new(9, 1));
    breaks(&["11"], &|db| db.write(TRADE_BY_SECURITY.row(), elsewhere.clone(), &[0; 4]));

    let price = first(LAST_TRADE);
    breaks(&["13"], &|db| corrupt(db, &price, |row: &mut LastTrade| row.volume += 1));
    breaks(&["13"], &|db| corrupt(db, &price, |row: &mut LastTrade| row.price = 1999.into()));
    breaks(&["loaded"], &|db| db.remove(LAST_TRADE.row(), &price));
}

#[test]
fn glances_see_errors_where_they_look() {
    let data = Data::new(parameters());
    let sound = data.load();
    let broken = |expected: &[&str], plant: &dyn Fn(&mut Database)| {
        let mut database = sound.clone();
        plant(&mut database);
        let failed: BTreeSet<_> = failed(&glances(&data.parameters, &mut database)).into_iter().collect();
        assert_eq!(failed.iter().collect::<Vec<_>>(), expected);
    };
    let all = |table: TableId| sound.rows(table.row()).map(|(key, _)| key.clone()).collect::<Vec<_>>();
    broken(&["1"], &|db| {
        let keys = all(BROKER);
        keys.iter().for_each(|key| corrupt(db, key, |row: &mut BrokerTotals| row.trades += 1));
    });
    broken(&["3"], &|db| {
        let keys = all(HOLDING_SUMMARY);
        keys.iter().for_each(|key| corrupt(db, key, |row: &mut HoldingSummary| row.quantity += 1));
    });
    broken(&["8"], &|db| {
        let keys = all(CUSTOMER_ACCOUNT);
        keys.iter().for_each(|key| corrupt(db, key, |row: &mut AccountBalance| row.balance += 1));
    });
    broken(&["10"], &|db| {
        let keys = all(TRADE_REQUEST);
        keys.iter().for_each(|key| corrupt(db, key, |row: &mut TradeRequest| row.quantity += 1));
    });
    broken(&["13"], &|db| {
        let keys = all(LAST_TRADE);
        keys.iter().for_each(|key| corrupt(db, key, |row: &mut LastTrade| row.price = 0.into()));
    });
}

#[test]
fn a_glance_sees_that_a_security_has_gone_back_in_time() {
    let data = Data::new(parameters());
    let mut database = data.load();
    let securities: Vec<Key> = database.rows(LAST_TRADE.row()).map(|(key, _)| key.clone()).collect();
    let set = |database: &mut Database, date: u64| {
        for key in &securities {
            corrupt(database, key, |row: &mut LastTrade| row.date = date.into());
        }
    };
    // One at a security, one at an account, and one at the same security.
    let look = |database: &mut Database, number, last: Option<&Audit>| {
        let mut audit = Audit::online(&data.parameters, number);
        last.into_iter().for_each(|last| audit.follow(last));
        run_audit(database, &mut audit)
    };
    for (date, expected) in [(7, &[] as &[&str]), (8, &[]), (6, &["14"])] {
        set(&mut database, 7);
        let first = look(&mut database, 4, None);
        set(&mut database, date);
        let second = look(&mut database, 5, Some(&first));
        let third = look(&mut database, 6, Some(&second));
        assert_eq!(failed(&judge_snapshot(&third)), expected);
        assert!(judge_snapshot(&third).iter().any(|check| check.name.ends_with("14")));
    }
}

fn loaded(tpce: &Tpce) -> Database {
    let (scale, split) = (tpce.parameters.scale, tpce.parameters.split_columns);
    let units = (0..load::units(scale)).map(|unit| (unit, load::slot(scale, unit)));
    Database::fill(schema::tables(scale, split), units, |unit, sink| load::load(tpce, unit, sink))
}

fn nothing() -> Tally {
    Tally { committed: Vec::new(), sums: vec![0; conditions::SUMS.len()] }
}

/// Databases of more than one home, and of homes that are a part of a load unit.
fn thin() -> [Parameters; 3] {
    let mut parts = Parameters::small(2);
    parts.scale.home = 200;
    [parts.clone(), Parameters { split_columns: false, ..parts }, Parameters::small(1)]
}

#[test]
fn what_is_loaded_is_consistent() {
    for parameters in thin() {
        let mut database = loaded(&Tpce::new(parameters.clone()));
        let checks = judged(&parameters, &mut database, &nothing());
        assert_eq!((checks.len(), failed(&checks).len()), (17, 0), "{checks:#?}");
        let checks = glances(&parameters, &mut database);
        assert_eq!(failed(&checks).len(), 0, "{checks:#?}");
    }
}

/// Runs what a client does next, and counts it as a driver does.
fn step(tpce: &Tpce, client: &mut Client, turn: Turn, database: &mut Database, sums: &mut [i64]) {
    match turn {
        Turn::Card(Card::TradeOrder) => {
            let mut order = trade_order::TradeOrder::draw(tpce, client);
            match database.run(&mut order) {
                Ok(()) => {
                    client.ordered(tpce, &order);
                    sums[ORDERED_TRADES] += 1;
                }
                Err(abort) => assert!(abort == Abort::User && order.rolls_back(), "{abort:?} {order:?}"),
            }
        }
        Turn::Card(Card::TradeUpdate) => {
            let mut update = TradeUpdate::draw(tpce, client);
            assert_eq!(database.run(&mut update), Ok(()));
        }
        Turn::Card(_) => {}
        Turn::Answer(answer) => {
            let mut result = TradeResult::draw(tpce, client, answer);
            assert_eq!(database.run(&mut result), Ok(()));
            client.completed(tpce, &result);
            sums[COMPLETED_TRADES] += 1;
            sums[COMMISSION_CENTS] += result.commission();
            sums[SETTLED_CENTS] += result.amount();
            sums[CASH_CENTS] += if result.for_cash() { result.amount() } else { 0 };
        }
        Turn::Entry(entry) => {
            let mut feed = MarketFeed::draw(tpce, client, entry);
            assert_eq!(database.run(&mut feed), Ok(()));
            client.fed(&feed);
            sums[FEED_QUANTITY] += i64::from(entry.quantity);
            sums[SUBMITTED_LIMIT_ORDERS] += feed.triggered().len() as i64;
        }
        Turn::Maintenance(number) => {
            let mut maintenance = DataMaintenance::draw(tpce, client, number);
            assert_eq!(database.run(&mut maintenance), Ok(()));
        }
    }
}

#[test]
fn the_conditions_hold_after_any_run() {
    for parameters in thin() {
        let tpce = Tpce::new(parameters.clone());
        let (mut database, mut counted) = (loaded(&tpce), nothing());
        let client =
            |number| Client::new(&parameters, tpce.shared.clone(), number, ShardId(0), &|_| ShardId(0));
        let (mut clients, mut last) = ([0, 1].map(client), None);
        for round in 0..20_000 {
            let client = &mut clients[round % 2];
            let turn = client.turn(&tpce);
            step(&tpce, client, turn, &mut database, &mut counted.sums);
            if round % 200 == 0 {
                let mut audit = Audit::online(&parameters, round / 200);
                last.iter().for_each(|last| audit.follow(last));
                let audit = run_audit(&mut database, &mut audit);
                let checks = judge_snapshot(&audit);
                assert!(checks.iter().all(|check| check.ok), "{checks:#?}");
                last = Some(audit);
            }
        }
        let judge = |database: &mut Database, counted: &Tally| {
            let checks = judged(&parameters, database, counted);
            assert_eq!(failed(&checks).len(), 0, "{checks:#?}");
        };
        judge(&mut database, &counted);
        assert!(counted.sums[SUBMITTED_LIMIT_ORDERS] > 100, "{counted:?}");

        // One client's market does what was ordered, the other's orders are given up.
        while let Some(turn) = clients[0].last_turn(&tpce) {
            step(&tpce, &mut clients[0], turn, &mut database, &mut counted.sums);
        }
        judge(&mut database, &counted);
        let audits = audited(&parameters, &mut database);
        for mut cleanup in tpce.clean_ups(&audits.iter().collect::<Vec<_>>()) {
            assert_eq!(database.run(&mut cleanup), Ok(()));
            Tpce::tally(&cleanup, &mut counted.sums);
        }
        assert_eq!(database.count(TRADE_REQUEST.row()), 0);
        judge(&mut database, &counted);
        let sums = &counted.sums;
        assert!(sums[CANCELLED_TRADES] > 0);
        assert_eq!(sums[ORDERED_TRADES], sums[COMPLETED_TRADES] + sums[CANCELLED_TRADES]);
        assert_eq!(failed(&glances(&parameters, &mut database)).len(), 0);
    }
}
