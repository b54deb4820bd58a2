"""What other tools say of the same systems, a script each; the last printed line is the number, or [re, im]."""
