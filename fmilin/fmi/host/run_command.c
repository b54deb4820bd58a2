/* `host --run`: another program in the sandbox, such as the compiler of an FMU's sources. */
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_OF_COMMANDS = 64, USAGE = 2, NOT_RUN = 126 };

#if defined(_WIN32)
#include <process.h>
#include <io.h>
#define write _write
#else
#include <unistd.h>
#endif

static void send_report(int descriptor, const struct sandbox_report *report) {
  char text[8192];
  size_t length = write_sandbox_report(report, text, sizeof text);
  for (size_t sent = 0; sent < length;) {
    long count = (long)write(descriptor, text + sent, (unsigned)(length - sent));
    if (count <= 0) {
      return;
    }
    sent += (size_t)count;
  }
}

int run_command(int argc, char **argv) {
  struct sandbox_limits limits;
  struct sandbox_report report;
  char problem[200] = "";
  int position = 2, report_descriptor = -1;
  set_default_limits(&limits);
  limits.processes = PROCESSES_OF_COMMANDS;
  while (position < argc && strcmp(argv[position], "--") != 0) {
    if (strcmp(argv[position], "--report") == 0 && position + 1 < argc) {
      report_descriptor = atoi(argv[position + 1]);
      if (limits.descriptor_count < SANDBOX_MAX_DESCRIPTORS) {
        limits.descriptors[limits.descriptor_count++] = report_descriptor;
      }
      position += 2;
      continue;
    }
    if (read_sandbox_option(&limits, argc, argv, &position, problem, sizeof problem) != 1) {
      fprintf(stderr, "%s\n", problem[0] ? problem : argv[position]);
      return USAGE;
    }
  }
  if (position + 1 >= argc) {
    fprintf(stderr, "--run needs a command behind '--'.\n");
    return USAGE;
  }
  bool is_applied = apply_sandbox(&limits, &report) == 0;
  if (report_descriptor >= 0) {
    send_report(report_descriptor, &report);
  }
  if (!is_applied) {
    fprintf(stderr, "The sandbox lacks a protection that is required.\n");
    return NOT_RUN;
  }
#if defined(_WIN32)
  intptr_t status = _spawnvp(_P_WAIT, argv[position + 1], (const char *const *)argv + position + 1);
  if (status != -1) {
    return (int)status;
  }
#else
  if (report_descriptor > STDERR_FILENO) {
    close(report_descriptor);
  }
  execvp(argv[position + 1], argv + position + 1);
#endif
  perror(argv[position + 1]);
  return NOT_RUN;
}
