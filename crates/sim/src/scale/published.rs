//! What the DST paper has measured, to hold predictions against.
