//! Panics of tasks that nobody waits for: a run in which one happened has failed.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What openraft asserts, where assertions are compiled in, of what a leader sends: not so of one
/// that was deposed, whose log may have become shorter than what it had sent. It is about to see
/// that it was, and sends nothing.
const OF_THE_DEPOSED: &str = "read_log_entries received reversed range";

/// From now on panics are remembered, each by its thread, and not printed.
pub(crate) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !std::thread::current().name().is_some_and(|name| name.starts_with("sim")) {
                return usual(panic);
            }
            let what = panic.to_string();
            if !what.contains(OF_THE_DEPOSED) {
                note(what);
            }
        }));
    });
}

/// Remembers what is as bad.
pub(crate) fn note(what: String) {
    FIRST.with_borrow_mut(|first| first.get_or_insert(what).clone());
}

/// The first since the last time.
pub(crate) fn take() -> Option<String> {
    FIRST.take()
}
