model Crane "By its equations, in Cartesian coordinates"
  parameter Real M(unit = "kg") = 5, m(unit = "kg") = 2, l(unit = "m") = 3;
  constant Real g(unit = "m/s2") = 9.81;
  input Real F(unit = "N") "at the trolley";
  output Real position(unit = "m") = s;
  output Real angle(unit = "rad") = atan2(x - s, -y);
  Real s(unit = "m"), v(unit = "m/s");
  Real x(unit = "m"), y(unit = "m", start = -3), vx(unit = "m/s"), vy(unit = "m/s");
  Real T(unit = "N/m") "tension over length";
equation
  der(s) = v;
  der(x) = vx;
  der(y) = vy;
  M*der(v) = F + T*(x - s);
  m*der(vx) = -T*(x - s);
  m*der(vy) = -T*y - m*g;
  (x - s)^2 + y^2 = l^2;
end Crane;
