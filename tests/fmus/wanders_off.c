/* Leaves the working directory and the locale in the middle of an evaluation, and prints garbage.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="wanders_off" guid="{wanders_off}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="wanders_off"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="square" valueReference="6"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="6"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#define ON_GET_DERIVATIVES chdir("/"); setlocale(LC_ALL, "C"); printf("\x1b[31m\xff garbage\n"); fflush(stdout);
#include "spring.h"
