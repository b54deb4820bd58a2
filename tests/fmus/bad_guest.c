/* Changes locale and working directory at instantiation, and prints to standard output. */
#include <locale.h>
#include <unistd.h>
#define ON_INSTANTIATE \
    setlocale(LC_ALL, "C"); \
    if (chdir("/")) return NULL; \
    printf("hello from the model\n");
#define ON_FREE printf("goodbye from the model\n");
#include "spring.h"
