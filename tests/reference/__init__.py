"""Linear models of all reference systems, by every road: tables that a later version of the code must pass."""
