static float squared_distance(const float *point, const float *reference)
{
    float sum = 0.0f;
    size_t axis;
    for (axis = 0; axis < HOPEFOLD_COMPONENTS; axis++) {
        const float apart = point[axis] - reference[axis];
        sum += apart * apart;
    }
    return sum;
}
