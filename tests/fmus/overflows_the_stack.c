/* Calls itself until the stack is full. */
static double deeper(volatile double *x) {
    volatile double y[1000] = {*x + 1};
    return deeper(y) + y[0];
}
#define ON_GET_DERIVATIVES m->r[0] = deeper(m->r);
#include "spring.h"
