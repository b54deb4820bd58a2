/* Prints whenever it is asked: through the C library, and past it. */
#include <stdio.h>
#include <unistd.h>
#define ON_GET_DERIVATIVES printf("by the library\n"); write(1, "past it\n", 8);
#include "spring.h"
