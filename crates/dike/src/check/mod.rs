//! TPC-C's twelve consistency conditions (clause 3.3.2) as SQL, and one of ours.
//!
//! Each is a query for what violates it; a condition holds if there is nothing. They hold after a
//! load and after any run, when nothing runs. They are what makes a benchmark a test: a lost update
//! breaks 1, 8, 9 or 10, an order without its lines 4 or 6, a delivery that happened twice 3, 5
//! or 11.
//!
//! Condition 11 is the specification's for a database that was just loaded, where 2,100 orders of a
//! district are delivered. After a run there are as many more as its customers have got deliveries,
//! which is what we ask.
//!
//! Condition 13 is ours. An order line and the stock that it is taken from are changed by one
//! transaction and are, one time in a hundred or as often as is set, on different nodes. So the
//! stock of a warehouse has to have sold what all order lines since the load together say. No
//! condition of the specification spans warehouses in that direction.
//!
//! dUpdateBalance changes w_ytd and nothing else. Once it has run, conditions 1 and 8 say nothing
//! and are left out.

use serde::Serialize;

use crate::config::Data;
use crate::load::lease::Lease;
use crate::load::scale::Scale;
use crate::load::{self, LoadError};
use crate::metrics::document;
use crate::target::{Connector, Failure};

/// How many violations are shown.
const SHOWN: usize = 5;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not: some of the rows that say so, as `column=value`.
    Violated(Vec<String>),
    /// It says nothing about this database, for that reason.
    LeftOut(&'static str),
}

/// A condition and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Its number: 1 to 12 are clause 3.3.2's.
    pub number: u8,
    /// What it says.
    pub condition: &'static str,
    /// What was found.
    pub verdict: Verdict,
}

impl Checked {
    /// The same for the document of a run; nothing if the condition was left out.
    pub fn of_run(&self) -> Option<document::Check> {
        let (ok, detail) = match &self.verdict {
            Verdict::Holds => (true, String::new()),
            Verdict::Violated(rows) => (false, rows.join("; ")),
            Verdict::LeftOut(_) => return None,
        };
        Some(document::Check { name: format!("condition {}, {},", self.number, self.condition), ok, detail })
    }
}

struct Condition {
    number: u8,
    says: &'static str,
    /// The columns of the query, for people.
    columns: &'static [&'static str],
    /// Everything after SELECT; `{delivered}` and `{loaded}` are orders per district at load.
    query: &'static str,
}

const CONDITIONS: [Condition; 13] = [
    Condition {
        number: 1,
        says: "w_ytd is the sum of its districts' d_ytd",
        columns: &["w_id", "w_ytd", "sum(d_ytd)"],
        query: "w_id, w_ytd, total FROM warehouse LEFT JOIN \
                (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id \
                WHERE total IS NULL OR w_ytd <> total",
    },
    Condition {
        number: 2,
        says: "d_next_o_id - 1 is the newest order, and the newest one to be delivered",
        columns: &["d_w_id", "d_id", "d_next_o_id", "max(o_id)", "max(no_o_id)"],
        query: "d_w_id, d_id, d_next_o_id, newest, newest_new FROM district LEFT JOIN \
                (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) AS o \
                ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN \
                (SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest_new FROM new_order \
                GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id \
                WHERE newest IS NULL OR d_next_o_id - 1 <> newest \
                OR (newest_new IS NOT NULL AND newest_new <> newest)",
    },
    Condition {
        number: 3,
        says: "no order to be delivered is missing between the oldest and the newest",
        columns: &["no_w_id", "no_d_id", "count", "min(no_o_id)", "max(no_o_id)"],
        query: "no_w_id, no_d_id, COUNT(*), MIN(no_o_id), MAX(no_o_id) FROM new_order \
                GROUP BY no_w_id, no_d_id HAVING COUNT(*) <> MAX(no_o_id) - MIN(no_o_id) + 1",
    },
    Condition {
        number: 4,
        says: "the orders of a district say how many order lines it has",
        columns: &["o_w_id", "o_d_id", "sum(o_ol_cnt)", "lines"],
        query: "o_w_id, o_d_id, promised, line_count FROM \
                (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS promised FROM orders GROUP BY o_w_id, o_d_id) AS o \
                LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, COUNT(*) AS line_count FROM order_line GROUP BY ol_w_id, ol_d_id) \
                AS l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE line_count IS NULL OR promised <> line_count",
    },
    Condition {
        number: 5,
        says: "an order has no carrier if and only if it is to be delivered",
        columns: &["o_w_id", "o_d_id", "o_id", "o_carrier_id", "no_o_id"],
        query: "o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders LEFT JOIN new_order \
                ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    },
    Condition {
        number: 6,
        says: "an order has as many lines as it says",
        columns: &["o_w_id", "o_d_id", "o_id", "o_ol_cnt", "lines"],
        query: "o_w_id, o_d_id, o_id, o_ol_cnt, line_count FROM orders LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS line_count FROM order_line \
                GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE line_count IS NULL OR o_ol_cnt <> line_count",
    },
    Condition {
        number: 7,
        says: "a line is delivered if and only if its order has a carrier",
        columns: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        query: "ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line LEFT JOIN orders \
                ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
                WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Condition {
        number: 8,
        says: "w_ytd is the sum of the payments to the warehouse",
        columns: &["w_id", "w_ytd", "sum(h_amount)"],
        query: "w_id, w_ytd, total FROM warehouse LEFT JOIN \
                (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id \
                WHERE total IS NULL OR w_ytd <> total",
    },
    Condition {
        number: 9,
        says: "d_ytd is the sum of the payments to the district",
        columns: &["d_w_id", "d_id", "d_ytd", "sum(h_amount)"],
        query: "d_w_id, d_id, d_ytd, total FROM district LEFT JOIN \
                (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) AS h \
                ON h_w_id = d_w_id AND h_d_id = d_id WHERE total IS NULL OR d_ytd <> total",
    },
    Condition {
        number: 10,
        says: "c_balance is what was delivered to the customer less what the customer has paid",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "delivered", "paid"],
        query: "c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer LEFT JOIN \
                (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o \
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id LEFT JOIN \
                (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)",
    },
    Condition {
        number: 11,
        says: "the orders of a district that are not to be delivered are those of the load and the \
         deliveries since",
        columns: &["d_w_id", "d_id", "orders", "to be delivered", "deliveries"],
        query: "d_w_id, d_id, order_count, new_count, deliveries FROM district LEFT JOIN \
                (SELECT o_w_id, o_d_id, COUNT(*) AS order_count FROM orders GROUP BY o_w_id, o_d_id) AS o \
                ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN \
                (SELECT no_w_id, no_d_id, COUNT(*) AS new_count FROM new_order GROUP BY no_w_id, no_d_id) \
                AS n ON no_w_id = d_w_id AND no_d_id = d_id LEFT JOIN \
                (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer \
                GROUP BY c_w_id, c_d_id) AS c ON c_w_id = d_w_id AND c_d_id = d_id \
                WHERE COALESCE(order_count, 0) - COALESCE(new_count, 0) <> {delivered} + \
                COALESCE(deliveries, 0)",
    },
    Condition {
        number: 12,
        says: "c_balance and c_ytd_payment together are what was delivered to the customer",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "delivered"],
        query: "c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM customer LEFT JOIN \
                (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o \
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)",
    },
    Condition {
        number: 13,
        says: "the stock of a warehouse has sold what order lines since the load say, near and far",
        columns: &[
            "s_w_id",
            "sum(s_ytd)",
            "quantity",
            "sum(s_order_cnt)",
            "lines",
            "sum(s_remote_cnt)",
            "remote lines",
        ],
        query: "s_w_id, sold, quantity, sales, line_count, far, far_count FROM \
                (SELECT s_w_id, SUM(s_ytd) AS sold, SUM(s_order_cnt) AS sales, SUM(s_remote_cnt) AS far \
                FROM stock GROUP BY s_w_id) AS s LEFT JOIN \
                (SELECT ol_supply_w_id, SUM(ol_quantity) AS quantity, COUNT(*) AS line_count, \
                SUM(CASE WHEN ol_supply_w_id <> ol_w_id THEN 1 ELSE 0 END) AS far_count \
                FROM order_line WHERE ol_o_id > {loaded} GROUP BY ol_supply_w_id) AS l ON ol_supply_w_id = \
                s_w_id \
                WHERE sold <> COALESCE(quantity, 0) OR sales <> COALESCE(line_count, 0) \
                OR far <> COALESCE(far_count, 0)",
    },
];

/// Checks every condition, while no other command works on the tables.
pub async fn check(connector: &Connector, data: &Data) -> Result<Vec<Checked>, LoadError> {
    let connector = &connector.upkeep();
    let lease = Lease::alone(connector, "plimsoll dike check").await?;
    let checked = check_alone(connector, data).await;
    lease.release().await;
    checked
}

async fn check_alone(connector: &Connector, data: &Data) -> Result<Vec<Checked>, LoadError> {
    load::verify(connector, data).await?;
    let mut session = connector.connect(0).await?;
    let balances_updated = load::balances_updated(&mut session).await?;
    let scale = Scale::new(data);
    let mut checked = Vec::with_capacity(CONDITIONS.len());
    for Condition { number, says, columns, query } in &CONDITIONS {
        let verdict = if balances_updated && matches!(number, 1 | 8) {
            Verdict::LeftOut("dUpdateBalance has changed w_ytd")
        } else {
            let query = query
                .replace("{delivered}", &scale.delivered().to_string())
                .replace("{loaded}", &scale.customers.to_string());
            let rows = session.text(&format!("SELECT {query} LIMIT {SHOWN}")).await;
            let rows = rows.map_err(|failure| of_condition(*number, failure))?;
            match rows.is_empty() {
                true => Verdict::Holds,
                false => Verdict::Violated(rows.iter().map(|row| describe(columns, row)).collect()),
            }
        };
        checked.push(Checked { number: *number, condition: says, verdict });
    }
    Ok(checked)
}

fn of_condition(number: u8, failure: Failure) -> Failure {
    Failure { message: format!("condition {number}: {}", failure.message), ..failure }
}

fn describe(columns: &[&str], row: &[Option<String>]) -> String {
    let pairs = columns.iter().zip(row);
    let pairs = pairs.map(|(column, value)| format!("{column}={}", value.as_deref().unwrap_or("none")));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Whether nothing is violated.
pub fn all_hold(checked: &[Checked]) -> bool {
    checked.iter().all(|checked| !matches!(checked.verdict, Verdict::Violated(_)))
}

/// The verdicts as people read them.
pub fn render(checked: &[Checked]) -> String {
    let mut text = String::new();
    for Checked { number, condition, verdict } in checked {
        let word = match verdict {
            Verdict::Holds => "holds",
            Verdict::Violated(_) => "VIOLATED",
            Verdict::LeftOut(_) => "left out",
        };
        text += &format!("{number:>2}  {word:<8}  {condition}\n");
        match verdict {
            Verdict::Violated(examples) => {
                examples.iter().for_each(|example| text += &format!("              {example}\n"));
            }
            Verdict::LeftOut(reason) => text += &format!("              {reason}\n"),
            Verdict::Holds => {}
        }
    }
    text
}
