//! k-means, exactly: labels are those of the nearest centre in float64, however they are found.

pub mod assign;
pub mod centres;
pub mod lloyd;
pub mod points;
pub mod real;
pub mod sparse;
pub mod starts;
mod sums;
mod tile;
mod vector;
