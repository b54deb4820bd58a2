/* Copies of the host that wait, in place of states that an FMU cannot save; see COPY in protocol.h. */
#ifndef FMILIN_COPIES_H
#define FMILIN_COPIES_H

#include <stdint.h>

/*
 * Does what `request` (enum copy_request) says; OK, or HOST_NOT_COPIED where nothing has happened. After RETURN_TO_COPY
 * it returns in another process, at the place where that was made, and `sequence` has the value of the one before.
 */
int32_t copy_host(uint64_t request, uint32_t *sequence);

#endif
