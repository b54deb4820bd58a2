/* Two answers of three have a spring that is stiffer by 1 or 2 %. */
#define STIFFNESS (1 + 0.01 * ((int)(r[7] += 1) % 3))
#include "spring.h"
