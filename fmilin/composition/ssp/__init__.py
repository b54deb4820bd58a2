"""System Structure and Parameterization (SSP 1.0 and 2.0): a file of FMUs and their connections as one model."""
