"""FMUs: reading and running them (FMI 1, 2, 3; model exchange and co-simulation), and writing them.

Enters: .fmu archives; models and linear models to be written.
Leaves: models over a running FMU, .fmu archives.
Does not know: native descriptions.
"""
