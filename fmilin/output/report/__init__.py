"""Tables, pictures and pages: what people read of linear models, families, points, motions and verifications."""
