/* Never returns from its own unloading. */
#include "spring.h"
__attribute__((destructor)) static void wait(void) {
    for (volatile int i = 0;; i++);
}
