//! Small protocols written only for the checker's own tests.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod agrawala;
pub(crate) mod grants;
pub(crate) mod ring;
pub(crate) mod tries;
pub(crate) mod votes;
