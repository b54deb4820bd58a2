/* Crashes when its instance is freed. */
#include <stdlib.h>
#define ON_FREE abort();
#include "spring.h"
