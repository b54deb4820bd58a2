"""The theorems of Spencer's thesis, over random constrained systems."""
