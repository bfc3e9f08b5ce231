//! The tool: scenarios in, runs judged, results and pictures out.
//!
//! **Invariant:** nothing here knows an algorithm by type. Algorithms come by name from the
//! [`registry`], which is made from the one list.

pub mod checking;
pub mod cluster;
pub mod cmd;
pub mod dashboard;
mod hold;
pub mod judged;
pub mod lab;
pub mod picture;
pub mod process;
pub mod registry;
pub mod result;
pub mod rules;
pub mod scenario;
pub mod sweep;
pub mod worst;
