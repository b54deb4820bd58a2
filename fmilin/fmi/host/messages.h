/* Messages of the FMU and of the host, on their way to the client. */
#ifndef FMILIN_MESSAGES_H
#define FMILIN_MESSAGES_H

#include "fmi.h"

enum { MAX_RECORD_BYTES = 1 << 17, ERROR_OF_UNKNOWN_STATUS = ERROR };

/* From now on the last message of the FMU is written there, too: after a crash nobody takes the records. */
void repeat_last_text(struct progress *progress);

/* Writes the records since the last call, and the number of those that were dropped; returns their size. */
size_t take_records(char *to, size_t room, uint32_t *dropped);

#endif
