"""Where responsibilities come from: labels (one pass), posteriors (EM), the nearest centre (k-means)."""
