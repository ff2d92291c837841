/* embed: means and maxima, standardised; what does not vary is left out. */
#include "dataset/select/select.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

/* 4 columns: constant, i, of two rows the second larger, huge. */
TEST(vectors) {
    enum { N = 50, C = 4 };
    static float row[2 * N * C], *x;
    static int64_t ptr[N + 1];
    size_t program[N], dim = 0;
    cdmpp_err err = {0};
    for (int i = 0; i < N; i++) {
        float *a = row + 2 * i * C, *b = a + C;
        ptr[i + 1] = 2 * (i + 1);
        program[i] = (size_t)(N - 1 - i);
        a[0] = b[0] = 5, a[1] = b[1] = (float)i, a[2] = 1, b[2] = (float)(i * i), a[3] = 3e38f,
        b[3] = i % 2 ? 3e38f : -3e38f;
    }
    const cd_dataset d = {.n = N, .n_row = 2 * N, .n_col = C, .row = row, .row_ptr = ptr};
    assert_ok(cd_task_embedding_rows(&d, program, N, &x, &dim, &err));
    assert_int_equal(dim, 5); /* means of 1, 2, 3; maxima of 1, 2 */
    for (size_t j = 0; j < dim; j++) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < N; i++) mean += (double)x[i * dim + j] / N;
        for (size_t i = 0; i < N; i++) var += (double)x[i * dim + j] * (double)x[i * dim + j] / N;
        assert_close(mean, 0, 0, 1e-6);
        assert_close(var, 1, 1e-5, 0);
    }
    for (size_t i = 1; i < N; i++) {
        assert_true(x[i * dim] < x[(i - 1) * dim]); /* program[] goes down */
        assert_true(x[i * dim + 1] < x[(i - 1) * dim + 1]);
    }
    cd_mem_free(x);
    assert_ok(cd_task_embedding_rows(&d, program, 1, &x, &dim, &err)); /* nothing varies */
    assert_int_equal(dim, 1);
    assert_true(x[0] == 0.0f);
    cd_mem_free(x);
    assert_ok(cd_task_embedding_rows(&d, program, 0, &x, &dim, &err));
    cd_mem_free(x);
}

TESTS(NULL, NULL, vectors)
