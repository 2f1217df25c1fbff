#ifdef HOPEFOLD_MAIN
/* Rows of CSV on standard input; where each lies, and its class if there are classes, on standard
   output. */
#include <stdio.h>
#include <stdlib.h>

enum { A_ROW, NO_ROW, THE_END };

/* The next line as numbers; an empty field is a missing value. */
static int read_row(float *row)
{
    char word[64], *rest;
    size_t length = 0, n_fields = 0, n_signs = 0;
    int sign, sound = 1;
    for (;;) {
        sign = getchar();
        if (sign == EOF && n_signs == 0)
            return THE_END;
        if (sign == ',' || sign == '\n' || sign == EOF) {
            word[length] = '\0';
            if (n_fields < HOPEFOLD_FEATURES) {
                row[n_fields] = strtof(length ? word : "nan", &rest);
                sound = sound && *rest == '\0';
            }
            n_fields++;
            length = 0;
            if (sign != ',')
                return sound && n_fields == HOPEFOLD_FEATURES ? A_ROW : NO_ROW;
        } else if (sign != '\r' && sign != ' ') {
            if (length < sizeof word - 1)
                word[length++] = (char)sign;
            else
                sound = 0;
        }
        n_signs++;
    }
}

#if HOPEFOLD_CLASSES
static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static int print_row(const float *row, const float *point)
{
    float probabilities[HOPEFOLD_CLASSES];
    int axis, label = hopefold_predict(row, probabilities);
    if (label < 0)
        return 0;
    for (axis = 0; axis < HOPEFOLD_COMPONENTS; axis++)
        printf("%.9g,", (double)point[axis]);
    print_quoted(hopefold_classes[label]);
    printf(",%.9g\n", (double)probabilities[label]);
    return 1;
}
#else
static int print_row(const float *row, const float *point)
{
    int axis;
    (void)row;
    for (axis = 0; axis < HOPEFOLD_COMPONENTS; axis++)
        if (!(point[axis] - point[axis] == 0.0f)) /* infinite or NaN */
            return 0;
    for (axis = 0; axis < HOPEFOLD_COMPONENTS; axis++)
        printf(axis ? ",%.9g" : "%.9g", (double)point[axis]);
    printf("\n");
    return 1;
}
#endif

int main(void)
{
    static float row[HOPEFOLD_FEATURES];
    float point[HOPEFOLD_COMPONENTS];
    unsigned long line = 0;
    int found, axis;
    for (axis = 0; axis < HOPEFOLD_COMPONENTS; axis++)
        printf(axis ? ",embedding_%d" : "embedding_%d", axis);
    printf(HOPEFOLD_CLASSES ? ",label,probability\n" : "\n");
    while ((found = read_row(row)) != THE_END) {
        line++;
        if (found == NO_ROW && line == 1) /* names of columns */
            continue;
        if (found == NO_ROW) {
            fprintf(stderr, "line %lu is not %d numbers\n", line, HOPEFOLD_FEATURES);
            return 1;
        }
        hopefold_transform(row, point);
        if (!print_row(row, point)) {
            fprintf(stderr, "line %lu has a missing value, or lies too far outside\n", line);
            return 1;
        }
    }
    return 0;
}
#endif
