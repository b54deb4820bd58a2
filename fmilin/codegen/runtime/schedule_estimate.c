    @real row[@WIDTH];
    @real d[@P];
    @real e[@P];
    @real innovation[@M];
    @real du[@K];

    @look_up(self, in, row);
    for (int i = 0; i < @P; i++) {
        d[i] = (self->begun[0] > (@real)0) ? (self->y[i] - row[@AT_y0 + i]) : (@real)0;
    }
    for (int i = 0; i < @M; i++) {
        innovation[i] = row[@AT_m0 + i] - in[@N + i];
    }
    @accumulate(@M, @P, &row[@AT_C], d, innovation);
    for (int i = 0; i < @M; i++) {
        innovation[i] = -innovation[i];
    }
/* angles */
    @accumulate(@P, @M, &row[@AT_L], innovation, d);
    for (int i = 0; i < @P; i++) {
        e[i] = -d[i];
    }
    for (int i = 0; i < @K; i++) {
        out[i] = row[@AT_u0 + i];
    }
    @accumulate(@K, @P, &row[@AT_K], e, out);
/* limits */
    for (int i = 0; i < @K; i++) {
        du[i] = out[i] - row[@AT_u0 + i];
    }
    for (int i = 0; i < @P; i++) {
        self->y[i] = row[@AT_y0 + i] + row[@AT_f + i];
    }
    @accumulate(@P, @P, &row[@AT_A], d, self->y);
    @accumulate(@P, @K, &row[@AT_B], du, self->y);
    self->begun[0] = (@real)1;
