/* Friction that is regularized over 1e-7: v' = u - tanh(v / 1e-7) - x. No nominal value says so. */
#define STIFFNESS tanh(r[1] / 1e-7) - 1
#include "spring.h"
