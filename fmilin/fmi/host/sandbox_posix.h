/* What the sandboxes of Linux and macOS share. */
#ifndef FMILIN_SANDBOX_POSIX_H
#define FMILIN_SANDBOX_POSIX_H

#include "sandbox.h"

bool is_descriptor_kept(const struct sandbox_limits *limits, int descriptor);

/* Lets 0, 1 and 2 lead to /dev/null where they are closed, are a terminal or, as 0, are not kept. Reports it. */
void redirect_standard_descriptors(const struct sandbox_limits *limits, struct sandbox_report *report);

/* Starts a session, which has no controlling terminal, with all signals unblocked. */
void start_session(struct sandbox_report *report);

/* Lowers the soft and the hard limit to the value, where they are not lower. */
bool lower_limit(int resource, uint64_t value);
void limit_resource(int resource, uint64_t value, enum protection protection, struct sandbox_report *report);
void limit_files(const struct sandbox_limits *limits, struct sandbox_report *report);

/* Ends this process as another has ended, by its wait status. */
void end_like(int status);

void report_error(struct sandbox_report *report, enum protection protection, const char *what); /* by errno */

#endif
