//! Counts what is allocated, while told to.
//!
//! The only unsafe code of the bench: an allocator cannot be written without. Every call is passed
//! on to the system's allocator unchanged, so the contract the caller kept is the one it is given.

#![expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Others' speed is measured in this program too: unless told to count, it costs them one load.
static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// What some piece of work allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocated {
    pub(crate) calls: u64,
    /// The most bytes it held at any moment.
    pub(crate) peak: usize,
}

/// Runs `work` and counts.
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> (R, Allocated) {
    CALLS.store(0, Relaxed);
    HELD.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    ON.store(true, Relaxed);
    let result = work();
    ON.store(false, Relaxed);
    let peak = PEAK.load(Relaxed).unsigned_abs();
    (result, Allocated { calls: CALLS.load(Relaxed), peak })
}

fn grew(bytes: isize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            CALLS.fetch_add(1, Relaxed);
            grew(layout.size().cast_signed());
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            CALLS.fetch_add(1, Relaxed);
            grew(layout.size().cast_signed());
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if ON.load(Relaxed) {
            CALLS.fetch_add(1, Relaxed);
            grew(size.cast_signed() - layout.size().cast_signed());
        }
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ON.load(Relaxed) {
            grew(-layout.size().cast_signed());
        }
        unsafe { System.dealloc(block, layout) }
    }
}
