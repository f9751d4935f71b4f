//! TPC-E's tables: keys, rows, column groups.
//!
//! There are two kinds of place, and a copy of what never changes everywhere ([`super::numbers`]).
//! A table's key begins with what decides its slot: a customer, an account, a broker or a trade
//! with its home, a security or a company with its market place. Every key but one kind has at most
//! 15 bytes, which the key type holds without a heap.
//!
//! | place | tables |
//! |---|---|
//! | home | customer, customer_by_tax_id, customer_account, account_permission, customer_taxrate, customer_address, watch_list, watch_item, broker, holding, holding_summary, holding_history, holding_history_by_lot, trade, trade_history, settlement, cash_transaction, trade_by_account, pending_by_broker |
//! | market place | last_trade, trade_request, daily_market, trade_by_security, financial, news_xref, news_item, company_competitor, company_address, company_state, security_state |
//! | everywhere | security, company, company_by_name, company_by_industry, broker_by_name, industry, sector, status_type, trade_type, charge, commission_rate, tax_rate, zip_code, exchange_address; exchange, which Data-Maintenance writes |
//! | slot 0 | tax_name, which no transaction reads |
//!
//! The specification's ADDRESS, SECURITY, COMPANY and TAXRATE are so split between places; symbols
//! of securities encode their numbers, so that no index leads from one to the other, nor from a
//! company and an issue to a security.
//!
//! Dates are milliseconds ([`super::numbers`]), money is in cents, texts are padded with zeroes to
//! the specification's widths, with `filler` where their content does not matter.
//!
//! **Column groups.** What different transactions write are records of their own, if groups are
//! split ([`crate::rows`]).

pub mod keys;

use plimsoll_types::{IndexKind, Key, Partitioning, TableId, TableSpec};
use zerocopy::little_endian::{I32, I64, U16, U32, U64};

use crate::rows::columns;
pub use crate::rows::{Columns, Rows, unpadded};

use super::numbers::{ISSUES_MAX, Scale, Trade};

macro_rules! tables {
    ($($(#[$about:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$about])* pub const $name: TableId = TableId($number);)*
    };
}

tables! {
    /// Customers.
    CUSTOMER = 0;
    /// Customers by their tax numbers.
    CUSTOMER_BY_TAX_ID = 1;
    /// Accounts.
    CUSTOMER_ACCOUNT = 2;
    /// Who may trade for an account.
    ACCOUNT_PERMISSION = 3;
    /// What taxes a customer pays.
    CUSTOMER_TAXRATE = 4;
    /// Addresses of customers.
    CUSTOMER_ADDRESS = 5;
    /// A list of securities for each customer.
    WATCH_LIST = 6;
    /// The securities of such lists.
    WATCH_ITEM = 7;
    /// Brokers.
    BROKER = 8;
    /// Lots that accounts hold.
    HOLDING = 9;
    /// What accounts hold of each security.
    HOLDING_SUMMARY = 10;
    /// What trades have made of lots, by trade.
    HOLDING_HISTORY = 11;
    /// The same by lot.
    HOLDING_HISTORY_BY_LOT = 12;
    /// Trades.
    TRADE = 13;
    /// The states that trades had.
    TRADE_HISTORY = 14;
    /// What completed trades brought or cost.
    SETTLEMENT = 15;
    /// The same of trades for cash.
    CASH_TRANSACTION = 16;
    /// Trades by account and date.
    TRADE_BY_ACCOUNT = 17;
    /// Pending orders by broker and sector.
    PENDING_BY_BROKER = 18;
    /// Prices.
    LAST_TRADE = 19;
    /// Pending orders by security, type and limit.
    TRADE_REQUEST = 20;
    /// Prices of earlier days.
    DAILY_MARKET = 21;
    /// Trades by security and date.
    TRADE_BY_SECURITY = 22;
    /// Quarterly figures of companies.
    FINANCIAL = 23;
    /// What news are about a company.
    NEWS_XREF = 24;
    /// News.
    NEWS_ITEM = 25;
    /// Competitors of companies.
    COMPANY_COMPETITOR = 26;
    /// Addresses of companies.
    COMPANY_ADDRESS = 27;
    /// What changes of a company.
    COMPANY_STATE = 28;
    /// What changes of a security.
    SECURITY_STATE = 29;
    /// What never changes of a security.
    SECURITY = 30;
    /// What never changes of a company.
    COMPANY = 31;
    /// Companies by name.
    COMPANY_BY_NAME = 32;
    /// Companies by industry.
    COMPANY_BY_INDUSTRY = 33;
    /// Brokers by name.
    BROKER_BY_NAME = 34;
    /// Industries.
    INDUSTRY = 35;
    /// Sectors.
    SECTOR = 36;
    /// States of trades and of others.
    STATUS_TYPE = 37;
    /// Types of trades.
    TRADE_TYPE = 38;
    /// Charges by type and tier.
    CHARGE = 39;
    /// Commissions.
    COMMISSION_RATE = 40;
    /// Tax rates.
    TAX_RATE = 41;
    /// Zip codes.
    ZIP_CODE = 42;
    /// Addresses of exchanges.
    EXCHANGE_ADDRESS = 43;
    /// Exchanges.
    EXCHANGE = 44;
    /// Names of taxes.
    TAX_NAME = 45;
}

/// The tables in the order of their numbers.
pub fn tables(scale: Scale, split: bool) -> Vec<TableSpec> {
    let home = u64::from(scale.home);
    let by = |bytes, span| Partitioning::Range { bytes, span };
    let (customer, account) = (by(4, home), by(4, home * u64::from(super::numbers::ACCOUNTS_MAX)));
    let (broker, trade) = (by(4, u64::from(scale.brokers_per_home())), Partitioning::Modulo { bytes: 2 });
    let market = by(3, ISSUES_MAX.into());
    let hash = |name, placed| TableSpec::new(name, IndexKind::Hash, placed);
    let ordered = |name, placed| TableSpec::new(name, IndexKind::Ordered, placed);
    let fixed = |name| hash(name, Partitioning::Everywhere).immutable();
    let groups = |table: TableSpec, groups| if split { table.with_groups(groups) } else { table };
    vec![
        groups(hash("customer", customer), &["fixed", "email"]),
        hash("customer_by_tax_id", customer).immutable(),
        groups(ordered("customer_account", account), &["fixed", "balance"]),
        ordered("account_permission", account),
        ordered("customer_taxrate", customer),
        hash("customer_address", customer),
        hash("watch_list", customer).immutable(),
        ordered("watch_item", customer),
        groups(hash("broker", broker), &["fixed", "totals"]),
        ordered("holding", account),
        ordered("holding_summary", account),
        ordered("holding_history", trade),
        ordered("holding_history_by_lot", trade),
        groups(hash("trade", trade), &["order", "state", "outcome", "executor"]),
        ordered("trade_history", trade),
        groups(hash("settlement", trade), &["fixed", "cash_type"]),
        groups(hash("cash_transaction", trade), &["fixed", "name"]),
        ordered("trade_by_account", account),
        ordered("pending_by_broker", broker),
        hash("last_trade", market),
        ordered("trade_request", market),
        ordered("daily_market", market),
        ordered("trade_by_security", market),
        ordered("financial", market),
        ordered("news_xref", market).immutable(),
        groups(hash("news_item", market), &["head", "body"]),
        ordered("company_competitor", market).immutable(),
        hash("company_address", market),
        hash("company_state", market),
        hash("security_state", market),
        fixed("security"),
        fixed("company"),
        fixed("company_by_name"),
        ordered("company_by_industry", Partitioning::Everywhere).immutable(),
        fixed("broker_by_name"),
        fixed("industry"),
        fixed("sector"),
        fixed("status_type"),
        fixed("trade_type"),
        fixed("charge"),
        fixed("commission_rate"),
        fixed("tax_rate"),
        fixed("zip_code"),
        fixed("exchange_address"),
        groups(hash("exchange", Partitioning::Everywhere), &["fixed", "text"]),
        hash("tax_name", by(2, 1 << 16)),
    ]
}

columns! {
    /// What never changes of a customer.
    Customer in CUSTOMER {
        /// C_TAX_ID.
        tax_id: [u8; 14],
        /// C_ST_ID.
        status: u8,
        /// C_L_NAME.
        last: [u8; 25],
        /// C_F_NAME.
        first: [u8; 20],
        /// C_M_NAME.
        middle: u8,
        /// C_GNDR.
        gender: u8,
        /// C_TIER.
        tier: u8,
        /// C_DOB, days since 1900.
        born: U16,
        /// C_CTRY_k, C_AREA_k, C_LOCAL_k, C_EXT_k.
        phones: [[u8; 21]; 3],
        /// C_EMAIL_1.
        email_1: [u8; 50],
    }

    /// What Data-Maintenance changes of a customer.
    CustomerEmail in CUSTOMER group 1 after Customer {
        /// C_EMAIL_2.
        email_2: [u8; 50],
    }

    /// What never changes of an account.
    Account in CUSTOMER_ACCOUNT {
        /// CA_B_ID.
        broker: U32,
        /// CA_NAME.
        name: [u8; 50],
        /// CA_TAX_ST: 0 not taxed, 1 taxed and withheld, 2 taxed.
        tax_status: u8,
    }

    /// What trades for cash change of an account.
    AccountBalance in CUSTOMER_ACCOUNT group 1 after Account {
        /// CA_BAL in cents.
        balance: I64,
    }

    /// Who may trade for an account.
    Permission in ACCOUNT_PERMISSION {
        /// AP_ACL.
        acl: [u8; 4],
        /// AP_L_NAME.
        last: [u8; 25],
        /// AP_F_NAME.
        first: [u8; 20],
    }

    /// An address (ADDRESS): the rows of three tables.
    Address in CUSTOMER_ADDRESS {
        /// AD_LINE1.
        line_1: [u8; 80],
        /// AD_LINE2, empty for null.
        line_2: [u8; 80],
        /// AD_ZC_CODE, as the number of its row in ZIP_CODE.
        zip: U32,
        /// AD_CTRY.
        country: [u8; 80],
    }

    /// A watch list.
    WatchList in WATCH_LIST {
        /// WL_ID.
        id: U32,
    }

    /// What never changes of a broker.
    Broker in BROKER {
        /// B_ST_ID.
        status: u8,
        /// B_NAME.
        name: [u8; 49],
    }

    /// What trades add to.
    BrokerTotals in BROKER group 1 after Broker {
        /// B_NUM_TRADES.
        trades: U64,
        /// B_COMM_TOTAL in cents.
        commissions: I64,
    }

    /// A lot.
    Holding in HOLDING {
        /// H_T_ID.
        trade: U64,
        /// H_PRICE in cents.
        price: I32,
        /// H_QTY, negative for what was sold short.
        quantity: I32,
    }

    /// The sum of an account's lots of a security.
    HoldingSummary in HOLDING_SUMMARY {
        /// HS_QTY.
        quantity: I32,
    }

    /// What a trade has made of a lot.
    HoldingHistory in HOLDING_HISTORY {
        /// HH_BEFORE_QTY.
        before: I32,
        /// HH_AFTER_QTY.
        after: I32,
    }

    /// What never changes of a trade.
    TradeOrder in TRADE {
        /// T_TT_ID: a [`super::reference::TradeType`].
        kind: u8,
        /// T_IS_CASH, 0 or 1.
        cash: u8,
        /// T_LIFO, 0 or 1.
        lifo: u8,
        /// T_S_SYMB, as the security's number.
        security: U32,
        /// T_QTY.
        quantity: I32,
        /// T_BID_PRICE in cents.
        bid: I32,
        /// T_CA_ID.
        account: U32,
        /// T_CHRG in cents.
        charge: I32,
    }

    /// What every step of a trade changes.
    TradeState in TRADE group 1 after TradeOrder {
        /// T_DTS.
        date: U64,
        /// T_ST_ID: a [`super::reference::Status`].
        status: u8,
    }

    /// What is known once a trade is done.
    TradeOutcome in TRADE group 2 after TradeOrder, TradeState {
        /// T_TRADE_PRICE in cents, 0 for null.
        price: I32,
        /// T_COMM in cents: estimated until then.
        commission: I64,
        /// T_TAX in cents.
        tax: I64,
    }

    /// What Trade-Update changes of a trade.
    TradeExecutor in TRADE group 3 after TradeOrder, TradeState, TradeOutcome {
        /// T_EXEC_NAME.
        name: [u8; 49],
    }

    /// When a trade took a state.
    TradeHistory in TRADE_HISTORY {
        /// TH_DTS.
        date: U64,
    }

    /// What never changes of a settlement.
    Settlement in SETTLEMENT {
        /// SE_CASH_DUE_DATE, as a date at midnight.
        due: U64,
        /// SE_AMT in cents.
        amount: I64,
    }

    /// What Trade-Update changes of a settlement.
    SettlementType in SETTLEMENT group 1 after Settlement {
        /// SE_CASH_TYPE.
        cash_type: [u8; 40],
    }

    /// What never changes of a cash transaction.
    CashTransaction in CASH_TRANSACTION {
        /// CT_DTS.
        date: U64,
        /// CT_AMT in cents.
        amount: I64,
    }

    /// What Trade-Update changes of a cash transaction.
    CashTransactionName in CASH_TRANSACTION group 1 after CashTransaction {
        /// CT_NAME.
        name: [u8; 100],
    }

    /// A pending order in the index by broker.
    PendingOrder in PENDING_BY_BROKER {
        /// TR_S_SYMB, as the security's number.
        security: U32,
        /// TR_QTY.
        quantity: I32,
        /// TR_BID_PRICE in cents.
        bid: I32,
    }

    /// The price of a security.
    LastTrade in LAST_TRADE {
        /// LT_DTS.
        date: U64,
        /// LT_PRICE in cents.
        price: I32,
        /// LT_OPEN_PRICE in cents.
        open: I32,
        /// LT_VOL.
        volume: I64,
    }

    /// A pending order; type, security and limit are in its key.
    TradeRequest in TRADE_REQUEST {
        /// TR_QTY.
        quantity: I32,
        /// TR_B_ID.
        broker: U32,
        /// The account of its trade.
        account: U32,
        /// T_DTS of its trade.
        date: U64,
    }

    /// A day of a security.
    DailyMarket in DAILY_MARKET {
        /// DM_CLOSE in cents.
        close: I32,
        /// DM_HIGH in cents.
        high: I32,
        /// DM_LOW in cents.
        low: I32,
        /// DM_VOL.
        volume: I64,
    }

    /// What the index of trades by security holds.
    TradeOfSecurity in TRADE_BY_SECURITY {
        /// T_CA_ID.
        account: U32,
    }

    /// A quarter of a company.
    Financial in FINANCIAL {
        /// FI_QTR_START_DATE, a day number.
        start: U16,
        /// FI_REVENUE and FI_NET_EARN in cents.
        revenue: I64,
        /// FI_NET_EARN in cents.
        earnings: I64,
        /// FI_BASIC_EPS in cents.
        basic_eps: I64,
        /// FI_DILUT_EPS in cents.
        diluted_eps: I64,
        /// FI_MARGIN in hundredths.
        margin: I64,
        /// FI_INVENTORY in cents.
        inventory: I64,
        /// FI_ASSETS in cents.
        assets: I64,
        /// FI_LIABILITY in cents.
        liability: I64,
        /// FI_OUT_BASIC.
        basic_shares: I64,
        /// FI_OUT_DILUT.
        diluted_shares: I64,
    }

    /// What Security-Detail shows of an item of news.
    NewsHead in NEWS_ITEM {
        /// NI_HEADLINE.
        headline: [u8; 80],
        /// NI_SUMMARY.
        summary: [u8; 255],
        /// NI_DTS, in milliseconds since 2000-01-01.
        date: U64,
        /// NI_SOURCE.
        source: [u8; 30],
        /// NI_AUTHOR.
        author: [u8; 30],
    }

    /// Nothing but the text that follows: NI_ITEM.
    NewsBody in NEWS_ITEM group 1 after NewsHead {}

    /// What Data-Maintenance changes of a company.
    CompanyState in COMPANY_STATE {
        /// CO_SP_RATE.
        rate: [u8; 4],
    }

    /// What Data-Maintenance changes of a security.
    SecurityState in SECURITY_STATE {
        /// S_EXCH_DATE, a day number.
        exchange_date: U16,
    }

    /// What never changes of a security.
    Security in SECURITY {
        /// S_SYMB.
        symbol: [u8; 15],
        /// S_ST_ID.
        status: u8,
        /// S_NAME.
        name: [u8; 70],
        /// S_EX_ID, as the number of the exchange.
        exchange: u8,
        /// S_NUM_OUT.
        outstanding: I64,
        /// S_START_DATE, a day number.
        start_date: U16,
        /// S_PE in hundredths.
        pe: I32,
        /// S_52WK_HIGH in cents.
        high: I32,
        /// S_52WK_HIGH_DATE, a day number.
        high_date: U16,
        /// S_52WK_LOW in cents.
        low: I32,
        /// S_52WK_LOW_DATE, a day number.
        low_date: U16,
        /// S_DIVIDEND in cents.
        dividend: I32,
        /// S_YIELD in hundredths.
        yields: I32,
    }

    /// What never changes of a company.
    Company in COMPANY {
        /// CO_ST_ID.
        status: u8,
        /// CO_NAME.
        name: [u8; 60],
        /// CO_IN_ID, as the number of the industry.
        industry: u8,
        /// CO_CEO.
        ceo: [u8; 46],
        /// CO_DESC.
        description: [u8; 150],
        /// CO_OPEN_DATE, days since 1800.
        opened: U32,
    }

    /// What the indexes by name hold: the number of a company or of a broker.
    Named in COMPANY_BY_NAME {
        /// The number.
        number: U32,
    }

    /// An industry.
    Industry in INDUSTRY {
        /// IN_ID.
        id: [u8; 2],
        /// IN_NAME.
        name: [u8; 50],
        /// IN_SC_ID, as the number of the sector.
        sector: u8,
    }

    /// A sector.
    Sector in SECTOR {
        /// SC_ID.
        id: [u8; 2],
        /// SC_NAME.
        name: [u8; 30],
    }

    /// A state.
    StatusType in STATUS_TYPE {
        /// ST_ID.
        id: [u8; 4],
        /// ST_NAME.
        name: [u8; 10],
    }

    /// A type of trades.
    TradeTypeRow in TRADE_TYPE {
        /// TT_ID.
        id: [u8; 3],
        /// TT_NAME.
        name: [u8; 12],
        /// TT_IS_SELL, 0 or 1.
        sell: u8,
        /// TT_IS_MRKT, 0 or 1.
        market: u8,
    }

    /// A charge.
    Charge in CHARGE {
        /// CH_CHRG in cents.
        charge: I32,
    }

    /// A commission.
    CommissionRate in COMMISSION_RATE {
        /// CR_TO_QTY.
        to: I32,
        /// CR_RATE in hundredths of a per cent.
        rate: U32,
    }

    /// A tax rate.
    TaxRate in TAX_RATE {
        /// TX_ID.
        id: [u8; 4],
        /// TX_RATE in 1/100,000.
        rate: U32,
    }

    /// A zip code.
    ZipCode in ZIP_CODE {
        /// ZC_CODE.
        code: [u8; 12],
        /// ZC_TOWN.
        town: [u8; 80],
        /// ZC_DIV.
        division: [u8; 80],
    }

    /// What never changes of an exchange.
    Exchange in EXCHANGE {
        /// EX_ID.
        id: [u8; 6],
        /// EX_NAME.
        name: [u8; 100],
        /// EX_NUM_SYMB.
        symbols: U32,
        /// EX_OPEN.
        open: U16,
        /// EX_CLOSE.
        close: U16,
    }

    /// What Data-Maintenance changes of an exchange.
    ExchangeText in EXCHANGE group 1 after Exchange {
        /// EX_DESC.
        description: [u8; 150],
    }

    /// What Data-Maintenance changes of a tax.
    TaxName in TAX_NAME {
        /// TX_NAME.
        name: [u8; 50],
    }
}

/// Whether rows are split into column groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Each group is a record; otherwise the concatenation of all groups is.
    pub split: bool,
}

impl Rows for Layout {
    #[inline]
    fn is_split(self) -> bool {
        self.split
    }
}

/// A text padded with zeroes, cut if it is too long.
pub fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut padded = [0; N];
    let length = text.len().min(N);
    padded[..length].copy_from_slice(&text.as_bytes()[..length]);
    padded
}
