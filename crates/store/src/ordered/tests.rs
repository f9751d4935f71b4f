use std::collections::BTreeMap;

use plimsoll_types::Timestamp;
use proptest::prelude::*;

use super::*;

/// The index, a model of it, and what the marks must not forget.
#[derive(Default)]
struct World {
    index: OrderedIndex<Timestamp>,
    tails: Tails,
    model: BTreeMap<Key, RowId>,
    next_row: RowId,
    /// Scanned ranges and their timestamps.
    scanned: Vec<(Key, Option<Key>, Timestamp)>,
    /// The last version seen of every leaf number.
    versions: Vec<u64>,
}

type Visited = Vec<(LeafId, u64)>;

impl World {
    fn insert(&mut self, key: &Key) {
        let place = self.index.find(key, &self.tails);
        assert_eq!(place.row, self.model.get(key).copied());
        if place.row.is_some() {
            return;
        }
        let (version, mark) = (self.index.version(place.leaf), self.index.mark(place.leaf));
        let row = self.next_row;
        self.next_row += 1;
        self.tails.insert(row, key);
        let leaf = self.index.insert(key, row, &self.tails);
        self.model.insert(key.clone(), row);
        assert_eq!(self.index.find(key, &self.tails), Place { leaf, row: Some(row) });
        assert!(self.index.version(place.leaf) > version, "an insert changes the leaf that owned the key");
        match self.index.last_split() {
            None => assert_eq!(leaf, place.leaf),
            Some((left, right)) => {
                assert_eq!((left, Some(right)), (place.leaf, self.index.next_leaf(left)));
                assert!(leaf == left || leaf == right);
                assert_eq!(mark, self.index.mark(left), "a split keeps the mark");
                assert_eq!(mark, self.index.mark(right), "a split copies the mark");
                let before = self.versions.get(right.0 as usize).copied();
                assert!(before.is_none_or(|before| self.index.version(right) > before));
            }
        }
        self.watch_versions();
    }

    fn remove(&mut self, key: &Key) {
        let before = self.index.find(key, &self.tails);
        let (version, leaves) = (self.index.version(before.leaf), self.leaf_count());
        let (row, leaf) = self.index.remove(key, &self.tails);
        assert_eq!(row, self.model.remove(key));
        assert_eq!(row, before.row);
        if let Some(row) = row {
            self.tails.remove(row);
        }
        assert_eq!(self.index.find(key, &self.tails), Place { leaf, row: None });
        if self.leaf_count() == leaves {
            assert_eq!((before.leaf, version), (leaf, self.index.version(leaf)));
        } else {
            assert!(self.index.version(before.leaf) > version, "a merge changes both leaves");
            assert!(self.index.version(leaf) > version, "a merge changes both leaves");
        }
        self.watch_versions();
    }

    /// Scans in ascending order, compares with the model, and raises marks.
    fn scan(&mut self, low: &Key, high: Option<&Key>, ts: Timestamp) -> Visited {
        self.scan_in(Order::Ascending, low, high, ts)
    }

    fn scan_in(&mut self, order: Order, low: &Key, high: Option<&Key>, ts: Timestamp) -> Visited {
        let mut visited = Vec::new();
        let mut found = Vec::new();
        self.index.scan_leaves(low, high, order, &self.tails, |leaf, mark, version, heads, rows| {
            mark.raise(ts);
            visited.push((leaf, version));
            let entries = heads.iter().copied().zip(rows.iter().copied());
            match order {
                Order::Ascending => found.extend(entries),
                Order::Descending => found.extend(entries.rev()),
            }
            ControlFlow::Continue(())
        });
        if order == Order::Descending {
            found.reverse();
        }
        if high.is_some_and(|high| high <= low) {
            assert!(visited.is_empty());
            return visited;
        }
        let in_range = |key: &Key| low <= key && high.is_none_or(|high| key < high);
        let expected = self.model.range(low..).take_while(|(key, _)| in_range(key));
        assert_eq!(found, expected.map(|(key, &row)| (key.head(), row)).collect::<Vec<_>>());
        self.scanned.push((low.clone(), high.cloned(), ts));
        visited
    }

    fn leaf_count(&self) -> usize {
        self.index.leaves.used()
    }

    fn watch_versions(&mut self) {
        let slots = self.index.leaves.slots();
        // Looking at all leaves after every step would be slow in large trees.
        if slots > 200 && !self.next_row.is_multiple_of(64) {
            return;
        }
        self.versions.resize(slots, 0);
        for (leaf, seen) in self.versions.iter_mut().enumerate() {
            let version = self.index.version(LeafId(leaf as u32));
            assert!(*seen <= version, "versions only grow");
            *seen = version;
        }
    }

    fn check(&mut self) {
        self.index.check(&self.tails);
        assert_eq!(self.index.len(), self.model.len());
        for (low, high, ts) in self.scanned.clone() {
            let last = self.model.range(..high.clone().unwrap_or(Key::new(&[0xff; 30]))).next_back();
            let inside = last.map(|(key, _)| key.clone()).filter(|key| *key >= low);
            for key in [Some(low), inside].into_iter().flatten() {
                let leaf = self.index.find(&key, &self.tails).leaf;
                assert!(self.index.mark(leaf) >= ts, "what a scan has marked stays marked");
            }
        }
    }
}

/// Four shapes of keys: dense integers, scattered integers, long keys with one head (the first of
/// them is their short prefix), and long keys with few heads.
fn key(shape: u8, n: u32) -> Key {
    let significant = n.to_be_bytes()[n.leading_zeros() as usize / 8..].to_vec();
    match shape {
        0 => Key::of_u64(u64::from(n)),
        1 => Key::of_u64(u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        2 => Key::build().bytes(&[7; 15]).bytes(&significant).finish(),
        _ => Key::build().bytes(&[6; 13]).u8((n % 5) as u8).bytes(&n.to_be_bytes()).bytes(&[1]).finish(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u32, u32, u32),
    Remove(u8, u32, u32, u32),
    Scan(Order, (u8, u32), Option<(u8, u32)>, (u8, u32)),
}

fn step() -> impl Strategy<Value = Step> {
    let shape = || prop_oneof![3 => 0..4u8, 1 => Just(2u8)];
    let key = move || (shape(), 0..1500u32);
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    let run = move || (shape(), 0..1500u32, prop_oneof![Just(1u32), 1..400u32], 1..5u32);
    prop_oneof![
        4 => run().prop_map(|(shape, first, count, stride)| Step::Insert(shape, first, count, stride)),
        3 => run().prop_map(|(shape, first, count, stride)| Step::Remove(shape, first, count, stride)),
        3 => (order, key(), prop::option::weighted(0.9, key()), key())
            .prop_map(|(order, a, b, c)| Step::Scan(order, a, b, c)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_behaves_like_a_btree_map_and_never_forgets_a_mark(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::default();
        for (time, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(shape, first, count, stride) => {
                    (0..count).for_each(|i| world.insert(&key(shape, first + i * stride)));
                }
                Step::Remove(shape, first, count, stride) => {
                    (0..count).for_each(|i| world.remove(&key(shape, first + i * stride)));
                }
                Step::Scan(order, low, high, phantom) => {
                    let (low, high) = (key(low.0, low.1), high.map(|high| key(high.0, high.1)));
                    let visited = world.scan_in(order, &low, high.as_ref(), Timestamp(time as u64));
                    // No phantom: a key that comes into the range later changes a leaf that was
                    // visited.
                    let phantom = key(phantom.0, phantom.1);
                    let inside = low <= phantom && high.is_none_or(|high| phantom < high);
                    if inside && !world.model.contains_key(&phantom) {
                        world.insert(&phantom);
                        prop_assert!(visited.iter().any(|&(leaf, seen)| world.index.version(leaf) != seen));
                    }
                }
            }
            world.check();
        }
    }
}

/// A small generator of pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % sides
    }
}

#[test]
fn a_tree_of_three_levels_grows_and_shrinks_in_any_order() {
    let (mut world, mut dice) = (World::default(), Dice(1));
    let mut keys: Vec<Key> = (0..100_000).map(|n| key((n % 4) as u8, n)).collect();
    for round in 0..2 {
        (1..keys.len()).for_each(|i| keys.swap(i, dice.roll(i as u32 + 1) as usize));
        keys.iter().for_each(|key| world.insert(key));
        assert_eq!(world.index.height, 2, "the test reaches inner nodes below the root");
        world.check();
        if round == 1 {
            keys.sort();
        }
        for (i, key) in keys.iter().enumerate() {
            world.remove(key);
            if i % 10_000 == 0 {
                world.check();
            }
        }
        world.check();
        assert_eq!((world.index.height, world.leaf_count()), (0, 1));
    }
}

fn short(n: u32) -> Key {
    Key::of_u64(u64::from(n))
}

fn loaded(keys: impl Iterator<Item = u32>) -> World {
    let mut world = World::default();
    keys.for_each(|n| {
        world.index.insert(&short(n), n, &world.tails);
        world.model.insert(short(n), n);
    });
    world.next_row = u32::MAX / 2;
    world
}

#[test]
fn ascending_keys_fill_their_leaves_also_in_the_middle_and_also_downwards() {
    let fill = |world: &World| world.index.len() as f64 / (world.leaf_count() * CAP) as f64;
    let ascending = loaded(0..20_000);
    assert!(fill(&ascending) > 0.99, "{}", fill(&ascending));
    let descending = loaded((0..20_000).rev());
    assert!(fill(&descending) > 0.99, "{}", fill(&descending));
    // Ten districts were loaded one after the other; then each appends orders of ten lines in turn.
    let line = |district: u32, line: u32| district * 1_000_000 + line;
    let load = (0..10).flat_map(|district| (0..1005).map(move |n| line(district, n)));
    let orders = (0..200).flat_map(|order| {
        (0..10).flat_map(move |district| (0..10).map(move |n| line(district, 1005 + order * 10 + n)))
    });
    let districts = loaded(load.chain(orders));
    assert!(fill(&districts) > 0.95, "{}", fill(&districts));
    districts.index.check(&districts.tails);
}

#[test]
fn random_keys_leave_leaves_more_than_half_full() {
    let mut dice = Dice(7);
    let mut keys: Vec<u32> = (0..50_000).collect();
    (1..keys.len()).for_each(|i| keys.swap(i, dice.roll(i as u32 + 1) as usize));
    let world = loaded(keys.into_iter());
    assert!(world.index.len() * 10 > world.leaf_count() * CAP * 6);
}

#[test]
fn a_queue_gives_back_the_leaves_it_has_left() {
    let mut world = World::default();
    let entry = |district: u32, n: u32| Key::build().u32(7).u8(district as u8).u32(n).finish();
    (0..10).for_each(|district| (0..900).for_each(|n| world.insert(&entry(district, n))));
    let bytes = world.index.bytes();
    for n in 0..10_000 {
        for district in 0..10 {
            world.insert(&entry(district, 900 + n));
            world.remove(&entry(district, n));
        }
        if n % 1000 == 0 {
            world.check();
        }
    }
    assert!(world.index.bytes() <= bytes * 3 / 2, "{bytes} bytes became {}", world.index.bytes());
}

#[test]
fn a_full_inner_node_shares_with_a_neighbour_that_has_one_child_left() {
    // Ascending keys fill inner nodes with 63 leaves. One more split below one of them fills it up.
    let leaf = |n: u32| n * 64 * 2;
    for full in [0, 1] {
        let mut world = loaded((0..64 * 63 * 3).map(|n| n * 2));
        assert_eq!(world.index.height, 2);
        world.insert(&short(leaf(63 * full + 30) + 1));
        let child = |world: &World, at| world.index.inners[world.index.root].page.values[at];
        let size = |world: &World, at| world.index.inners[child(world, at)].page.len();
        assert_eq!(size(&world, full as usize), CAP);
        let drained = leaf(63 * (1 - full))..leaf(63 * (2 - full)) - 20;
        for n in drained.step_by(2) {
            world.remove(&short(n));
        }
        world.check();
        assert_eq!(size(&world, 0) + size(&world, 1), CAP + 1);
        assert!(size(&world, 0) >= CAP / 2 && size(&world, 1) >= CAP / 2);
    }
}

#[test]
fn a_merge_takes_the_larger_mark_and_gives_both_leaves_new_versions() {
    for (left_mark, right_mark) in [(5, 9), (9, 5)] {
        let mut world = loaded(0..128);
        let left = world.index.find(&short(0), &world.tails).leaf;
        let right = world.index.find(&short(127), &world.tails).leaf;
        assert_ne!(left, right);
        world.index.mark_mut(left).raise(Timestamp(left_mark));
        world.index.mark_mut(right).raise(Timestamp(right_mark));
        let before = world.index.version(left).max(world.index.version(right));
        (0..64).for_each(|n| world.remove(&short(n)));
        let merged = world.index.find(&short(0), &world.tails).leaf;
        assert_eq!(merged, world.index.find(&short(127), &world.tails).leaf);
        assert_eq!(world.index.mark(merged), Timestamp(9));
        assert!(world.index.version(left) > before && world.index.version(right) > before);
        // The freed leaf comes back with the mark of the one it is split from, and a new version.
        let freed = world.index.version(right);
        (1000..1100).for_each(|n| world.insert(&short(n)));
        assert_eq!(world.leaf_count(), 3);
        assert!(world.index.version(right) > freed);
        assert_eq!(world.index.mark(right), Timestamp(9));
    }
}

#[test]
fn a_scan_visits_the_owner_of_an_empty_range_and_ends_where_it_is_told() {
    let mut world = loaded((0..1000).map(|n| n * 10));
    let visited = world.scan(&short(5001), Some(&short(5002)), Timestamp(3));
    assert_eq!(visited.len(), 1);
    assert_eq!(visited[0].0, world.index.find(&short(5001), &world.tails).leaf);
    assert_eq!(world.scan(&short(20_000), None, Timestamp(3)).len(), 1);
    assert!(world.scan(&short(7), Some(&short(7)), Timestamp(3)).is_empty());
    assert_eq!(world.scan(&Key::MIN, None, Timestamp(3)).len(), world.leaf_count());
    for order in [Order::Ascending, Order::Descending] {
        let mut visits = 0;
        world.index.scan_leaves(&Key::MIN, None, order, &world.tails, |_, _, _, _, _| {
            visits += 1;
            ControlFlow::Break(())
        });
        assert_eq!(visits, 1);
    }
}

#[test]
fn a_descending_scan_visits_the_leaves_of_its_range_from_the_last_to_the_first_and_no_others() {
    let mut world = loaded((0..30_000).map(|n| n * 10));
    assert!(world.index.height > 1, "leaves have parents of their own");
    let mut down = world.scan_in(Order::Descending, &Key::MIN, None, Timestamp(3));
    assert_eq!(down.len(), world.leaf_count());
    down.reverse();
    assert_eq!(down, world.scan(&Key::MIN, None, Timestamp(3)));
    // A range that ends where a leaf begins has nothing of that leaf.
    let first = |world: &World, leaf: LeafId| world.index.entries(leaf).1[0];
    for pair in down.windows(2).step_by(50) {
        let (left, right) = (pair[0].0, pair[1].0);
        let begins = short(first(&world, right));
        let below = short(first(&world, left) + 1);
        let visited = world.scan_in(Order::Descending, &below, Some(&begins), Timestamp(3));
        assert_eq!(visited, [pair[0]]);
    }
    assert!(world.scan_in(Order::Descending, &short(7), Some(&short(7)), Timestamp(3)).is_empty());
    let empty = world.scan_in(Order::Descending, &short(5001), Some(&short(5002)), Timestamp(3));
    assert_eq!(empty, world.scan(&short(5001), Some(&short(5002)), Timestamp(3)));
}

#[test]
fn a_cursor_walks_the_entries_leaf_by_leaf() {
    let mut world = loaded((0..1000).map(|n| n * 10));
    let Cursor { leaf, index } = world.index.seek(&short(1235), &world.tails);
    let (heads, rows) = world.index.entries(leaf);
    let mut rest: Vec<RowId> = rows[index..].to_vec();
    assert!(heads[..index].iter().all(|&head| head < short(1235).head()));
    let mut leaf = leaf;
    while let Some(next) = world.index.next_leaf(leaf) {
        rest.extend(world.index.entries(next).1);
        leaf = next;
    }
    assert_eq!(rest, (124..1000).map(|n| n * 10).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "a key is linked into an index at most once")]
fn a_key_cannot_be_linked_twice() {
    let mut world = loaded(0..10);
    world.index.insert(&short(3), 77, &world.tails);
}

#[test]
fn a_leaf_fits_the_cache_lines_it_was_laid_out_for() {
    assert_eq!(size_of::<Leaf<Timestamp>>(), 21 * 64);
}
