//! The examples say what they are meant to say.

#[allow(dead_code)]
#[path = "../examples/index.rs"]
mod index;
#[allow(dead_code)]
#[path = "../examples/queue.rs"]
mod queue;
#[allow(dead_code)]
#[path = "../examples/web.rs"]
mod web;

#[test]
fn a_visitor_sees_own_notes_and_others_see_the_page_of_a_minute_ago() {
    let lines = web::run().unwrap();
    assert_eq!(
        lines,
        ["201 note 1", "201 note 2", "200 bread, milk", "200 ", "200 ", "404 there is no such page"]
    );
}

#[test]
fn jobs_are_taken_once_each_by_priority_and_then_in_turn() {
    let lines = queue::run().unwrap();
    assert_eq!(lines, ["put the fire out", "sweep", "mop", "three workers did 60 jobs, each once"]);
}

#[test]
fn an_index_agrees_with_its_table_in_every_snapshot() {
    let lines = index::run().unwrap();
    assert_eq!(
        lines,
        [
            "the key is in table \"users by address\" already",
            "before: Lund [(1, \"Lund\"), (2, \"Lund\")]",
            "before: Lundby [(3, \"Lundby\")]",
            "after: Lund [(2, \"Lund\")]",
            "after: Lundby [(1, \"Lundby\"), (3, \"Lundby\")]",
        ]
    );
}
