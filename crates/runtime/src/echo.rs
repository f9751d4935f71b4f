//! A node that does nothing but answer.

use plimsoll_types::{ShardId, Ticket, Timestamp};

use crate::{Handled, Messages, Participant};

/// Answers every number with itself: for measuring what calls cost.
#[derive(Debug, Default)]
pub struct Echo {
    released: Vec<Ticket>,
}

impl Messages for Echo {
    type Request = u64;
    type Reply = u64;
}

impl Participant for Echo {
    fn handle(&mut self, _: ShardId, request: &mut u64, _: Ticket) -> Handled<u64> {
        Handled::Reply(*request)
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.released
    }

    fn pass(&mut self, _: Timestamp) {}
    fn outgoing(&mut self, _: &mut Vec<(ShardId, u64)>) {}
    fn park(&mut self) {}
}
