/* Can be instantiated only where it cannot write into the working directory. */
#include <stdio.h>
#define ON_INSTANTIATE if (fopen("written-by-an-fmu", "w")) return 0;
#include "spring.h"
