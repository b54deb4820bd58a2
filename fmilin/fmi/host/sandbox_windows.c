/*
 * The sandbox on Windows: a job object, in which the host is and all that it starts. It bounds memory and processes and
 * ends them with the client, which made it, or else with the host. Files and network are not kept from the code of an
 * FMU there, and the report says so.
 */
#include "sandbox.h"

#if defined(_WIN32)

#include <string.h>
#include <windows.h>

static void report_failure(struct sandbox_report *report, enum protection protection, const char *what) {
  report_protection(report, protection, PROTECTION_MISSING, "%s: error %lu", what, (unsigned long)GetLastError());
}

static bool limit_job(HANDLE job, const struct sandbox_limits *limits) {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit;
  memset(&limit, 0, sizeof limit);
  limit.BasicLimitInformation.LimitFlags =
      JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
  if (!limits->no_restrictions && limits->processes < MAXDWORD) {
    limit.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
    limit.BasicLimitInformation.ActiveProcessLimit = (DWORD)limits->processes + 1;
  }
  if (limits->memory <= SIZE_MAX && limits->memory != UINT64_MAX) {
    limit.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
    limit.JobMemoryLimit = (SIZE_T)limits->memory;
  }
  return SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limit, sizeof limit) != 0;
}

/* The clipboard, windows of other programs, the desktop and the settings of the system. */
static bool limit_user_interface(HANDLE job) {
  JOBOBJECT_BASIC_UI_RESTRICTIONS restrictions;
  restrictions.UIRestrictionsClass = JOB_OBJECT_UILIMIT_DESKTOP | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
                                     JOB_OBJECT_UILIMIT_EXITWINDOWS | JOB_OBJECT_UILIMIT_GLOBALATOMS |
                                     JOB_OBJECT_UILIMIT_HANDLES | JOB_OBJECT_UILIMIT_READCLIPBOARD |
                                     JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | JOB_OBJECT_UILIMIT_WRITECLIPBOARD;
  return SetInformationJobObject(job, JobObjectBasicUIRestrictions, &restrictions, sizeof restrictions) != 0;
}

int apply_sandbox(const struct sandbox_limits *limits, struct sandbox_report *report) {
  static const enum protection unknown[] = {SANDBOX_DESCRIPTORS,    SANDBOX_PROCESSES_HIDDEN, SANDBOX_NETWORK,
                                            SANDBOX_ROOT,           SANDBOX_SCRATCH_SIZE,     SANDBOX_FILE_SIZE,
                                            SANDBOX_LANDLOCK_FILES, SANDBOX_SYSTEM_CALLS};
  memset(report, 0, sizeof *report);
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    report_protection(report, unknown[i], PROTECTION_MISSING, "Windows");
  }
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX); /* no dialogs */
  bool is_of_client = limits->client_descriptor >= 0;
  HANDLE job = is_of_client ? (HANDLE)(intptr_t)limits->client_descriptor : CreateJobObjectW(NULL, NULL);
  if (job == NULL || !limit_job(job, limits) || !AssignProcessToJobObject(job, GetCurrentProcess())) {
    report_failure(report, SANDBOX_JOB, "job object");
    report_protection(report, SANDBOX_MEMORY, PROTECTION_MISSING, "needs a job object");
    report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_MISSING, "needs a job object");
  } else {
    bool has_no_interface = limits->no_restrictions || limit_user_interface(job);
    report_protection(report, SANDBOX_JOB, PROTECTION_ACTIVE, "%s",
                      has_no_interface ? "" : "clipboard and desktop can be reached");
    if (limits->memory == UINT64_MAX) {
      report_protection(report, SANDBOX_MEMORY, PROTECTION_OFF, "no limit is asked for");
    } else {
      report_protection(report, SANDBOX_MEMORY, PROTECTION_ACTIVE, "%llu", (unsigned long long)limits->memory);
    }
    if (limits->processes > 0 || limits->no_restrictions) {
      report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_OFF, "--processes or --no-restrictions");
    } else {
      report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_ACTIVE, "job object");
    }
  }
  if (is_of_client) {
    CloseHandle(job); /* the code of the FMU must not change it; our own is closed with the process, which ends all in it */
  }
  if (limits->scratch && !SetCurrentDirectoryA(limits->scratch)) {
    report_failure(report, SANDBOX_SCRATCH_SIZE, "scratch folder");
  }
  return are_required_active(limits, report) ? 0 : -1;
}

#endif
