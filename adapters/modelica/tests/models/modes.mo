package Modes "Friction elements of no library"
  model Contradiction "An element that is stuck only while it is not"
    Element element;
  end Contradiction;

  model Unmeasured "Stuck without a velocity among the states: the speeds of two shafts, their sum known"
    Element element(limit = 2);
  end Unmeasured;

  model Element
    parameter Real limit = 0.5;
    Real w(start = 0, fixed = true), w_other(start = 0, fixed = true);
    Real a, f;
    Boolean locked(start = true, fixed = true), was(start = true, fixed = true);
  equation
    der(w) = 1 - f;
    der(w_other) = f;
    a = der(w) - der(w_other);
    0 = if locked then 3*a else f - 0.25;
    was = f < limit;
    locked = pre(was);
  end Element;

  model Heavy "Stuck, with a mass before its acceleration"
    Mass element;
  end Heavy;

  model Mass
    parameter Real m = 3;
    Real w(start = 0, fixed = true), f;
    Boolean locked(start = true, fixed = true), was(start = true, fixed = true);
  equation
    m*der(w) = 1 - f;
    0 = if locked then m*der(w) else f - 0.25;
    was = f < 2;
    locked = pre(was);
  end Mass;
end Modes;
