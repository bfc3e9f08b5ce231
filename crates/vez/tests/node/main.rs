//! Real processes: alone, and on cables that are pulled.

mod cables;
mod process;
mod single;
