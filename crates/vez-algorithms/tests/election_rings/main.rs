//! The ring elections: what each costs to the message, what the notes' scenarios come to, and what
//! goes wrong when an assumption is taken away.

#[path = "../common/mod.rs"]
mod common;

mod anonymous;
mod both_ways;
mod one_way;
mod repair;
mod rings;
