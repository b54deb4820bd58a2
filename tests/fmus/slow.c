/* Where u is above 1 derivatives take 30 ms; where it is above 100 they never come. */
#include <unistd.h>
#define ON_GET_DERIVATIVES if (m->r[4] > 1) usleep(30000); while (m->r[4] > 100) pause();
#include "spring.h"
