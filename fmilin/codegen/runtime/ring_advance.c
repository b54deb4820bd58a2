static @real @advance(@real newest, int i)
{
    return (newest + 1 < @length[i]) ? newest + 1 : 0;
}
