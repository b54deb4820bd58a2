"""seccomp: system calls that a process may not make any more, nor what it starts, without any privilege.

A list of what is refused (EPERM), or unknown (ENOSYS) where libraries then go another way; all else ordinary programs
use. The filter looks at numbers and arguments alone (https://docs.kernel.org/userspace-api/seccomp_filter.html).
"""

import ctypes
import errno
import struct
from collections.abc import Sequence

from fmilin.sandbox.kernel import call, machine

Number = tuple[int, int]  # of a system call, on x86-64 and on aarch64; -1: not there
Step = tuple[int, int, int, int]  # operation, steps to skip if true, if false, and a constant

FORBIDDEN: dict[str, Number] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "setpriority": (141, 140), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97),
    "setns": (308, 268),
    # the kernel and the machine
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "syslog": (103, 116), "vhangup": (153, 58),
    "lookup_dcookie": (212, 18), "set_mempolicy_home_node": (450, 450),
    # files by handles, and watching whole file systems
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    # memory that belongs to no process: the sums of a process do not count it
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    # modes, owners, times and attributes of files, which Landlock leaves alone; no path can be told apart here
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "utime": (132, -1), "utimes": (235, -1),
    "futimesat": (261, -1), "utimensat": (280, 88), "file_setattr": (469, 469),
}  # fmt: skip
UNKNOWN: dict[str, Number] = {
    "clone3": (435, 435),  # its flags lie behind a pointer; the C library takes clone then
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),  # calls by other means
}  # fmt: skip
NETWORK: dict[str, Number] = {
    "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
}  # fmt: skip
LOOKED_AT: dict[str, Number] = {
    "clone": (56, 220), "fcntl": (72, 25), "ioctl": (16, 29), "prctl": (157, 167), "prlimit64": (302, 261),
    "socket": (41, 198), "socketpair": (53, 199), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
}  # fmt: skip
_SECCOMP: Number = (317, 277)
_X32 = 0x40000000  # numbers of x86-64's third set of calls
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*
_OWNERS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to others through a descriptor
_TERMINALS = (0x5412, 0x541C, 0x540E, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, TIOCSCTTY, FIOSETOWN, SIOCSPGRP
_BONDS = (1, 4, 36, 0x59616D61)  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER
_FAMILIES = (1, 2, 10, 16)  # sockets of this machine, of IPv4 and IPv6, and for asking which interfaces there are
_SOCK_STREAM = 1
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_OF_NUMBER, _OF_ARCHITECTURE, _OF_ARGUMENTS = 0, 4, 16  # where they lie in struct seccomp_data
_DENIED: Step = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_NOT_THERE: Step = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
_ALLOWED: Step = (_RETURN, 0, 0, _ALLOW)


def is_there() -> bool:
    """Whether this kernel filters system calls, and their numbers are known here."""
    try:
        return call(_SECCOMP, 2, 0, struct.pack("<I", _ERRNO)) == 0  # SECCOMP_GET_ACTION_AVAIL
    except OSError:
        return False


def restrict(*, network: bool, only_pid: int | None) -> None:
    """Refuse what the tables say, for all threads and for good; ``only_pid``: signals to this process alone."""
    steps = program(network=network, only_pid=only_pid)
    packed = b"".join(struct.pack("<HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(packed, len(packed))
    call(_SECCOMP, 1, 1, struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(kept)))  # a filter, in all threads


def program(*, network: bool, only_pid: int | None = None) -> list[Step]:
    """Return the filter for this machine."""
    numbers = machine()
    assert numbers is not None  # noqa: S101 - is_there() has looked
    column, architecture = numbers

    def when(name: str, *body: Step) -> list[Step]:
        return [(_EQUAL, 0, len(body), LOOKED_AT[name][column]), *body]

    steps: list[Step] = [(_LOAD, 0, 0, _OF_ARCHITECTURE), (_EQUAL, 1, 0, architecture), _DENIED]
    steps += [(_LOAD, 0, 0, _OF_NUMBER), (_AT_LEAST, 0, 1, _X32), _NOT_THERE]
    for table, answer in ((FORBIDDEN, _DENIED), (UNKNOWN, _NOT_THERE), ({} if network else NETWORK, _DENIED)):
        for number in (pair[column] for pair in table.values()):
            steps += [] if number < 0 else [(_EQUAL, 0, 1, number), answer]
    steps += when("clone", _argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _DENIED, _ALLOWED)
    steps += when("fcntl", *_refusing(1, _OWNERS))
    steps += when("ioctl", *_refusing(1, _TERMINALS))
    steps += when("prctl", *_refusing(0, _BONDS))
    steps += when("prlimit64", *_allowing(0, (0,)))
    if network:
        steps += when("socket", *_allowing(0, _FAMILIES))
    else:  # of pairs only streams, which send to nobody else
        steps += when("socket", _DENIED)
        steps += when("socketpair", _argument(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, _SOCK_STREAM), _DENIED, _ALLOWED)
    if only_pid is not None:
        steps += when("kill", *_allowing(0, (only_pid, 0)))
        steps += when("tgkill", *_allowing(0, (only_pid,)))
        steps += when("tkill", _DENIED)
    return [*steps, _ALLOWED]


def _argument(position: int) -> Step:
    return (_LOAD, 0, 0, _OF_ARGUMENTS + 8 * position)  # the lower half: these are C ints


def _refusing(position: int, values: Sequence[int]) -> list[Step]:
    n = len(values)
    return [_argument(position), *((_EQUAL, n - i, 0, v) for i, v in enumerate(values)), _ALLOWED, _DENIED]


def _allowing(position: int, values: Sequence[int]) -> list[Step]:
    n = len(values)
    return [_argument(position), *((_EQUAL, n - i, 0, v) for i, v in enumerate(values)), _DENIED, _ALLOWED]
