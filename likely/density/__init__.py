"""One joint density of a whole table: mixtures of Chow–Liu trees, hidden trees, and mixtures of normal scores."""
