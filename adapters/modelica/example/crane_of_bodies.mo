model Crane "From joints and bodies of the MultiBody library"
  import Modelica.Mechanics.MultiBody;
  inner MultiBody.World world(g = 9.81, enableAnimation = false);
  MultiBody.Joints.Prismatic rail(n = {1, 0, 0}, useAxisFlange = true);
  MultiBody.Parts.Body trolley(m = 5, r_CM = {0, 0, 0}, I_11 = 0, I_22 = 0, I_33 = 0);
  MultiBody.Joints.Revolute rope(n = {0, 0, 1});
  MultiBody.Parts.Body load(m = 2, r_CM = {0, -3, 0}, I_11 = 0, I_22 = 0, I_33 = 0);
  Modelica.Mechanics.Translational.Sources.Force drive;
  input Real F(unit = "N") "at the trolley";
  output Real position(unit = "m") = rail.s;
  output Real angle(unit = "rad") = rope.phi;
equation
  drive.f = F;
  connect(drive.flange, rail.axis);
  connect(world.frame_b, rail.frame_a);
  connect(rail.frame_b, trolley.frame_a);
  connect(rail.frame_b, rope.frame_a);
  connect(rope.frame_b, load.frame_a);
end Crane;
