//! Faults injected on purpose, on a schedule, and undone.
