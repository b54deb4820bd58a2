model SliderCrank "whose loop the start values leave open"
  import Modelica.Mechanics.MultiBody.*;
  inner World world;
  Joints.Revolute r(phi(start=0.5,fixed=true),w(start=0,fixed=true));
  Parts.BodyShape c(m=1,r={0.3,0,0},r_CM={0.15,0,0},I_33=0.01);
  Parts.BodyShape rod(m=1,r={0.7,0,0},r_CM={0.35,0,0},I_33=0.05);
  Joints.Revolute r2;
  Joints.RevolutePlanarLoopConstraint r3;
  Joints.Prismatic p(n={1,0,0},s(start=0.9));
  Parts.Body sl(m=2,r_CM={0,0,0});
equation
  connect(world.frame_b,r.frame_a);
  connect(r.frame_b,c.frame_a);
  connect(c.frame_b,r2.frame_a);
  connect(r2.frame_b,rod.frame_a);
  connect(rod.frame_b,r3.frame_a);
  connect(world.frame_b,p.frame_a);
  connect(p.frame_b,sl.frame_a);
  connect(p.frame_b,r3.frame_b);
end SliderCrank;

model GantryCrane "A trolley on a rail, and a load on a rope that hangs"
  parameter Real l = 2.5;
  inner Modelica.Mechanics.MultiBody.World world(n = {0, 0, -1});
  Modelica.Mechanics.MultiBody.Joints.Prismatic rail(n = {1, 0, 0});
  Modelica.Mechanics.MultiBody.Parts.Body trolley(m = 8, r_CM = {0, 0, 0});
  Modelica.Mechanics.MultiBody.Joints.SphericalSpherical rope(rodLength = l);
  Modelica.Mechanics.MultiBody.Parts.Body load(m = 3, r_CM = {0, 0, 0}, r_0(start = {0, 0, -l}), enforceStates = true,
    useQuaternions = false);
equation
  connect(world.frame_b, rail.frame_a);
  connect(rail.frame_b, trolley.frame_a);
  connect(rail.frame_b, rope.frame_a);
  connect(rope.frame_b, load.frame_a);
end GantryCrane;
