/* Forks at every evaluation; the copies go on as if they were the model, too. */
#include <unistd.h>
#define ON_GET_DERIVATIVES fork();
#include "spring.h"
