//! The controlled quantities: distribution, contention, skew, dynamics.
