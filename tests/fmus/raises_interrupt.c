/* Sends itself the signal of Ctrl-C when it is asked for derivatives. */
#include <signal.h>
#define ON_GET_DERIVATIVES raise(SIGINT);
#include "spring.h"
