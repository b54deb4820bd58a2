/* v' = u - sin(x), after 1e10 has come and gone. */
#define STIFFNESS ((1e10 + sin(r[0])) - 1e10) - 0
#include "spring.h"
