//! What read-only transactions show, compared with what the rows say.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_txn::procedure::Procedure;
use plimsoll_types::random::Rng;
use plimsoll_types::{Key, Partitioning, ShardId, Slot, TableId, TableSpec};
use zerocopy::{FromZeros, IntoBytes};

use super::broker_volume::BrokerVolume;
use super::customer_position::{CustomerPosition, ShownState};
use super::market_watch::MarketWatch;
use super::numbers::{ACCOUNTS_MAX, ISSUES_MAX, Trade, accounts_of};
use super::reference::{SECTORS, Status, sector_of};
use super::schema::*;
use super::security_detail::SecurityDetail;
use super::shown::{Details, OF_ACCOUNT, OF_SECURITY, TRADES_MAX, draw_dates, draw_trades, draw_week};
use super::trade_lookup::TradeLookup;
use super::trade_status::TradeStatus;
use super::{Client, Parameters, Tpce, load, numbers, people};
use crate::rows::unpadded;
use crate::testing::Database;

/// A database, read behind all transactions' backs.
struct Data {
    tpce: Tpce,
    layout: Layout,
    tables: Vec<TableSpec>,
    database: Database,
    client: Client,
}

impl Data {
    /// A loaded database, and in it for each account an order that the market has not answered.
    fn new(parameters: Parameters) -> Data {
        let tpce = Tpce::new(parameters);
        let client = Client::new(&tpce.parameters, Arc::clone(&tpce.shared), 3, ShardId(0), &|_| ShardId(0));
        let (scale, split) = (tpce.scale(), tpce.parameters.split_columns);
        let tables = tables(scale, split);
        let units = (0..load::units(scale)).map(|unit| (unit, load::slot(scale, unit)));
        let database = Database::fill(tables.clone(), units, |unit, sink| load::load(&tpce, unit, sink));
        let mut data = Data { layout: tpce.layout(), tpce, tables, database, client };
        data.order();
        data
    }

    /// Small ones: both layouts, and homes of less than a load unit.
    fn all() -> impl Iterator<Item = Data> {
        let small = Parameters::small(2);
        let mut shared = Parameters::small(1);
        (shared.scale.home, shared.split_columns) = (200, false);
        [small, shared].into_iter().map(Data::new)
    }

    /// Orders that are pending or submitted, with dates a minute behind the initial days.
    fn order(&mut self) {
        let scale = self.tpce.scale();
        let mut rng = Rng::new(1, 1);
        let date = scale.end_of_load() + 60_000;
        for customer in (0..scale.homes()).flat_map(|home| scale.customers_of(home)).collect::<Vec<_>>() {
            for account in accounts_of(customer) {
                let trade = Trade::of_client(scale.home_of_account(account), 1, account.into());
                let (security, bid) = (scale.draw_security(&mut rng), 2000 + rng.below(1000) as i32);
                let limit = rng.pct(50.0);
                let mut order = TradeOrder::new_zeroed();
                (order.kind, order.cash, order.quantity) = (if limit { 4 } else { 0 }, 1, 100.into());
                (order.security, order.bid, order.account) = (security.into(), bid.into(), account.into());
                let status = if limit { Status::Pending } else { Status::Submitted } as u8;
                let state = TradeState { date: date.into(), status };
                let (outcome, executor) = (TradeOutcome::new_zeroed(), TradeExecutor { name: [b'x'; 49] });
                let groups = [order.as_bytes(), state.as_bytes(), outcome.as_bytes(), executor.as_bytes()];
                let history = TradeHistory { date: date.into() };
                let of_security = TradeOfSecurity { account: account.into() };
                let key = keys::trade(trade);
                match self.layout.split {
                    true => (0..).zip(groups).for_each(|(group, value)| {
                        self.database.write(TRADE.group(group), key.clone(), value);
                    }),
                    false => self.database.write(TRADE.row(), key, &groups.concat()),
                }
                let write =
                    &mut |table: TableId, key, value: &[u8]| self.database.write(table.row(), key, value);
                write(TRADE_HISTORY, keys::history(trade, status), history.as_bytes());
                write(TRADE_BY_ACCOUNT, keys::by_account(account, date, trade), &[]);
                write(TRADE_BY_SECURITY, keys::by_security(security, date, trade), of_security.as_bytes());
                if limit {
                    let broker = people::account(&self.tpce.parameters, account).broker;
                    let sector = rng.below(SECTORS.len() as u64) as u8;
                    let order =
                        PendingOrder { security: security.into(), quantity: 100.into(), bid: bid.into() };
                    write(PENDING_BY_BROKER, keys::by_broker(broker, sector, trade), order.as_bytes());
                }
            }
        }
    }

    fn find<C: Columns>(&self, key: Key) -> Option<C> {
        let record = self.database.read(self.layout.column::<C>(), &key)?;
        Some(*self.layout.view::<C>(record).0)
    }

    fn row<C: Columns>(&self, key: Key) -> C {
        self.find(key).expect("the row is there")
    }

    fn view<C: Columns>(&self, record: &[u8]) -> C {
        *self.layout.view::<C>(record).0
    }

    /// The rows whose keys begin with a number of this many bytes.
    fn of(&self, table: TableId, bytes: usize, number: u64) -> Vec<(Key, &[u8])> {
        self.database
            .rows(table.row())
            .filter(|(key, _)| key.leading_int(bytes) == number)
            .map(owned)
            .collect()
    }

    /// Runs a transaction in one of several ways, and compares how many rows it has read, copies
    /// not counted, with what it says.
    fn run<P: Procedure>(&mut self, number: usize, mut procedure: P, rows: fn(&P) -> u32) -> P {
        self.database.interrupt_after = [None, Some(0), Some(3), Some(30)][number % 4];
        self.database.here =
            [None, Some((|_| true) as _), Some((|slot: Slot| slot.0.is_multiple_of(2)) as _)][number % 3];
        assert!(procedure.read_only());
        assert_eq!(self.database.run(&mut procedure), Ok(()));
        let read = self.database.counts.read.iter().filter(|(table, key)| {
            let placed = self.tables[table.index()].partitioning != Partitioning::Everywhere;
            placed && self.present(*table, key)
        });
        assert_eq!(read.count() as u32, rows(&procedure));
        procedure
    }

    fn present(&self, table: TableId, key: &Key) -> bool {
        self.database.read(table.row(), key).is_some()
    }

    /// The trades of an account by the index, the oldest first, with their dates.
    fn trades_of(&self, account: u32) -> Vec<(u64, Trade)> {
        let home = self.tpce.scale().home_of_account(account);
        let rows = self.of(TRADE_BY_ACCOUNT, 4, account.into());
        rows.iter().map(|(key, _)| (keys::date_by_account(key), keys::trade_by_account(key, home))).collect()
    }

    /// The states of a trade and their dates.
    fn states_of(&self, trade: Trade) -> Vec<(u8, u64)> {
        let rows = self.of(TRADE_HISTORY, 7, trade.0);
        rows.iter()
            .map(|(key, record)| (keys::status_of(key), self.view::<TradeHistory>(record).date.get()))
            .collect()
    }
}

fn owned<'a>((key, value): (&Key, &'a [u8])) -> (Key, &'a [u8]) {
    (key.clone(), value)
}

#[test]
fn trade_status_shows_the_newest_trades_of_an_account() {
    for mut data in Data::all() {
        let mut most = 0;
        for number in 0..60 {
            let drawn = TradeStatus::draw(&data.tpce, &mut data.client);
            let status = data.run(number, drawn, TradeStatus::rows);
            let mut expected = data.trades_of(status.account());
            expected.reverse();
            expected.truncate(50);
            let shown: Vec<_> = status.trades().iter().map(|shown| (shown.date, shown.trade)).collect();
            assert_eq!(shown, expected);
            most = most.max(shown.len());
            for shown in status.trades() {
                let key = || keys::trade(shown.trade);
                let (order, state) = (data.row::<TradeOrder>(key()), data.row::<TradeState>(key()));
                let security = data.row::<Security>(keys::security(order.security.get()));
                assert_eq!(shown.security, order.security.get());
                assert_eq!((shown.quantity, shown.charge), (order.quantity.get(), order.charge.get()));
                assert_eq!((shown.status, shown.date), (state.status, state.date.get()));
                assert_eq!(shown.executor, data.row::<TradeExecutor>(key()).name);
                assert_eq!(shown.security_name, security.name);
                let names = [
                    data.row::<StatusType>(keys::small(state.status)).name.to_vec(),
                    data.row::<TradeTypeRow>(keys::small(order.kind)).name.to_vec(),
                    data.row::<Exchange>(keys::small(security.exchange)).name.to_vec(),
                ];
                assert_eq!(status.names(shown), names.each_ref().map(|name| unpadded(name)));
            }
            let account = data.row::<Account>(keys::number(status.account()));
            let broker = data.row::<Broker>(keys::number(account.broker.get()));
            let customer = data.row::<Customer>(keys::number(status.account() / ACCOUNTS_MAX));
            let people = [unpadded(&customer.first), unpadded(&customer.last), unpadded(&broker.name)];
            assert_eq!(status.people(), people);
        }
        assert!(most > 15, "some account has {most} trades at most");
    }
}

#[test]
fn customer_position_values_accounts_and_shows_the_history_of_one() {
    for mut data in Data::all() {
        let (mut states, mut by_id) = (0, 0);
        for number in 0..60 {
            let drawn = CustomerPosition::draw(&data.tpce, &mut data.client);
            let position = data.run(number, drawn, CustomerPosition::rows);
            let (customer, row, email) = position.customer();
            assert_eq!(row.as_bytes(), data.row::<Customer>(keys::number(customer)).as_bytes());
            assert_eq!(email, &data.row::<CustomerEmail>(keys::number(customer)).email_2);
            let accounts = position.accounts();
            assert_eq!(accounts.len(), numbers::accounts(customer) as usize);
            assert!(accounts.is_sorted_by_key(|position| (position.assets, position.account)));
            for shown in &accounts {
                let balance = data.row::<AccountBalance>(keys::number(shown.account)).balance.get();
                let held = data.of(HOLDING_SUMMARY, 4, shown.account.into());
                let assets = held.iter().map(|(key, record)| {
                    let price = data.row::<LastTrade>(keys::security(keys::security_of(key))).price.get();
                    i64::from(data.view::<HoldingSummary>(record).quantity.get()) * i64::from(price)
                });
                assert_eq!((shown.balance, shown.assets), (balance, assets.sum()));
            }
            let numbers: BTreeSet<_> = accounts.iter().map(|position| position.account).collect();
            assert_eq!(numbers, accounts_of(customer).collect());
            let Some(chosen) = position.chosen() else {
                assert!(position.history().is_empty());
                by_id += 1;
                continue;
            };
            let mut expected = Vec::new();
            for &(_, trade) in data.trades_of(chosen).iter().rev().take(10) {
                let order = data.row::<TradeOrder>(keys::trade(trade));
                for (status, date) in data.states_of(trade) {
                    let (security, quantity) = (order.security.get(), order.quantity.get());
                    expected.push(ShownState { trade, security, quantity, date, status });
                    let name = data.row::<StatusType>(keys::small(status)).name;
                    assert_eq!(position.status_name(status), unpadded(&name));
                }
            }
            let mut shown = position.history();
            assert!(shown.is_sorted_by(|a, b| a.date >= b.date));
            states += shown.len();
            let order = |state: &ShownState| (state.trade, state.status);
            shown.sort_by_key(order);
            expected.sort_by_key(order);
            assert_eq!(shown, expected);
        }
        assert!(by_id > 10 && states > 100, "{by_id} without history, {states} states");
    }
}

#[test]
fn broker_volume_adds_up_what_brokers_have_pending_in_a_sector() {
    for mut data in Data::all() {
        let mut found = 0;
        for number in 0..60 {
            let drawn = BrokerVolume::draw(&data.tpce, &mut data.client);
            let volume = data.run(number, drawn, BrokerVolume::rows);
            let sector = (0..).zip(SECTORS).find(|(_, sector)| sector.1.as_bytes() == volume.sector_name());
            let sector = sector.expect("a sector has this name").0;
            let volumes = volume.volumes();
            assert!(volumes.is_sorted_by(|a, b| a.1 >= b.1));
            found += volumes.len();
            // There are fewer brokers than are asked for: it is about all of them.
            let mut expected = Vec::new();
            for broker in 0..data.tpce.scale().brokers() {
                let rows = data.of(PENDING_BY_BROKER, 5, u64::from(broker) << 8 | sector);
                let value = rows.iter().map(|(_, record)| {
                    let order = data.view::<PendingOrder>(record);
                    i64::from(order.quantity.get()) * i64::from(order.bid.get())
                });
                let name = unpadded(&data.row::<Broker>(keys::number(broker)).name).to_vec();
                expected.extend((!rows.is_empty()).then(|| (name, value.sum::<i64>())));
            }
            let mut shown: Vec<_> = volumes.iter().map(|(name, value)| (name.to_vec(), *value)).collect();
            shown.sort();
            expected.sort();
            if data.tpce.scale().brokers() <= 20 {
                assert_eq!(shown, expected);
            }
        }
        assert!(found > 60);
    }
}

#[test]
fn market_watch_compares_prices_then_and_now() {
    for mut data in Data::all() {
        let mut kinds = [0; 3];
        for number in 0..150 {
            let drawn = MarketWatch::draw(&data.tpce, &mut data.client);
            let watch = data.run(number, drawn, MarketWatch::rows);
            let (securities, day, kind) = watch.seen();
            kinds[usize::from(kind)] += 1;
            assert_eq!(securities.iter().collect::<BTreeSet<_>>().len(), securities.len());
            let (mut then, mut now) = (0, 0);
            for &security in securities {
                let shares = data.row::<Security>(keys::security(security)).outstanding.get();
                let last = data.row::<LastTrade>(keys::security(security));
                then += shares * i64::from(data.row::<DailyMarket>(keys::daily(security, day)).close.get());
                now += shares * i64::from(last.price.get());
            }
            assert_eq!(watch.values(), (then, now));
            let change = watch.change_pct();
            assert!((-60.0..120.0).contains(&change), "{change} %");
            assert_eq!(then == 0, securities.is_empty());
        }
        assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
    }
}

#[test]
fn market_watch_by_industry_sees_all_securities_of_its_companies() {
    let mut data = Data::new(Parameters::small(2));
    let scale = data.tpce.scale();
    let mut seen = 0;
    for number in 0..400 {
        let drawn = MarketWatch::draw(&data.tpce, &mut data.client);
        let watch = data.run(number, drawn, MarketWatch::rows);
        let (securities, _, kind) = watch.seen();
        if kind == 2 {
            let Some(&first) = securities.first() else { continue };
            let industry = |security: u32| {
                data.row::<Company>(keys::security(security / ISSUES_MAX * ISSUES_MAX)).industry
            };
            let all = (0..scale.securities()).map(|position| scale.security(position));
            let expected: BTreeSet<_> = all.filter(|&other| industry(other) == industry(first)).collect();
            assert_eq!(securities.iter().copied().collect::<BTreeSet<_>>(), expected);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn security_detail_shows_everything_about_a_security() {
    for mut data in Data::all() {
        let mut texts = 0;
        for number in 0..300 {
            let drawn = SecurityDetail::draw(&data.tpce, &mut data.client);
            let shown = data.run(number, drawn, SecurityDetail::rows);
            let (security, detail) = (shown.security(), shown.detail());
            let company = security / ISSUES_MAX * ISSUES_MAX;
            let (key, company_key) = (|| keys::security(security), || keys::security(company));
            let exchange = || keys::small(detail.security.exchange);
            assert_eq!(detail.security.as_bytes(), data.row::<Security>(key()).as_bytes());
            assert_eq!(detail.exchange_date, data.row::<SecurityState>(key()).exchange_date.get());
            assert_eq!(detail.last.as_bytes(), data.row::<LastTrade>(key()).as_bytes());
            assert_eq!(detail.company.as_bytes(), data.row::<Company>(company_key()).as_bytes());
            assert_eq!(detail.rate, data.row::<CompanyState>(company_key()).rate);
            assert_eq!(detail.exchange.as_bytes(), data.row::<Exchange>(exchange()).as_bytes());
            assert_eq!(detail.exchange_text, data.row::<ExchangeText>(exchange()).description);
            let addresses = [
                (COMPANY_ADDRESS, company_key(), &detail.company_address),
                (EXCHANGE_ADDRESS, exchange(), &detail.exchange_address),
            ];
            for (table, key, (address, zip)) in addresses {
                assert_eq!(Some(address.as_bytes()), data.database.read(table.row(), &key));
                assert_eq!(zip.as_bytes(), data.row::<ZipCode>(keys::number(address.zip.get())).as_bytes());
            }
            assert_eq!(detail.competitors.len(), 3);
            for ((key, _), (name, industry)) in
                data.of(COMPANY_COMPETITOR, 3, company.into()).iter().zip(&detail.competitors)
            {
                let (other, number) = keys::competitor_of(key);
                assert_eq!(*name, data.row::<Company>(keys::security(other)).name);
                assert_eq!(*industry, data.row::<Industry>(keys::small(number)).name);
            }
            let quarters = data.of(FINANCIAL, 3, company.into());
            assert_eq!((quarters.len(), detail.quarters.len()), (20, 20));
            for ((key, record), (year, quarter, row)) in quarters.iter().zip(&detail.quarters) {
                assert_eq!(*key, keys::quarter(company, *year, *quarter));
                assert_eq!(*record, row.as_bytes());
            }
            let (start, days) = shown.days();
            assert_eq!(detail.days.len(), usize::from(days));
            let from_start = data.of(DAILY_MARKET, 3, security.into()).into_iter();
            let from_start = from_start.filter(|(key, _)| keys::day_of(key) >= start);
            for ((key, record), (day, row)) in from_start.zip(&detail.days) {
                assert_eq!((keys::day_of(&key), record), (*day, row.as_bytes()));
            }
            let news = data.of(NEWS_XREF, 3, company.into());
            let items = || news.iter().map(|(key, _)| keys::news(company, keys::item_of(key)));
            assert_eq!(news.len(), 2);
            let mut start = 0;
            for (key, &end) in items().zip(&detail.texts.1) {
                let record = data.database.read(data.layout.column::<NewsBody>(), &key).expect("it is there");
                assert_eq!(detail.texts.0[start..end], *data.layout.view::<NewsBody>(record).1);
                (start, texts) = (end, texts + 1);
            }
            for (key, head) in items().zip(&detail.news) {
                assert_eq!(head.as_bytes(), data.row::<NewsHead>(key).as_bytes());
            }
            assert_eq!(detail.news.len() + detail.texts.1.len(), 2);
            assert_eq!(detail.names()[0], unpadded(&people::symbol(security)));
        }
        assert!(texts > 0);
    }
}

/// Compares what is shown of a trade with its rows.
fn check_details(data: &Data, details: &Details) {
    let key = || keys::trade(details.trade);
    assert_eq!(details.order.as_bytes(), data.row::<TradeOrder>(key()).as_bytes());
    assert_eq!(details.outcome.as_bytes(), data.row::<TradeOutcome>(key()).as_bytes());
    assert_eq!(details.executor, data.row::<TradeExecutor>(key()).name);
    let settlement = details.settlement.map(|(row, kind)| (row.as_bytes().to_vec(), kind));
    let expected = data.find::<Settlement>(key()).map(|row| row.as_bytes().to_vec());
    assert_eq!(settlement, expected.map(|row| (row, data.row::<SettlementType>(key()).cash_type)));
    let cash = details.cash.map(|(row, name)| (row.as_bytes().to_vec(), name));
    let expected = data.find::<CashTransaction>(key()).map(|row| row.as_bytes().to_vec());
    assert_eq!(cash, expected.map(|row| (row, data.row::<CashTransactionName>(key()).name)));
    assert_eq!(details.states.all(), data.states_of(details.trade));
}

#[test]
fn trade_lookup_shows_everything_about_trades() {
    for mut data in Data::all() {
        let mut found = [0; 5];
        for number in 0..100 {
            let drawn = TradeLookup::draw(&data.tpce, &mut data.client);
            let lookup = data.run(number, drawn, TradeLookup::rows);
            for details in lookup.trades() {
                check_details(&data, details);
                let kind = data.row::<TradeTypeRow>(keys::small(details.order.kind));
                assert_eq!(lookup.kind_name(details.order.kind), unpadded(&kind.name));
            }
            let shown: Vec<_> = lookup.trades().map(|details| (details.date, details.trade)).collect();
            found[usize::from(lookup.frame())] += shown.len();
            assert!(shown.is_sorted());
            if let Some((account, dates)) = lookup.account() {
                let mut expected = data.trades_of(account);
                expected.retain(|(date, _)| dates.contains(date));
                if lookup.frame() == 2 {
                    expected.truncate(TRADES_MAX);
                    assert_eq!(shown, expected);
                } else {
                    let (first, changes) = lookup.lots();
                    assert_eq!(first, expected.first().map(|(_, trade)| *trade));
                    found[4] += changes.len();
                    check_lots(&data, first, changes);
                }
            }
            if let Some((security, dates)) = lookup.security() {
                let mut expected: Vec<_> = data.of(TRADE_BY_SECURITY, 3, security.into());
                expected.retain(|(key, _)| dates.contains(&keys::date_and_trade(key).0));
                let expected = expected.iter().map(|(key, _)| keys::date_and_trade(key)).take(TRADES_MAX);
                assert_eq!(shown, expected.collect::<Vec<_>>());
            }
        }
        assert!(found[1..].iter().all(|&count| count > 10), "{found:?}");
    }
}

/// Compares what is shown of lots with what holding history says.
fn check_lots(data: &Data, first: Option<Trade>, changes: &[super::trade_lookup::LotChange]) {
    let all: Vec<_> = data.database.rows(HOLDING_HISTORY.row()).map(owned).collect();
    let lots: BTreeSet<_> = all
        .iter()
        .filter(|(key, _)| Some(keys::first_trade(key)) == first)
        .map(|(key, _)| keys::second_trade(key))
        .collect();
    let mut expected: Vec<_> = all
        .iter()
        .filter(|(key, _)| lots.contains(&keys::second_trade(key)))
        .map(|(key, record)| {
            let row = data.view::<HoldingHistory>(record);
            (keys::second_trade(key), keys::first_trade(key), row.before.get(), row.after.get())
        })
        .collect();
    expected.sort_unstable();
    let shown: Vec<_> =
        changes.iter().map(|change| (change.lot, change.trade, change.before, change.after)).collect();
    match expected.len() <= TRADES_MAX {
        true => assert_eq!(shown, expected),
        false => assert!(shown.len() == TRADES_MAX && shown.iter().all(|change| expected.contains(change))),
    }
}

#[test]
fn a_trade_that_an_index_names_and_that_is_not_there_is_no_consistent_state() {
    let mut data = Data::new(Parameters::small(1));
    let mut status = TradeStatus::draw(&data.tpce, &mut data.client);
    assert_eq!(data.database.run(&mut status), Ok(()));
    let trade = keys::trade(status.trades()[0].trade);
    data.database.remove(data.layout.column::<TradeOrder>(), &trade);
    assert_eq!(data.database.run(&mut status), Err(plimsoll_types::Abort::Validation));
}

#[test]
fn inputs_are_what_the_initial_days_have() {
    for days in [1, 5, 10, 300] {
        let mut parameters = Parameters::new(4);
        parameters.scale.trade_days = days;
        let (scale, mut rng) = (parameters.scale, Rng::new(1, 1));
        for _ in 0..1000 {
            for backoff in [OF_ACCOUNT, OF_SECURITY] {
                let dates = draw_dates(scale, &mut rng, backoff);
                assert!(dates.start < scale.end_of_load() && dates.end > scale.end_of_load());
            }
            let trades = draw_trades(scale, &mut rng);
            assert!(trades.is_sorted() && trades.windows(2).all(|two| two[0] != two[1]));
            for trade in trades {
                assert!((1..=scale.initiated() + 1).contains(&trade.number()) && trade.home() < 4);
                assert!(!numbers::is_skipped(trade.number()));
            }
        }
    }
    for (days, weeks) in [(1305, 5..=260), (261, 5..=51), (30, 5..=5), (10, 1..=1), (5, 0..=0)] {
        let mut scale = Parameters::new(1).scale;
        scale.daily_market_days = days;
        let mut rng = Rng::new(1, 1);
        assert!((0..1000).all(|_| weeks.contains(&draw_week(scale, &mut rng))), "{days}");
    }
    assert!((0..102).all(|industry| usize::from(sector_of(industry)) < SECTORS.len()));
}

#[test]
fn in_five_days_nearly_all_accounts_and_securities_have_twenty_trades_to_look_up() {
    let mut parameters = Parameters::small(2);
    parameters.scale.trade_days = 5;
    let mut data = Data::new(parameters);
    let (mut tried, mut full) = ([0; 5], [0; 5]);
    for _ in 0..600 {
        let mut lookup = TradeLookup::draw(&data.tpce, &mut data.client);
        assert_eq!(data.database.run(&mut lookup), Ok(()));
        let frame = usize::from(lookup.frame());
        tried[frame] += 1;
        full[frame] += usize::from(lookup.trades().count() == TRADES_MAX || lookup.lots().0.is_some());
    }
    for frame in 1..=4 {
        assert!(full[frame] * 100 > tried[frame] * 95, "frame {frame}: {full:?} of {tried:?}");
    }
}
