/* y is what an encoder of 8 counts per metre shows of x. */
#define OUTPUT floor(8 * r[0] + 0.5) / 8
#include "spring.h"
