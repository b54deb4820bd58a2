/* Forks when it is instantiated; the copy goes on as if it were the model, too. */
#include <unistd.h>
#define ON_INSTANTIATE fork();
#include "spring.h"
