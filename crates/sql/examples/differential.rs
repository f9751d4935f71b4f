//! A sweep of generated statements against a PostgreSQL 15 that is started beside: typed random
//! expressions over literals of every type, whose outcomes have to be the same. What differs is
//! printed in its smallest form.
//!
//! `cargo run -p plimsoll-sql --example differential -- --statements 10000 --seed 1`

#[path = "../tests/beside/mod.rs"]
mod beside;
#[path = "../tests/beside/generate.rs"]
mod generate;

use beside::{Outcome, Postgres, connect, ours, theirs};
use generate::Generator;
use tokio_postgres::Client;

fn argument(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}

/// Whether outcomes are the same for the purpose of a sweep: what is refused here by name is not
/// counted, and hints are not compared.
fn alike(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Error(state, ..), _) if state == "0A000" => true,
        (Outcome::Error(a, b, ..), Outcome::Error(c, d, ..)) => (a, b) == (c, d),
        _ => ours == theirs,
    }
}

async fn differs(client: &Client, text: &str) -> Option<(Outcome, Outcome)> {
    let (ours, theirs) = (ours(text), theirs(client, text).await);
    (!alike(&ours, &theirs)).then_some((ours, theirs))
}

fn main() {
    let Some(server) = Postgres::start() else { return };
    let (count, seed) = (argument("--statements", 1000), argument("--seed", 1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        let (mut different, mut values) = (0u64, 0u64);
        for number in 0..count {
            let tree = Generator::new(seed.wrapping_mul(1_000_003).wrapping_add(number)).tree();
            let statement = format!("select {tree}");
            let Some(mut found) = differs(&client, &statement).await else {
                values += u64::from(matches!(ours(&statement), Outcome::Rows(..)));
                continue;
            };
            different += 1;
            // The smallest part that differs by itself.
            let mut smallest = tree;
            while let Some((part, outcomes)) = smaller(&client, &smallest).await {
                smallest = part;
                found = outcomes;
            }
            println!("select {smallest}\n  PostgreSQL: {}\n  here:       {}", found.1, found.0);
        }
        println!(
            "{count} statements from seed {seed}: {values} had values on both sides, {different} differ"
        );
    });
}

async fn smaller(client: &Client, tree: &generate::Tree) -> Option<(generate::Tree, (Outcome, Outcome))> {
    for part in tree.parts() {
        if let Some(outcomes) = differs(client, &format!("select {part}")).await {
            return Some((part.clone(), outcomes));
        }
    }
    None
}
