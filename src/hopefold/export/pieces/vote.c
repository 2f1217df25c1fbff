/* Votes of the nearest references; among tied classes the one with the nearest wins. */
static void classify(const float *point, float *mass)
{
    float distances[HOPEFOLD_NEIGHBORS];
    int nearest[HOPEFOLD_NEIGHBORS];
    size_t r, place, found = 0;
    for (r = 0; r < HOPEFOLD_REFERENCES; r++) {
        const float distance = squared_distance(point, references[r]);
        if (found == HOPEFOLD_NEIGHBORS && !(distance < distances[found - 1]))
            continue;
        if (found < HOPEFOLD_NEIGHBORS)
            found++;
        for (place = found - 1; place > 0 && distance < distances[place - 1]; place--) {
            distances[place] = distances[place - 1];
            nearest[place] = nearest[place - 1];
        }
        distances[place] = distance;
        nearest[place] = reference_classes[r];
    }
    for (place = 0; place < found; place++) {
        if (mass[nearest[place]] == 0.0f) /* the first of its class */
            mass[nearest[place]] += HOPEFOLD_TIE_BONUS / (float)(place + 1);
        mass[nearest[place]] += 1.0f;
    }
}
