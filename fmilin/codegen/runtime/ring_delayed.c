/* Between the samples whole and whole + 1 before the next one. */
static @real @delayed(const @real *ring, @real newest, int i)
{
    const int length = (int)@length[i];
    int later = (int)newest - ((int)@whole[i] - 1);
    int earlier = later - 1;

    later += (later < 0) ? length : 0;
    earlier += (earlier < 0) ? length : 0;
    ring += (int)@first[i];
    return ring[later] + @fraction[i] * (ring[earlier] - ring[later]);
}
