//! k-means, exactly: labels are those of the nearest centre in float64, however they are found.
//!
//! `tile` scores 16 rows by some centres in registers; `points` and `sparse` bring rows there, in a `panel`; `centres` holds the centres in
//! groups; `assign` keeps bounds on the distances of every row, and `worker` scores the rows of which they leave a `doubt`;
//! `sums` follows the rows that move; `lloyd` repeats it; `starts` draws the first centres, by the `order` of rows.

pub mod assign;
pub mod centres;
mod doubt;
pub mod lloyd;
pub mod order;
mod panel;
pub mod points;
pub mod real;
pub mod sparse;
pub mod starts;
mod sums;
mod tile;
mod vector;
mod worker;
