/* Crashes when the library is unloaded. */
#include <signal.h>
#include "spring.h"
__attribute__((destructor)) static void crash(void) { raise(SIGSEGV); }
