//! Ctrl-C asks a long command to stop and print what it has; a second one ends it at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_shutdown};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether the user has asked to stop. From the first call on, Ctrl-C only asks.
pub fn flag() -> &'static AtomicBool {
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        // The order matters: the second signal finds the flag that the first has set. Where there
        // are no signals, there is nobody to ask.
        let _ = register_conditional_shutdown(SIGINT, 130, Arc::clone(&asked))
            .and_then(|_| register(SIGINT, Arc::clone(&asked)));
        asked
    })
}
