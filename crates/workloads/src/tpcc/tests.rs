//! What TPC-C promises, on the simplest database that can run it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_types::{Abort, Key, Partitioning, Placement, TableId};
use zerocopy::FromBytes;

use super::schema::*;
use super::*;
use crate::testing::{Database, run_audit};

fn workload(parameters: Parameters) -> Tpcc {
    Tpcc::new(parameters).expect("the parameters are valid")
}

fn clients(tpcc: &Tpcc, shards: usize) -> Vec<Client> {
    let placement = Placement::even(shards);
    (0..shards).map(|s| tpcc.client(s, ShardId(s as u16), &|slot| placement.shard(slot))).collect()
}

/// What a driver counts.
struct Run {
    tally: Tally,
    rolled_back: u64,
}

impl Run {
    fn new() -> Run {
        Run { tally: Tally { committed: vec![0; 5], sums: vec![0; Tpcc::SUMS.len()] }, rolled_back: 0 }
    }

    /// Runs the next transaction of a client.
    fn step(&mut self, tpcc: &Tpcc, client: &mut Client, database: &mut Database) -> Transaction {
        let mut transaction = tpcc.next(client, 0);
        match database.run(&mut transaction) {
            Ok(()) => {
                self.tally.committed[Tpcc::kind(&transaction)] += 1;
                Tpcc::tally(&transaction, &mut self.tally.sums);
            }
            Err(abort) => {
                assert_eq!(abort, Abort::User);
                assert!(matches!(&transaction, Transaction::NewOrder(order) if order.rolls_back()));
                self.rolled_back += 1;
            }
        }
        transaction
    }
}

fn judged(tpcc: &Tpcc, database: &mut Database, tally: &Tally) -> Vec<Check> {
    let audits: Vec<_> = tpcc.audits().into_iter().map(|mut audit| run_audit(database, &mut audit)).collect();
    for check in audits.iter().flat_map(|audit| tpcc.judge_snapshot(audit)) {
        let all = tpcc.judge(&audits, tally);
        let same = all.iter().find(|other| other.name == check.name).expect("a snapshot's checks are judged");
        assert!(check.ok || !same.ok, "{check:?} but {same:?}");
    }
    tpcc.judge(&audits, tally)
}

fn assert_all_hold(checks: &[Check]) {
    assert!(checks.len() >= 12);
    for check in checks {
        assert!(check.ok, "{check:?}");
    }
}

/// The column groups of a row as they are, changed, and written behind all transactions' backs.
fn corrupt<C: Columns>(database: &mut Database, key: Key, change: impl FnOnce(&mut C)) {
    let column = Layout { split: true, spread: false }.column::<C>();
    let mut record = database.read(column, &key).expect("the row is there").to_vec();
    change(C::mut_from_prefix(&mut record).expect("the record holds the columns").0);
    database.write(column, key, &record);
}

#[test]
fn a_loaded_database_is_consistent() {
    for (split_columns, spread) in [(true, false), (false, false), (true, true), (false, true)] {
        let tpcc = workload(Parameters { split_columns, spread, ..Parameters::small(2) });
        let mut database = Database::load(&tpcc);
        assert_all_hold(&judged(&tpcc, &mut database, &Run::new().tally));
        let counts = [WAREHOUSE, DISTRICT, CUSTOMER, CUSTOMER_NAME, HISTORY, NEW_ORDER, ORDER, ITEM, STOCK]
            .map(|table| database.count(table.row()));
        assert_eq!(counts, [2, 20, 600, 600, 600, 180, 600, 100, 200]);
        let lines = database.count(ORDER_LINE.row());
        assert!((5600..6400).contains(&lines), "{lines} lines");
    }
}

#[test]
fn a_loaded_row_depends_on_the_seed_and_its_unit_only() {
    let rows = |parameters: Parameters, unit: usize| {
        let mut rows = Vec::new();
        workload(parameters).load(unit, &mut |table, key, values| {
            rows.push((table, key, values.concat()));
        });
        rows
    };
    let two = Parameters::small(2);
    assert_eq!(rows(two.clone(), 1), rows(two.clone(), 1));
    assert_eq!(rows(two.clone(), 2), rows(Parameters::small(9), 2));
    assert_eq!(rows(two.clone(), 2), rows(Parameters { split_columns: false, ..two.clone() }, 2));
    assert_ne!(rows(two.clone(), 0), rows(Parameters { seed: 2, ..two.clone() }, 0));
    let texts = |unit| rows(two.clone(), unit).into_iter().map(|row| row.2).collect::<Vec<_>>();
    assert_ne!(texts(1), texts(2));
    let spread = |warehouses| Parameters { spread: true, ..Parameters::small(warehouses) };
    assert_eq!(rows(spread(2), 120), rows(spread(9), 120));
    assert_ne!(rows(spread(2), 2)[0].2, rows(spread(2), 3)[0].2);
    for table in [CUSTOMER_NAME, HISTORY, NEW_ORDER, ORDER, CUSTOMER_ORDER, ORDER_LINE] {
        let rows = rows(two.clone(), 1);
        let keys: Vec<_> = rows.iter().filter(|row| row.0 == table).map(|row| &row.1).collect();
        assert!(keys.is_sorted(), "table {table:?} is loaded in ascending order");
    }
}

#[test]
fn the_conditions_hold_after_any_run() {
    for (split_columns, spread, remote) in [
        (true, false, 1.0),
        (false, false, 1.0),
        (true, false, 60.0),
        (true, true, 1.0),
        (false, true, 1.0),
        (true, true, 60.0),
    ] {
        let parameters = Parameters {
            split_columns,
            spread,
            remote_item_pct: remote,
            remote_payment_pct: 15.0 + remote / 2.0,
            stock_level_districts: if remote > 1.0 { 20 } else { 1 },
            ..Parameters::small(3)
        };
        let tpcc = workload(parameters);
        let mut database = Database::load(&tpcc);
        let mut clients = clients(&tpcc, 2);
        let mut run = Run::new();
        for round in 0..20_000 {
            let at = round % clients.len();
            run.step(&tpcc, &mut clients[at], &mut database);
            if round % 200 == 0 {
                let audit = run_audit(&mut database, &mut tpcc.online_audit(round / 200));
                let checks = tpcc.judge_snapshot(&audit);
                assert_eq!(checks.len(), 7);
                assert!(checks.iter().all(|check| check.ok), "{checks:?}");
            }
        }
        assert!(run.tally.committed.iter().all(|&count| count > 500), "{:?}", run.tally);
        assert!(run.rolled_back > 40);
        assert_all_hold(&judged(&tpcc, &mut database, &run.tally));
        for reads in [0, 7, 100, 1000] {
            database.interrupt_after = Some(reads);
            assert_all_hold(&judged(&tpcc, &mut database, &run.tally));
        }
        database.interrupt_after = None;
        // The second has the first districts of a spread warehouse, but not its row.
        let here: [fn(Slot) -> bool; 3] =
            [|slot| slot.0 % 2 == 0, |slot| (11..14).contains(&slot.0), |slot| slot.0 == 150];
        for here in here {
            database.here = Some(here);
            assert_all_hold(&judged(&tpcc, &mut database, &run.tally));
            for _ in 0..200 {
                run.step(&tpcc, &mut clients[0], &mut database);
            }
        }
        database.here = None;
        assert_all_hold(&judged(&tpcc, &mut database, &run.tally));

        for sum in 0..SKIPPED_DELIVERIES {
            let mut cheated = run.tally.clone();
            cheated.sums[sum] += 1;
            let broken = judged(&tpcc, &mut database, &cheated);
            assert_eq!(broken.iter().filter(|check| !check.ok).count(), 1, "{}", Tpcc::SUMS[sum]);
        }
    }
}

#[test]
fn a_district_without_waiting_orders_is_skipped() {
    let tpcc = workload(Parameters { mix: [0, 0, 0, 1, 0], ..Parameters::small(1) });
    let mut database = Database::load(&tpcc);
    let mut run = Run::new();
    let client = &mut clients(&tpcc, 1)[0];
    for _ in 0..12 {
        run.step(&tpcc, client, &mut database);
    }
    assert_eq!((run.tally.sums[DELIVERED_ORDERS], run.tally.sums[SKIPPED_DELIVERIES]), (90, 30));
    assert_eq!(database.count(NEW_ORDER.row()), 0);
    assert_all_hold(&judged(&tpcc, &mut database, &run.tally));
    let audit = run_audit(&mut database, &mut tpcc.online_audit(3));
    assert!(tpcc.judge_snapshot(&audit).iter().all(|check| check.ok));
}

#[test]
fn planted_bugs_break_the_conditions_they_should() {
    for spread in [false, true] {
        planted_bugs_break_conditions(spread);
    }
}

fn planted_bugs_break_conditions(spread: bool) {
    let tpcc = workload(Parameters { spread, ..Parameters::small(2) });
    let mut sound = Database::load(&tpcc);
    let mut run = Run::new();
    let mut clients = clients(&tpcc, 1);
    for _ in 0..2000 {
        run.step(&tpcc, &mut clients[0], &mut sound);
    }
    let waiting: Vec<u32> = sound
        .rows(NEW_ORDER.row())
        .filter(|(key, _)| keys::district(2, 3) < **key && **key < keys::district(2, 4))
        .map(|(key, _)| keys::order_of(key))
        .collect();
    let (delivered, middle) = (waiting[0] - 1, waiting[waiting.len() / 2]);

    // The checks that fail, by number or first word.
    let breaks = |expected: &[&str], plant: &dyn Fn(&mut Database)| {
        let mut database = sound.clone();
        plant(&mut database);
        let checks = judged(&tpcc, &mut database, &run.tally);
        let failed: Vec<_> = checks.iter().filter(|check| !check.ok).collect();
        let name = |check: &&Check| {
            let name = check.name.trim_start_matches("tpcc ").trim_start_matches("consistency ");
            name.split(' ').next().unwrap_or_default().to_owned()
        };
        assert_eq!(failed.iter().map(name).collect::<Vec<_>>(), expected, "{failed:#?}");
    };
    breaks(&[], &|_| ());
    breaks(&["1", "8"], &|db| corrupt(db, keys::warehouse(2), |row: &mut WarehouseYtd| row.ytd += 1));
    breaks(&["1", "8", "loaded"], &|db| db.remove(WAREHOUSE.group(1), &keys::warehouse(1)));

    let district = keys::district(2, 3);
    breaks(&["1", "9"], &|db| corrupt(db, district.clone(), |row: &mut DistrictYtd| row.ytd += 1));
    breaks(&["2", "new"], &|db| corrupt(db, district.clone(), |row: &mut DistrictNext| row.next_o_id += 1));

    let order = keys::order(2, 3, middle);
    breaks(&["3", "5", "11"], &|db| db.remove(NEW_ORDER.row(), &order));
    breaks(&["4", "5", "6", "11"], &|db| db.remove(ORDER.row(), &order));
    breaks(&["5", "7", "deliveries"], &|db| corrupt(db, order.clone(), |row: &mut Order| row.carrier = 1));
    breaks(&["4", "6"], &|db| db.remove(ORDER_LINE.row(), &keys::order_line(2, 3, middle, 1)));
    let line = keys::order_line(2, 3, delivered, 1);
    breaks(&["4", "6", "10", "12"], &|db| db.remove(ORDER_LINE.row(), &line));
    breaks(&["7", "10", "12"], &|db| {
        corrupt(db, line.clone(), |row: &mut OrderLine| row.delivered = 0.into())
    });

    let customer = |change: fn(&mut CustomerBalance)| {
        move |db: &mut Database| corrupt(db, keys::customer(2, 3, 1), change)
    };
    breaks(&["10", "12", "deliveries"], &customer(|row| row.balance -= 1));
    breaks(&["12", "deliveries"], &customer(|row| row.ytd_payment -= 1));
    breaks(&["11", "deliveries"], &customer(|row| row.deliveries += 1));
    breaks(&["payments"], &customer(|row| row.payments += 1));

    let key = tpcc.layout().history(2, 1, 0, 1);
    let payment = |change: fn(&mut History)| {
        let key = key.clone();
        move |db: &mut Database| corrupt(db, key.clone(), change)
    };
    breaks(&["8", "9", "10", "payments"], &payment(|row| row.amount += 1));
    breaks(&["9"], &payment(|row| row.d = 2));
    breaks(&["10"], &payment(|row| row.c = 2.into()));

    let stock =
        |change: fn(&mut StockQuantity)| move |db: &mut Database| corrupt(db, keys::stock(1, 7), change);
    breaks(&["stock"], &stock(|row| row.quantity = 9.into()));
    breaks(&["stocks"], &stock(|row| row.orders += 1));
    breaks(&["stocks"], &stock(|row| row.remote_orders += 1));
    breaks(&["loaded", "stocks"], &|db| db.remove(STOCK.row(), &keys::stock(1, 7)));
}

#[test]
fn a_glance_sees_a_broken_order_where_changes_happen() {
    let tpcc = workload(Parameters::small(1));
    let sound = Database::load(&tpcc);
    type Bug<'a> = (&'a str, &'a dyn Fn(&mut Database));
    let bugs: [Bug; 4] = [
        ("1", &|db| corrupt(db, keys::district(1, 9), |row: &mut DistrictYtd| row.ytd += 1)),
        ("2", &|db| corrupt(db, keys::district(1, 1), |row: &mut DistrictNext| row.next_o_id += 1)),
        ("5", &|db| corrupt(db, keys::order(1, 1, 20), |row: &mut Order| row.carrier = 0)),
        ("6", &|db| db.remove(ORDER_LINE.row(), &keys::order_line(1, 1, 30, 5))),
    ];
    for (condition, plant) in bugs {
        let mut database = sound.clone();
        plant(&mut database);
        let audit = run_audit(&mut database, &mut tpcc.online_audit(0));
        let checks = tpcc.judge_snapshot(&audit);
        let name = format!("tpcc consistency {condition}");
        assert!(checks.iter().any(|check| check.name == name && !check.ok), "{checks:?}");
    }
}

#[test]
fn a_new_order_costs_what_the_specification_says() {
    // Enough items that hardly ever two lines of an order have the same.
    let tpcc = workload(Parameters { mix: [1, 0, 0, 0, 0], items: 20_000, ..Parameters::small(2) });
    let mut database = Database::load(&tpcc);
    let mut client = clients(&tpcc, 1).remove(0);
    let (mut reads, mut updates, mut inserts, mut committed) = (0, 0, 0, 0);
    for _ in 0..5000 {
        let mut transaction = tpcc.next(&mut client, 0);
        if database.run(&mut transaction).is_ok() {
            let index = |table: TableId| matches!(table, CUSTOMER_ORDER | CUSTOMER_NAME);
            reads += database.counts.read.len();
            updates += database.counts.updated.len();
            inserts += database.counts.inserted.iter().filter(|(table, _)| !index(*table)).count();
            committed += 1;
        }
    }
    let mean = |sum: usize| sum as f64 / f64::from(committed);
    for (sum, expected) in [(reads, 23.0), (updates, 11.0), (inserts, 12.0)] {
        assert!((mean(sum) - expected).abs() < 0.25, "{} instead of {expected}", mean(sum));
    }
}

#[test]
fn a_new_order_writes_what_it_read() {
    for (split_columns, spread) in [(true, false), (false, false), (true, true), (false, true)] {
        let parameters = Parameters {
            split_columns,
            spread,
            mix: [1, 0, 0, 0, 0],
            remote_item_pct: 50.0,
            items: 10,
            ..Parameters::small(3)
        };
        let tpcc = workload(parameters);
        let layout = tpcc.layout();
        let mut database = Database::load(&tpcc);
        let mut client = clients(&tpcc, 3).remove(1);
        for _ in 0..300 {
            let mut transaction = tpcc.next(&mut client, 0);
            let before = database.clone();
            if database.run(&mut transaction) == Err(Abort::User) {
                assert!(database.rows(ORDER_LINE.row()).eq(before.rows(ORDER_LINE.row())));
                continue;
            }
            let Transaction::NewOrder(order) = transaction else { panic!("the mix has only New-Orders") };
            let o = order.order();
            let key = database.counts.inserted.iter().find(|(table, _)| *table == ORDER);
            let key = key.expect("the order was inserted").1.clone();
            let w = key.leading_int(4) as u32;
            assert!(spread || w == 1, "the client has only one warehouse");
            assert_eq!(keys::order_of(&key), o);
            assert!(before.read(ORDER.row(), &key).is_none());
            assert!(database.read(NEW_ORDER.row(), &key).is_some());
            let row = Order::read_from_bytes(database.read(ORDER.row(), &key).expect("it is there"))
                .expect("an order");
            let d = (key.leading_int(5) & 0xff) as u8;
            assert!(
                database.read(CUSTOMER_ORDER.row(), &keys::customer_order(w, d, row.c.get(), o)).is_some()
            );
            let (mut all_local, mut ordered) = (true, BTreeMap::new());
            for number in 1..=row.lines {
                let line = database.read(ORDER_LINE.row(), &keys::order_line(w, d, o, number));
                let line = OrderLine::read_from_bytes(line.expect("the line is there")).expect("a line");
                let item =
                    database.read(ITEM.row(), &keys::item(line.item.get())).expect("the item is there");
                let price = layout.view::<Item>(item).0.price.get();
                assert_eq!(line.amount.get(), price * i32::from(line.quantity));
                all_local &= line.supply_w.get() == w;
                let stock = keys::stock(line.supply_w.get(), line.item.get());
                let stock_row = database.read(layout.column::<Stock>(), &stock).expect("the stock is there");
                let districts = layout.view::<Stock>(stock_row).0.districts;
                assert_eq!(line.dist_info, districts[usize::from(d - 1)]);
                *ordered.entry(stock).or_insert(0) += u32::from(line.quantity);
            }
            assert!(database.read(ORDER_LINE.row(), &keys::order_line(w, d, o, row.lines + 1)).is_none());
            assert_eq!(row.all_local == 1, all_local);
            for (key, quantity) in ordered {
                let read = |database: &Database| {
                    let row = database.read(layout.column::<StockQuantity>(), &key).expect("it is there");
                    *layout.view::<StockQuantity>(row).0
                };
                let (old, new) = (read(&before), read(&database));
                assert_eq!(new.ytd.get() - old.ytd.get(), quantity, "an item that occurs twice counts twice");
            }
        }
    }
}

#[test]
fn new_orders_roll_back_and_go_elsewhere_as_often_as_they_should() {
    let tpcc = workload(Parameters { mix: [1, 0, 0, 0, 0], ..Parameters::new(50) });
    let mut client = clients(&tpcc, 1).remove(0);
    let (mut rolled_back, mut remote, mut lines) = (0, 0, 0);
    const DRAWS: u32 = 200_000;
    for _ in 0..DRAWS {
        let transaction = tpcc.next(&mut client, 0);
        let Transaction::NewOrder(order) = &transaction else { panic!("the mix has only New-Orders") };
        rolled_back += u32::from(order.rolls_back());
        remote += u32::from(order.stage(1) > 0);
        lines += order.line_sums().0;
        if order.stage(1) > 0 {
            let home = order.home(Piece { stage: 1, number: 0 });
            let elsewhere: BTreeSet<_> =
                (0..order.stage(0)).map(|number| order.home(Piece { stage: 0, number })).collect();
            assert_eq!(2 * elsewhere.len(), order.stage(0), "two pieces for each supplier");
            assert!(!elsewhere.contains(&home));
        }
    }
    let share = |count: u32| 100.0 * f64::from(count) / f64::from(DRAWS);
    assert!((share(rolled_back) - 1.0).abs() < 0.1, "{}", share(rolled_back));
    assert!((share(remote) - 9.52).abs() < 0.3, "{}", share(remote));
    assert!((lines as f64 / f64::from(DRAWS) - 10.0).abs() < 0.05);
}

/// All pieces of a transaction that has run, with their slots.
fn homes(transaction: &Transaction) -> Vec<(Piece, Slot)> {
    let stages = (0..).map(|stage| (stage, Procedure::stage(transaction, stage)));
    let pieces = stages
        .take_while(|&(_, pieces)| pieces > 0)
        .flat_map(|(stage, pieces)| (0..pieces).map(move |number| Piece { stage, number }));
    pieces.map(|piece| (piece, Procedure::home(transaction, piece))).collect()
}

#[test]
fn what_a_spread_warehouse_gets_is_on_all_shards_alike() {
    const SHARDS: usize = 4;
    let tpcc = workload(Parameters { spread: true, ..Parameters::new(1) });
    let mut clients = clients(&tpcc, SHARDS);
    let (mut stocks, mut several, mut orders) = ([0u32; SHARDS], 0, 0);
    for round in 0..40_000 {
        let shard = round % SHARDS;
        let transaction = tpcc.next(&mut clients[shard], 0);
        let shard_of = |slot: Slot| usize::from(slot.0) % SHARDS;
        match &transaction {
            Transaction::NewOrder(order) => {
                let homes = homes(&transaction);
                let (last, before) = homes.split_last().expect("there are pieces");
                assert_eq!(shard_of(last.1), shard, "a client's districts are on its shard");
                assert_eq!(before.len() % 2, 1, "two pieces for each stock, and the tax");
                let half = before.len() / 2;
                assert!(
                    before[..half]
                        .iter()
                        .map(|piece| piece.1)
                        .eq(before[half..2 * half].iter().map(|piece| piece.1))
                );
                assert_eq!(before[2 * half].1, Partitioning::modulo(1));
                before[..half].iter().for_each(|&(_, slot)| stocks[shard_of(slot)] += 1);
                let shards: BTreeSet<_> = homes.iter().map(|&(_, slot)| shard_of(slot)).collect();
                several += u32::from(shards.len() > 1);
                orders += 1;
                assert_eq!(order.line_sums().1, 0, "all from the home warehouse");
            }
            Transaction::Payment(_) => {
                let shards: Vec<_> = homes(&transaction).iter().map(|&(_, slot)| shard_of(slot)).collect();
                assert_eq!(
                    shards.iter().filter(|&&other| other == shard).count(),
                    shards.len() - if shard == 1 { 0 } else { 2 }
                );
            }
            Transaction::Delivery(delivery) => assert_eq!(delivery.districts().len(), 1),
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => {}
        }
    }
    assert!(several as f64 > 0.99 * f64::from(orders), "{several} of {orders}");
    let all: u32 = stocks.iter().sum();
    for count in stocks {
        let share = f64::from(count) / f64::from(all);
        assert!((0.235..0.265).contains(&share), "{stocks:?}");
    }
}

#[test]
fn both_forms_can_be_repaired_if_columns_are_split() {
    for spread in [false, true] {
        let chopping =
            |split_columns| workload(Parameters { spread, split_columns, ..Parameters::small(1) }).chopping();
        let checked = chopping(true).expect("every cycle can be repaired");
        let bound: BTreeSet<_> = checked
            .conflicts()
            .filter(|&(a, b)| checked.immediate(a) && checked.immediate(b))
            .flat_map(|(a, b)| [a, b])
            .map(|piece| checked.types[piece].name)
            .collect();
        assert_eq!(Vec::from_iter(bound), ["customer", "deliver", "order"]);
        let refused = chopping(false).expect_err("stocks are looked up and taken from in one record").0;
        assert!(refused.contains("new_order.lines"), "{refused}");
    }
}

#[test]
fn pieces_have_the_types_that_are_declared() {
    for spread in [false, true] {
        let tpcc = workload(Parameters {
            spread,
            remote_item_pct: 30.0,
            remote_payment_pct: 50.0,
            ..Parameters::small(3)
        });
        let (types, _) = tpcc.pieces().expect("it is one-shot");
        let mut client = clients(&tpcc, 1).remove(0);
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            let transaction = tpcc.next(&mut client, 0);
            if Procedure::read_only(&transaction) {
                continue;
            }
            for (piece, _) in homes(&transaction) {
                let number = OneShot::piece_type(&transaction, piece);
                let declared = &types[number];
                assert_eq!(declared.transaction, Tpcc::KINDS[Tpcc::kind(&transaction)].name);
                seen.insert(number);
                let mut items = Items::default();
                OneShot::items(&transaction, piece, &mut items);
                for item in items.0 {
                    let touched = declared.touches.contains(&(item.column, item.write));
                    assert!(touched, "{}.{} has {item:?}", declared.transaction, declared.name);
                }
            }
        }
        assert_eq!(seen.len(), types.len(), "every type is of some piece");
    }
}

#[test]
fn the_mix_and_the_payments_are_as_specified() {
    let tpcc = workload(Parameters::new(20));
    let mut client = clients(&tpcc, 4).remove(1);
    let (mut kinds, mut remote) = ([0u32; 5], 0);
    let mut keys = BTreeSet::new();
    for _ in 0..100_000 {
        let transaction = tpcc.next(&mut client, 0);
        kinds[Tpcc::kind(&transaction)] += 1;
        if let Transaction::Payment(payment) = &transaction {
            remote += u32::from(payment.remote());
            assert!((100..=500_000).contains(&payment.amount()));
        }
        let last = (0..)
            .take_while(|&stage| Procedure::stage(&transaction, stage) > 0)
            .last()
            .expect("there is a stage");
        let home = Procedure::home(&transaction, Piece { stage: last, number: 0 }).0;
        assert_eq!(home % 4, 1, "the last stage is on the client's shard");
        keys.insert(home);
    }
    assert_eq!(keys.len(), 5, "a client visits all warehouses of its shard");
    for (count, expected) in kinds.iter().zip([45_000, 43_000, 4000, 4000, 4000]) {
        assert!(count.abs_diff(expected) < 600, "{kinds:?}");
    }
    let remote = 100.0 * f64::from(remote) / f64::from(kinds[1]);
    assert!((remote - 15.0).abs() < 0.6, "{remote}");
}

#[test]
fn the_customer_in_the_middle_pays() {
    for split_columns in [true, false] {
        let parameters = Parameters {
            split_columns,
            mix: [0, 1, 0, 0, 0],
            remote_payment_pct: 50.0,
            // More than there are last names, so that some are shared.
            customers_per_district: 1500,
            items: 1,
            ..Parameters::new(2)
        };
        let tpcc = workload(parameters);
        let layout = tpcc.layout();
        let mut database = Database::load(&tpcc);
        let text = |database: &Database, key: &Key| {
            let row = database.read(layout.column::<CustomerData>(), key).expect("it is there");
            layout.view::<CustomerData>(row).1.to_vec()
        };
        let mut texts: BTreeMap<Key, Vec<u8>> = database
            .rows(layout.column::<CustomerData>())
            .map(|(key, row)| (key.clone(), layout.view::<CustomerData>(row).1.to_vec()))
            .collect();
        let mut client = clients(&tpcc, 1).remove(0);
        let (mut noted, mut named, mut shared) = (0, 0, 0);
        for _ in 0..2000 {
            let mut payment = tpcc.next(&mut client, 0);
            assert_eq!(database.run(&mut payment), Ok(()));
            let counts = &database.counts;
            let (_, key) = counts.updated.iter().find(|row| row.0 == CUSTOMER).expect("a customer has paid");
            let bytes = key.to_bytes();
            let c = u32::from_be_bytes(bytes[5..].try_into().expect("a customer's number has four bytes"));

            let row = database.read(layout.column::<Customer>(), key).expect("the customer is there");
            let new = text(&database, key);
            if layout.view::<Customer>(row).0.credit == *b"BC" {
                noted += 1;
                assert!(new.starts_with(format!("{c} {} {} ", bytes[4], key.leading_int(4)).as_bytes()));
                let end = new.iter().position(|&byte| byte == b'|').expect("a note ends in a bar") + 1;
                let old = &texts[key];
                assert_eq!(new[end..], old[..old.len().min(CUSTOMER_DATA_MAX - end)]);
            } else {
                assert_eq!(new, texts[key]);
            }
            let found: Vec<_> = counts.read.iter().filter(|row| row.0 == CUSTOMER_NAME).collect();
            if !found.is_empty() {
                named += 1;
                shared += u32::from(found.len() > 1);
                assert_eq!(keys::customer_of_name(&found[found.len().div_ceil(2) - 1].1), c);
            }
            texts.insert(key.clone(), new);
        }
        assert!(noted > 150 && named > 1100 && shared > 300, "{noted} noted, {named} named, {shared} shared");
    }
}

#[test]
fn order_status_shows_the_newest_order() {
    for spread in [false, true] {
        order_status_shows_newest(spread);
    }
}

fn order_status_shows_newest(spread: bool) {
    let tpcc =
        workload(Parameters { spread, mix: [5, 0, 5, 1 + 9 * u32::from(spread), 0], ..Parameters::small(1) });
    let mut database = Database::load(&tpcc);
    let mut client = clients(&tpcc, 1).remove(0);
    let mut run = Run::new();
    let mut delivered = 0;
    for _ in 0..3000 {
        let transaction = run.step(&tpcc, &mut client, &mut database);
        let Transaction::OrderStatus(status) = transaction else { continue };
        let (o, _, carrier) = status.order().expect("every customer has an order");
        let customer =
            database.counts.read.iter().find(|(table, _)| *table == CUSTOMER).expect("it was read");
        let prefix = customer.1.to_bytes();
        let newest = database
            .rows(ORDER.row())
            .filter(|(key, row)| {
                let order = Order::read_from_bytes(row).expect("an order");
                key.to_bytes()[..5] == prefix[..5] && order.c.get().to_be_bytes() == prefix[5..]
            })
            .map(|(key, _)| keys::order_of(key))
            .max();
        assert_eq!(newest, Some(o));
        assert!((5..=15).contains(&status.lines().len()));
        assert!(status.lines().iter().all(|line| (line.delivered != 0) == (carrier != 0)));
        assert!(status.name().iter().all(|name| name.len() >= 6));
        delivered += u32::from(carrier != 0);
    }
    assert!(delivered > 100);
}

#[test]
fn stock_level_counts_low_stocks_of_distinct_items() {
    for (districts, spread) in [(1, false), (7, false), (1, true), (7, true)] {
        let parameters = Parameters {
            spread,
            mix: [20, 0, 0, 0, 1],
            stock_level_districts: districts,
            ..Parameters::small(4)
        };
        let tpcc = workload(parameters);
        let mut database = Database::load(&tpcc);
        let mut client = clients(&tpcc, 2).remove(0);
        let mut run = Run::new();
        let mut low = 0;
        for _ in 0..2000 {
            if let Transaction::StockLevel(level) = run.step(&tpcc, &mut client, &mut database) {
                assert_eq!(level.stage(0), districts as usize);
                low += level.low_stocks();
                let stocks = database.counts.read.iter().filter(|(table, _)| *table == STOCK).count();
                let districts_read = database.counts.read.iter().filter(|row| row.0 == DISTRICT).count();
                assert!(stocks <= 100 * districts_read && stocks > 50);
                assert!(level.low_stocks() as usize <= stocks * districts as usize);
                assert!(!spread || level.stage(2) >= stocks, "100 items are in 100 slots");
            }
        }
        assert!(low > 0);
    }
}

#[test]
fn bad_parameters_are_refused_in_a_sentence() {
    let bad = |change: fn(&mut Parameters)| {
        let mut parameters = Parameters::new(1);
        change(&mut parameters);
        Tpcc::new(parameters).expect_err("the parameters are bad")
    };
    assert_eq!(bad(|p| p.warehouses = 0), "TPC-C needs 1 to 1000000 warehouses, not 0.");
    assert!(bad(|p| p.items = 0).contains("items"));
    assert!(bad(|p| p.customers_per_district = 70_000).contains("customers per district"));
    assert!(bad(|p| p.stock_level_districts = 21).contains("1 to 20 districts"));
    assert!(bad(|p| p.stock_level_orders = 0).contains("orders in a Stock-Level"));
    assert!(bad(|p| p.remote_item_pct = -1.0).contains("remote items"));
    assert!(bad(|p| p.mix = [0; 5]).contains("mix"));
}

#[test]
fn transactions_are_small_enough_to_be_moved() {
    assert!(size_of::<Transaction>() <= 768, "{}", size_of::<Transaction>());
}

#[test]
fn the_smallest_database_works() {
    for spread in [false, true] {
        let parameters = Parameters { spread, items: 1, customers_per_district: 1, ..Parameters::new(1) };
        let tpcc = workload(parameters);
        let mut database = Database::load(&tpcc);
        let mut run = Run::new();
        let mut client = clients(&tpcc, 1).remove(0);
        for _ in 0..500 {
            run.step(&tpcc, &mut client, &mut database);
        }
        assert_all_hold(&judged(&tpcc, &mut database, &run.tally));
    }
}
