"""The FMU host: a C program in whose process the code of one FMU runs; ``protocol.h`` says how it is spoken to."""
