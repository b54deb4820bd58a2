/* What the operating system does: libraries, shared memory, pipes. */
#ifndef FMILIN_PLATFORM_H
#define FMILIN_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*function)(void);

/* Opens the library from its own folder, which becomes the working directory; NULL and a reason in words on failure. */
void *open_library(const char *path, char *reason, size_t size);
void close_library(void *library);
function find_function(void *library, const char *name);

/*
 * Takes over what the command line names: two pipes and the arena. NULL where one of them cannot be used. Where the exit
 * status does not tell an exception, `report_crash` is called with its code.
 */
char *open_channel(const char *requests, const char *answers, const char *arena, size_t arena_size,
                   void (*report_crash)(uint32_t code));

/* Both return false at the end of the pipe, or when it is broken. */
bool read_bytes(void *to, size_t size);
bool write_bytes(const void *from, size_t size);

#endif
