/* FMI 1.0, with states of which one is no variable of the description. */
#define MODEL nameless1
#define TELLS {0, 4294967295u}
#include "spring1.h"
