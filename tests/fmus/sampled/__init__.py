"""FMUs of sampled maps."""
