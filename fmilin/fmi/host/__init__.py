"""The FMU host: a C program that runs the code of one FMU in its process; ``protocol.h`` has the protocol."""
