/* FMI 1.0: fmiGetStateValueReferences is an error, as in reference models of the standard. */
#define MODEL no_references1
#define ON_GET_REFERENCES return fmi1Error;
#include "spring1.h"
