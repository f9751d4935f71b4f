//! PostgreSQL's protocol as bytes: version 3, minors 0 and 2.
//!
//! | module | has |
//! |---|---|
//! | [`frame`] | where a message ends, how long it may be, the reader of its fields |
//! | [`startup`] | what a client sends before it is known |
//! | [`frontend`] | what it sends then |
//! | [`backend`] | what it is answered, appended to a buffer |
//!
//! A codec of its own because a reply of one statement is several messages that have to leave in
//! one write, and because the bytes are hostile. What arrives follows these rules:
//!
//! * A length is compared with its limit before a byte of the message is kept, and memory follows
//!   what has arrived, never what a length or a count promises.
//! * Text is checked to be UTF-8 once, where it is read (22021), and never repaired.
//! * Counts are compared with what the message has left. A parameter's length of -1 is NULL, other
//!   negative ones are refused; a row limit that is not positive means all.
//! * Bytes left at the end of a message are refused, as are missing ones (08P01).
//!
//! Nothing here knows SQL, a socket, or what order messages come in.
#![cfg_attr(
    not(test),
    deny(
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod backend;
pub mod frame;
pub mod frontend;
pub mod startup;
