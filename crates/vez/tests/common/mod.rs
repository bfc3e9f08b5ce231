//! What several tests of the tool need.

pub(crate) mod lab;
