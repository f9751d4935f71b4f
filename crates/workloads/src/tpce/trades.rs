//! What the steps of a trade have in common: a trade is ordered, perhaps waits, is submitted, and
//! is completed or given up, and each step leaves its date in the same tables.
//!
//! Dates come from market time, which is an input, and from rows: a step's date is later than that
//! of the step before, so that TRADE_HISTORY never goes back.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Reads, Scan};
use plimsoll_types::{Abort, Key, TableId};
use zerocopy::IntoBytes;

use super::numbers::{ACCOUNTS_MAX, DAY_MS, Trade};
use super::reference::{Status, TradeType, band, sector_of};
use super::schema::*;
use crate::NOT_LOADED;

/// Maximum length of a row that [`insert_row`] puts together, in bytes.
const INSERTED_MAX: usize = 256;
/// The base date is at nine o'clock.
const BASE_MS: u64 = 9 * 3_600_000;

/// Inserts a row of these column groups, however rows are stored.
#[inline]
pub(super) fn insert_row<A: Access>(
    layout: Layout,
    access: &mut A,
    table: TableId,
    key: &Key,
    groups: &[&[u8]],
) -> Result<(), Abort> {
    if layout.is_split() {
        return access.insert(table, key, groups);
    }
    let (mut row, mut end) = ([0; INSERTED_MAX], 0);
    for group in groups {
        row[end..end + group.len()].copy_from_slice(group);
        end += group.len();
    }
    access.insert(table, key, &[&row[..end]])
}

/// Writes a structure without reading it, if it is a record of its own.
#[inline]
pub(super) fn replace<C: Columns, A: Access>(
    layout: Layout,
    access: &mut A,
    key: &Key,
    columns: C,
) -> Result<(), Abort> {
    match layout.is_split() {
        true => access.put(layout.column::<C>(), key, columns.as_bytes()),
        false => layout.update(access, key, |row: &mut C| *row = columns),
    }
}

/// Declares what [`replace`] of structures of a trade reads.
#[inline]
pub(super) fn declare_replaced(layout: Layout, trade: Trade, reads: &mut Reads) {
    if !layout.is_split() {
        reads.update(TRADE.row(), keys::trade(trade));
    }
}

/// A trade takes a state at a date: the state itself and the history. The index by account moves
/// with [`move_by_account`].
#[inline]
pub(super) fn enter<A: Access>(
    layout: Layout,
    access: &mut A,
    trade: Trade,
    status: Status,
    date: u64,
) -> Result<(), Abort> {
    let state = TradeState { date: date.into(), status: status as u8 };
    replace(layout, access, &keys::trade(trade), state)?;
    insert_history(access, trade, status, date)
}

/// Notes in the history when a trade has taken a state.
#[inline]
pub(super) fn insert_history<A: Access>(
    access: &mut A,
    trade: Trade,
    status: Status,
    date: u64,
) -> Result<(), Abort> {
    let row = TradeHistory { date: date.into() };
    access.insert(TRADE_HISTORY, &keys::history(trade, status as u8), &[row.as_bytes()])
}

/// Takes a trade out of the index by account at its old date, if it has one, and puts it in at its
/// new date.
#[inline]
pub(super) fn move_by_account<A: Access>(
    access: &mut A,
    account: u32,
    trade: Trade,
    from: Option<u64>,
    to: u64,
) -> Result<(), Abort> {
    if let Some(from) = from {
        access.delete(TRADE_BY_ACCOUNT, &keys::by_account(account, from, trade))?;
    }
    access.insert(TRADE_BY_ACCOUNT, &keys::by_account(account, to, trade), &[b""])
}

/// The same with the index by security, at the security's market place.
#[inline]
pub(super) fn move_by_security<A: Access>(
    access: &mut A,
    security: u32,
    account: u32,
    trade: Trade,
    from: Option<u64>,
    to: u64,
) -> Result<(), Abort> {
    if let Some(from) = from {
        access.delete(TRADE_BY_SECURITY, &keys::by_security(security, from, trade))?;
    }
    let row = TradeOfSecurity { account: account.into() };
    access.insert(TRADE_BY_SECURITY, &keys::by_security(security, to, trade), &[row.as_bytes()])
}

/// The customer of an account.
#[inline]
pub(super) fn customer_of(account: u32) -> u32 {
    account / ACCOUNTS_MAX
}

/// The taxes that a customer pays.
#[inline]
pub(super) fn taxes_of(customer: u32) -> Scan {
    Scan::prefix(CUSTOMER_TAXRATE.row(), keys::number(customer))
}

/// The sum of the rates of a customer's taxes, in 1/100,000.
#[inline]
pub(super) fn tax_rates<A: Access>(layout: Layout, access: &mut A, customer: u32) -> Result<u32, Abort> {
    let (mut taxes, mut count) = ([0; 2], 0);
    access.scan(&taxes_of(customer), |key, _| {
        let Some(tax) = taxes.get_mut(count) else { return ControlFlow::Break(()) };
        *tax = keys::tax_of(key);
        count += 1;
        ControlFlow::Continue(())
    })?;
    let mut rates = 0;
    for &tax in &taxes[..count] {
        rates += layout.read(access, &keys::tax(tax), |row: &TaxRate, _| row.rate.get())?;
    }
    positive(rates)
}

/// The rate of a trade's commission, in hundredths of a per cent.
#[inline]
pub(super) fn commission_rate<A: Access>(
    layout: Layout,
    access: &mut A,
    tier: u8,
    kind: TradeType,
    exchange: u8,
    quantity: i32,
) -> Result<u32, Abort> {
    let key = keys::commission(tier, kind as u8, exchange, band(quantity));
    positive(layout.read(access, &key, |row: &CommissionRate, _| row.rate.get())?)
}

/// Rates and charges are never 0: that would be an error of what was loaded.
#[inline]
pub(super) fn positive<T: Default + PartialEq>(number: T) -> Result<T, Abort> {
    if number == T::default() { Err(NOT_LOADED) } else { Ok(number) }
}

/// The lots that an account holds of a security, in the order in which a trade takes them.
#[inline]
pub(super) fn lots(account: u32, security: u32, lifo: bool) -> Scan {
    let scan = Scan::prefix(HOLDING.row(), keys::with_security(account, security));
    if lifo { scan.descending() } else { scan }
}

/// The type of a trade.
#[inline]
pub(super) fn kind_of(number: u8) -> Result<TradeType, Abort> {
    TradeType::of(number).ok_or(NOT_LOADED)
}

/// The sector of a security, from the copies.
#[inline]
pub(super) fn sector<A: Access>(layout: Layout, access: &mut A, security: u32) -> Result<u8, Abort> {
    let company = security / super::numbers::ISSUES_MAX * super::numbers::ISSUES_MAX;
    layout.read(access, &keys::security(company), |row: &Company, _| sector_of(row.industry))
}

/// SE_CASH_DUE_DATE of a trade: the midnight two days later.
#[inline]
pub(super) fn due(date: u64) -> u64 {
    ((date + BASE_MS) / DAY_MS + 2) * DAY_MS - BASE_MS
}

/// Where a text contains another.
pub(super) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Parts of a text in one field; what does not fit is cut.
pub(super) fn joined<const N: usize, const P: usize>(parts: [&[u8]; P]) -> [u8; N] {
    let mut text = [0; N];
    for (to, &byte) in text.iter_mut().zip(parts.into_iter().flatten()) {
        *to = byte;
    }
    text
}
