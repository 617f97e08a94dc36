//! What a hostile program tries.
