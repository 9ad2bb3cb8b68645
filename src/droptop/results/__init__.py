"""What came of runs: metrics, their statistics, and curves over training."""
