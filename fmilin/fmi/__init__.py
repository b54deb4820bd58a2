"""FMUs: reading and running them (FMI 1, 2, 3; model exchange and co-simulation), and writing them.

Takes: .fmu archives; models and linear models to be written.
Returns: models over a running FMU, .fmu archives.
Does not depend on: native descriptions.
"""
