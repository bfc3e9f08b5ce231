//! Real processes: alone, and on cables that are pulled.

mod cables;
mod cluster;
mod process;
mod single;
