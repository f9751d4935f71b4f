//! The mode of statements: sequences that make three tables, fill them, and change and read them,
//! played to a session of ours and to one of PostgreSQL.
//!
//! A sequence ends at the first difference. Then statements are left out of it, and parts of
//! statements, as long as the last one differs in the same states.

use std::collections::BTreeMap;

use crate::Sweep;
use crate::allowed::reason;
use crate::generate::Generator;
use crate::part::{Part, word};
use crate::queries::Queries;
use crate::sides::{Answer, Side};
use crate::tables::tables;

/// Steps of a sequence after its tables are filled.
const STEPS: usize = 100;

/// Sequences that are played at most to make one smaller.
const TRIES: usize = 300;

/// What a sequence came to.
struct Played {
    /// Statements that were run.
    count: usize,
    /// Those of them that had no error.
    succeeded: usize,
    /// The statement at which the sides differ, and their answers.
    difference: Option<(usize, Answer, Answer)>,
    /// The reasons for which some differ as they may.
    reasons: Vec<&'static str>,
}

/// Both sessions.
struct Sides {
    ours: Side,
    theirs: Side,
}

impl Sides {
    fn play(&mut self, statements: &[Part]) -> Played {
        let before = ["rollback", "drop table if exists a, b, c cascade"].map(str::to_owned);
        let texts: Vec<String> = before.into_iter().chain(statements.iter().map(Part::to_string)).collect();
        for side in [&mut self.theirs, &mut self.ours] {
            side.send(&texts);
        }
        for side in [&mut self.ours, &mut self.theirs] {
            side.answer();
            side.answer();
        }
        let mut played = Played { count: 0, succeeded: 0, difference: None, reasons: Vec::new() };
        for (place, (statement, text)) in statements.iter().zip(&texts[2..]).enumerate() {
            let (mut ours, mut theirs) = (self.ours.answer(), self.theirs.answer());
            played.count += 1;
            played.succeeded += usize::from(theirs.error.is_empty());
            if !statement.is_total() {
                ours.rows.sort();
                theirs.rows.sort();
            }
            if ours == theirs {
                continue;
            }
            match reason(text, &ours, &theirs) {
                Some(reason) => {
                    played.reasons.push(reason);
                    // A query outside of a block has left nothing behind.
                    if ours.status == 'I' && ["select", "with", "("].iter().any(|it| text.starts_with(it)) {
                        continue;
                    }
                }
                None => played.difference = Some((place, ours, theirs)),
            }
            return played;
        }
        played
    }
}

/// The statements of a sequence.
fn sequence(seed: u64) -> Vec<Part> {
    let mut random = Generator::new(seed);
    let (tables, made) = tables(&mut random);
    let mut statements: Vec<Part> = made.into_iter().map(word).collect();
    let mut queries = Queries::new(&mut random, &tables);
    for table in &tables {
        let filled = queries.fill(table);
        statements.push(filled);
    }
    for _ in 0..STEPS {
        queries.step(&mut statements);
    }
    statements
}

/// The smallest sequence that is found to differ in the same states.
fn smallest(
    sides: &mut Sides,
    mut statements: Vec<Part>,
    first: (Answer, Answer),
) -> (Vec<Part>, Answer, Answer) {
    let mut found = first;
    let mut tries = 0;
    let mut still = |sides: &mut Sides, statements: &mut Vec<Part>, found: &mut (Answer, Answer)| {
        tries += 1;
        let Some((place, ours, theirs)) = sides.play(statements).difference else { return false };
        if tries > TRIES || (ours.state(), theirs.state()) != (found.0.state(), found.1.state()) {
            return false;
        }
        statements.truncate(place + 1);
        *found = (ours, theirs);
        true
    };
    loop {
        let mut progress = false;
        for place in (0..statements.len().saturating_sub(1)).rev() {
            let mut fewer = statements.clone();
            if place + 1 >= fewer.len() {
                continue;
            }
            fewer.remove(place);
            if still(sides, &mut fewer, &mut found) {
                statements = fewer;
                progress = true;
            }
        }
        for place in (0..statements.len()).rev() {
            let mut candidates = statements.get(place).map_or(Vec::new(), Part::smaller).into_iter();
            while let Some(part) = candidates.next() {
                let mut other = statements.clone();
                other[place] = part;
                if still(sides, &mut other, &mut found) {
                    statements = other;
                    progress = true;
                    candidates = statements.get(place).map_or(Vec::new(), Part::smaller).into_iter();
                }
            }
        }
        if !progress {
            return (statements, found.0, found.1);
        }
    }
}

/// Plays sequences until there were as many statements as asked for. Says how many differ.
pub fn sweep(sweep: &Sweep, port: u16) -> u64 {
    let mut sides = Sides { ours: Side::new(crate::common::plimsoll()), theirs: Side::new(port) };
    let (mut count, mut succeeded, mut different, mut number) = (0u64, 0, 0u64, 0u64);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    while count < sweep.statements && different < sweep.differences {
        let statements = sequence(sweep.seed.wrapping_mul(1_000_003).wrapping_add(number));
        number += 1;
        let played = sides.play(&statements);
        let before = count;
        count += u64::try_from(played.count).expect("few");
        succeeded += played.succeeded;
        for reason in played.reasons {
            *reasons.entry(reason).or_default() += 1;
        }
        if let Some((place, ours, theirs)) = played.difference {
            different += 1;
            let (smallest, ours, theirs) =
                smallest(&mut sides, statements[..=place].to_vec(), (ours, theirs));
            smallest.iter().for_each(|statement| println!("{statement};"));
            println!("  PostgreSQL: {theirs}\n  here:       {ours}\n");
        }
        sweep.progress(before, count, different);
    }
    for (reason, times) in reasons {
        println!("{times} statements differ as they may: {reason}");
    }
    println!(
        "{count} statements in {number} sequences from seed {}: {succeeded} succeeded, {different} differ",
        sweep.seed
    );
    different
}
