//! The tool: its commands as people call them, and what they are made of. One program, because
//! whatever is linked holds every algorithm.

mod binary;
mod check;
mod cli;
mod cost;
mod judge;
mod numbers;
mod reader;
mod rules;
mod scenarios;
mod sweep;
mod worst;
