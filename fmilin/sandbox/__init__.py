"""Foreign code in processes of its own: limits, a watchdog, and walls where the kernel has them.

Takes: functions and programs, what they may take and reach.
Returns: their answers, or a `ModelCrashError`.
Does not depend on: what the code computes.
"""
