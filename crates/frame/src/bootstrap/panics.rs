use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `body` returned, or `None` where it panicked. Whatever it was working on must not be looked
/// at any more, only closed or erased; that is what the callers do.
pub(super) fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(discard).ok()
}

/// Drops what a panic carried. That may panic in turn, once; then it is left where it is.
fn discard(carried: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(carried))) {
        std::mem::forget(second);
    }
}
