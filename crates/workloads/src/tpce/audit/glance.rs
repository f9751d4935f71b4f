//! Glances: what one snapshot shows of one account, one security or one broker while the system
//! runs.
//!
//! | of | conditions | what it reads |
//! |---|---|---|
//! | an account | 3, 4, 8 | lots and their sums, and the cash of all its trades since the load |
//! | a security | 10, 13, 14 | its price and its pending orders, then at each home their trades |
//! | a broker | 1, 2 | all trades of the accounts that it has, a few accounts at a time |
//!
//! Glances at brokers are rare: five hundred accounts have some 30,000 trades after five days.
//! Every other glance at a security is at the one that the client has looked at before.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::lots::Lots;
use super::market::Request;
use super::{declare, fingerprint};
use crate::tpce::Parameters;
use crate::tpce::numbers::{Trade, accounts, accounts_of};
use crate::tpce::people;
use crate::tpce::reference::Status;
use crate::tpce::schema::*;
use crate::verdict::Verdict;

/// Number of glances of which one is at a broker.
const BROKER_EVERY: usize = 16;
/// Number of accounts whose trades a stage reads.
const ACCOUNTS_PER_STAGE: usize = if cfg!(test) { 2 } else { 20 };

/// A glance for the online check.
#[derive(Clone, Debug)]
pub struct Glance {
    parameters: Parameters,
    pub(in crate::tpce) at: At,
    /// Whether it is at the security that was looked at before, if it is at one.
    again: bool,
    /// The security that the client has looked at last, and its LT_DTS then.
    pub(in crate::tpce) earlier: Option<(u32, u64)>,
    /// Trades that the last stage has found.
    trades: Vec<Trade>,
    /// Accounts of the broker.
    accounts: Vec<u32>,
    /// Pending orders of the security, by trade.
    requests: Vec<Request>,
    pub(in crate::tpce) seen: GlanceSeen,
}

/// What a glance is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tpce) enum At {
    Account(u32),
    Security(u32),
    Broker(u32),
}

/// What a glance has seen.
#[derive(Clone, Debug, Default)]
pub(in crate::tpce) struct GlanceSeen {
    /// Whether the row of what it is at is not there.
    pub(in crate::tpce) absent: bool,
    /// Conditions 3 and 4.
    pub(in crate::tpce) summaries: Verdict,
    pub(in crate::tpce) signs: Verdict,
    /// CA_BAL less what it was at load, and the cash of trades since.
    pub(in crate::tpce) balance: i64,
    pub(in crate::tpce) cash: i64,
    /// Condition 10 by piece.
    pub(in crate::tpce) requests: Vec<Verdict>,
    /// LT_PRICE and LT_DTS.
    pub(in crate::tpce) price: i64,
    pub(in crate::tpce) date: u64,
    /// B_NUM_TRADES and B_COMM_TOTAL, and the same by completed trades.
    pub(in crate::tpce) trades: i64,
    pub(in crate::tpce) commissions: i64,
    pub(in crate::tpce) completed: i64,
    pub(in crate::tpce) earned: i64,
}

impl Glance {
    pub(super) fn new(parameters: &Parameters, number: usize) -> Glance {
        let scale = parameters.scale;
        let below = |salt: u64, bound: u64| fingerprint([number as u64, salt]) % bound;
        let at = match number % BROKER_EVERY {
            0 => At::Broker(below(0, scale.brokers().into()) as u32),
            odd if odd % 2 == 1 => {
                let home = below(1, scale.homes().into()) as u32;
                let customers: Vec<u32> = scale.customers_of(home).collect();
                let customer = customers[below(2, customers.len() as u64) as usize];
                At::Account(accounts_of(customer).start + below(3, accounts(customer).into()) as u32)
            }
            _ => At::Security(scale.security(below(4, scale.securities().into()) as u32)),
        };
        Glance {
            parameters: parameters.clone(),
            at,
            again: number % 4 == 2,
            earlier: None,
            trades: Vec::new(),
            accounts: Vec::new(),
            requests: Vec::new(),
            seen: GlanceSeen::default(),
        }
    }

    /// Goes on from the glance before it, of the same client.
    pub(super) fn follow(&mut self, last: &Glance) {
        self.earlier = match last.at {
            At::Security(security) if !last.seen.absent => Some((security, last.seen.date)),
            _ => last.earlier,
        };
        if let (At::Security(_), true, Some((security, _))) = (self.at, self.again, self.earlier) {
            self.at = At::Security(security);
        }
    }

    fn layout(&self) -> Layout {
        self.parameters.layout()
    }

    /// The accounts that there are in the home of a broker.
    fn neighbours(&self, broker: u32) -> impl Iterator<Item = u32> + use<> {
        let scale = self.parameters.scale;
        scale.customers_of(scale.home_of_broker(broker)).flat_map(accounts_of)
    }

    /// HOLDING and HOLDING_SUMMARY of an account.
    fn lots(&self, account: u32) -> [Scan; 2] {
        [self.layout().column::<Holding>(), self.layout().column::<HoldingSummary>()]
            .map(|column| Scan::range(column, keys::number(account), keys::number(account + 1)))
    }

    /// Trades of an account from a date on.
    fn by_account(account: u32, date: u64) -> Scan {
        let low = keys::by_account_from(account, date);
        Scan::range(TRADE_BY_ACCOUNT.row(), low, keys::number(account + 1))
    }

    fn pending(&self, security: u32) -> Scan {
        let column = self.layout().column::<TradeRequest>();
        Scan::range(column, keys::security(security), keys::security(security + 1))
    }

    /// The accounts of the broker whose trades a stage reads, or finds for the next one.
    fn some_accounts(&self, stage: usize) -> &[u32] {
        self.accounts.chunks(ACCOUNTS_PER_STAGE).nth((stage - 1) / 2).unwrap_or_default()
    }

    /// Whether a stage of a glance at a broker finds trades, or reads them.
    fn finds(stage: usize) -> bool {
        stage % 2 == 1
    }

    /// The homes that have pending orders of the security.
    fn homes(&self) -> impl Iterator<Item = &[Request]> {
        self.requests.chunk_by(|one, other| one.trade.home() == other.trade.home())
    }

    fn of_piece(&self, number: usize) -> &[Request] {
        self.homes().nth(number).unwrap_or_default()
    }

    fn see_account<A: Access>(&mut self, account: u32, access: &mut A) -> Result<(), Abort> {
        let row = self.layout().find::<AccountBalance, A>(access, &keys::number(account))?;
        let mut lots = Lots::default();
        lots.read(self.layout(), &self.lots(account), access)?;
        let trades = self.find_trades(&[account], self.parameters.scale.end_of_load(), access)?;
        self.trades = trades.into_iter().filter(|trade| trade.is_new()).collect();
        self.seen = GlanceSeen { absent: row.is_none(), ..GlanceSeen::default() };
        lots.judge(&mut self.seen.summaries, &mut self.seen.signs);
        self.seen.balance =
            row.map_or(0, |row| row.balance.get() - people::account(&self.parameters, account).balance);
        Ok(())
    }

    fn see_cash<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let mut cash = 0;
        for &trade in &self.trades {
            let row = self.layout().find::<CashTransaction, A>(access, &keys::trade(trade))?;
            cash += row.map_or(0, |row| row.amount.get());
        }
        self.seen.cash = cash;
        Ok(())
    }

    /// Trades of some accounts from a date on.
    fn find_trades<A: Access>(
        &self,
        accounts: &[u32],
        date: u64,
        access: &mut A,
    ) -> Result<Vec<Trade>, Abort> {
        let mut trades = Vec::new();
        for &account in accounts {
            let home = self.parameters.scale.home_of_account(account);
            access.scan(&Glance::by_account(account, date), |key, _| {
                trades.push(keys::trade_by_account(key, home));
                ControlFlow::Continue(())
            })?;
        }
        Ok(trades)
    }

    fn see_security<A: Access>(&mut self, security: u32, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout();
        let row = layout.find::<LastTrade, A>(access, &keys::security(security))?;
        let mut requests = Vec::new();
        access.scan(&self.pending(security), |key, record| {
            requests.push(Request::of_row(key, layout.view::<TradeRequest>(record).0));
            ControlFlow::Continue(())
        })?;
        requests.sort_by_key(|request| request.trade);
        self.requests = requests;
        let (price, date) = row.map_or((0, 0), |row| (row.price.get().into(), row.date.get()));
        let requests = vec![Verdict::default(); self.homes().count()];
        self.seen = GlanceSeen { absent: row.is_none(), price, date, requests, ..GlanceSeen::default() };
        Ok(())
    }

    fn see_requests<A: Access>(&mut self, number: usize, access: &mut A) -> Result<(), Abort> {
        let (layout, mut verdict) = (self.layout(), Verdict::default());
        for request in self.of_piece(number) {
            let key = keys::trade(request.trade);
            let order = layout.find::<TradeOrder, A>(access, &key)?;
            let state = layout.find::<TradeState, A>(access, &key)?;
            let account = layout.find::<Account, A>(access, &keys::number(request.account))?;
            let same = match (order, state, account) {
                (Some(order), Some(state), Some(account)) => {
                    let trade = Request {
                        trade: request.trade,
                        security: order.security.get(),
                        kind: order.kind,
                        bid: order.bid.get().into(),
                        quantity: order.quantity.get(),
                        broker: account.broker.get(),
                        account: order.account.get(),
                        date: state.date.get(),
                    };
                    state.status == Status::Pending as u8 && trade == *request
                }
                _ => false,
            };
            verdict.expect(same, || {
                format!("{:#x} is requested, but no such trade is pending", request.trade.0)
            });
        }
        if let Some(seen) = self.seen.requests.get_mut(number) {
            *seen = verdict;
        }
        Ok(())
    }

    fn see_broker<A: Access>(&mut self, broker: u32, access: &mut A) -> Result<(), Abort> {
        let (layout, mut accounts) = (self.layout(), Vec::new());
        let row = layout.find::<BrokerTotals, A>(access, &keys::number(broker))?;
        for account in self.neighbours(broker) {
            let row = layout.find::<Account, A>(access, &keys::number(account))?;
            accounts.extend(row.filter(|row| row.broker.get() == broker).map(|_| account));
        }
        self.accounts = accounts;
        let (trades, commissions) =
            row.map_or((0, 0), |row| (row.trades.get() as i64, row.commissions.get()));
        self.seen = GlanceSeen { absent: row.is_none(), trades, commissions, ..GlanceSeen::default() };
        Ok(())
    }

    fn see_trades<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, mut completed, mut earned) = (self.layout(), 0, 0);
        for &trade in &self.trades {
            let key = keys::trade(trade);
            let state = layout.find::<TradeState, A>(access, &key)?;
            let outcome = layout.find::<TradeOutcome, A>(access, &key)?;
            if state.is_some_and(|state| state.status == Status::Completed as u8) {
                completed += 1;
                earned += outcome.map_or(0, |outcome| outcome.commission.get());
            }
        }
        self.seen.completed += completed;
        self.seen.earned += earned;
        Ok(())
    }

    pub(super) fn stage(&self, stage: usize) -> usize {
        match (self.at, stage) {
            (_, 0) => 1,
            (At::Account(_), _) => usize::from(stage == 1 && !self.trades.is_empty()),
            (At::Security(_), _) => {
                if stage == 1 {
                    self.homes().count()
                } else {
                    0
                }
            }
            (At::Broker(_), _) => usize::from(!self.some_accounts(stage).is_empty()),
        }
    }

    pub(super) fn home(&self, piece: Piece) -> Slot {
        let scale = self.parameters.scale;
        match (self.at, piece.stage) {
            (At::Account(account), _) => scale.slot(scale.home_of_account(account)),
            (At::Security(security), 0) => scale.market_slot(security),
            (At::Security(_), _) => {
                scale.slot(self.of_piece(piece.number).first().map_or(0, |request| request.trade.home()))
            }
            (At::Broker(broker), _) => scale.slot(scale.home_of_broker(broker)),
        }
    }

    pub(super) fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout();
        match (self.at, piece.stage) {
            (At::Account(account), 0) => {
                reads.get(layout.column::<AccountBalance>(), keys::number(account));
                self.lots(account).into_iter().for_each(|scan| reads.scan(scan));
                reads.scan(Glance::by_account(account, self.parameters.scale.end_of_load()));
            }
            (At::Account(_), _) => {
                let column = layout.column::<CashTransaction>();
                self.trades.iter().for_each(|&trade| reads.get(column, keys::trade(trade)));
            }
            (At::Security(security), 0) => {
                reads.get(layout.column::<LastTrade>(), keys::security(security));
                reads.scan(self.pending(security));
            }
            (At::Security(_), _) => {
                for request in self.of_piece(piece.number) {
                    declare!(layout, reads, keys::trade(request.trade), TradeOrder, TradeState);
                    reads.get(layout.column::<Account>(), keys::number(request.account));
                }
            }
            (At::Broker(broker), 0) => {
                reads.get(layout.column::<BrokerTotals>(), keys::number(broker));
                let column = layout.column::<Account>();
                self.neighbours(broker).for_each(|account| reads.get(column, keys::number(account)));
            }
            (At::Broker(_), stage) if Glance::finds(stage) => {
                let accounts = self.some_accounts(stage).iter();
                accounts.for_each(|&account| reads.scan(Glance::by_account(account, 0)));
            }
            (At::Broker(_), _) => {
                for &trade in &self.trades {
                    declare!(layout, reads, keys::trade(trade), TradeState, TradeOutcome);
                }
            }
        }
    }

    pub(super) fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (self.at, piece.stage) {
            (At::Account(account), 0) => self.see_account(account, access),
            (At::Account(_), _) => self.see_cash(access),
            (At::Security(security), 0) => self.see_security(security, access),
            (At::Security(_), _) => self.see_requests(piece.number, access),
            (At::Broker(broker), 0) => self.see_broker(broker, access),
            (At::Broker(_), stage) if Glance::finds(stage) => {
                self.trades = self.find_trades(self.some_accounts(stage), 0, access)?;
                Ok(())
            }
            (At::Broker(_), _) => self.see_trades(access),
        }
    }
}
