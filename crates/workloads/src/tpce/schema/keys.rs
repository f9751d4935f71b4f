//! Keys of all tables, and what can be read from them. Bounds of ranges are keys too: the first one
//! beyond a prefix has its last integer raised by one.

use plimsoll_types::KeyBuilder;

use super::{Key, Trade};

/// CUSTOMER, CUSTOMER_ADDRESS, WATCH_LIST; BROKER; CUSTOMER_ACCOUNT; a prefix of what belongs
/// to one of these.
#[inline]
pub fn number(number: u32) -> Key {
    Key::build().u32(number).finish()
}

/// LAST_TRADE, SECURITY, SECURITY_STATE, COMPANY, COMPANY_STATE, COMPANY_ADDRESS; a prefix of
/// what belongs to one of these.
#[inline]
pub fn security(security: u32) -> Key {
    of_security(security).finish()
}

/// TRADE, SETTLEMENT, CASH_TRANSACTION; a prefix of what belongs to a trade.
#[inline]
pub fn trade(trade: Trade) -> Key {
    whole(Key::build(), trade).finish()
}

/// CUSTOMER_BY_TAX_ID.
#[inline]
pub fn tax_id(customer: u32, tax_id: u64) -> Key {
    Key::build().u32(customer).u64(tax_id).finish()
}

/// ACCOUNT_PERMISSION.
#[inline]
pub fn permission(account: u32, tax_id: u64) -> Key {
    Key::build().u32(account).u64(tax_id).finish()
}

/// CUSTOMER_TAXRATE.
#[inline]
pub fn taxrate(customer: u32, tax: u16) -> Key {
    Key::build().u32(customer).u16(tax).finish()
}

/// The tax in a key of CUSTOMER_TAXRATE.
#[inline]
pub fn tax_of(key: &Key) -> u16 {
    field(key, 4, 2) as u16
}

/// WATCH_ITEM, of a customer; HOLDING_SUMMARY, of an account; a prefix of HOLDING.
#[inline]
pub fn with_security(number: u32, security: u32) -> Key {
    u24(Key::build().u32(number), security).finish()
}

/// The security in a key of WATCH_ITEM, HOLDING_SUMMARY or HOLDING.
#[inline]
pub fn security_of(key: &Key) -> u32 {
    field(key, 4, 3) as u32
}

/// HOLDING: a lot, by when it was bought or sold.
#[inline]
pub fn holding(account: u32, security: u32, date: u64) -> Key {
    u40(u24(Key::build().u32(account), security), date).finish()
}

/// The date in a key of HOLDING.
#[inline]
pub fn date_of_holding(key: &Key) -> u64 {
    field(key, 7, 5)
}

/// HOLDING_HISTORY: the trade (HH_T_ID), and the trade that made the lot (HH_H_T_ID).
/// HOLDING_HISTORY_BY_LOT: the other way round.
#[inline]
pub fn two_trades(first: Trade, second: Trade) -> Key {
    whole(whole(Key::build(), first), second).finish()
}

/// The first trade of a key.
#[inline]
pub fn first_trade(key: &Key) -> Trade {
    Trade(field(key, 0, 7))
}

/// The second trade in a key of HOLDING_HISTORY or HOLDING_HISTORY_BY_LOT.
#[inline]
pub fn second_trade(key: &Key) -> Trade {
    Trade(field(key, 7, 7))
}

/// TRADE_HISTORY: states of a trade are in the order in which it takes them.
#[inline]
pub fn history(trade: Trade, status: u8) -> Key {
    whole(Key::build(), trade).u8(status).finish()
}

/// The state in a key of TRADE_HISTORY.
#[inline]
pub fn status_of(key: &Key) -> u8 {
    field(key, 7, 1) as u8
}

/// TRADE_BY_ACCOUNT.
#[inline]
pub fn by_account(account: u32, date: u64, trade: Trade) -> Key {
    u40(u40(Key::build().u32(account), date), trade.number()).finish()
}

/// The first key of an account in TRADE_BY_ACCOUNT that has this date or a later one.
#[inline]
pub fn by_account_from(account: u32, date: u64) -> Key {
    u40(Key::build().u32(account), date).finish()
}

/// The date in a key of TRADE_BY_ACCOUNT.
#[inline]
pub fn date_by_account(key: &Key) -> u64 {
    field(key, 4, 5)
}

/// The trade in a key of TRADE_BY_ACCOUNT, whose account has this home.
#[inline]
pub fn trade_by_account(key: &Key, home: u32) -> Trade {
    Trade::new(home, field(key, 9, 5))
}

/// PENDING_BY_BROKER.
#[inline]
pub fn by_broker(broker: u32, sector: u8, trade: Trade) -> Key {
    u40(Key::build().u32(broker).u8(sector), trade.number()).finish()
}

/// The prefix of a broker's pending orders of a sector.
#[inline]
pub fn broker_and_sector(broker: u32, sector: u8) -> Key {
    Key::build().u32(broker).u8(sector).finish()
}

/// The trade in a key of PENDING_BY_BROKER, whose broker has this home.
#[inline]
pub fn trade_by_broker(key: &Key, home: u32) -> Trade {
    Trade::new(home, field(key, 5, 5))
}

/// TRADE_REQUEST.
#[inline]
pub fn request(security: u32, kind: u8, bid: i64, trade: Trade) -> Key {
    whole(of_security(security).u8(kind).u32(bid as u32), trade).finish()
}

/// The first key of a security's pending orders of a type with this limit or a higher one.
#[inline]
pub fn requests_from(security: u32, kind: u8, bid: i64) -> Key {
    of_security(security).u8(kind).u32(bid as u32).finish()
}

/// Type, limit in cents and trade in a key of TRADE_REQUEST.
#[inline]
pub fn request_of(key: &Key) -> (u8, i64, Trade) {
    (field(key, 3, 1) as u8, field(key, 4, 4) as i64, Trade(field(key, 8, 7)))
}

/// DAILY_MARKET, by day number.
#[inline]
pub fn daily(security: u32, day: u16) -> Key {
    of_security(security).u16(day).finish()
}

/// The day number in a key of DAILY_MARKET.
#[inline]
pub fn day_of(key: &Key) -> u16 {
    field(key, 3, 2) as u16
}

/// TRADE_BY_SECURITY.
#[inline]
pub fn by_security(security: u32, date: u64, trade: Trade) -> Key {
    whole(u40(of_security(security), date), trade).finish()
}

/// The first key of a security in TRADE_BY_SECURITY that has this date or a later one.
#[inline]
pub fn by_security_from(security: u32, date: u64) -> Key {
    u40(of_security(security), date).finish()
}

/// Date and trade in a key of TRADE_BY_SECURITY.
#[inline]
pub fn date_and_trade(key: &Key) -> (u64, Trade) {
    (field(key, 3, 5), Trade(field(key, 8, 7)))
}

/// FINANCIAL.
#[inline]
pub fn quarter(company: u32, year: u16, quarter: u8) -> Key {
    of_security(company).u16(year).u8(quarter).finish()
}

/// NEWS_XREF and NEWS_ITEM.
#[inline]
pub fn news(company: u32, item: u32) -> Key {
    of_security(company).u32(item).finish()
}

/// The item in a key of NEWS_XREF.
#[inline]
pub fn item_of(key: &Key) -> u32 {
    field(key, 3, 4) as u32
}

/// COMPANY_COMPETITOR.
#[inline]
pub fn competitor(company: u32, other: u32, industry: u8) -> Key {
    u24(of_security(company), other).u8(industry).finish()
}

/// Competitor and industry in a key of COMPANY_COMPETITOR.
#[inline]
pub fn competitor_of(key: &Key) -> (u32, u8) {
    (field(key, 3, 3) as u32, field(key, 6, 1) as u8)
}

/// COMPANY_BY_NAME and BROKER_BY_NAME: the whole name. Longer than 15 bytes.
pub fn name(name: &[u8]) -> Key {
    Key::build().bytes(name).finish()
}

/// COMPANY_BY_INDUSTRY.
#[inline]
pub fn by_industry(industry: u8, company: u32) -> Key {
    u24(Key::build().u8(industry), company).finish()
}

/// The company in a key of COMPANY_BY_INDUSTRY.
#[inline]
pub fn company_by_industry(key: &Key) -> u32 {
    field(key, 1, 3) as u32
}

/// INDUSTRY, SECTOR, STATUS_TYPE, TRADE_TYPE, EXCHANGE, EXCHANGE_ADDRESS.
#[inline]
pub fn small(number: u8) -> Key {
    Key::build().u8(number).finish()
}

/// CHARGE.
#[inline]
pub fn charge(kind: u8, tier: u8) -> Key {
    Key::build().u8(kind).u8(tier).finish()
}

/// COMMISSION_RATE, by the first quantity of its band.
#[inline]
pub fn commission(tier: u8, kind: u8, exchange: u8, from: i32) -> Key {
    Key::build().u8(tier).u8(kind).u8(exchange).u32(from as u32).finish()
}

/// TAX_RATE and TAX_NAME.
#[inline]
pub fn tax(tax: u16) -> Key {
    Key::build().u16(tax).finish()
}

#[inline]
fn of_security(security: u32) -> KeyBuilder {
    u24(Key::build(), security)
}

#[inline]
fn u24(key: KeyBuilder, number: u32) -> KeyBuilder {
    key.u8((number >> 16) as u8).u16(number as u16)
}

#[inline]
fn u40(key: KeyBuilder, number: u64) -> KeyBuilder {
    key.u8((number >> 32) as u8).u32(number as u32)
}

#[inline]
fn whole(key: KeyBuilder, trade: Trade) -> KeyBuilder {
    u40(key.u16(trade.home() as u16), trade.number())
}

/// The integer of `bytes` (at most 8) bytes that starts at byte `at` of a short key.
#[inline]
fn field(key: &Key, at: usize, bytes: usize) -> u64 {
    (key.head() >> (128 - 8 * (at + bytes))) as u64 & (u64::MAX >> (64 - 8 * bytes))
}
