//! What a run measures.
