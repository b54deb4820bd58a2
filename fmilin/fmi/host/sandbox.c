/* The part of the sandbox that is the same on all systems: limits from the command line, and the report. */
#include "sandbox.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[SANDBOX_PROTECTIONS] = {
    [SANDBOX_DESCRIPTORS] = "descriptors",
    [SANDBOX_SESSION] = "session",
    [SANDBOX_USERS] = "users",
    [SANDBOX_PROCESSES_HIDDEN] = "processes-hidden",
    [SANDBOX_NETWORK] = "network",
    [SANDBOX_IPC] = "ipc",
    [SANDBOX_HOST_NAME] = "host-name",
    [SANDBOX_ROOT] = "root",
    [SANDBOX_PROC] = "proc",
    [SANDBOX_SCRATCH_SIZE] = "scratch-size",
    [SANDBOX_CGROUP] = "cgroup",
    [SANDBOX_MEMORY] = "memory",
    [SANDBOX_FILES] = "files",
    [SANDBOX_FILE_SIZE] = "file-size",
    [SANDBOX_THREADS] = "threads",
    [SANDBOX_CORE] = "core",
    [SANDBOX_QUEUES] = "queues",
    [SANDBOX_NO_NEW_PRIVILEGES] = "no-new-privileges",
    [SANDBOX_CAPABILITIES] = "capabilities",
    [SANDBOX_LANDLOCK_FILES] = "landlock-files",
    [SANDBOX_LANDLOCK_DEVICES] = "landlock-devices",
    [SANDBOX_LANDLOCK_NETWORK] = "landlock-network",
    [SANDBOX_LANDLOCK_SCOPE] = "landlock-scope",
    [SANDBOX_SYSTEM_CALLS] = "system-calls",
    [SANDBOX_NO_NEW_PROCESSES] = "no-new-processes",
    [SANDBOX_JOB] = "job",
};

static const char *const STATES[] = {
    [PROTECTION_ACTIVE] = "active",
    [PROTECTION_OFF] = "off",
    [PROTECTION_MISSING] = "missing",
};

void set_default_limits(struct sandbox_limits *limits) {
  memset(limits, 0, sizeof *limits);
  limits->memory = UINT64_MAX;
  limits->file_size = UINT64_MAX;
  limits->files = 256;
  limits->threads = 512;
  limits->scratch_size = UINT64_C(256) << 20;
  limits->client_descriptor = -1;
}

static bool read_number(const char *text, uint64_t *number) {
  char *end;
  if (text[0] < '0' || text[0] > '9') {
    return false; /* strtoull takes signs and spaces */
  }
  unsigned long long value = strtoull(text, &end, 10);
  *number = value;
  return *end == '\0' && strlen(text) <= 19; /* 19 digits never overflow */
}

static bool read_descriptor(const char *text, int *descriptor) {
  uint64_t number;
  if (!read_number(text, &number) || number > INT_MAX) {
    return false;
  }
  *descriptor = (int)number;
  return true;
}

static bool add_path(const char **paths, size_t *count, const char *path) {
  if (*count == SANDBOX_MAX_PATHS || path[0] == '\0') {
    return false;
  }
  paths[(*count)++] = path;
  return true;
}

static bool add_descriptor(struct sandbox_limits *limits, const char *text) {
  int descriptor;
  if (limits->descriptor_count == SANDBOX_MAX_DESCRIPTORS || !read_descriptor(text, &descriptor)) {
    return false;
  }
  limits->descriptors[limits->descriptor_count++] = descriptor;
  return true;
}

static bool add_required(struct sandbox_limits *limits, const char *name) {
  for (int protection = 0; protection < SANDBOX_PROTECTIONS; protection++) {
    if (strcmp(name, NAMES[protection]) == 0) {
      limits->required |= UINT32_C(1) << protection;
      return true;
    }
  }
  return false;
}

/* Reads the value of an option. Returns 1, 0 if there is no such option, -1 if the value is wrong. */
static int read_value(struct sandbox_limits *limits, const char *option, const char *value) {
  const struct {
    const char *option;
    uint64_t *number;
  } numbers[] = {
      {"--memory", &limits->memory},       {"--file-size", &limits->file_size},
      {"--files", &limits->files},         {"--processes", &limits->processes},
      {"--threads", &limits->threads},     {"--scratch-size", &limits->scratch_size},
      {"--copies", &limits->copies},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strcmp(option, numbers[i].option) == 0) {
      return value && read_number(value, numbers[i].number) ? 1 : -1;
    }
  }
  if (strcmp(option, "--read") == 0) {
    return value && add_path(limits->read, &limits->read_count, value) ? 1 : -1;
  }
  if (strcmp(option, "--write") == 0) {
    return value && add_path(limits->write, &limits->write_count, value) ? 1 : -1;
  }
  if (strcmp(option, "--scratch") == 0) {
    limits->scratch = value;
    return value && value[0] ? 1 : -1;
  }
  if (strcmp(option, "--keep-descriptor") == 0) {
    return value && add_descriptor(limits, value) ? 1 : -1;
  }
  if (strcmp(option, "--client-descriptor") == 0) {
    return value && read_descriptor(value, &limits->client_descriptor) ? 1 : -1;
  }
  if (strcmp(option, "--require") == 0) {
    return value && add_required(limits, value) ? 1 : -1;
  }
  return 0;
}

int read_sandbox_option(struct sandbox_limits *limits, int argc, char *const *argv, int *position, char *problem,
                        size_t problem_size) {
  const char *option = argv[*position];
  if (strcmp(option, "--network") == 0) {
    limits->network = true;
    *position += 1;
    return 1;
  }
  if (strcmp(option, "--local-sockets") == 0) {
    limits->local_sockets = true;
    *position += 1;
    return 1;
  }
  if (strcmp(option, "--no-restrictions") == 0) {
    limits->no_restrictions = true;
    *position += 1;
    return 1;
  }
  const char *value = *position + 1 < argc ? argv[*position + 1] : NULL;
  int result = read_value(limits, option, value);
  if (result == 1) {
    *position += 2;
  } else if (result == -1) {
    snprintf(problem, problem_size, "The option %s does not take the value '%s', or takes no more of them.", option,
             value ? value : "");
  }
  return result;
}

const char *protection_name(enum protection protection) { return NAMES[protection]; }

void report_protection(struct sandbox_report *report, enum protection protection, enum protection_state state,
                       const char *format, ...) {
  char *detail = report->protections[protection].detail;
  va_list arguments;
  report->protections[protection].state = state;
  va_start(arguments, format);
  vsnprintf(detail, SANDBOX_MAX_DETAIL, format, arguments);
  va_end(arguments);
  for (char *c = detail; *c; c++) {
    if (*c < ' ' || *c > '~') {
      *c = '?'; /* a path may hold a line feed */
    }
  }
}

size_t write_sandbox_report(const struct sandbox_report *report, char *text, size_t size) {
  size_t length = 0;
  for (int protection = 0; protection < SANDBOX_PROTECTIONS; protection++) {
    enum protection_state state = report->protections[protection].state;
    const char *detail = report->protections[protection].detail;
    if (state == PROTECTION_ABSENT) {
      continue;
    }
    int added = snprintf(length < size ? text + length : NULL, length < size ? size - length : 0, "%s=%s%s%s\n",
                         NAMES[protection], STATES[state], detail[0] ? ": " : "", detail);
    length += (size_t)added;
  }
  return length;
}

bool are_required_active(const struct sandbox_limits *limits, const struct sandbox_report *report) {
  for (int protection = 0; protection < SANDBOX_PROTECTIONS; protection++) {
    bool is_required = (limits->required >> protection) & 1;
    if (is_required && report->protections[protection].state != PROTECTION_ACTIVE) {
      return false;
    }
  }
  return true;
}
