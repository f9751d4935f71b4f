//! The texts of all statements, once for both families.
//!
//! Parameters are `?`, which PostgreSQL wants numbered; `{lock}` is where `FOR UPDATE` stands if it
//! is wanted. Everything else here is what both understand. Statements with a number in their name
//! take that many rows or keys.

use std::fmt::Write;

use super::Family;

/// A statement that transactions use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statement {
    /// w_tax.
    WarehouseTax,
    /// d_tax and d_next_o_id, to be raised.
    DistrictNext,
    /// Raises d_next_o_id.
    RaiseNext,
    /// c_discount, c_last, c_credit.
    CustomerDiscount,
    /// A new order.
    InsertOrder,
    /// An order to be delivered.
    InsertNewOrder,
    /// i_price, i_name, i_data.
    Item,
    /// s_quantity, s_data and the s_dist of a district 1 to 10, to be changed.
    Stock(u8),
    /// Changes a stock.
    UpdateStock,
    /// So many order lines.
    InsertLines(u8),
    /// Adds to w_ytd.
    PayWarehouse,
    /// w_name and address.
    WarehouseName,
    /// Adds to d_ytd.
    PayDistrict,
    /// d_name and address.
    DistrictName,
    /// c_id of everybody with a last name, by first name.
    CustomersByName,
    /// A customer's row, to be paid.
    CustomerToPay,
    /// c_data.
    CustomerText,
    /// A payment.
    PayCustomer,
    /// A payment of a customer with bad credit, which writes c_data.
    PayBadCustomer,
    /// A history row.
    InsertHistory,
    /// c_balance and names.
    CustomerBalance,
    /// The newest order of a customer.
    NewestOrder,
    /// The lines of an order.
    Lines,
    /// The oldest order to be delivered.
    OldestNewOrder,
    /// Takes it out.
    DeleteNewOrder,
    /// Its customer.
    OrderCustomer,
    /// Sets o_carrier_id.
    SetCarrier,
    /// The sum of its lines.
    LinesAmount,
    /// Sets ol_delivery_d.
    SetDelivered,
    /// Pays it to the customer.
    DeliverCustomer,
    /// d_next_o_id, only to be read.
    DistrictNextRead,
    /// Counts low stocks.
    LowStock,
    /// Counts low stocks of so many warehouses (the paper's dStockLevel).
    LowStockOf(u16),
    /// Changes the price of a range of items.
    UpdateItems,
    /// s_quantity, to be changed.
    StockQuantity,
    /// Sets s_quantity.
    SetStockQuantity,
    /// Adds to w_ytd, nothing else.
    UpdateBalance,
    /// w_ytd.
    SelectBalance,
    /// A list of the isolation test.
    ReadList,
    /// Appends to it.
    AppendList,
}

/// ` FOR UPDATE` where a row is read to be changed.
const LOCK: &str = "{lock}";

impl Statement {
    /// Its text with `?` for parameters and `{lock}`.
    fn template(self) -> String {
        use Statement::*;
        let text = match self {
            WarehouseTax => "SELECT w_tax FROM warehouse WHERE w_id = ?",
            DistrictNext => "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?{lock}",
            RaiseNext => "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            CustomerDiscount => {
                "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id \
                 = ?"
            }
            InsertOrder => {
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)"
            }
            InsertNewOrder => "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
            Item => "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
            Stock(district) => {
                return format!(
                    "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE s_w_id = ? AND s_i_id \
                     = ?{LOCK}"
                );
            }
            UpdateStock => {
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"
            }
            InsertLines(rows) => {
                let mut text = "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
                                ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES "
                    .to_owned();
                text += &vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?)"; usize::from(rows)].join(", ");
                return text;
            }
            PayWarehouse => "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            WarehouseName => {
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?"
            }
            PayDistrict => "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            DistrictName => {
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?"
            }
            CustomersByName => {
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
            }
            CustomerToPay => {
                "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
                 c_credit, c_credit_lim, c_discount, c_balance FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}"
            }
            CustomerText => "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            PayCustomer => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            PayBadCustomer => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            InsertHistory => {
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            }
            CustomerBalance => {
                "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            NewestOrder => {
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id \
                 = ? \
                 ORDER BY o_id DESC LIMIT 1"
            }
            Lines => {
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            OldestNewOrder => {
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT \
                 1{lock}"
            }
            DeleteNewOrder => "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            OrderCustomer => "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            SetCarrier => "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            LinesAmount => {
                "SELECT COALESCE(SUM(ol_amount), 0) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND \
                 ol_o_id = ?"
            }
            SetDelivered => {
                "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            DeliverCustomer => {
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            DistrictNextRead => "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            LowStock => {
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = \
                 ol_i_id \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?"
            }
            LowStockOf(warehouses) => {
                return format!(
                    "SELECT COUNT(*) FROM (SELECT DISTINCT s_w_id, s_i_id FROM district \
                     JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id \
                     AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id \
                     JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                     WHERE d_id = ? AND s_quantity < ? AND d_w_id IN ({})) AS low",
                    vec!["?"; usize::from(warehouses)].join(", ")
                );
            }
            UpdateItems => {
                "UPDATE item SET i_price = CASE WHEN i_price < 100 THEN i_price + 0.01 ELSE 1.00 END \
                 WHERE i_id >= ? AND i_id < ?"
            }
            StockQuantity => "SELECT s_quantity FROM stock WHERE s_w_id = ? AND s_i_id = ?{lock}",
            SetStockQuantity => "UPDATE stock SET s_quantity = ? WHERE s_w_id = ? AND s_i_id = ?",
            UpdateBalance => "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            SelectBalance => "SELECT w_ytd FROM warehouse WHERE w_id = ?",
            ReadList => "SELECT l_numbers FROM dike_list WHERE l_id = ?",
            AppendList => "UPDATE dike_list SET l_numbers = CONCAT(l_numbers, ?) WHERE l_id = ?",
        };
        text.to_owned()
    }

    /// Its text in a family's dialect, with locks or without.
    pub fn sql(self, family: Family, lock: bool) -> String {
        let text = self.template().replace(LOCK, if lock { " FOR UPDATE" } else { "" });
        match family {
            Family::Mysql => text,
            Family::Postgres => {
                // CONCAT takes values of any type, so the type of its parameter has to be said.
                let text = text.replace("CONCAT(l_numbers, ?)", "l_numbers || CAST(? AS TEXT)");
                let mut numbered = String::with_capacity(text.len() + 32);
                for (number, part) in text.split('?').enumerate() {
                    if number > 0 {
                        let _ = write!(numbered, "${number}");
                    }
                    numbered.push_str(part);
                }
                numbered
            }
        }
    }

    /// Whether it answers with rows.
    pub fn returns_rows(self) -> bool {
        self.template().starts_with("SELECT")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_serves_both_families() {
        let statement = Statement::DistrictNext;
        assert_eq!(
            statement.sql(Family::Postgres, true),
            "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE"
        );
        assert_eq!(
            statement.sql(Family::Mysql, false),
            "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"
        );
        assert!(Statement::InsertLines(15).sql(Family::Postgres, true).ends_with("$134, $135)"));
        assert!(Statement::Stock(3).sql(Family::Mysql, true).contains("s_dist_03"));
        assert!(Statement::LowStockOf(2).returns_rows() && !Statement::AppendList.returns_rows());
    }
}
