    @real row[@WIDTH];
    @real e[@P];

    @look_up(self, in, row);
    for (int i = 0; i < @P; i++) {
        e[i] = row[@AT_y0 + i] - in[@N + i];
    }
/* angles */
    for (int i = 0; i < @K; i++) {
        out[i] = row[@AT_u0 + i];
    }
    @accumulate(@K, @P, &row[@AT_K], e, out);
/* limits */
