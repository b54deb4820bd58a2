"""The command line: one thin file for each command.

Takes: arguments, files, signals of the terminal.
Returns: results on standard output, everything else on standard error, an exit status.
Does not depend on: how anything is computed.
"""

import fmilin.export  # noqa: F401 - registers the formats, of which options and help texts list the suffixes
