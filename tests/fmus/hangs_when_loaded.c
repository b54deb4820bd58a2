/* Never returns from its own loading. */
#include "spring.h"
__attribute__((constructor)) static void wait(void) {
    for (volatile int i = 0;; i++);
}
