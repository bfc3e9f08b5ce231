//! Panics of tasks that nobody waits for: a run in which one happened has failed.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics are remembered, each by its thread, and not printed.
pub(crate) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !std::thread::current().name().is_some_and(|name| name.starts_with("sim")) {
                return usual(panic);
            }
            note(panic.to_string());
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
