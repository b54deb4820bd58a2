static int @corners(const @real *at, int *index, @real *weight)
{
    int cell[@N];
    @real part[@N];
    int first = 0;
    int whole = 1;

    for (int d = 0; d < @N; d++) {
        int i = 0;
        while ((i < (@sizes[d] - 2)) && (at[d] >= @axes[first + i + 1])) {
            i++;
        }
        part[d] = (at[d] - @axes[first + i]) / (@axes[first + i + 1] - @axes[first + i]);
        cell[d] = i;
        first += @sizes[d];
    }
    for (int c = 0; c < @CORNERS; c++) {
        int rest = c;
        int number = 0;
        @real w = (@real)1;

        for (int d = 0; d < @N; d++) {
            const int upper = rest % 2;

            number = (number * @sizes[d]) + cell[d] + upper;
            w = w * ((upper == 1) ? part[d] : ((@real)1 - part[d]));
            rest = rest / 2;
        }
        index[c] = number;
        weight[c] = w;
        if ((w > (@real)0) && (@good[number] < (@real)0.5)) {
            whole = 0;
        }
    }
    return whole;
}

static void @look_up(@self *self, const @real *in, @real *row)
{
    int index[@CORNERS];
    @real weight[@CORNERS];
    @real at[@N];
    int first = 0;
    int away = 0;

    for (int d = 0; d < @N; d++) {
        const @real low = @axes[first];
        const @real high = @axes[first + @sizes[d] - 1];

        at[d] = in[d];
        if (!(at[d] >= low)) { /* NaN, too */
            at[d] = low;
            away = 1;
        }
        if (at[d] > high) {
            at[d] = high;
            away = 1;
        }
        first += @sizes[d];
    }
    if (@corners(at, index, weight) == 1) {
        for (int d = 0; d < @N; d++) {
            self->at[d] = at[d];
        }
    } else {
        away = 1;
        (void)@corners(self->at, index, weight);
    }
    if (away == 1) {
        self->outside[0] = self->outside[0] + (@real)1;
    }
    for (int i = 0; i < @WIDTH; i++) {
        row[i] = (@real)0;
    }
    for (int c = 0; c < @CORNERS; c++) {
        if (weight[c] > (@real)0) {
            @accumulate(@WIDTH, 1, &@rows[index[c] * @WIDTH], &weight[c], row);
        }
    }
}
