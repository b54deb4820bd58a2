/* Leaves the working directory and the locale in the middle of an evaluation, and prints garbage. */
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#define ON_GET_DERIVATIVES chdir("/"); setlocale(LC_ALL, "C"); printf("\x1b[31m\xff garbage\n"); fflush(stdout);
#include "spring.h"
