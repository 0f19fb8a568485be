//! Kernels of likely: sums of rows, scores, k-means, text. Slices and array views in, vectors out; no Python anywhere.
//!
//! What a kernel returns does not depend on the number of threads: rows are cut into pieces by their number alone, and pieces are
//! put together in their order.

pub mod by_column;
pub mod categories;
pub mod conditional_bins;
pub mod density;
pub mod diagonal_em;
pub mod evidence;
pub mod expected;
pub mod exponents;
pub mod forest;
pub mod interrupt;
pub mod json;
pub mod keys;
pub mod kmeans;
pub mod labels;
pub mod linear;
pub mod memory;
pub mod missing;
pub mod moments;
pub mod posterior;
pub mod responsibilities;
pub mod responsibility_moments;
pub mod responsibility_scatter;
pub mod scatter;
pub mod simd;
pub mod source;
pub mod sparse;
pub mod special;
pub mod text;
pub mod threads;
pub mod tied;
pub mod trees;
pub mod whitened;
