/* FMI 1.0: says why it cannot be initialized.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="refuses1" modelIdentifier="refuses1" guid="{refuses1}"
  generationTool="by hand" numberOfContinuousStates="2" numberOfEventIndicators="0">
  <TypeDefinitions>
    <Type name="Length"><RealType unit="m" nominal="0.5"/></Type>
  </TypeDefinitions>
  <DefaultExperiment startTime="0.0" stopTime="1.0"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0"><Real declaredType="Length" start="1" fixed="true"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1"><Real unit="m/s" start="0" fixed="true"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real unit="m/s"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real unit="m/s2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real unit="N" start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="mass" valueReference="6" variability="parameter"><Real unit="kg" start="2"/></ScalarVariable>
    <ScalarVariable name="stiffness" valueReference="7" variability="parameter"><Real start="8"/></ScalarVariable>
    <ScalarVariable name="damping" valueReference="8" variability="parameter"><Real start="0.5"/></ScalarVariable>
    <ScalarVariable name="square" valueReference="9"><Real/></ScalarVariable>
    <ScalarVariable name="position" valueReference="0" alias="alias"><Real/></ScalarVariable>
    <ScalarVariable name="minus_x" valueReference="0" alias="negatedAlias" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="count" valueReference="1" variability="parameter"><Integer start="3"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="2" variability="parameter"><Boolean start="true"/></ScalarVariable>
    <ScalarVariable name="label" valueReference="3" variability="parameter"><String start="abc"/></ScalarVariable>
  </ModelVariables>
</fmiModelDescription>
*/
#define MODEL refuses1
#define ON_INITIALIZE { SAY(fmi1Error, "no solution for %s after %d steps", "x", 17); return fmi1Error; }
#include "spring1.h"
