//! The timestamp schemes.

mod dst;
mod gts;
mod none;
mod oracle;
mod rc;
mod vts;

pub use dst::Dst;
pub use gts::Gts;
pub use none::NoTimestamps;
pub use rc::Rc;
pub use vts::Vts;
