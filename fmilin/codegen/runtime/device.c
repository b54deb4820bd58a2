
/* The model along kept states at many points, one point a thread; the arguments are those of run_along, with count rows in all
   arrays. */
KERNEL linearize_points(const double *s, long long count, const int *numbers, double limit, double *z, double *gradient, double *T,
                        double *rates, double *outputs, unsigned char *flags)
{
    Work work;
    double J[N_QUANTITIES * N_COLUMNS], room[N_COLUMNS * N_COLUMNS + 1];
    long long n = numbers[0], ny = numbers[1], invariants = numbers[2], kept = numbers[3], width = kept + N_COLUMNS - n;
    for (int i = 0; i < N_QUANTITIES * N_COLUMNS; i++) J[i] = 0.0;
    for (int i = 0; i < N_CONSTANT; i++) J[CONSTANT_ENTRY[i]] = CONSTANT_VALUE[i];
    for (long long p = FIRST_POINT; p < count; p += POINT_STEP)
        run_along(s + p * N_S, 1, numbers, limit, J, room, z + p * N_QUANTITIES, gradient + p * invariants * n, T + p * n * kept,
                  rates + p * n * width, outputs + p * ny * width, flags + p, &work);
}
