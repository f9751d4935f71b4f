//! Serves SQL without tables on the loopback interface, one thread per session, until it is ended:
//! what the tests talk to, for people with psql and for measuring.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    println!("psql -h 127.0.0.1 -p {} -U postgres postgres", common::plimsoll());
    loop {
        std::thread::park();
    }
}
