//! What one may tune in `YoYo`.

use serde::{Deserialize, Serialize};
use vez_core::Time;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub pick: Pick,
    pub rule: Rule,
    pub prune: bool,
    pub setup_within: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    Min,
    Max,
}

/// When to vote YES above: if all below did, or, to teach, if any did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    All,
    Any,
}

impl Default for Config {
    fn default() -> Self {
        Self { pick: Pick::Min, rule: Rule::All, prune: true, setup_within: None }
    }
}
