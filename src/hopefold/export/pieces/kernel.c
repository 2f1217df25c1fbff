/* The mass of the Student kernel, 1 / (1 + d), of the references of each class. */
static void classify(const float *point, float *mass)
{
    size_t r;
    for (r = 0; r < HOPEFOLD_REFERENCES; r++)
        mass[reference_classes[r]] += 1.0f / (1.0f + squared_distance(point, references[r]));
}
