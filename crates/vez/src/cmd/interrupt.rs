//! Ctrl-C asks a long command to stop and print what it has; a second one ends it at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static HANDLER: Once = Once::new();

/// Whether the user has asked to stop. From the first call on, Ctrl-C only asks.
pub fn flag() -> &'static AtomicBool {
    HANDLER.call_once(|| {
        let handler = || {
            if ASKED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        };
        // Where there are no signals, there is nobody to ask.
        let _ = ctrlc::set_handler(handler);
    });
    &ASKED
}
