"""The whole job in a child process: an FMU that crashes, exits, hangs or prints garbage harms nobody.

The parent forks before anything heavy or foreign is loaded, so that this costs a millisecond.
"""

from __future__ import annotations

import sys

from fmilin.cli.desk import Job, failure, work_in_this_process
from fmilin.errors import ModelCrashError
from fmilin.isolation import Limits, in_a_child

__all__ = ["work_in_a_child"]


def work_in_a_child(job: Job, *, debug: bool, limits: Limits | None) -> int:
    """Do ``job`` in a forked child and return its exit status, 6 when the child ended without saying one."""
    try:
        answer = in_a_child(
            lambda deliver: work_in_this_process(job, debug=debug, announce=lambda status: deliver(bytes([status]))),
            limits,
        )
    except ModelCrashError as error:
        return failure(error, debug=debug)
    if answer.remark:
        sys.stderr.write(f"fmilin: {answer.remark}\n")
    return answer.content[0]
