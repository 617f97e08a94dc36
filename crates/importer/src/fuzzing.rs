//! One oracle per surface.
