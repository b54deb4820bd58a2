"""The command line: one thin file for each command.

Enters: arguments, files, signals of the terminal.
Leaves: results on standard output, everything else on standard error, an exit status.
Does not know: how anything is computed.
"""
