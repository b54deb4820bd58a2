/* A library without the functions of FMI.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="half_a_library" guid="{half}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="half_a_library"/>
  <ModelVariables/>
  <ModelStructure/>
</fmiModelDescription>
*/
const char *fmi2GetVersion(void) { return "2.0"; }
