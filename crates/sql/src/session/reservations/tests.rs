//! One node, and three that send each other messages.

use std::collections::VecDeque;

use super::*;

/// The session has the row at once.
const GOT: Progress = Progress::Got { has_waited: false };

/// How many sessions are before one; none if it has the row.
fn before(table: &Reservations, session: u32, key: &[u8]) -> usize {
    match table.with(|table| table.look(session, key)) {
        Progress::Behind(before) => before,
        _ => 0,
    }
}

fn keys(keys: &[&str]) -> BTreeSet<Vec<u8>> {
    keys.iter().map(|key| key.as_bytes().to_vec()).collect()
}

#[test]
fn rows_go_to_those_who_wait_in_the_order_in_which_they_came() {
    let table = Reservations::default();
    assert_eq!(table.ask(1, b"a", true), GOT);
    assert_eq!(table.ask(1, b"a", true), GOT);
    assert!(matches!(table.ask(2, b"a", true), Progress::Behind(_)));
    assert!(matches!(table.ask(3, b"a", true), Progress::Behind(_)));
    assert_eq!(table.ask(4, b"a", false), Progress::Refused);
    table.release(1, &keys(&["a"]));
    assert_eq!((before(&table, 2, b"a"), before(&table, 3, b"a")), (0, 1));
    // What another has is not given back.
    table.release(1, &keys(&["a"]));
    table.with(|table| table.leave(3, &mut Outgoing::new()));
    table.release(2, &keys(&["a"]));
    assert_eq!(table.ask(5, b"a", true), GOT);
}

#[test]
fn who_closes_a_circle_does_not_wait() {
    let table = Reservations::default();
    for (session, key) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        assert_eq!(table.ask(session, key, true), GOT);
    }
    assert!(matches!(table.ask(1, b"b", true), Progress::Behind(_)));
    assert!(matches!(table.ask(2, b"c", true), Progress::Behind(_)));
    assert_eq!(table.ask(3, b"a", true), Progress::Circle);
    assert!(matches!(table.ask(4, b"a", true), Progress::Behind(_)));
    table.release(3, &keys(&["c"]));
    assert_eq!(before(&table, 2, b"c"), 0);
    // The circle is found although its last edge came by a grant.
    table.release(2, &keys(&["b"]));
    assert_eq!(before(&table, 1, b"b"), 0);
    assert!(matches!(table.ask(1, b"c", true), Progress::Behind(_)));
    assert_eq!(table.ask(2, b"a", true), Progress::Circle);
}

#[test]
fn a_row_is_given_back_that_came_when_it_was_wanted_no_more() {
    let places = Places::new(0, 1);
    let table = places.reservations();
    assert_eq!(table.ask(1, b"a", true), GOT);
    for (session, is_kept) in [(2, true), (3, false)] {
        assert!(matches!(table.ask(session, b"a", true), Progress::Behind(_)));
        let asker = Asker { places: places.clone(), session, sender: None };
        let waiting = Waiting { asker, keeper: None, key: b"a".to_vec(), is_kept };
        table.release(session - 1, &keys(&["a"]));
        assert_eq!(before(table, session, b"a"), 0);
        drop(waiting);
    }
    assert_eq!(table.ask(4, b"a", false), GOT);
}

#[test]
fn nothing_is_left_of_those_who_are_gone() {
    let places = Places::new(0, 1);
    let mut one = Reserved::new(places.clone(), 1, None);
    assert_eq!(places.reservations().ask(1, b"a", true), GOT);
    one.keys.insert(b"a".to_vec(), None);
    assert!(matches!(places.reservations().ask(2, b"a", true), Progress::Behind(_)));
    drop(Reserved::new(places.clone(), 2, None));
    drop(one);
    assert_eq!(places.reserved(), 0);
}

/// Three nodes, and what is on its way between them. The shard of a node has its number, and so
/// has its first session, in hundreds.
struct Nodes {
    tables: [Table; 3],
    sent: VecDeque<(u16, u16, Message)>,
}

impl Nodes {
    fn new() -> Nodes {
        Nodes { tables: std::array::from_fn(|_| Table::default()), sent: VecDeque::new() }
    }

    fn at<T>(&mut self, node: u16, call: impl FnOnce(&mut Table, &mut Outgoing) -> T) -> T {
        let mut out = Outgoing::new();
        let result = call(&mut self.tables[usize::from(node)], &mut out);
        self.sent.extend(out.into_iter().map(|(to, message)| (node, to, message)));
        result
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.sent.pop_front() {
            assert_eq!(wire::whole::<Message>(&wire::encoded(&message)), Ok(message.clone()));
            self.at(to, |table, out| table.receive(from, message, out));
        }
    }

    /// A session asks for a row that a node keeps; what it sees then.
    fn ask(&mut self, session: u32, keeper: u16, key: &[u8], may_wait: bool) -> Progress {
        let node = u16::try_from(session / 100).unwrap();
        if node == keeper {
            return self.at(node, |table, _| table.ask(session, key, may_wait));
        }
        self.at(node, |table, out| table.ask_keeper(keeper, session, key, may_wait, out));
        assert_eq!(self.look(session, key), Progress::Asked);
        self.deliver();
        self.take(session, key)
    }

    /// How far a session is that takes what it gets, and goes on if it is refused.
    fn take(&mut self, session: u32, key: &[u8]) -> Progress {
        let progress = self.look(session, key);
        self.at(u16::try_from(session / 100).unwrap(), |table, out| match progress {
            Progress::Got { .. } => table.keep(session),
            Progress::Refused => table.leave(session, out),
            _ => {}
        });
        progress
    }

    fn look(&mut self, session: u32, key: &[u8]) -> Progress {
        self.at(u16::try_from(session / 100).unwrap(), |table, _| table.look(session, key))
    }

    fn release(&mut self, session: u32, keeper: u16, key: &[u8]) {
        let node = u16::try_from(session / 100).unwrap();
        self.at(node, |table, out| match node == keeper {
            true => table.give_up(session, key, out),
            false => {
                table.returned(key);
                out.push((keeper, Message::Release { session, keys: vec![key.to_vec()] }));
            }
        });
        self.deliver();
    }
}

#[test]
fn sessions_of_all_nodes_wait_in_one_queue() {
    let mut nodes = Nodes::new();
    assert_eq!(nodes.ask(100, 0, b"a", true), GOT);
    assert_eq!(nodes.ask(200, 0, b"a", false), Progress::Refused);
    assert_eq!(nodes.ask(200, 0, b"a", true), Progress::Behind(1));
    assert_eq!(nodes.ask(101, 0, b"a", true), Progress::Behind(2));
    assert_eq!(nodes.ask(1, 0, b"a", true), Progress::Behind(3));
    nodes.release(100, 0, b"a");
    assert_eq!(nodes.take(200, b"a"), Progress::Got { has_waited: true });
    assert_eq!((nodes.look(101, b"a"), nodes.look(1, b"a")), (Progress::Behind(1), Progress::Behind(2)));
    // One in the middle does not want it any more.
    nodes.at(0, |table, out| table.leave(1, out));
    nodes.release(200, 0, b"a");
    assert_eq!(nodes.take(101, b"a"), Progress::Got { has_waited: true });
    nodes.release(101, 0, b"a");
    assert!(nodes.tables.iter().all(|table| table.size() == 0));
}

#[test]
fn a_circle_over_nodes_is_left_by_its_last_session() {
    let mut nodes = Nodes::new();
    for (session, keeper, key) in [(0, 1, b"b"), (100, 2, b"c"), (200, 0, b"a"), (1, 1, b"d")] {
        assert_eq!(nodes.ask(session, keeper, key, true), GOT);
    }
    for (session, keeper, key) in [(0, 0, b"a"), (100, 1, b"b"), (200, 2, b"c"), (101, 2, b"c")] {
        assert!(matches!(nodes.ask(session, keeper, key, true), Progress::Behind(_)));
    }
    // The last one waits for the circle, and is not in it.
    for (session, key, is_last) in
        [(0, b"a", false), (101, b"c", false), (100, b"b", false), (200, b"c", true)]
    {
        nodes.at(u16::try_from(session / 100).unwrap(), |table, out| table.probe(session, out));
        nodes.deliver();
        assert_eq!(nodes.look(session, key) == Progress::Circle, is_last, "{session}");
    }
}

#[test]
fn a_connection_that_breaks_leaves_nobody_waiting() {
    let mut nodes = Nodes::new();
    assert_eq!(nodes.ask(100, 0, b"a", true), GOT);
    assert_eq!(nodes.ask(101, 0, b"a", true), Progress::Behind(1));
    assert_eq!(nodes.ask(200, 0, b"a", true), Progress::Behind(2));
    nodes.at(0, |table, out| table.disconnected(1, out));
    nodes.at(1, |table, out| table.disconnected(0, out));
    nodes.deliver();
    assert_eq!(nodes.take(200, b"a"), Progress::Got { has_waited: true }, "those before it are gone");
    assert_eq!(nodes.take(101, b"a"), Progress::Got { has_waited: true }, "it goes on without");
    // What was reserved there is given back in vain.
    nodes.release(100, 0, b"a");
    assert_eq!(nodes.ask(1, 0, b"a", false), Progress::Refused);
    // A queue that was lost is noticed by a probe.
    assert_eq!(nodes.ask(101, 0, b"a", true), Progress::Behind(1));
    nodes.tables[0] = Table::default();
    nodes.at(1, |table, out| table.probe(101, out));
    nodes.deliver();
    assert_eq!(nodes.look(101, b"a"), Progress::Got { has_waited: true });
}

#[test]
fn sessions_of_a_node_queue_in_one_place() {
    let mut nodes = Nodes::new();
    let away = |nodes: &mut Nodes, wants, now_us| {
        nodes.at(1, |table, _| table.queues_at_keeper(b"a", 0, wants, now_us))
    };
    assert!(away(&mut nodes, true, 0) && !away(&mut nodes, false, 0));
    // One of them has it among themselves.
    assert_eq!(nodes.ask(100, 1, b"a", true), GOT);
    assert!(!away(&mut nodes, true, 0));
    nodes.release(100, 1, b"a");
    // One of them has asked its keeper.
    assert_eq!(nodes.ask(100, 0, b"a", true), GOT);
    assert!(away(&mut nodes, false, 0));
    assert_eq!(nodes.ask(101, 0, b"a", false), Progress::Refused);
    assert_eq!(nodes.tables[1].waiting().count(), 0, "who is refused does not wait");
    nodes.release(100, 0, b"a");
    assert!(!away(&mut nodes, false, 0));
    // Nobody is asked who says nothing.
    nodes.at(1, |table, _| table.note_silence(0, 5));
    assert!(!away(&mut nodes, true, 1_000_004) && away(&mut nodes, true, 1_000_005));
}

#[test]
fn a_row_is_hot_while_others_are_met_at_it() {
    let mut table = Table::default();
    let is_hot = |table: &Table, key, now_us| table.queues_at_keeper(key, 0, false, now_us);
    table.warm(b"a", 0);
    assert!(!is_hot(&table, b"a", 1), "once is chance");
    table.warm(b"a", 10);
    assert!(is_hot(&table, b"a", 1_000_009) && !is_hot(&table, b"a", 1_000_010) && !is_hot(&table, b"b", 11));
    table.warm(b"a", 2_000_000);
    assert!(!is_hot(&table, b"a", 2_000_001));
    (0..10_000u32).for_each(|key| table.warm(&key.to_be_bytes(), 2_000_000));
    table.warm(b"a", 2_000_000);
    assert!(is_hot(&table, b"a", 2_000_001), "room is made for what is old only");
}

#[test]
fn no_bytes_panic() {
    let table = Reservations::default();
    let mut random = plimsoll_types::random::Rng::new(7, 1);
    for _ in 0..20_000 {
        let length = random.below(24);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(8) as u8).collect();
        table.receive(random.below(3) as u16, &bytes);
    }
}
