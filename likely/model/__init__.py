"""What a fitted estimator has, and every question to it."""
