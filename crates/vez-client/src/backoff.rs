use std::time::Duration;

use tokio::time::sleep;

/// Pauses between attempts: short at first, so that a restart is hardly noticed.
pub(crate) struct Backoff(Duration);

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(SHORTEST)
    }

    pub(crate) fn reset(&mut self) {
        self.0 = SHORTEST;
    }

    pub(crate) async fn pause(&mut self) {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        sleep(pause).await;
    }
}
