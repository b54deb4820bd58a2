"""Connected systems: models wired together are one model; SSP files; the co-simulation of such a system itself."""
