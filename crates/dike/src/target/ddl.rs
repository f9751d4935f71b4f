//! The nine tables of TPC-C and two of ours, and where each database puts them.
//!
//! Columns and keys are the specification's (clause 1.3, 1.4); HISTORY has no key there and has
//! none here. All keys begin with the warehouse, which is also what tables are partitioned by. Two
//! indexes serve the transactions that look up customers by name and orders by customer; they are
//! made after the load where that is quicker, and with the tables where an index added later locks
//! them.
//!
//! | database | partitions | a warehouse kept together | ITEM everywhere |
//! |---|---|---|---|
//! | PostgreSQL, Plimsoll | PARTITION BY HASH | | |
//! | Citus | shard count | co-located distributed tables | reference table |
//! | CockroachDB | SPLIT AT | | |
//! | YugabyteDB | SPLIT INTO tablets | | |
//! | MySQL, MariaDB | PARTITION BY HASH | | |
//! | TiDB | PARTITION BY HASH | | cached table |
//! | OceanBase | PARTITION BY HASH | table group | duplicate scope |
//!
//! Left out: foreign keys, which several of these do not have, and which no driver of the papers
//! has used.

use super::{Family, Kind};
use crate::config::{Data, Schema};

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in the order in which rows are loaded.
    pub columns: &'static str,
    /// Its primary key; none for HISTORY.
    pub key: &'static str,
    /// The column with the warehouse; none for ITEM.
    pub warehouse: Option<&'static str>,
}

/// The tables of TPC-C. `INT4` is a synonym that every database here knows, and means 32 bits to
/// each.
pub const TABLES: [Table; 9] = [
    Table {
        name: "item",
        columns: "i_id INT4 NOT NULL, i_im_id INT4 NOT NULL, i_name VARCHAR(24) NOT NULL, \
                  i_price DECIMAL(5,2) NOT NULL, i_data VARCHAR(50) NOT NULL",
        key: "i_id",
        warehouse: None,
    },
    Table {
        name: "warehouse",
        columns: "w_id INT4 NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, \
                  w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, \
                  w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL",
        key: "w_id",
        warehouse: Some("w_id"),
    },
    Table {
        name: "district",
        columns: "d_w_id INT4 NOT NULL, d_id INT4 NOT NULL, d_name VARCHAR(10) NOT NULL, \
                  d_street_1 VARCHAR(20) NOT NULL, d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT \
                  NULL, \
                  d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, d_tax DECIMAL(4,4) NOT NULL, \
                  d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT4 NOT NULL",
        key: "d_w_id, d_id",
        warehouse: Some("d_w_id"),
    },
    Table {
        name: "customer",
        columns: "c_w_id INT4 NOT NULL, c_d_id INT4 NOT NULL, c_id INT4 NOT NULL, c_first VARCHAR(16) NOT \
         NULL, \
                  c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL, \
                  c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, \
                  c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL, c_since TIMESTAMP NOT NULL, \
                  c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) \
                  NOT NULL, \
                  c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT4 \
                  NOT NULL, \
                  c_delivery_cnt INT4 NOT NULL, c_data VARCHAR(500) NOT NULL",
        key: "c_w_id, c_d_id, c_id",
        warehouse: Some("c_w_id"),
    },
    Table {
        name: "history",
        columns: "h_c_id INT4 NOT NULL, h_c_d_id INT4 NOT NULL, h_c_w_id INT4 NOT NULL, h_d_id INT4 NOT \
         NULL, \
                  h_w_id INT4 NOT NULL, h_date TIMESTAMP NOT NULL, h_amount DECIMAL(6,2) NOT NULL, \
                  h_data VARCHAR(24) NOT NULL",
        key: "",
        warehouse: Some("h_w_id"),
    },
    Table {
        name: "orders",
        columns: "o_w_id INT4 NOT NULL, o_d_id INT4 NOT NULL, o_id INT4 NOT NULL, o_c_id INT4 NOT NULL, \
                  o_entry_d TIMESTAMP NOT NULL, o_carrier_id INT4, o_ol_cnt INT4 NOT NULL, o_all_local INT4 \
                  NOT NULL",
        key: "o_w_id, o_d_id, o_id",
        warehouse: Some("o_w_id"),
    },
    Table {
        name: "new_order",
        columns: "no_w_id INT4 NOT NULL, no_d_id INT4 NOT NULL, no_o_id INT4 NOT NULL",
        key: "no_w_id, no_d_id, no_o_id",
        warehouse: Some("no_w_id"),
    },
    Table {
        name: "order_line",
        columns: "ol_w_id INT4 NOT NULL, ol_d_id INT4 NOT NULL, ol_o_id INT4 NOT NULL, ol_number INT4 NOT \
         NULL, \
                  ol_i_id INT4 NOT NULL, ol_supply_w_id INT4 NOT NULL, ol_delivery_d TIMESTAMP NULL, \
                  ol_quantity INT4 NOT NULL, ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL",
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
        warehouse: Some("ol_w_id"),
    },
    Table {
        name: "stock",
        columns: "s_w_id INT4 NOT NULL, s_i_id INT4 NOT NULL, s_quantity INT4 NOT NULL, s_dist_01 CHAR(24) \
         NOT NULL, \
                  s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, \
                  s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, \
                  s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, s_dist_10 CHAR(24) NOT NULL, \
                  s_ytd INT4 NOT NULL, s_order_cnt INT4 NOT NULL, s_remote_cnt INT4 NOT NULL, s_data \
                  VARCHAR(50) NOT NULL",
        key: "s_w_id, s_i_id",
        warehouse: Some("s_w_id"),
    },
];

/// The table in which a database remembers what Dike has made of it.
pub const RECORD: &str = "dike_data";

/// Tables that are not TPC-C's: the record, which units of a load are complete, and the lists of
/// the isolation test.
const OURS: [(&str, &str); 3] = [
    (RECORD, "p_name VARCHAR(64) NOT NULL PRIMARY KEY, p_value VARCHAR(255) NOT NULL"),
    ("dike_unit", "u_id INT4 NOT NULL PRIMARY KEY, u_complete INT4 NOT NULL, u_loader VARCHAR(16)"),
    ("dike_list", "l_id INT4 NOT NULL PRIMARY KEY, l_numbers TEXT NOT NULL"),
];

/// Indexes that PostgreSQL's family makes after a load, as `table (columns)`.
const INDEXES: [(&str, &str); 2] = [
    ("customer_by_name", "customer (c_w_id, c_d_id, c_last, c_first)"),
    ("orders_by_customer", "orders (o_w_id, o_d_id, o_c_id, o_id)"),
];

/// The names of all tables, the record first.
pub fn tables() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name).chain(TABLES.iter().map(|table| table.name))
}

/// Every name that [`create`] and [`finish`] give to something.
pub fn names(kind: Kind, schema: &Schema) -> Vec<String> {
    let mut names: Vec<String> = tables().map(str::to_owned).collect();
    if kind.family() == Family::Postgres {
        names.extend(INDEXES.iter().map(|(name, _)| (*name).to_owned()));
    }
    if matches!(kind, Kind::Postgresql | Kind::Plimsoll) {
        let partitioned = TABLES.iter().filter(|table| table.warehouse.is_some());
        names.extend(
            partitioned.flat_map(|table| (0..schema.partitions).map(move |at| partition(table.name, at))),
        );
    }
    names
}

fn partition(table: &str, at: u32) -> String {
    format!("{table}_{at}")
}

/// A statement that makes a table and says in its comment whose it is, both or neither.
fn marked(kind: Kind, name: &str, columns: &str, mark: &str, more: &str) -> String {
    match kind.family() {
        Family::Postgres => {
            format!("CREATE TABLE {name} ({columns}){more}; COMMENT ON TABLE {name} IS '{mark}'")
        }
        Family::Mysql => format!("CREATE TABLE {name} ({columns}) COMMENT = '{mark}'{more}"),
    }
}

/// The statement that makes the record.
pub fn create_record(kind: Kind, mark: &str) -> String {
    let (name, columns) = OURS[0];
    marked(kind, name, columns, mark, "")
}

/// The statements that make what is missing of the tables, but for the record.
///
/// * `mark`: their comment.
/// * `existing`: the names of what is there.
pub fn create(
    kind: Kind,
    schema: &Schema,
    data: &Data,
    mark: &str,
    existing: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut statements = Vec::new();
    for (name, columns) in &OURS[1..] {
        if !existing(name) {
            statements.push(marked(kind, name, columns, mark, ""));
        }
    }
    if kind == Kind::Oceanbase && schema.co_locate && !existing("warehouse") {
        statements.push("CREATE TABLEGROUP IF NOT EXISTS dike SHARDING = 'PARTITION'".to_owned());
    }
    for table in TABLES.iter().filter(|table| !existing(table.name)) {
        create_table(kind, schema, data, table, mark, &mut statements);
    }
    statements
}

fn create_table(
    kind: Kind,
    schema: &Schema,
    data: &Data,
    table: &Table,
    mark: &str,
    statements: &mut Vec<String>,
) {
    let Table { name, columns, .. } = table;
    // TIMESTAMP ends in 2038 in MySQL, and changes with the row.
    let columns = match kind.family() {
        Family::Postgres => (*columns).to_owned(),
        Family::Mysql => columns.replace("TIMESTAMP", "DATETIME"),
    };
    let key = if table.key.is_empty() { String::new() } else { format!(", PRIMARY KEY ({})", table.key) };
    let index = match (kind.family(), *name) {
        (Family::Mysql, "customer") => ", INDEX customer_by_name (c_w_id, c_d_id, c_last, c_first)",
        (Family::Mysql, "orders") => ", INDEX orders_by_customer (o_w_id, o_d_id, o_c_id, o_id)",
        _ => "",
    };
    let columns = format!("{columns}{key}{index}");
    let mut text = String::new();
    let partitions = schema.partitions;
    let mut after = Vec::new();
    match (kind, table.warehouse) {
        (Kind::Postgresql | Kind::Plimsoll, Some(warehouse)) if partitions > 0 => {
            text += &format!(" PARTITION BY HASH ({warehouse})");
            after.extend((0..partitions).map(|at| {
                format!(
                    "CREATE TABLE {} PARTITION OF {name} \
                     FOR VALUES WITH (MODULUS {partitions}, REMAINDER {at})",
                    partition(name, at)
                )
            }));
        }
        (Kind::Citus, Some(warehouse)) => {
            let together = match (schema.co_locate, *name) {
                (true, "warehouse") => "default",
                (true, _) => "warehouse",
                (false, _) => "none",
            };
            let count = if partitions > 0 && together != "warehouse" {
                format!(", shard_count => {partitions}")
            } else {
                String::new()
            };
            after.push(format!(
                "SELECT create_distributed_table('{name}', '{warehouse}', colocate_with => \
                 '{together}'{count})"
            ));
        }
        (Kind::Citus, None) if schema.replicate_item => {
            after.push(format!("SELECT create_reference_table('{name}')"));
        }
        (Kind::Citus, None) => after.push(format!("SELECT create_distributed_table('{name}', 'i_id')")),
        (Kind::Cockroachdb, Some(_)) if partitions > 1 => {
            let bounds = (1..partitions)
                .map(|at| 1 + u64::from(data.warehouses) * u64::from(at) / u64::from(partitions));
            let bounds: Vec<String> = bounds.map(|bound| format!("({bound})")).collect();
            if table.key.is_empty() {
                // Its rows are in the order of a hidden number.
            } else {
                after.push(format!("ALTER TABLE {name} SPLIT AT VALUES {}", bounds.join(", ")));
            }
        }
        (Kind::Yugabytedb, Some(_)) if partitions > 0 => text += &format!(" SPLIT INTO {partitions} TABLETS"),
        (Kind::Mysql | Kind::Mariadb | Kind::Tidb, Some(warehouse)) if partitions > 0 => {
            text += &format!(" PARTITION BY HASH ({warehouse}) PARTITIONS {partitions}");
        }
        (Kind::Tidb, None) if schema.replicate_item => after.push(format!("ALTER TABLE {name} CACHE")),
        (Kind::Oceanbase, Some(warehouse)) => {
            if schema.co_locate {
                text += " TABLEGROUP = dike";
            }
            if partitions > 0 {
                text += &format!(" PARTITION BY HASH ({warehouse}) PARTITIONS {partitions}");
            }
        }
        (Kind::Oceanbase, None) if schema.replicate_item => text += " DUPLICATE_SCOPE = 'cluster'",
        _ => {}
    }
    let made = marked(kind, name, &columns, mark, &text);
    if matches!(kind, Kind::Postgresql | Kind::Plimsoll) {
        // In one transaction: a table without its partitions would count as made.
        statements.push(after.into_iter().fold(made, |made, partition| made + "; " + &partition));
    } else {
        statements.push(made);
        statements.extend(after);
    }
}

/// What is left to do when all rows are there.
pub fn finish(kind: Kind) -> Vec<String> {
    let mut statements = Vec::new();
    if kind.family() == Family::Postgres {
        let index = |(name, on): &(&str, &str)| format!("CREATE INDEX IF NOT EXISTS {name} ON {on}");
        statements.extend(INDEXES.iter().map(index));
    }
    let analyze = |table: &Table| match kind.family() {
        Family::Postgres => format!("ANALYZE {}", table.name),
        Family::Mysql => format!("ANALYZE TABLE {}", table.name),
    };
    statements.extend(TABLES.iter().map(analyze));
    statements
}

/// The query for the names of what is in the schema that tables are made in, and for the comment of
/// each: an index or a partition has that of its table. PostgreSQL's catalogue names what the user
/// must not touch as well.
pub fn existing(kind: Kind) -> &'static str {
    match kind.family() {
        Family::Postgres => {
            "SELECT c.relname, obj_description(COALESCE(h.inhparent, i.indrelid, c.oid), 'pg_class') \
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
             LEFT JOIN pg_index AS i ON i.indexrelid = c.oid \
             LEFT JOIN pg_inherits AS h ON h.inhrelid = c.oid AND c.relkind IN ('r', 'p') \
             WHERE n.nspname = current_schema()"
        }
        // A server that compares names without case may keep them in any case.
        Family::Mysql => {
            "SELECT CASE WHEN @@lower_case_table_names = 0 THEN table_name ELSE LOWER(table_name) END, \
             table_comment FROM information_schema.tables WHERE table_schema = DATABASE()"
        }
    }
}

/// The statements that remove the tables that are there, the record last: while it is there, what
/// is left has an owner.
pub fn destroy(kind: Kind, existing: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names: Vec<&str> = tables().filter(|name| existing(name)).collect();
    names.reverse();
    let mut statements: Vec<String> = names.iter().map(|name| format!("DROP TABLE {name}")).collect();
    if kind == Kind::Oceanbase {
        statements.insert(statements.len().saturating_sub(1), "DROP TABLEGROUP IF EXISTS dike".to_owned());
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, schema: &Schema) -> String {
        create(kind, schema, &Data::default(), "ours", |_| false).join(";\n")
    }

    #[test]
    fn each_database_has_its_own_way_to_spread_tables() {
        let schema = Schema { partitions: 4, ..Schema::default() };
        assert!(of(Kind::Postgresql, &schema).contains("CREATE TABLE stock_3 PARTITION OF stock"));
        assert!(of(Kind::Citus, &schema).contains("create_reference_table('item')"));
        let citus = of(Kind::Citus, &schema);
        assert!(citus.contains("'stock', 's_w_id', colocate_with => 'warehouse')"), "{citus}");
        let apart = Schema { co_locate: false, replicate_item: false, ..schema.clone() };
        assert!(!of(Kind::Citus, &apart).contains("'warehouse')"));
        assert!(of(Kind::Cockroachdb, &schema).contains("ALTER TABLE stock SPLIT AT VALUES (3), (6), (8)"));
        assert!(of(Kind::Tidb, &schema).contains("ALTER TABLE item CACHE"));
        assert!(
            of(Kind::Oceanbase, &schema)
                .contains("TABLEGROUP = dike PARTITION BY HASH (s_w_id) PARTITIONS 4")
        );
        assert!(!of(Kind::Mariadb, &schema).contains(" TIMESTAMP"));
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let there = |name: &str| TABLES.iter().any(|table| table.name == name);
        let made = create(Kind::Postgresql, &Schema::default(), &Data::default(), "ours", there);
        assert!(made.iter().all(|statement| statement.contains("dike_")), "{made:?}");
    }

    #[test]
    fn everything_that_is_made_has_a_name_that_was_looked_for_and_says_whose_it_is() {
        for kind in [Kind::Postgresql, Kind::Citus, Kind::Mariadb, Kind::Oceanbase] {
            let schema = Schema { partitions: 3, ..Schema::default() };
            let names = names(kind, &schema);
            let mut made = create(kind, &schema, &Data::default(), "ours", |_| false);
            made.extend([create_record(kind, "ours")]);
            made.extend(finish(kind));
            let whole = made.join("; ");
            for statement in made.iter().flat_map(|made| made.split("; ")) {
                let words: Vec<&str> = statement.split(' ').collect();
                let named = match &words[..] {
                    ["CREATE", "TABLE", name, "PARTITION", ..] => name,
                    ["CREATE", "TABLE", name, ..] => {
                        let comment = format!("COMMENT ON TABLE {name} IS 'ours'");
                        let says = statement.contains("COMMENT = 'ours'") || whole.contains(&comment);
                        assert!(says, "{statement}");
                        name
                    }
                    ["CREATE", "INDEX", "IF", "NOT", "EXISTS", name, ..] => name,
                    _ => continue,
                };
                assert!(names.iter().any(|name| name == named), "{named}");
            }
        }
        let dropped = destroy(Kind::Mariadb, |name| name == RECORD || name == "stock");
        assert_eq!(dropped, ["DROP TABLE stock", "DROP TABLE dike_data"]);
    }
}
