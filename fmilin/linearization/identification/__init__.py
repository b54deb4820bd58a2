"""Linear models measured from responses: of models that bring their own solver and can only be stepped."""
