//! The fixed tables' contents: trade types, charges, commissions, taxes, exchanges, sectors and
//! industries; and the arithmetic of money.
//!
//! Money is in cents, a commission rate in hundredths of a per cent of the value, a tax rate in
//! 1/100,000. Divisions round half up; all their operands are positive.

/// The state of a trade (STATUS_TYPE), in the order in which a trade takes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Status {
    /// PNDG: a limit order waits for its price.
    Pending = 0,
    /// SBMT: the market has the order.
    Submitted = 1,
    /// CMPT: done.
    Completed = 2,
    /// CNCL: given up.
    Cancelled = 3,
    /// ACTV: of customers, brokers, companies and securities.
    Active = 4,
}

/// ST_ID and ST_NAME by [`Status`].
pub const STATUSES: [(&str, &str); 5] = [
    ("PNDG", "Pending"),
    ("SBMT", "Submitted"),
    ("CMPT", "Completed"),
    ("CNCL", "Canceled"),
    ("ACTV", "Active"),
];

/// What an order asks for (TRADE_TYPE).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum TradeType {
    /// TMB: buy at the market's price.
    #[default]
    MarketBuy = 0,
    /// TMS: sell at the market's price.
    MarketSell = 1,
    /// TSL: sell once the price has fallen to the limit.
    StopLoss = 2,
    /// TLS: sell once the price has risen to the limit.
    LimitSell = 3,
    /// TLB: buy once the price has fallen to the limit.
    LimitBuy = 4,
}

/// TT_ID and TT_NAME by [`TradeType`].
pub const TRADE_TYPES: [(&str, &str); 5] = [
    ("TMB", "Market-Buy"),
    ("TMS", "Market-Sell"),
    ("TSL", "Stop-Loss"),
    ("TLS", "Limit-Sell"),
    ("TLB", "Limit-Buy"),
];

impl TradeType {
    /// All, in the order of their numbers.
    pub const ALL: [TradeType; 5] = [
        TradeType::MarketBuy,
        TradeType::MarketSell,
        TradeType::StopLoss,
        TradeType::LimitSell,
        TradeType::LimitBuy,
    ];

    /// The one with a number, if there is one.
    #[inline]
    pub fn of(number: u8) -> Option<TradeType> {
        TradeType::ALL.get(usize::from(number)).copied()
    }

    /// TT_IS_SELL.
    #[inline]
    pub fn is_sell(self) -> bool {
        !matches!(self, TradeType::MarketBuy | TradeType::LimitBuy)
    }

    /// TT_IS_MRKT.
    #[inline]
    pub fn is_market(self) -> bool {
        matches!(self, TradeType::MarketBuy | TradeType::MarketSell)
    }

    /// Whether it waits for the price to fall, if it waits for one: a limit to sell waits for a
    /// rise.
    #[inline]
    pub fn waits_for_a_fall(self) -> bool {
        self != TradeType::LimitSell
    }

    /// Whether an order with a limit is to be submitted at a price.
    #[inline]
    pub fn is_triggered(self, limit: i64, price: i64) -> bool {
        if self.waits_for_a_fall() { price <= limit } else { price >= limit }
    }

    /// The price that a trade gets if the market has this one: a limit to buy is never exceeded,
    /// and a limit to sell is always reached.
    #[inline]
    pub fn executed_at(self, limit: i64, price: i64) -> i64 {
        match self {
            TradeType::LimitBuy => price.min(limit),
            TradeType::LimitSell => price.max(limit),
            _ => price,
        }
    }
}

/// CH_CHRG in cents by trade type and tier.
pub const CHARGES: [[i64; 3]; 5] =
    [[500, 450, 250], [500, 450, 250], [650, 550, 350], [600, 500, 300], [600, 500, 300]];

/// CR_FROM_QTY and CR_TO_QTY of the bands of COMMISSION_RATE.
pub const BANDS: [(i32, i32); 4] = [(1, 200), (201, 500), (501, 2000), (2001, 999_999)];

/// The first quantity of the band of COMMISSION_RATE that contains a quantity.
#[inline]
pub fn band(quantity: i32) -> i32 {
    BANDS.iter().rev().map(|band| band.0).find(|&from| from <= quantity).unwrap_or(1)
}

/// CR_RATE by class of exchange, tier and band.
pub const COMMISSION_RATES: [[[u32; 4]; 3]; 2] = [
    [[40, 36, 32, 20], [36, 32, 28, 16], [32, 28, 24, 12]],
    [[48, 44, 40, 28], [44, 40, 36, 24], [40, 36, 32, 20]],
];

/// CR_RATE of a quantity, by the number of an exchange and the tier.
pub fn commission_rate(exchange: u8, tier: u8, quantity: i32) -> u32 {
    let rates = &COMMISSION_RATES[EXCHANGES[usize::from(exchange)].2][usize::from(tier) - 1];
    let place = BANDS.iter().rposition(|&(from, _)| from <= quantity);
    rates[place.unwrap_or(0)]
}

/// An exchange: EX_ID, EX_NAME, and the class of its commissions.
pub const EXCHANGES: [(&str, &str, usize); 4] = [
    ("NYSE", "First Exchange of Securities", 0),
    ("NASDAQ", "Electronic Exchange of Securities", 0),
    ("AMEX", "Second Exchange of Securities", 1),
    ("PCX", "Western Exchange of Securities", 1),
];

/// SC_ID and SC_NAME, and how many industries a sector has: 102 in all.
pub const SECTORS: [(&str, &str, u8); 12] = [
    ("BM", "Materials", 10),
    ("CG", "Goods of all kinds", 1),
    ("CC", "Cars and fashion", 15),
    ("CN", "Food and drink", 9),
    ("EN", "Oil, gas and coal", 5),
    ("FN", "Banks and insurers", 13),
    ("HC", "Medicine", 7),
    ("IN", "Machines", 8),
    ("SV", "Services", 25),
    ("TC", "Computers", 4),
    ("TR", "Railways and ships", 3),
    ("UT", "Water and power", 2),
];

/// Number of industries.
pub const INDUSTRIES: u8 = 102;

/// The sector of an industry.
#[inline]
pub fn sector_of(industry: u8) -> u8 {
    let mut end = 0;
    let sector = SECTORS.iter().position(|(_, _, industries)| {
        end += industries;
        industry < end
    });
    sector.expect("there are as many industries as the sectors have") as u8
}

/// TX_RATE of the country taxes: US1 to US5, then CN1 to CN4.
pub const COUNTRY_RATES: [u32; 9] = [15_000, 27_500, 30_500, 35_500, 39_100, 16_000, 22_000, 26_000, 29_000];
/// How many of them are of the first country.
pub const FIRST_COUNTRY_RATES: u16 = 5;
/// Divisions (states, provinces) of the first country, with five tax rates each.
pub const FIRST_DIVISIONS: u16 = 51;
/// Divisions of the second country, with four.
pub const SECOND_DIVISIONS: u16 = 14;
/// Number of tax rates: those of countries first.
pub const TAX_RATES: u16 = 9 + FIRST_DIVISIONS * 5 + SECOND_DIVISIONS * 4;
/// Number of zip codes.
pub const ZIP_CODES: u32 = 14_741;

/// The division of a zip code.
pub fn division_of(zip: u32) -> u16 {
    (zip * u32::from(FIRST_DIVISIONS + SECOND_DIVISIONS) / ZIP_CODES) as u16
}

/// The country taxes of a division, by their numbers.
pub fn country_taxes(division: u16) -> std::ops::Range<u16> {
    if division < FIRST_DIVISIONS { 0..FIRST_COUNTRY_RATES } else { FIRST_COUNTRY_RATES..9 }
}

/// The taxes of a division, by their numbers.
pub fn division_taxes(division: u16) -> std::ops::Range<u16> {
    match division.checked_sub(FIRST_DIVISIONS) {
        None => 9 + division * 5..9 + (division + 1) * 5,
        Some(second) => {
            let first = 9 + FIRST_DIVISIONS * 5 + second * 4;
            first..first + 4
        }
    }
}

/// TX_RATE of a tax in 1/100,000: of a division at most 12 per cent.
pub fn tax_rate(tax: u16) -> u32 {
    match COUNTRY_RATES.get(usize::from(tax)) {
        Some(&rate) => rate,
        None => 500 + u32::from(tax - 9) * 7919 % 11_500,
    }
}

/// The commission of a trade in cents.
#[inline]
pub fn commission(quantity: i32, price: i64, rate: u32) -> i64 {
    (i64::from(quantity) * price * i64::from(rate) + 5_000) / 10_000
}

/// The tax on what a trade earns, in cents; 0 if it earns nothing. `rates` is the sum of the
/// customer's tax rates.
#[inline]
pub fn tax(buy: i64, sell: i64, rates: u32) -> i64 {
    if sell > buy { ((sell - buy) * i64::from(rates) + 50_000) / 100_000 } else { 0 }
}

/// SE_AMT of a trade in cents: what the account gets, or pays if it is negative. `tax` is what is
/// withheld.
#[inline]
pub fn settlement(sell: bool, quantity: i32, price: i64, charge: i64, commission: i64, tax: i64) -> i64 {
    let value = i64::from(quantity) * price;
    let amount = if sell { value - charge - commission } else { -(value + charge + commission) };
    amount - tax
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_tables_have_as_many_rows_as_the_specification_says() {
        assert_eq!(SECTORS.iter().map(|(.., industries)| u32::from(*industries)).sum::<u32>(), 102);
        assert_eq!(TAX_RATES, 320);
        assert_eq!(division_taxes(FIRST_DIVISIONS + SECOND_DIVISIONS - 1).end, TAX_RATES);
        assert_eq!((sector_of(0), sector_of(9), sector_of(10), sector_of(101)), (0, 0, 1, 11));
        assert!((0..TAX_RATES).all(|tax| (1..40_000).contains(&tax_rate(tax))));
        assert_eq!(division_of(ZIP_CODES - 1), FIRST_DIVISIONS + SECOND_DIVISIONS - 1);
    }

    #[test]
    fn money_is_rounded_half_up() {
        assert_eq!(commission(100, 2550, 40), 1020);
        assert_eq!(commission(100, 2001, 12), 240);
        assert_eq!(commission(1, 125, 40), 1);
        assert_eq!(tax(1000, 1001, 50_000), 1);
        assert_eq!(tax(1001, 1000, 50_000), 0);
        assert_eq!(settlement(true, 100, 2000, 500, 20, 7), 199_473);
        assert_eq!(settlement(false, 100, 2000, 500, 20, 0), -200_520);
        assert_eq!([1, 200, 201, 2000, 5000].map(band), [1, 1, 201, 501, 2001]);
    }
}
