//! What one may tune in the strict Bully.

use serde::{Deserialize, Serialize};
use vez_core::Time;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub answer_within: Time,
    pub victory_within: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self { answer_within: Time::from_millis(2), victory_within: Time::from_millis(6) }
    }
}
