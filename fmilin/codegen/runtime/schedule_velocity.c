    @real row[@WIDTH];
    @real e[@P];

    @look_up(self, in, row);
    for (int i = 0; i < @P; i++) {
        e[i] = ((self->begun[0] > (@real)0) ? self->y[i] : row[@AT_y0 + i]) - in[@N + i];
    }
/* angles */
    for (int i = 0; i < @K; i++) {
        out[i] = (self->begun[0] > (@real)0) ? self->u[i] : row[@AT_u0 + i];
    }
    @accumulate(@K, @P, &row[@AT_K], e, out);
/* limits */
    for (int i = 0; i < @P; i++) {
        self->y[i] = in[@N + i];
    }
    for (int i = 0; i < @K; i++) {
        self->u[i] = out[i];
    }
    self->begun[0] = (@real)1;
