//! How long the sums and scores of rows take: `cargo bench -p likely-kernels`, without Python.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use likely_kernels::density::{self, Gaussian};
use likely_kernels::diagonal_em::{self, Labels};
use likely_kernels::kmeans::lloyd::{Settings, run};
use likely_kernels::kmeans::points::Dense;
use likely_kernels::responsibilities::Assignment;
use likely_kernels::source::{Domain, Matrix, Source};
use likely_kernels::{moments, scatter};
use ndarray::Array2;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;

const ROWS: usize = 100_000;
const COLUMNS: usize = 40;
const CLASSES: usize = 8;

/// Numbers between 0 and 1 that look random.
fn noise(row: usize, column: usize) -> f64 {
    let mixed = (row as u64 * 0x9E37_79B9 + column as u64 * 0x85EB_CA6B).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed >> 40) as f64 / f64::from(1 << 24)
}

fn bench(c: &mut Criterion) {
    let x = Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| noise(i, j) + (i % CLASSES) as f64);
    let codes: Vec<i32> = (0..ROWS).map(|i| (i % CLASSES) as i32).collect();
    let source = Source { matrix: Matrix::F64(x.view()), columns: None, domain: Domain::Real };
    let assignment = Assignment { classes: CLASSES, codes: &codes, weights: None };
    let mut group = c.benchmark_group("rows");
    group.throughput(Throughput::Elements((ROWS * COLUMNS) as u64)).sample_size(20);
    group.bench_function("moments of classes", |b| {
        b.iter(|| moments::collect(&source, black_box(&assignment), true, moments::Second::Square));
    });
    group.bench_function("scatter of classes", |b| b.iter(|| scatter::collect(&source, black_box(&assignment), false)));

    let mean: Vec<f64> = (0..CLASSES * COLUMNS).map(|at| (at / COLUMNS) as f64 + 0.5).collect();
    let (precision, constant) = (vec![2.0; mean.len()], vec![-0.2; mean.len()]);
    let g = Gaussian { mean: &mean, precision: &precision, constant: &constant, classes: CLASSES };
    let mut scores = vec![0.0; ROWS * CLASSES];
    group.bench_function("log densities of independent Gaussians", |b| {
        b.iter(|| density::gaussian(&source, black_box(&g), &mut scores));
    });
    let log_weights = [-(CLASSES as f64).ln(); CLASSES];
    let labels = Labels { log_weights: &log_weights, codes: None, weights: None };
    group.bench_function("EM step of independent Gaussians", |b| {
        b.iter(|| diagonal_em::step(&source, black_box(&g), &labels, diagonal_em::PROBED));
    });

    let single = x.mapv(|cell| cell as f32);
    let origin = vec![CLASSES as f64 / 2.0; COLUMNS];
    let start: Vec<f64> = single.rows().into_iter().take(64).flatten().map(|&cell| f64::from(cell)).collect();
    let start: Vec<f64> = start.iter().zip(origin.iter().cycle()).map(|(cell, o)| cell - o).collect();
    let settings = Settings { iterations: 5, tolerance: 0.0, unread: false, course: false };
    group.bench_function("k-means, 64 centres, 5 iterations", |b| {
        let points = Dense::<f32, f32>::new(single.view(), &origin, false);
        b.iter(|| run(&points, None, start.clone(), black_box(&settings), false, &AtomicBool::new(false)).is_some());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
