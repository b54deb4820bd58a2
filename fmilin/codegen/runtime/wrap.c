/* a difference of angles in (-turn/2, turn/2]; what has no turn does not wrap */
static @real @wrap(@real difference, int k)
{
    const @real turn = @turns[k];

    return (turn > (@real)0) ? difference - (turn * ceil((difference / turn) - (@real)0.5)) : difference;
}
