package Friction "Friction elements at the start: stuck, too weak to stay so, sliding"
  model Drum "An inertia on a spring, to a drum with a brake"
    import Modelica.Mechanics.Rotational.Components;
    parameter Real F = 10 "Normal force";
    parameter Real speed = 0 "Of the drum at the start";
    Components.Inertia wheel(J = 2, phi(start = 0.1, fixed = true), w(start = 0, fixed = true));
    Components.Spring spring(c = 8);
    Components.Inertia drum(J = 1, phi(start = 0, fixed = true), w(start = speed, fixed = true));
    Components.Brake brake(fn_max = F, mu_pos = [0, 0.5; 1, 0.7]);
    Modelica.Blocks.Sources.Constant pressure(k = 1);
  equation
    connect(wheel.flange_b, spring.flange_a);
    connect(spring.flange_b, drum.flange_a);
    connect(drum.flange_b, brake.flange_a);
    connect(pressure.y, brake.f_normalized);
  end Drum;

  model Gear "A gear of ratio 2 with mesh efficiency 0.9 between two dampers"
    import Modelica.Mechanics.Rotational.Components;
    parameter Real d_motor = 0;
    parameter Real d_load = 0;
    Components.Inertia motor(J = 1, phi(start = 0, fixed = true), w(start = 10, fixed = true));
    Components.LossyGear gear(ratio = 2, lossTable = [0, 0.9, 0.9, 0, 0]);
    Components.Inertia load(J = 3);
    Components.Damper before(d = d_motor);
    Components.Damper behind(d = d_load);
    Components.Fixed ground;
  equation
    connect(motor.flange_b, gear.flange_a);
    connect(gear.flange_b, load.flange_a);
    connect(motor.flange_a, before.flange_a);
    connect(before.flange_b, ground.flange);
    connect(load.flange_b, behind.flange_a);
    connect(behind.flange_b, ground.flange);
  end Gear;

  model OneWay "An inertia in a one-way clutch to its drive"
    import Modelica.Mechanics.Rotational.Components;
    parameter Real speed = 2 "Of the load at the start";
    parameter Real torque = 0 "Of the drive";
    parameter Real d = 0 "Damping of the load";
    Components.Inertia drive(J = 1, phi(start = 0, fixed = true), w(start = 1, fixed = true));
    Components.OneWayClutch clutch(fn_max = 1, mu_pos = [0, 0.5; 4, 0.9]);
    Components.Inertia load(J = 5, phi(start = 0, fixed = true), w(start = speed, fixed = true));
    Components.Damper damper(d = d);
    Components.Fixed ground;
    Modelica.Mechanics.Rotational.Sources.ConstantTorque motor(tau_constant = torque);
    Modelica.Blocks.Sources.Constant pressure(k = 1);
  equation
    connect(motor.flange, drive.flange_a);
    connect(drive.flange_b, clutch.flange_a);
    connect(clutch.flange_b, load.flange_a);
    connect(load.flange_b, damper.flange_a);
    connect(damper.flange_b, ground.flange);
    connect(pressure.y, clutch.f_normalized);
  end OneWay;

  model Micro "A drum of a micro-mechanism with a brake, pulled"
    import Modelica.Mechanics.Rotational.Components;
    parameter Real F = 1e-11 "Normal force";
    parameter Real speed = 0 "Of the drum at the start";
    Components.Inertia drum(J = 1e-12, phi(start = 0, fixed = true), w(start = speed, fixed = true, nominal = 1e-6));
    Components.Brake brake(fn_max = F);
    Modelica.Mechanics.Rotational.Sources.ConstantTorque motor(tau_constant = 2e-12);
    Modelica.Blocks.Sources.Constant pressure(k = 1);
  equation
    connect(motor.flange, drum.flange_a);
    connect(drum.flange_b, brake.flange_a);
    connect(pressure.y, brake.f_normalized);
  end Micro;

  model Stribeck "A mass whose friction falls with the speed"
    parameter Real speed = 1;
    Modelica.Mechanics.Translational.Components.MassWithStopAndFriction mass(
      m = 2, F_prop = 3, F_Coulomb = 5, F_Stribeck = 10, fexp = 2, L = 1, smin = -10, smax = 10,
      s(start = 0, fixed = true), v(start = speed, fixed = true));
  end Stribeck;
end Friction;
